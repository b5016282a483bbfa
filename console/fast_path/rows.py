"""Read and write rows fast, by SQL that is built once for each model.

As model instances, by SQL that is made once from the model's fields: the ORM makes it anew each
time, which costs ten times what the database does. For models with plain fields only (numbers,
texts, booleans, foreign keys), by their stored values.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models.base import ModelState

from console.fast_path import sql
from console.store.db import merged, recording
from console.store.db.writer import is_embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from console.store.db.recording import Statement

M = TypeVar("M", bound=models.Model)
_WORTH_A_COPY = 8
_AT_ONCE = 50  # rows of one statement on SQLite, in which another thread cannot have its turn


class _Table(NamedTuple):
    """A model's table. ``names``: what is read; ``values`` of ``columns``: what is written."""

    name: str
    names: list[str]
    select: str
    columns: str
    values: Callable[[Any], tuple[Any, ...]]
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
        attrgetter(*(field.attname for field in written)),
        auto,
        {
            field.attname: field.get_default()
            for field in written
            if field.has_default() or field.null
        },
    )


def fetch_one(model: type[M], where: str, values: Sequence[Any]) -> M | None:
    """Return the one row for which the condition (SQL) holds, None if there is none."""
    table = _table(model)
    with sql.cursor() as cursor:
        cursor.execute(f"{table.select} WHERE {where}", values)
        row = cursor.fetchone()
    return None if row is None else _instance(model, table.names, row)


def _instance(model: type[M], names: Sequence[str], row: Sequence[Any]) -> M:
    """Return a row as an instance: what ``from_db`` does for plain fields, without its signals."""
    made = model.__new__(model)
    made._state = ModelState()  # noqa: SLF001 - documented, as below
    made._state.adding, made._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001
    made.__dict__.update(zip(names, row, strict=True))
    return made


def kept(where: str) -> str:
    """Return the condition of a row that stays as long as ours: who locks it to remove it waits.

    (The lock is the one that a row takes anyway which refers to it. SQLite has one writer at a
    time.)
    """
    return where if is_embedded() else f"{where} FOR KEY SHARE"


def insert(row: models.Model) -> None:
    """Insert a new row; its key is known afterwards."""
    table = _table(type(row))
    recorded = recording.current()
    if recorded is not None and table.key is not None:
        key = merged.next_key(table.name, table.key)
        setattr(row, table.key, key)
        keyed = merged.inserting_keyed(table.name, table.columns, table.key)
        recorded.add(keyed, [(key, *table.values(row))])
        return
    statement = _insert(table.name, table.columns)
    with sql.cursor() as cursor:
        if table.key is None:
            cursor.execute(statement, table.values(row))
        else:
            cursor.execute(f"{statement} RETURNING {table.key}", table.values(row))
            (key,) = cursor.fetchone()
            setattr(row, table.key, key)
    row._state.adding = False  # noqa: SLF001 - documented, too
    row._state.db = DEFAULT_DB_ALIAS  # noqa: SLF001


def insert_rows(model: type[models.Model], new_rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, given by attribute, of a model; no caller asks for the keys they get."""
    table = _table(model)
    names = table.columns.split(", ")
    complete_rows = ({**table.defaults, **row} for row in new_rows)
    append(table.name, table.columns, [tuple(row[name] for name in names) for row in complete_rows])


def insert_all(rows: Sequence[models.Model]) -> None:
    """Insert new rows of one model whose keys are known."""
    if rows:
        table = _table(type(rows[0]))
        append(table.name, table.columns, [table.values(row) for row in rows])


def append(table: str, columns: str, values: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows (``values`` in the order of ``columns``), by COPY where that is faster."""
    if not values:
        return
    recorded = recording.current()
    if recorded is not None:
        recorded.add(merged.inserting(table, columns), values)
        return
    with sql.cursor() as cursor:
        if not is_embedded() and len(values) >= _WORTH_A_COPY:
            statement = f"COPY {table} ({columns}) FROM STDIN"
            # Django does not translate the errors of COPY: an outage would be the execution's fault
            with connection.wrap_database_errors, cursor.copy(statement) as copy:
                for row in values:
                    copy.write_row(row)
            return
        whole = len(values) // _AT_ONCE * _AT_ONCE if is_embedded() else 0
        for start in range(0, whole, _AT_ONCE):
            several = chain.from_iterable(values[start : start + _AT_ONCE])
            cursor.execute(_insert(table, columns, _AT_ONCE), [*several])
        if whole < len(values):
            cursor.executemany(_insert(table, columns), values[whole:])


def change(statement: Statement, values: Sequence[tuple[Any, ...]]) -> int:
    """Execute a statement for each row of values; return how many rows it changed.

    While a change is recorded all are taken to be changed: it fails later if they are not.
    """
    if not values:
        return 0
    recorded = recording.current()
    if recorded is not None:
        recorded.add(statement, values)
        return len(values)
    with sql.cursor() as cursor:
        if len(values) == 1:
            cursor.execute(statement.text, values[0])
        else:
            cursor.executemany(statement.text, values)
        return int(cursor.rowcount)


@lru_cache(maxsize=64)
def _insert(table: str, columns: str, count: int = 1) -> str:
    marks = ", ".join(["%s"] * (columns.count(",") + 1))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([f'({marks})'] * count)}"
