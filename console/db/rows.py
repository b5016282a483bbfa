"""Fast reads and writes of rows: SQL built once, plain cursors, and recorded changes.

**SQL built once.** The ORM compiles a query on each call, which takes ten times as long as the
database's work. Here the SQL is built once from the model's fields. This supports models with plain
fields only (numbers, texts, booleans, foreign keys), and their stored values.

**Plain cursors.** Django's cursors check, wrap and translate each statement. On an embedded
database that takes longer than the statement itself, so ``open_cursor`` returns a plain one there.
On PostgreSQL the server parses Django's statements each time, those of ``fetch_row`` and
``fetch_rows`` once a connection.

**Recorded changes.** A function for ``write`` writes rows by this module and publishes signals.
While ``record`` runs it, nothing is written: its statements and signals are collected, so that
PostgreSQL can write many changes at once (``db.merged``). A statement that must change its row is
assumed to do so, and ``merged`` checks later. A function that queries the database cannot be
recorded, and runs in a transaction of its own; ``read_or_assume``, ``require`` and ``returning``
ask without a query (``db.writer`` has the theory).
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.base import ModelState
from django.db.transaction import TransactionManagementError

from console.db.postgres import column_types, fetch_all_prepared, fetch_prepared, take_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Row = tuple[Any, ...]
    Key = tuple[Any, ...]

M = TypeVar("M", bound=models.Model)
T = TypeVar("T")
_WORTH_A_COPY = 8
_AT_ONCE = 50  # rows of one statement on SQLite, in which another thread cannot have its turn
_UNSTORABLE, _INSTEAD = re.compile("[\x00\ud800-\udfff]"), "\ufffd"
_MARK, _SQLITE_MARK = re.compile("%s"), re.compile(r"(?<!%)%s")
KEYED_ORDER, INSERT_ORDER = 20, 60
_KEYS, _KEYS_S = 20, 0.3
_keys: dict[str, tuple[float, deque[int]]] = defaultdict(lambda: (0.0, deque()))
_keys_lock = threading.Lock()
_statements: dict[tuple[str, str], Statement] = {}


# -- cursors ---------------------------------------------------------------------------------------


def fetch_row(sql: str, values: Sequence[Any]) -> Any:
    """Return the first row of a statement, None without rows; raise Django's errors."""
    database = current_database()
    if database.vendor == "postgresql" and not _is_watched(database):
        return fetch_prepared(database, sql, values)
    with open_cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()


def fetch_rows(sql: str, values: Sequence[Any], *, keep_plan: bool = False) -> list[Row]:
    """Return the rows of a statement; raise Django's errors. ``keep_plan``: on PostgreSQL."""
    database = current_database()
    if database.vendor == "postgresql" and not _is_watched(database):
        return fetch_all_prepared(database, sql, values, keep_plan=keep_plan)
    with open_cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[Row] = cursor.fetchall()
    return rows


def current_database() -> Any:
    """Return Django's connection of this thread."""
    return _local.database or connections[DEFAULT_DB_ALIAS]


def keep_connection() -> None:
    """Cache this thread's connection; only for threads without an event loop."""
    _local.database = connections[DEFAULT_DB_ALIAS]


def call_with(database: Any, fn: Callable[..., T], *args: Any) -> T:
    """Call a function with the connection already looked up."""
    before, _local.database = _local.database, database
    try:
        return fn(*args)
    finally:
        _local.database = before


def _is_watched(database: Any) -> bool:
    return bool(database.queries_logged or database.execute_wrappers)


def open_cursor() -> Any:
    """Return a fast cursor for a ``with`` statement; it raises Django's errors.

    It is Django's own cursor if queries are watched, and for databases other than SQLite.
    """
    database = current_database()
    if database.vendor != "sqlite" or database.connection is None or _is_watched(database):
        return database.cursor()
    return _Cursor(database)


