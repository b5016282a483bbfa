"""Run ORM queries with cached SQL: ``read_rows`` and ``read_models``.

Django takes a fifth of a millisecond to compose the SQL of a small query, and a millisecond for a
union; SQLite answers either in 30 µs. A page with 19 queries spends a third of its time composing
SQL. Its queries differ in their values only, from request to request, so the SQL is kept.

    read_rows(("runs", most), lambda project: rows.filter(project=project)[:most], project.pk)

On the first call, ``build`` gets placeholders instead of values. The composed SQL is kept, with the
position of each placeholder among its parameters; every call binds its values there. Everything
else that ``build`` uses becomes part of the kept SQL and must be in ``key``: a limit, a region, the
choice of columns. A key needs to be unique within one function only, because the name of ``build``
is added to it.

``read_models`` does the same for model instances, including related ones of ``select_related``.

None cannot be a value: ``= NULL`` is true for no row. A query with ``IS NULL`` needs another key.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model
from django.db.models.query import get_related_populators

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from django.db.models import QuerySet

MOST_STATEMENTS = 500
"""The maximum number of cached statements; the least recently used one is dropped."""
_FIRST_NUMBER = 2_100_000_001  # of the placeholders; fits into an integer column of 32 bits
Value = int | str | tuple[int, ...] | tuple[str, ...]
"""A value of a query; a tuple is the right side of an ``IN``."""


class _ModelMaker:
    """Creates model instances from rows as Django does, with annotations and related models."""

    def __init__(self, compiler: Any) -> None:
        """Read the columns of each model from the compiler of the query."""
        info = compiler.klass_info
        first, last = info["select_fields"][0], info["select_fields"][-1]
        self._model: type[Model] = info["model"]
        self._columns = slice(first, last + 1)
        self._names = [column[0].target.attname for column in compiler.select[self._columns]]
        # the type stubs are for a later Django version
        self._related = get_related_populators(info, compiler.select, connection.alias)  # type: ignore[call-arg]
        self._annotations = dict(compiler.annotation_col_map or {})

    def make(self, row: Sequence[Any]) -> Model:
        """Return the model instance for a row."""
        instance = self._model.from_db(connection.alias, self._names, row[self._columns])
        for related in self._related:
            related.populate(row, instance)
        for name, column in self._annotations.items():
            setattr(instance, name, row[column])
        return instance


@dataclass(frozen=True, slots=True)
class _Statement:
    """A composed query.

    ``parameters``: the parameters of the first call, with placeholders; a value is converted to the
    type of its placeholder. ``places``: for each parameter the index of its value, None for a
    constant. ``converters``: column -> Django's functions from a database value to a Python value.
    ``maker``: creates model instances, None for a query of plain rows.
    """

    sql: str
    parameters: tuple[Any, ...]
    places: tuple[int | None, ...]
    converters: dict[int, tuple[list[Callable[..., Any]], Any]]
    maker: _ModelMaker | None

    def bound(self, values: Sequence[int | str]) -> list[Any]:
        """Return the parameters of a call with these values."""
        return [
            parameter if place is None else type(parameter)(values[place])
            for parameter, place in zip(self.parameters, self.places, strict=True)
        ]

    def converted(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return a row with its values converted as Django converts them."""
        changed = list(row)
        for column, (functions, expression) in self.converters.items():
            for function in functions:
                changed[column] = function(changed[column], expression, connection)
        return tuple(changed)


_statements: OrderedDict[Hashable, _Statement] = OrderedDict()
"""Kept statements, the most recently used last."""
_lock = Lock()
"""Held while ``_statements`` changes: requests run in threads."""
_NOTHING = _Statement("", (), (), {}, None)
M = TypeVar("M", bound=Model)


def read_rows(
    key: Hashable, build: Callable[..., QuerySet[Any, Any]], *values: Value
) -> list[tuple[Any, ...]]:
    """Return the rows of a ``values_list`` query.

    ``build`` returns the query for ``values``; ``key`` names everything else that it depends on.
    Raise ``ValueError`` if a value does not reach the SQL unchanged: ``contains`` adds ``%`` before
    and after it. A query that cannot have rows (``none()``, an empty ``IN``) has no SQL; it
    returns [] and is built again on the next call.
    """
    return _read(key, build, values, models=False)[1]


def read_models(key: Hashable, build: Callable[..., QuerySet[M]], *values: Value) -> list[M]:
    """Return the model instances of a query; ``key`` and ``values`` are as in ``read_rows``.

    ``select_related`` works, ``prefetch_related`` is ignored. Raise ``TypeError`` for a
    ``values_list`` query, which has no model instances.
    """
    statement, rows = _read(key, build, values, models=True)
    instances: list[Any] = [statement.maker.make(row) for row in rows] if statement.maker else []
    return instances


