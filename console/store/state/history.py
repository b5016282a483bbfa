"""Return events of a history in AWS's shape, as Python values.

The details of an event are stored as JSON text by ``step_rows``. ``aws_event`` parses them, for
readers that need values: pages, logs, masking, CBOR. ``history_pages`` builds a JSON answer from
the texts instead.
"""

from __future__ import annotations

import json
from typing import Any

import engine
from console.models import HistoryEvent

_PAYLOADS = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
}
_DATA = (*_PAYLOADS, "parameters")


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
    noted: dict[str, Any] = {}
    for name, value in details.items():
        if name in _PAYLOADS:
            noted[_PAYLOADS[name]] = {"truncated": False}
        noted[name] = value
    return noted


def _without_data(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name not in _DATA}
