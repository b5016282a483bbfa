"""Check I8: no timer, retry or timeout happened before its time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_never

import engine
from console import arns
from console.features.doctor.found import states_of
from console.features.doctor.walk import REDRIVEN
from console.statuses import TaskClock
from console.store.state import wait_scale
from console.store.tasks import timeouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from console.features.doctor.found import FoundExecution, HistoryLine
    from console.features.doctor.walk import Walk
    from console.models import TaskRow

CLOCKS_APART_MS = 20
"""So far may two processes be apart that measured the database's clock at different times."""


def never_early(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I8: Wait states, task timeouts and the execution's own timeout take the time they say."""
    early_waits = list(_waits(record, walk))
    if early_waits and not wait_scale.were_scaled():
        yield from early_waits
    for task in walk.outcomes:
        for outcome in walk.outcomes[task]:
            if engine.EVENT_TYPES[walk.by_id[outcome].type].stage is engine.Stage.TIMED_OUT:
                yield from _timeout(record, walk, task, outcome)
    yield from _execution(record)


def _waits(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    waits = [visit for visit in walk.exits if walk.by_id[visit].type == "WaitStateEntered"]
    states = states_of(record.definition) if waits else {}
    for visit in waits:
        entered = walk.by_id[visit]
        due_ms = _due_ms(entered, states.get(entered.state, {}))
        for left in walk.exits[visit]:
            yield from _early(walk.by_id[left], due_ms)


def _due_ms(entered: HistoryLine, state: Mapping[str, Any]) -> int:
    """Return when a Wait may be over at the earliest, as far as its literals tell."""
    seconds, timestamp = state.get("Seconds"), state.get("Timestamp")
    if isinstance(seconds, int):
        return entered.at_ms + seconds * 1000
    if isinstance(timestamp, str) and timestamp[:1].isdigit():
        return int(datetime.fromisoformat(timestamp).timestamp()) * 1000
    return entered.at_ms


def _timeout(
    record: FoundExecution, walk: Walk, task: int, outcome: int
) -> Iterator[tuple[str, str]]:
    """Compare a task's timeout with its row, which tells the clock that ran out."""
    row = record.tasks.get(task)
    if row is None:
        return
    clock = TaskClock(row.clock) if row.clock else None  # an earlier version wrote none
    match clock:
        case TaskClock.SCHEDULE_TO_CLOSE | TaskClock.YEAR:
            year_ms = row.scheduled_ms + timeouts.YEAR_S * 1000
            yield from _early(walk.by_id[outcome], row.close_due_ms or year_ms)
        case TaskClock.SCHEDULE_TO_START:  # its limit is a tag of the activity, not kept in the row
            if row.started_ms is not None:
                yield "I8", f"event {outcome}: task {task} was not taken in time, but it was taken"
        case TaskClock.START_TO_CLOSE | TaskClock.HEARTBEAT | None:
            yield from _since_start(row, walk, task, outcome)
        case _:
            assert_never(clock)


def _since_start(row: TaskRow, walk: Walk, task: int, outcome: int) -> Iterator[tuple[str, str]]:
    """Compare TimeoutSeconds or HeartbeatSeconds; those of an activity begin with its start."""
    limits_of_clock: dict[str, tuple[int | None, ...]] = {
        TaskClock.START_TO_CLOSE: (row.timeout_s,),
        TaskClock.HEARTBEAT: (row.heartbeat_s,),
    }
    candidates = limits_of_clock.get(
        row.clock, (row.timeout_s, row.heartbeat_s)
    )  # no clock: an older row
    limits = [seconds for seconds in candidates if seconds is not None]
    begun = walk.by_id[task].at_ms if row.kind != "activity" else row.started_ms
    if limits and begun is not None:
        yield from _early(walk.by_id[outcome], begun + min(limits) * 1000)
    if not limits:
        yield "I8", f"event {outcome}: a timeout of task {task}, which has none"


def _execution(record: FoundExecution) -> Iterator[tuple[str, str]]:
    seconds = record.definition.get("TimeoutSeconds")
    if not isinstance(seconds, int) or arns.is_express(record.execution.arn):
        return
    begun, seconds = 0, min(seconds, engine.MAX_EXECUTION_S)
    for event in record.events:
        if event.type in ("ExecutionStarted", REDRIVEN):
            begun = event.at_ms
        elif event.type == "ExecutionTimedOut":
            yield from _early(event, begun + seconds * 1000)


def _early(event: HistoryLine, due_ms: int) -> Iterator[tuple[str, str]]:
    if event.at_ms + CLOCKS_APART_MS < due_ms:
        yield "I8", f"event {event.id} ({event.type}) came {due_ms - event.at_ms} ms early"
