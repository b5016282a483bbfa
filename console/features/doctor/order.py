"""Check I3 and I4: each history is complete, in order, and ended as its execution is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from console.db.rows import storable
from console.features.doctor.walk import ENDS, REDRIVEN
from console.models import Execution
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.features.doctor.found import FoundExecution, HistoryLine
    from console.features.doctor.walk import Walk

_ROOTS = {"ExecutionStarted", "ExecutionAborted", "ExecutionTimedOut", "EvaluationFailed"}


def numbering(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I3: ids are 1..n, each event follows an earlier one, there is one root; time goes on."""
    del walk
    events = record.events
    if not events or events[0].type != "ExecutionStarted":
        yield "I3", "the history does not begin with ExecutionStarted"
    for place, event in enumerate(events, 1):
        if event.id != place:
            yield "I3", f"event {place} is missing, {event.id} is in its place"
            return
        if not 0 <= event.previous < event.id:
            yield "I3", f"event {event.id} follows {event.previous}"
    for before, event in pairwise(events):
        if event.at_ms < before.at_ms:
            yield "I3", f"event {event.id} is {before.at_ms - event.at_ms} ms before {before.id}"
    yield from _roots(events)


def _roots(events: list[HistoryLine]) -> Iterator[tuple[str, str]]:
    """Nothing stands before the start, the first state, and an end from outside."""
    roots = [event for event in events if event.previous == 0 and event.type not in _ROOTS]
    for event in roots[1:] if roots and roots[0].type in event_types.STATE_ENTRIES else roots:
        yield "I3", f"event {event.id} ({event.type}) follows nothing"
    for event in events[1:]:
        if event.type == "ExecutionStarted":
            yield "I3", f"event {event.id} starts the execution once more"


def ending(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I4: one end, the last event, as the execution's row tells it; nothing but a redrive after."""
    events, status = record.events, record.execution.status
    for event, after in pairwise(events):
        if (event.type in ENDS) != (after.type == REDRIVEN):
            yield "I4", f"event {after.id} ({after.type}) follows {event.type}"
    last = ENDS.get(events[-1].type, "") if events else ""
    redriving = record.has_message("Redrive")
    expected = "RUNNING" if not last or redriving else last
    if status != expected:
        yield "I4", f"status {status}, but the last event is {events[-1].type if events else None}"
    redrives = len(walk.redrives) + redriving
    if record.execution.redrive_count != redrives:
        yield "I4", f"redriveCount {record.execution.redrive_count}, {redrives} in the history"
    yield from _check_row(record)


def _check_row(record: FoundExecution) -> Iterator[tuple[str, str]]:
    """Compare the row with the event that ended the execution."""
    columns = ("status", "output", "error", "cause", "stop_ms")
    row: dict[str, Any] = Execution.objects.values(*columns).get(pk=record.execution.pk)
    if record.running:
        filled = [name for name in columns[1:] if row[name] is not None]
        if filled:
            yield "I4", f"RUNNING with {', '.join(filled)}"
        return
    if row["stop_ms"] is None:
        yield "I4", "ended without a stop date"
    last = record.events[-1] if record.events else None
    if last is None or ENDS.get(last.type) != row["status"]:
        return
    details = record.details([last.id])[last.id]
    names = [] if last.type == "ExecutionTimedOut" else ["output", "error", "cause"]
    for name in names:  # a timeout has an error in its event only
        ended = details.get(name)
        if (ended if ended is None else storable(ended)) != row[name]:
            yield "I4", f"{name} differs from that of event {last.id}"
    if row["stop_ms"] is not None and row["stop_ms"] > last.at_ms:
        yield "I4", f"stopped {row['stop_ms'] - last.at_ms} ms after its last event"
