"""Run a change of many so that the others stay if it fails (SQLite)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

if TYPE_CHECKING:
    from collections.abc import Callable


def run_in_savepoint(
    fn: Callable[[], Any], check: Callable[[Exception | None], None]
) -> tuple[Any, Exception | None]:
    """Run a function in a savepoint; return its result and what it raised.

    ``check``: gets what it raised, and raises if the whole transaction went with it.
    """
    result: Any = None
    failure: Exception | None = None
    database = connections[DEFAULT_DB_ALIAS]  # once: to look it up takes half a statement's time
    hooks = len(database.run_on_commit)
    # Not by atomic(), which takes ten times as long; nor by a cursor of Django, which refuses every
    # statement, "ROLLBACK TO" as well, once a statement has failed.
    with database.wrap_database_errors:
        database.connection.execute("SAVEPOINT job")
    try:
        result = fn()
    except Exception as error:  # noqa: BLE001 - it goes to the one who asked
        failure = error
    if database.needs_rollback and failure is None:
        failure = OperationalError("the database rolled the transaction back")
    with database.wrap_database_errors:
        if failure is not None and database.connection.in_transaction:
            database.connection.execute("ROLLBACK TO job")
            del database.run_on_commit[hooks:]
            database.needs_rollback = False
    check(failure)  # also after a success: the function may have caught the error
    with database.wrap_database_errors:
        database.connection.execute("RELEASE job")
    return result, failure