class _Cursor:
    """A cursor of SQLite that accepts ``%s`` and raises Django's errors."""

    __slots__ = ("_cursor", "_database")

    def __init__(self, database: Any) -> None:
        self._database = database
        self._cursor = database.connection.cursor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cursor.close()

    def execute(self, sql: str, values: Sequence[Any] | None = None) -> None:
        """Execute a statement with values for its ``%s``."""
        self._check()
        with self._database.wrap_database_errors:
            if values is None:
                self._cursor.execute(sql)
            else:
                self._cursor.execute(_with_own_marks(sql), values)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of values."""
        self._check()
        with self._database.wrap_database_errors:
            self._cursor.executemany(_with_own_marks(sql), rows)

    def _check(self) -> None:
        if self._database.needs_rollback:
            self._database.validate_no_broken_transaction()

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        with self._database.wrap_database_errors:
            return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        with self._database.wrap_database_errors:
            rows: list[Any] = self._cursor.fetchall()
        return rows

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""
        with self._database.wrap_database_errors:
            yield from self._cursor

    @property
    def rowcount(self) -> int:
        """Return the number of rows that the last statement changed."""
        return int(self._cursor.rowcount)


@lru_cache(maxsize=1024)
def _with_own_marks(sql: str) -> str:
    """Return a statement with SQLite's placeholders."""
    return _SQLITE_MARK.sub("?", sql).replace("%%", "%")


# -- rows ------------------------------------------------------------------------------------------


class _Table(NamedTuple):
    """A model's table. ``names``: attributes to read; ``values`` of ``columns``: to write."""

    name: str
    names: list[str]
    select: str
    columns: str
    places: dict[str, int]  # attribute -> where its column stands in ``columns``
    values: Callable[[Any], tuple[Any, ...]]  # of a row
    picked: Callable[[Mapping[str, Any]], tuple[Any, ...]]  # the same of a row given by attribute
    key: str | None  # the attribute that the database fills in
    defaults: dict[str, Any]  # of what is written and has one


@lru_cache(maxsize=64)
def _table(model: type[models.Model]) -> _Table:
    about = model._meta  # noqa: SLF001 - Django's documented API in spite of its name
    fields = about.concrete_fields
    auto = next((field.attname for field in fields if isinstance(field, models.AutoField)), None)
    written = [field for field in fields if field.attname != auto]
    return _Table(
        about.db_table,
        [field.attname for field in fields],
        f"SELECT {', '.join(str(field.column) for field in fields)} FROM {about.db_table}",
        ", ".join(str(field.column) for field in written),
        {field.attname: place for place, field in enumerate(written)},
        attrgetter(*(field.attname for field in written)),
        itemgetter(*(field.attname for field in written)),
        auto,
        {
            field.attname: field.get_default()
            for field in written
            if field.has_default() or field.null
        },
    )


def fetch_one(model: type[M], where: str, values: Sequence[Any]) -> M | None:
    """Return the first instance for a condition in SQL, None without one."""
    table = _table(model)
    row = fetch_row(f"{table.select} WHERE {where}", values)
    return None if row is None else _instance(model, table.names, row)


def _instance(model: type[M], names: Sequence[str], row: Sequence[Any]) -> M:
    """Return a row as a model instance: like ``from_db`` for plain fields, without signals."""
    instance = model.__new__(model)
    instance._state = ModelState()  # noqa: SLF001 - documented, as below
    instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001
    instance.__dict__.update(zip(names, row, strict=True))
    return instance


def insert(row: models.Model, **instead: Any) -> None:
    """Insert a new row and set its primary key.

    ``instead``: attribute -> the value to write in place of the row's.
    """
    table = _table(type(row))
    values = [*table.values(row)]
    for name, value in instead.items():
        values[table.places[name]] = value
    recorded = _local.current
    if recorded is not None and table.key is not None:
        key = next_key(table.name, table.key)
        setattr(row, table.key, key)
        keyed = inserting_keyed(table.name, table.columns, table.key)
        recorded.add(keyed, [(key, *values)])
        return
    statement = _insert(table.name, table.columns)
    with open_cursor() as cursor:
        if table.key is None:
            cursor.execute(statement, values)
        else:
            cursor.execute(f"{statement} RETURNING {table.key}", values)
            (key,) = cursor.fetchone()
            setattr(row, table.key, key)
    row._state.adding = False  # noqa: SLF001 - documented, too
    row._state.db = DEFAULT_DB_ALIAS  # noqa: SLF001