def _read(
    key: Hashable,
    build: Callable[..., QuerySet[Any, Any]],
    values: Sequence[Value],
    *,
    models: bool,
) -> tuple[_Statement, list[tuple[Any, ...]]]:
    """Return the statement of a query and its rows for ``values``; compose it if it is not kept."""
    values = tuple(_pad_members(value) if isinstance(value, tuple) else value for value in values)
    shape = tuple(_shape_of(value) for value in values)
    name = (connection.vendor, key, shape, models, *_function_name(build))
    statement = _kept(name)
    if statement is None:
        try:
            statement = _compose(build, values, models=models)
        except EmptyResultSet:
            return _NOTHING, []
        _keep(name, statement)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.bound(_flat(values)))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    if statement.converters:
        rows = [statement.converted(row) for row in rows]
    return statement, rows


def _function_name(build: Callable[..., Any]) -> tuple[str, str]:
    """Return module and name of a builder; all closures of a function share one cached query."""
    function = build.func if isinstance(build, partial) else build
    return function.__module__, function.__qualname__


def _kept(name: Hashable) -> _Statement | None:
    with _lock:
        statement = _statements.get(name)
        if statement is not None:
            _statements.move_to_end(name)
    return statement


def _keep(name: Hashable, statement: _Statement) -> None:
    """Keep a statement; drop the least recently used one at the maximum."""
    with _lock:
        _statements[name] = statement
        while len(_statements) > MOST_STATEMENTS:
            _statements.popitem(last=False)


def _shape_of(value: Value) -> object:
    """Return the traits of a value that change the SQL: its type, and the length of a tuple."""
    if not isinstance(value, tuple):
        return type(value)
    if not value:
        return 0
    return len(value) if isinstance(value[0], int) else (str, len(value))


def _pad_members(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Repeat the last member of an ``IN`` up to a power of two, so that few lengths are kept."""
    return members + members[-1:] * ((1 << (len(members) - 1).bit_length()) - len(members))


def _flat(values: Sequence[Value]) -> list[int | str]:
    flat: list[int | str] = []
    for value in values:
        flat += value if isinstance(value, tuple) else (value,)
    return flat


def _compose(
    build: Callable[..., QuerySet[Any, Any]], values: Sequence[Value], *, models: bool
) -> _Statement:
    """Compose a query twice, with different placeholders, and compare the two results.

    A parameter equal to a placeholder is a value. A parameter that differs between the two results
    without being a placeholder was computed from a value (``since - 1``) and cannot be bound again:
    raise ``ValueError``.
    """
    count = len(_flat(values))
    composed, other = (
        _compose_with(build, _placeholders(values, _FIRST_NUMBER + start), models=models)
        for start in (0, count)
    )
    constants = [
        [
            constant
            for constant, place in zip(each.parameters, each.places, strict=True)
            if place is None
        ]
        for each in (composed, other)
    ]
    held = set(composed.places) - {None} == set(range(count))
    same = (composed.sql, composed.places) == (other.sql, other.places)
    if not held or not same or constants[0] != constants[1]:
        raise ValueError(f"The SQL does not contain every value unchanged: {composed.sql}")
    return composed


def _placeholders(values: Sequence[Value], first: int) -> list[Value]:
    """Return a placeholder of the same type for each value, numbered from ``first``."""
    numbers = iter(range(first, first + len(_flat(values))))
    placeholders: list[Value] = []
    for value in values:
        if isinstance(value, tuple):
            placeholders.append(tuple(_placeholder(member, next(numbers)) for member in value))
        else:
            placeholders.append(_placeholder(value, next(numbers)))
    return placeholders


def _placeholder(value: int | str, number: int) -> Any:
    return f"value {number}" if isinstance(value, str) else number


def _compose_with(
    build: Callable[..., QuerySet[Any, Any]], placeholders: Sequence[Value], *, models: bool
) -> _Statement:
    query = build(*placeholders).query
    if models and not query.default_cols:
        raise TypeError("A values_list query has no model instances.")
    compiler = query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    places_by_value = {placeholder: place for place, placeholder in enumerate(_flat(placeholders))}
    places = tuple(places_by_value.get(parameter) for parameter in parameters)
    columns = [column[0] for column in compiler.select[: compiler.col_count]]
    maker = _ModelMaker(compiler) if models else None
    return _Statement(sql, tuple(parameters), places, compiler.get_converters(columns), maker)
