"""Read the events of a history without their payloads, as columns, for a ``Trace``.

Fetching a row costs more than its values, so the database joins each column to one text, and this
module splits the texts again.
"""

from __future__ import annotations

import json
from operator import sub
from typing import TYPE_CHECKING

from django.db import connection

from engine import EventBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SEPARATOR = "\x1f"
_NUMBERED = ("MapStateStarted", "MapIterationAborted")
"""The types whose details have a number that a trace reads."""
_NUMBER = "CASE WHEN type IN ('MapStateStarted', 'MapIterationAborted') THEN details END"
_FROM = " FROM console_historyevent WHERE execution_id = %s AND event_id > %s AND event_id <= %s"
# SQLite joins in the order in which it reads: that of the key, by which it finds the rows.
_JOINED = {
    "sqlite": (
        "group_concat(event_id - previous), group_concat(at_ms),"
        f" group_concat(type), group_concat(state, char(31)), group_concat({_NUMBER}, char(31))"
    ),
    "postgresql": (
        "string_agg((event_id - previous)::text, ',' ORDER BY event_id),"
        " string_agg(at_ms::text, ',' ORDER BY event_id),"
        " string_agg(type, ',' ORDER BY event_id), string_agg(state, chr(31) ORDER BY event_id),"
        f" string_agg({_NUMBER}, chr(31) ORDER BY event_id)"
    ),
}
_ROWS = f"SELECT event_id, previous, at_ms, type, state, {_NUMBER}{_FROM} ORDER BY event_id"
LAST = 1 << 30


def read_batch(execution_id: int, after: int = 0, upto: int = LAST) -> EventBatch | None:
    """Return the events whose ids are above ``after`` and at most ``upto``; None without any."""
    parameters = [execution_id, after, upto]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_JOINED[connection.vendor]}{_FROM}", parameters)
        joined = cursor.fetchone()
        if joined[0] is None:
            return None
        batch = _split(after, *joined)
        if batch is None:  # a state whose name has the separator in it
            cursor.execute(_ROWS, parameters)
            batch = _from_rows(cursor.fetchall())
    return batch


def _split(
    after: int, steps: str, at_ms: str, types: str, states: str, details: str | None
) -> EventBatch | None:
    kinds, named = types.split(","), states.split(_SEPARATOR)
    if len(kinds) != len(named):
        return None
    first, last = after + 1, after + len(kinds)
    previous: Iterable[int] = range(after, last)
    if steps != "1" + ",1" * (len(kinds) - 1):  # not one after the other, as in one line of control
        previous = map(sub, range(first, last + 1), json.loads(f"[{steps}]"))
    texts = details.split(_SEPARATOR) if details else []
    numbered = (number for number, kind in enumerate(kinds, first) if kind in _NUMBERED)
    return EventBatch(
        last,
        previous,
        json.loads(f"[{at_ms}]"),
        zip(kinds, named, strict=True),
        _numbers(zip(numbered, texts, strict=True)) if texts else {},
    )


def _from_rows(rows: Sequence[tuple[int, int, int, str, str, str | None]]) -> EventBatch:
    return EventBatch(
        rows[-1][0],
        [row[1] for row in rows],
        [row[2] for row in rows],
        [(row[3], row[4]) for row in rows],
        _numbers((row[0], row[5]) for row in rows if row[5]),
    )


def _numbers(details: Iterable[tuple[int, str | None]]) -> dict[int, int]:
    """Return event id -> length of its Map or index of its iteration, if in the details."""
    read = {number: json.loads(text) for number, text in details if text}
    values = {number: fields.get("length", fields.get("index")) for number, fields in read.items()}
    return {number: value for number, value in values.items() if value is not None}
