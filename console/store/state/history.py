"""Return the history of an execution in AWS's shape; ``step_rows`` writes it, append-only.

The details of an event are stored as JSON text. ``aws_event`` parses them, for readers that need
their values: pages, logs, masking, CBOR. ``raw_event`` leaves each value as the text that it is,
which is copied into an answer in JSON. Whole events could be stored as the bytes of the answer: to
read those takes 0.2 us an event instead of 1.0 us, but each event would be stored twice, because
pages and searches need its columns.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

import engine
from console.fast_path import rows
from console.models import HistoryEvent
from console.store.state import history_columns

_PAYLOADS = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_DATA = (*_PAYLOADS, "parameters")
_WHOLE = msgspec.Raw(b'{"truncated":false}')
_split_details = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


EventRow = tuple[int, int, int, str, str]
"""Event id, previous event id, epoch milliseconds, type, details: plain, for a page has many."""
_SELECT = (
    "SELECT event_id, previous, at_ms, type, details FROM console_historyevent"
    " WHERE execution_id = %s AND event_id"
)


def list_events(
    execution_id: int, *, after: int = 0, limit: int = 100, reverse: bool = False
) -> list[HistoryEvent]:
    """Return up to ``limit`` events after event ``after`` (before it in reverse.

    0: from the end).
    """
    events = HistoryEvent.objects.filter(execution_id=execution_id)
    if not reverse:
        return list(events.filter(event_id__gt=after).order_by("event_id")[:limit])
    if after:
        events = events.filter(event_id__lt=after)
    return list(events.order_by("-event_id")[:limit])


def read_event_rows(
    execution_id: int, *, after: int = 0, limit: int = 100, reverse: bool = False
) -> list[EventRow]:
    """Return what ``list_events`` does, as columns instead of model instances."""
    where = "> %s ORDER BY event_id LIMIT %s"
    if reverse:
        where = "< %s ORDER BY event_id DESC LIMIT %s"
        after = after or history_columns.LAST
    with rows.open_cursor() as cursor:
        cursor.execute(f"{_SELECT} {where}", [execution_id, after, limit])
        event_rows: list[EventRow] = cursor.fetchall()
    return event_rows


def raw_event(row: EventRow) -> dict[str, Any]:
    """Return what ``aws_event`` does with JSON text (``msgspec.Raw``) for each detail's value."""
    number, previous, at_ms, kind, text = row
    event: dict[str, Any] = {
        "timestamp": at_ms / 1000,
        "type": kind,
        "id": number,
        "previousEventId": previous,
    }
    member = engine.DETAILS[kind]
    if member:
        details = _split_details(text) if text else {}
        if "input" in details:
            details["inputDetails"] = _WHOLE
        if "output" in details:
            details["outputDetails"] = _WHOLE
        if "assignedVariables" in details:
            details["assignedVariablesDetails"] = _WHOLE
        event[member] = details
    return event


def aws_event(row: HistoryEvent, *, include_data: bool = True) -> dict[str, Any]:
    """Return an event in the shape of GetExecutionHistory.

    Without data the payloads are left out.
    """
    event: dict[str, Any] = {
        "timestamp": row.at_ms / 1000,
        "type": row.type,
        "id": row.event_id,
        "previousEventId": row.previous,
    }
    member = engine.DETAILS[row.type]
    if member:
        details = json.loads(row.details) if row.details else {}
        event[member] = _with_data(details) if include_data else _without_data(details)
    return event


def _with_data(details: dict[str, Any]) -> dict[str, Any]:
    for name, also in _PAYLOADS.items():
        if name in details:
            details[also] = {"truncated": False}
    return details


def _without_data(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name not in _DATA}
