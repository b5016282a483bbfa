"""What happened when, without payloads?  A long history, read as columns.

A row at a time costs more than what is in it: so the database joins each column to one text, which
is taken apart here.
"""

from __future__ import annotations

import json
from operator import sub
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine import EventBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MARK = "\x1f"
_LENGTH = "CASE WHEN type = 'MapStateStarted' THEN details END"
_FROM = " FROM console_historyevent WHERE execution_id = %s AND event_id > %s AND event_id <= %s"
# SQLite joins in the order in which it reads: that of the key, by which it finds the rows.
JOINED = {
    "sqlite": (
        "group_concat(event_id - previous), group_concat(at_ms),"
        f" group_concat(type), group_concat(state, char(31)), group_concat({_LENGTH}, char(31))"
    ),
    "postgresql": (
        "string_agg((event_id - previous)::text, ',' ORDER BY event_id),"
        " string_agg(at_ms::text, ',' ORDER BY event_id),"
        " string_agg(type, ',' ORDER BY event_id), string_agg(state, chr(31) ORDER BY event_id),"
        f" string_agg({_LENGTH}, chr(31) ORDER BY event_id)"
    ),
}
"""What is selected of some events, to be taken ``apart``."""
_ROWS = f"SELECT event_id, previous, at_ms, type, state, {_LENGTH}{_FROM} ORDER BY event_id"
LAST = 1 << 30


def read(execution_id: int, after: int = 0, upto: int = LAST) -> EventBatch | None:
    """Return the events after one of them, up to another; None if there are none."""
    given = [execution_id, after, upto]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {JOINED[connection.vendor]}{_FROM}", given)
        joined = cursor.fetchone()
    return apart(given, joined)


def apart(given: Sequence[int], joined: Sequence[Any]) -> EventBatch | None:
    """Return the events that were selected joined. ``given``: whose, after which, up to which."""
    if joined[0] is None:
        return None
    found = _taken_apart(given[1], *joined)
    if found is None:  # a state whose name has the mark in it
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, given)
            found = _by_rows(cursor.fetchall())
    return found


def _taken_apart(
    after: int, steps: str, at_ms: str, types: str, states: str, details: str | None
) -> EventBatch | None:
    kinds, named = types.split(","), states.split(_MARK)
    if len(kinds) != len(named):
        return None
    first, last = after + 1, after + len(kinds)
    previous: Iterable[int] = range(after, last)
    if steps != "1" + ",1" * (len(kinds) - 1):  # not one after the other, as in one line of control
        previous = map(sub, range(first, last + 1), json.loads(f"[{steps}]"))
    said = details.split(_MARK) if details else []
    maps = (number for number, kind in enumerate(kinds, first) if kind == "MapStateStarted")
    return EventBatch(
        last,
        previous,
        json.loads(f"[{at_ms}]"),
        zip(kinds, named, strict=True),
        _lengths(zip(maps, said, strict=True)) if said else {},
    )


def _by_rows(rows: Sequence[tuple[int, int, int, str, str, str | None]]) -> EventBatch:
    return EventBatch(
        rows[-1][0],
        [row[1] for row in rows],
        [row[2] for row in rows],
        [(row[3], row[4]) for row in rows],
        _lengths((row[0], row[5]) for row in rows if row[5]),
    )


def _lengths(said: Iterable[tuple[int, str | None]]) -> dict[int, int]:
    """Return event -> how many items its Map has, as far as the events tell."""
    told = {number: json.loads(text).get("length") for number, text in said if text}
    return {number: length for number, length in told.items() if length is not None}
