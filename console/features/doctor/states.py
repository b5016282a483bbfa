"""Check I5 and I6: each entered state was left once, and each task ended once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.features.doctor.found import FoundExecution
    from console.features.doctor.walk import Walk


_OFFERED = frozenset({"ActivityScheduled", "MapRunStarted"})
_CALL_STARTED = engine.event_names(
    frozenset({engine.Family.LAMBDA_FUNCTION, engine.Family.TASK}), engine.Stage.STARTED
)


def visits(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I5: a state is left at most once a visit, and once if the execution succeeded."""
    succeeded = record.execution.status == "SUCCEEDED"
    for visit, exits in walk.exits.items():
        name = f"state {walk.by_id[visit].state!r} (event {visit})"
        if len(exits) > 1:
            yield "I5", f"{name} was left {len(exits)} times: {exits}"
        elif succeeded and not exits and not walk.died(visit):
            yield "I5", f"{name} was never left"
    for event in walk.strays:
        if event.type in event_types.STATE_EXITS:
            yield "I5", f"event {event.id} leaves state {event.state!r}, which was not entered"


def outcomes(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I6: a scheduled task has one outcome, or none if its execution or group ended before it."""
    for task, ended in walk.outcomes.items():
        if len(ended) > 1:
            yield "I6", f"task {task} has {len(ended)} outcomes: {ended}"
        elif not ended and not _excused(record, walk, task):
            yield "I6", f"task {task} has no outcome and will have none"
    for event in walk.strays:
        if event.type not in event_types.STATE_EXITS:
            yield "I6", f"event {event.id} ({event.type}) is the outcome of nothing"
    yield from _rows(record, walk)


def _excused(record: FoundExecution, walk: Walk, task: int) -> bool:
    """Tell whether a task may be without an outcome, for good or for now."""
    end = walk.next_end(task)
    if end not in ("", "SUCCEEDED"):
        return True  # the execution ended before it
    if walk.died(walk.visit.get(task, 0)):
        return True  # a sibling failed before it, or its group goes on: then I1 watches it
    row = record.tasks.get(task)
    opened = row is not None and row.status != "closed"
    coming = record.has_message("Stop") or bool(record.messages_of().get(task))
    return not end and (opened or coming)


def _rows(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """Compare the tasks' rows with their events.

    A call has a row from its ...Started event on: a failing sibling may have prevented it before.
    """
    expected = {event.id for event in record.events if event.type in _OFFERED}
    expected |= {event.previous for event in record.events if event.type in _CALL_STARTED}
    for task in sorted(expected ^ set(record.tasks)):
        missing = "row" if task in expected else "event"
        yield "I6", f"task {task} has no {missing}"
    for task, row in record.tasks.items():
        if row.status != "closed" and walk.outcomes.get(task):
            yield "I6", f"task {task} has its outcome and is open"
