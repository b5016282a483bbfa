"""Read the events of a history without their payloads, as columns, for a ``Trace``.

Fetching a row costs more than its values, so the database joins each column to one text, and this
module splits the texts again.
"""

from __future__ import annotations

import json
from operator import sub
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Func, IntegerField

import engine
from engine import EventBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SEPARATOR = "\x1f"
_NUMBERED = ("MapStateStarted", "MapIterationAborted")
"""The types whose details have a number that a trace reads."""
_NUMBER = "CASE WHEN type IN ('MapStateStarted', 'MapIterationAborted') THEN details END"
_FROM = " FROM console_historyevent WHERE execution_id = %s AND event_id > %s AND event_id <= %s"
# SQLite joins the rows in the order of the primary key, by which it reads them.
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
_SIZE = {"sqlite": "length(CAST(details AS BLOB))", "postgresql": "octet_length(details)"}
"""The bytes of an event's details, at least those of each payload in it."""
_LARGE = {
    "sqlite": f", group_concat(CASE WHEN {_SIZE['sqlite']} >= %s THEN event_id END)",
    "postgresql": (
        f", string_agg(CASE WHEN {_SIZE['postgresql']} >= %s THEN event_id::text END, ',')"
    ),
}
_DETAILS = "SELECT event_id, details FROM console_historyevent WHERE execution_id = %s AND event_id"
_ROWS = f"SELECT event_id, previous, at_ms, type, state, {_NUMBER}{_FROM} ORDER BY event_id"
LAST = 1 << 30


class ByteLength(Func):
    """The bytes of a text in the database's encoding, UTF-8."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        """Write it for a SQLite without that function."""
        return self.as_sql(
            compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **more
        )


def read_batch(execution_id: int, after: int = 0, upto: int = LAST) -> EventBatch | None:
    """Return the events whose ids are above ``after`` and at most ``upto``; None without any."""
    parameters = [execution_id, after, upto]
    with connection.cursor() as cursor:
        columns = _JOINED[connection.vendor] + _LARGE[connection.vendor]
        cursor.execute(f"SELECT {columns}{_FROM}", [engine.least_size(), *parameters])
        *joined, large = cursor.fetchone()
        if joined[0] is None:
            return None
        batch = _split(after, *joined)
        if batch is None:  # a state whose name has the separator in it
            cursor.execute(_ROWS, parameters)
            batch = _from_rows(cursor.fetchall())
    return batch._replace(sizes=read_sizes(execution_id, large.split(","))) if large else batch


def read_sizes(execution_id: int, large: Iterable[int | str]) -> dict[int, int]:
    """Return event -> size of its largest payload, of the events near the payload limit.

    ``large``: the events with details of at least that length.
    """
    sizes: dict[int, int] = {}
    with connection.cursor() as cursor:
        for event in large:  # one at a time: each may have half a megabyte
            cursor.execute(f"{_DETAILS} = %s", [execution_id, int(event)])
            for number, text in cursor.fetchall():
                if size := engine.large_payload(json.loads(text)):
                    sizes[number] = size
    return sizes


def _split(
    after: int, steps: str, at_ms: str, types: str, states: str, details: str | None
) -> EventBatch | None:
    kinds, state_names = types.split(","), states.split(_SEPARATOR)
    if len(kinds) != len(state_names):
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
        zip(kinds, state_names, strict=True),
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
