"""Record what a change would write, so that PostgreSQL can write many changes at once.

A function that is given to ``write`` writes rows by ``fast_path.rows`` and publishes signals. While
``record`` runs it nothing is written: its statements and signals are noted. A statement that has to
change its row is assumed to do so, and ``merged`` finds out later. A function that asks the
database for anything cannot be recorded, and is run in a transaction of its own.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import connection
from django.db.transaction import TransactionManagementError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = tuple[Any, ...]
    Key = tuple[Any, ...]
T = TypeVar("T")
_MARK = re.compile("%s")


class Unmergeable(Exception):
    """A change asks the database for something: it cannot be recorded."""


@dataclass(frozen=True)
class Statement:
    """A statement that changes or inserts a row, and how it does so for many rows at once.

    ``text``: with ``%s`` for values; ``types``: theirs in PostgreSQL. ``order``: where it stands in
    a transaction of many changes. ``key``: the places of the values that name the row, if the row
    must be there; ``returning``: the columns that these are, and more that the caller wants.
    ``merged``: the statement for many rows if it is not made by the rule: their values are
    columns ``c0``, ``c1``, ... of ``g``.
    """

    order: int
    text: str
    types: tuple[str, ...]
    key: tuple[int, ...] = ()
    returning: str = ""
    merged: str = ""
    owns: bool = False
    """Whether the first value of the key is an execution that no other change may touch."""
    joins: bool = False
    """Whether the first value of the key is an execution that others may touch in the same way."""

    @cached_property
    def for_many(self) -> str:
        """Return the statement that takes an array for each value."""
        arrays = ", ".join(f"%s::{name}[]" for name in self.types)
        columns = ", ".join(f"c{place}" for place in range(len(self.types)))
        given = f"unnest({arrays}) AS g({columns})"
        if self.merged:
            return self.merged.replace("{given}", given)
        places = iter(range(len(self.types)))
        own = _MARK.sub(lambda _: f"g.c{next(places)}", self.text)
        head, _, condition = own.partition(" WHERE ")
        source = "USING" if head.startswith("DELETE") else "FROM"
        ending = f" RETURNING {self.returning}" if self.key else ""
        return f"{head} {source} {given} WHERE {condition}{ending}"


@dataclass
class Recorded:
    """What a change writes and publishes. ``result``: what its function returned."""

    rows: dict[Statement, list[Row]] = field(default_factory=dict)
    signals: list[tuple[Any, tuple[object, ...]]] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)
    returned: dict[tuple[Statement, Key], Row] = field(default_factory=dict)
    result: Any = None

    def add(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Note rows of a statement."""
        self.rows.setdefault(statement, []).extend(rows)

    @cached_property
    def keys(self) -> dict[tuple[Statement, Key], None]:
        """Return the rows that must be there."""
        return {
            (statement, tuple(row[place] for place in statement.key)): None
            for statement, rows in self.rows.items()
            if statement.key
            for row in rows
        }


@dataclass(frozen=True)
class Late:
    """A result that is made of what a statement returned. ``make``: takes what all returned."""

    make: Callable[[dict[tuple[Statement, Key], Row]], Any]


@dataclass(frozen=True)
class Mergeable(Generic[T]):
    """A function that writes by ``fast_path.rows`` only, most of the time."""

    fn: Callable[[], T]

    def __call__(self) -> T:
        """Call it."""
        return self.fn()


class _Local(threading.local):
    current: Recorded | None = None


_local = _Local()


def current() -> Recorded | None:
    """Return what this thread records, None if it writes."""
    return _local.current


def _refuse_query(*_: Any) -> None:
    raise Unmergeable


def record(fn: Callable[[], Any]) -> Recorded | None:
    """Run a function without writing, and return what it would write; None if it cannot be told.

    What it raises by itself, it raises here.
    """
    noted = _local.current = Recorded()
    try:
        with connection.execute_wrapper(_refuse_query):
            noted.result = fn()
    except (Unmergeable, TransactionManagementError):  # SELECT FOR UPDATE is refused by Django
        return None
    finally:
        _local.current = None
    return noted
