"""Run queries whose SQL has been composed before.

Django takes a fifth of a millisecond to compose the SQL of a small query, and a millisecond for one
with a union, where SQLite answers either in 30 µs. A page that asks 19 questions spends a third of
its time so. What a page asks each time differs in its values only, so the SQL is kept.

    read_rows(("runs", most), lambda project: rows.filter(project=project)[:most], project.pk)

The first time a query is built with placeholders for its values, and composed; its parameters show
where each value stands. The values are bound anew each time. All that ``build`` uses besides them
is part of the SQL that is kept, so it must be in ``key``: a length, a region, which columns. Two
functions may have the same key: the name of ``build`` belongs to that of a statement.

``read_models`` does the same for a query of whole rows, with those of ``select_related``.

None is no value: ``= NULL`` holds for no row, so a query with and one without it have two keys.
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
"""How many statements a process keeps: those that were asked last."""
_FIRST_NUMBER = 2_100_000_001  # of the placeholders: what an integer column of 32 bits can have
Value = int | str | tuple[int, ...] | tuple[str, ...]
"""What a query is asked with; a tuple stands in an ``IN``."""


class _ModelMaker:
    """Maker of models from rows, with annotations and related models, as Django makes them."""

    def __init__(self, compiler: Any) -> None:
        """Read which columns are of which model from what has composed the SQL."""
        info = compiler.klass_info
        first, last = info["select_fields"][0], info["select_fields"][-1]
        self._model: type[Model] = info["model"]
        self._columns = slice(first, last + 1)
        self._names = [column[0].target.attname for column in compiler.select[self._columns]]
        # the stubs are of a later Django
        self._related = get_related_populators(info, compiler.select, connection.alias)  # type: ignore[call-arg]
        self._annotations = dict(compiler.annotation_col_map or {})

    def make(self, row: Sequence[Any]) -> Model:
        """Return the model of a row."""
        made = self._model.from_db(connection.alias, self._names, row[self._columns])
        for related in self._related:
            related.populate(row, made)
        for name, column in self._annotations.items():
            setattr(made, name, row[column])
        return made


@dataclass(frozen=True, slots=True)
class _Statement:
    """A composed query. ``places``: of each parameter the place of its value, None of a constant.

    ``parameters``: those that it was composed with; a value is bound with the type of the one in
    its place. ``converters``: column -> what makes a value of what the database returned.
    ``maker``: what makes a model of a row, None if rows are asked for.
    """

    sql: str
    parameters: tuple[Any, ...]
    places: tuple[int | None, ...]
    converters: dict[int, tuple[list[Callable[..., Any]], Any]]
    maker: _ModelMaker | None

    def bound(self, values: Sequence[int | str]) -> list[Any]:
        """Return the parameters with these values."""
        return [
            known if place is None else type(known)(values[place])
            for known, place in zip(self.parameters, self.places, strict=True)
        ]

    def converted(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return a row as Django would."""
        changed = list(row)
        for column, (functions, expression) in self.converters.items():
            for function in functions:
                changed[column] = function(changed[column], expression, connection)
        return tuple(changed)


_statements: OrderedDict[Hashable, _Statement] = OrderedDict()
"""Those that were asked last stand last."""
_lock = Lock()
"""Held while they are changed: requests run in threads."""
_NOTHING = _Statement("", (), (), {}, None)
M = TypeVar("M", bound=Model)


def read_rows(
    key: Hashable, build: Callable[..., QuerySet[Any, Any]], *values: Value
) -> list[tuple[Any, ...]]:
    """Return the rows of a query of ``values_list``.

    ``build`` returns it for ``values``; ``key`` names it, with all else that it depends on. Raise
    ``ValueError`` if the SQL does not hold each value as it is wherever it uses it, as that of
    ``contains`` does not. A query that cannot have rows (``none()``, ``IN ()``) has no SQL and
    returns none, each time anew.
    """
    return _read(key, build, values, models=False)[1]


def read_models(key: Hashable, build: Callable[..., QuerySet[M]], *values: Value) -> list[M]:
    """Return the models of a query, as ``read_rows`` does the rows of one.

    Related models that the query names are read with them; it prefetches none. Raise ``TypeError``
    if the query is one of ``values_list``, which has no models.
    """
    statement, rows = _read(key, build, values, models=True)
    made: list[Any] = [statement.maker.make(row) for row in rows] if statement.maker else []
    return made


def _read(
    key: Hashable,
    build: Callable[..., QuerySet[Any, Any]],
    values: Sequence[Value],
    *,
    models: bool,
) -> tuple[_Statement, list[tuple[Any, ...]]]:
    """Return the statement of a query, and the rows that it returns for ``values``."""
    values = tuple(_padded(value) if isinstance(value, tuple) else value for value in values)
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
    """Return module and name of the function that builds a query: the same for each closure."""
    function = build.func if isinstance(build, partial) else build
    return function.__module__, function.__qualname__


def _kept(name: Hashable) -> _Statement | None:
    with _lock:
        statement = _statements.get(name)
        if statement is not None:
            _statements.move_to_end(name)
    return statement


def _keep(name: Hashable, statement: _Statement) -> None:
    """Keep a statement, in place of the one that nobody has asked for the longest."""
    with _lock:
        _statements[name] = statement
        while len(_statements) > MOST_STATEMENTS:
            _statements.popitem(last=False)


def _shape_of(value: Value) -> object:
    """Return what of a value the SQL depends on: its type, and how many members it has."""
    if not isinstance(value, tuple):
        return type(value)
    if not value:
        return 0
    return len(value) if isinstance(value[0], int) else (str, len(value))


def _padded(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the members of an ``IN``, the last one repeated: so there are few lengths."""
    return members + members[-1:] * ((1 << (len(members) - 1).bit_length()) - len(members))


def _flat(values: Sequence[Value]) -> list[int | str]:
    flat: list[int | str] = []
    for value in values:
        flat += value if isinstance(value, tuple) else (value,)
    return flat


def _compose(
    build: Callable[..., QuerySet[Any, Any]], values: Sequence[Value], *, models: bool
) -> _Statement:
    """Compose a query with two sets of placeholders, which tell a value's places from constants.

    What differs but is no placeholder was made of a value, such as ``since - 1`` beside ``since``.
    """
    count = len(_flat(values))
    composed, other = (
        _compose_with(build, _placeholders(values, _FIRST_NUMBER + start), models=models)
        for start in (0, count)
    )
    constants = [
        [known for known, place in zip(each.parameters, each.places, strict=True) if place is None]
        for each in (composed, other)
    ]
    held = set(composed.places) - {None} == set(range(count))
    same = (composed.sql, composed.places) == (other.sql, other.places)
    if not held or not same or constants[0] != constants[1]:
        raise ValueError(f"The SQL does not hold each value as it is: {composed.sql}")
    return composed


def _placeholders(values: Sequence[Value], first: int) -> list[Value]:
    """Return a placeholder for each value, of its type, which are numbered from ``first``."""
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
        raise TypeError("The query is one of columns: it has no models.")
    compiler = query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    known = {placeholder: place for place, placeholder in enumerate(_flat(placeholders))}
    places = tuple(known.get(parameter) for parameter in parameters)
    columns = [column[0] for column in compiler.select[: compiler.col_count]]
    maker = _ModelMaker(compiler) if models else None
    return _Statement(sql, tuple(parameters), places, compiler.get_converters(columns), maker)