def insert_rows(model: type[models.Model], new_rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of a model, given as attributes, without reading their keys."""
    table = _table(model)
    append(table.name, table.columns, [table.picked(table.defaults | {**row}) for row in new_rows])


def insert_all(rows: Sequence[models.Model]) -> None:
    """Insert new rows of one model, without reading generated keys."""
    if rows:
        table = _table(type(rows[0]))
        append(table.name, table.columns, [table.values(row) for row in rows])


def append(table: str, columns: str, values: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows (``values`` in the order of ``columns``), by COPY where that is faster."""
    if not values:
        return
    recorded = _local.current
    if recorded is not None:
        recorded.add(inserting(table, columns), values)
        return
    vendor = current_database().vendor
    with open_cursor() as cursor:
        if vendor == "postgresql" and len(values) >= _WORTH_A_COPY:
            # Django does not translate the errors of COPY: an outage would be the execution's fault
            with connection.wrap_database_errors, cursor.copy(copying(table, columns)) as copy:
                for row in values:
                    copy.write_row(row)
            return
        whole = len(values) // _AT_ONCE * _AT_ONCE if vendor == "sqlite" else 0
        for start in range(0, whole, _AT_ONCE):
            several = chain.from_iterable(values[start : start + _AT_ONCE])
            cursor.execute(_insert(table, columns, _AT_ONCE), [*several])
        if whole < len(values):
            cursor.executemany(_insert(table, columns), values[whole:])


def change(statement: Statement, values: Sequence[tuple[Any, ...]]) -> int:
    """Execute a statement for each row of values; return the number of changed rows.

    While recording, all count as changed; the commit fails later if they were not.
    """
    if not values:
        return 0
    recorded = _local.current
    if recorded is not None:
        recorded.add(statement, values)
        return len(values)
    with open_cursor() as cursor:
        if len(values) == 1:
            cursor.execute(statement.text, values[0])
        else:
            cursor.executemany(statement.text, values)
        return int(cursor.rowcount)


@lru_cache(maxsize=64)
def _insert(table: str, columns: str, count: int = 1) -> str:
    marks = ", ".join(["%s"] * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([f'({marks})'] * count)}"


def storable(text: str) -> str:
    """Replace U+0000 (for PostgreSQL) and lone surrogates in a text by U+FFFD.

    JSON text can contain U+0000 only as an escape, which is storable.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(_INSTEAD, text)


# -- statements, and recording them ----------------------------------------------------------------


class Unmergeable(Exception):
    """A change queries the database, so it cannot be recorded."""


@dataclass(frozen=True, eq=False)  # by identity: each commit looks statements up fifty times
class Statement:
    """A statement that changes or inserts a row, for one row or for many at once.

    ``text``: with ``%s`` for values; ``types``: theirs in PostgreSQL. ``order``: where it stands in
    a transaction of many changes. ``key``: the places of the values that name the row, if the row
    must be there; ``returning``: the columns that these are, and more that the caller wants.
    ``merged``: the statement for many rows, if it cannot be derived from ``text``: the values are
    columns ``c0``, ``c1``, ... of ``g``.
    """

    order: int
    text: str
    types: tuple[str, ...]
    key: tuple[int, ...] = ()
    returning: str = ""
    merged: str = ""
    owns: bool = False
    """Whether no other change in the transaction may touch its execution (first key value)."""
    joins: bool = False
    """Whether other changes may touch its execution by the same statement only."""
    copy: str = ""
    """The equivalent COPY statement, None without one."""
    may_miss: bool = False
    """Whether a change is written even if the statement returns no row for its key."""

    @cached_property
    def for_many(self) -> str:
        """Return the statement that takes an array for each value."""
        arrays = ", ".join(f"${place}::{name}[]" for place, name in enumerate(self.types, 1))
        columns = ", ".join(f"c{place}" for place in range(len(self.types)))
        value_rows = f"unnest({arrays}) AS g({columns})"
        if self.merged:
            return self.merged.replace("{given}", value_rows)
        places = iter(range(len(self.types)))
        own = _MARK.sub(lambda _: f"g.c{next(places)}", self.text)
        head, _, condition = own.partition(" WHERE ")
        source = "USING" if head.startswith("DELETE") else "FROM"
        ending = f" RETURNING {self.returning}" if self.key else ""
        return f"{head} {source} {value_rows} WHERE {condition}{ending}"


@dataclass
class WriteSet:
    """The rows and signals of a recorded change. ``result``: its function's return value.

    ``make``: makes the result from the rows that the statements returned, after the commit.
    ``follow``: called before the commit with the returned rows; its further statements, which
    require no row, are ``following``. After a rollback it may be called again.
    """

    rows: dict[Statement, list[Row]] = field(default_factory=dict)
    signals: list[tuple[Any, tuple[object, ...]]] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)
    returned: dict[tuple[Statement, Key], Row] = field(default_factory=dict)
    result: Any = None
    make: Callable[[dict[tuple[Statement, Key], Row]], Any] | None = None
    follow: Callable[[dict[tuple[Statement, Key], Row]], None] | None = None
    following: WriteSet | None = None

    def add(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Add rows of a statement."""
        self.rows.setdefault(statement, []).extend(rows)

    @cached_property
    def keys(self) -> dict[tuple[Statement, Key], None]:
        """Return the rows that must exist, with their statements."""
        return {
            (statement, tuple(row[place] for place in statement.key)): None
            for statement, rows in self.rows.items()
            if statement.key
            for row in rows
        }


class _Local(threading.local):
    current: WriteSet | None = None
    database: Any = None


_local = _Local()


def is_recording() -> bool:
    """Return whether this thread records a change."""
    return _local.current is not None


def current_write_set() -> WriteSet | None:
    """Return this thread's recording, None without one; for this package only."""
    return _local.current


def read_or_assume(read: Callable[[], T], *, assumed: T) -> T:
    """Return the result of ``read``; while recording, ``assumed`` without reading.

    Some statement of the change must find no row if the assumption is wrong: the change then runs
    alone, and reads.
    """
    return read() if _local.current is None else assumed


def require(statement: Statement, values: Row, read: Callable[[], bool]) -> bool:
    """Return the result of ``read``; while recording, add a statement and return True.

    The statement must find no row if ``read`` would return False.
    """
    if _local.current is None:
        return read()
    _local.current.add(statement, [values])
    return True


def returning(
    statement: Statement,
    values: Row,
    make: Callable[[Row | None], T],
    otherwise: Callable[[], T],
    follow: Callable[[Row | None], None] | None = None,
) -> T:
    """Return the result of ``otherwise``; while recording, add a statement instead.

    The result of the change is then what ``make`` returns for the row that the statement returned,
    None if there is none. ``follow``: called with that row before the commit, see ``WriteSet``.
    """
    write_set = _local.current
    if write_set is None:
        return otherwise()
    key = (statement, tuple(values[place] for place in statement.key))
    write_set.add(statement, [values])
    write_set.make = lambda returned: make(returned.get(key))
    if follow is not None:
        write_set.follow = lambda returned: follow(returned.get(key))
    later: Any = None  # ``make`` returns it after the commit
    return cast("T", later)


def _refuse_query(*_: Any) -> None:
    raise Unmergeable


def record(fn: Callable[[], Any]) -> WriteSet | None:
    """Return the writes of a function, None if it queries the database.

    The function's own exceptions are raised here.
    """
    noted = _local.current = WriteSet()
    try:
        with connection.execute_wrapper(_refuse_query):
            noted.result = fn()
    except (Unmergeable, TransactionManagementError):  # SELECT FOR UPDATE is refused by Django
        return None
    finally:
        _local.current = None
    return noted


# -- inserts that are merged -----------------------------------------------------------------------


def inserting(table: str, columns: str) -> Statement:
    """Return the statement that inserts rows into a table."""
    statement = _statements.get((table, columns))
    if statement is None:
        types = column_types(connection, table)
        text = f"INSERT INTO {table} ({columns}) SELECT * FROM {{given}}"
        own = tuple(types[name] for name in columns.split(", "))
        copy = copying(table, columns)
        statement = Statement(INSERT_ORDER, text, own, merged=text, copy=copy)
        _statements[table, columns] = statement
    return statement


def copying(table: str, columns: str) -> str:
    """Return PostgreSQL's COPY statement for rows of a table."""
    return f"COPY {table} ({columns}) FROM STDIN"


def inserting_keyed(table: str, columns: str, key: str) -> Statement:
    """Return the statement that inserts rows with keys, unless a unique value exists."""
    statement = _statements.get((table, key))
    if statement is None:
        types = column_types(connection, table)
        names = f"{key}, {columns}"
        text = f"INSERT INTO {table} ({names}) SELECT * FROM {{given}}"
        text += f" ON CONFLICT DO NOTHING RETURNING {key}"
        own = tuple(types[name] for name in names.split(", "))
        statement = Statement(KEYED_ORDER, text, own, key=(0,), merged=text)
        _statements[table, key] = statement
    return statement


def next_key(table: str, key: str) -> int:
    """Return a new primary key; the process reserves several at a time.

    It keeps them for a moment only, because pages find newer rows by their greater keys.
    """
    with _keys_lock:
        until, keys = _keys[table]
        if keys and time.monotonic() <= until:
            return keys.popleft()
    # Without the lock: if the database does not answer, each caller waits for its own query only,
    # not for the queries of earlier callers.
    first, *others = take_keys(table, key, _KEYS)
    with _keys_lock:
        _keys[table] = time.monotonic() + _KEYS_S, deque(others)
    return first
