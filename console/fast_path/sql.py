"""Execute SQL statements fast, without the overhead of Django's cursors.

Django's cursors check, wrap and translate each statement anew: on an embedded database that takes
longer than the statement itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from django.db import DEFAULT_DB_ALIAS, connections

from console.store.db.writer import is_embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MARK = re.compile(r"(?<!%)%s")


def cursor() -> Any:
    """Return a cursor for a ``with``, which does what Django's does and raises the same errors.

    It is Django's where somebody watches the statements, and for other databases than the embedded.
    """
    database = connections[DEFAULT_DB_ALIAS]
    watched = database.queries_logged or database.execute_wrappers
    if not is_embedded() or database.connection is None or watched:
        return database.cursor()
    return _Cursor(database)


class _Cursor:
    """A cursor of SQLite that takes Django's marks and raises its errors."""

    __slots__ = ("_cursor", "_database")

    def __init__(self, database: Any) -> None:
        self._database = database
        self._cursor = database.connection.cursor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cursor.close()

    def execute(self, sql: str, values: Sequence[Any] | None = None) -> None:
        """Execute a statement; its values in the order of its ``%s``."""
        self._check()
        with self._database.wrap_database_errors:
            if values is None:
                self._cursor.execute(sql)
            else:
                self._cursor.execute(_marked(sql), values)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of values."""
        self._check()
        with self._database.wrap_database_errors:
            self._cursor.executemany(_marked(sql), rows)

    def _check(self) -> None:
        if self._database.needs_rollback:
            self._database.validate_no_broken_transaction()

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        with self._database.wrap_database_errors:
            return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        with self._database.wrap_database_errors:
            rows: list[Any] = self._cursor.fetchall()
        return rows

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows that are left."""
        with self._database.wrap_database_errors:
            yield from self._cursor

    @property
    def rowcount(self) -> int:
        """Return how many rows the last statement changed."""
        return int(self._cursor.rowcount)


@lru_cache(maxsize=1024)
def _marked(sql: str) -> str:
    """Return a statement with SQLite's marks for values."""
    return _MARK.sub("?", sql).replace("%%", "%")
