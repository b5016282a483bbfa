"""Run queries whose SQL has been composed before.

Django takes a fifth of a millisecond to compose the SQL of a small query, and a millisecond for one
with a union, where SQLite answers either in 30 µs. A page that asks 19 questions spends a third of
its time so. What a page asks each time differs in its values only, so the SQL is kept.

    read_rows(("runs", most), lambda project: rows.filter(project=project)[:most], project.pk)

The first time a query is built with placeholders for its values, and composed; its parameters show
where each value stands. The values are bound anew each time. All that ``build`` uses besides them
is part of the SQL that is kept, so it must be in ``key``: a length, a region, which columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from django.db.models import QuerySet

MOST_STATEMENTS = 500
"""How many statements a process keeps; one more, and it begins anew."""
_FIRST_NUMBER = 2_100_000_001  # of the placeholders: what an integer column of 32 bits can have
Value = int | str | tuple[int, ...]
"""What a query is asked with; a tuple stands in an ``IN``, and has at least one member."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A composed query. ``places``: of each parameter the place of its value, None of a constant.

    ``kinds``: the type that the database's driver wants of each; ``converters``: column -> what
    makes a value of what the database returned.
    """

    sql: str
    parameters: tuple[Any, ...]
    places: tuple[int | None, ...]
    converters: dict[int, tuple[list[Callable[..., Any]], Any]]

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


_statements: dict[Hashable, _Statement] = {}


def read_rows(
    key: Hashable, build: Callable[..., QuerySet[Any, Any]], *values: Value
) -> list[tuple[Any, ...]]:
    """Return the rows of a query of ``values_list``.

    ``build`` returns it for ``values``; ``key`` names it, with all else that it depends on. Raise
    ``ValueError`` if the SQL does not hold each value as it is, as that of ``contains`` does not.
    """
    values = tuple(_padded(value) if isinstance(value, tuple) else value for value in values)
    shape = tuple(len(value) if isinstance(value, tuple) else type(value) for value in values)
    name = (connection.vendor, key, shape)
    statement = _statements.get(name)
    if statement is None:
        if len(_statements) >= MOST_STATEMENTS:
            _statements.clear()
        statement = _statements[name] = _compose(build, values)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.bound(_flat(values)))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return [statement.converted(row) for row in rows] if statement.converters else rows


def _padded(members: tuple[int, ...]) -> tuple[int, ...]:
    """Return the members of an ``IN``, the last one repeated: so there are few lengths."""
    return members + members[-1:] * ((1 << (len(members) - 1).bit_length()) - len(members))


def _flat(values: Sequence[Value]) -> list[int | str]:
    flat: list[int | str] = []
    for value in values:
        flat += value if isinstance(value, tuple) else (value,)
    return flat


def _compose(build: Callable[..., QuerySet[Any, Any]], values: Sequence[Value]) -> _Statement:
    numbers = iter(range(_FIRST_NUMBER, _FIRST_NUMBER + len(_flat(values))))
    placeholders: list[Value] = []
    for value in values:
        if isinstance(value, tuple):
            placeholders.append(tuple(next(numbers) for _ in value))
        else:
            number = next(numbers)
            placeholders.append(f"value {number}" if isinstance(value, str) else number)
    compiler = build(*placeholders).query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    known = {placeholder: place for place, placeholder in enumerate(_flat(placeholders))}
    places = tuple(known.get(parameter) for parameter in parameters)
    if set(known.values()) - set(places):
        raise ValueError(f"The SQL does not hold each value as it is: {sql}")
    columns = [column[0] for column in compiler.select[: compiler.col_count]]
    return _Statement(sql, tuple(parameters), places, compiler.get_converters(columns))
