"""The fast cursor behaves as Django's cursor does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from console.db import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project

_INSERT = "INSERT INTO console_project (name, account_id) VALUES (%s, %s)"


def asked(statement: str, parameters: Sequence[Any] | None = None) -> list[Any]:
    """Return what a statement finds."""
    with rows.open_cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor)


def test_it_takes_djangos_marks(project: Project) -> None:
    """Values, percent signs, and statements without values."""
    assert asked("SELECT name FROM console_project WHERE account_id = %s", ["x"]) == []
    rows = asked("SELECT name, 7 %% 4 FROM console_project WHERE id = %s", [project.pk])
    assert [tuple(row) for row in rows] == [("default", 3)]
    assert tuple(asked("SELECT 7 % 4")[0]) == (3,)


def test_it_tells_how_many_rows_there_were(project: Project) -> None:
    """Changed ones, one after the other, and the rest."""
    with rows.open_cursor() as cursor:
        projects = [("a", "111111111111"), ("b", "222222222222")]
        cursor.executemany(_INSERT, projects)
        cursor.execute("UPDATE console_project SET name = name WHERE id <> %s", [project.pk])
        assert cursor.rowcount == 2
        cursor.execute("SELECT name FROM console_project ORDER BY name")
        assert cursor.fetchone()[0] == "a"
        assert [name for (name,) in cursor.fetchall()] == ["b", "default"]
        assert cursor.fetchone() is None


def test_it_raises_djangos_errors(project: Project) -> None:
    """Of the database, and of a transaction that is broken."""
    with pytest.raises(IntegrityError), transaction.atomic():
        asked("INSERT INTO console_project (id, name) VALUES (%s, NULL)", [project.pk])
    with pytest.raises(DatabaseError, match="no_such_table"), transaction.atomic():
        asked("SELECT 1 FROM no_such_table")
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            asked("SELECT 1")


def test_who_watches_sees_each_statement(project: Project) -> None:
    """Counted queries and wrappers, as with Django's cursor."""
    del project
    seen: list[str] = []

    def watch(execute: Any, statement: str, *more: Any) -> Any:
        seen.append(statement)
        return execute(statement, *more)

    with connection.execute_wrapper(watch):
        asked("SELECT 1")
    with CaptureQueriesContext(connection) as queries:
        asked("SELECT 2")
    assert (seen, [query["sql"] for query in queries]) == (["SELECT 1"], ["SELECT 2"])
