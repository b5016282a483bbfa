"""Cursors that cost less than Django's, and do what those do.

On SQLite a plain one takes the place of Django's, which checks, wraps and translates each statement
anew. On PostgreSQL Django's puts the values into the text, so that the server parses each statement
anew, which took longer than to find a row by its key. ``fetch_row`` lets it parse a statement once
a connection. The plan is still made each time (``postgres.SESSION``): one that was made while a
table was empty would read it whole later.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SQLITE_MARK = re.compile(r"(?<!%)%s")


def fetch_row(sql: str, values: Sequence[Any]) -> Any:
    """Return the first row of a statement, None if there is none; raise Django's errors."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    if database.vendor != "postgresql" or _is_watched(database):
        with open_cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchone()
    database.validate_thread_sharing()
    database.close_if_health_check_failed()
    database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    with database.wrap_database_errors:
        return psycopg.Cursor(database.connection).execute(sql, values, prepare=True).fetchone()


def _is_watched(database: Any) -> bool:
    return bool(database.queries_logged or database.execute_wrappers)


def open_cursor() -> Any:
    """Return a cursor for a ``with``, which does what Django's does and raises the same errors.

    It is Django's where somebody watches the statements, and for other databases than the embedded.
    """
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor != "sqlite" or database.connection is None or _is_watched(database):
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
    return _SQLITE_MARK.sub("?", sql).replace("%%", "%")
