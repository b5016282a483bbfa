"""Name the timeout of a task (TimeoutSeconds, heartbeat), which AWS's event does not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.models import HistoryEvent, TaskRow
from console.statuses import TaskClock, TaskKind
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.models import Execution

WORDS: dict[str, str] = {
    TaskClock.SCHEDULE_TO_START: "schedule to start (no worker picked it up in time)",
    TaskClock.START_TO_CLOSE: "start to close (TimeoutSeconds)",
    TaskClock.SCHEDULE_TO_CLOSE: "schedule to close",
    TaskClock.HEARTBEAT: "heartbeat (HeartbeatSeconds)",
    TaskClock.YEAR: "limit of one year per task",
}
_HOPS = 5  # ...TimedOut, TaskSubmitted, ...Started, ...Scheduled, and one to spare


def clocks_of_tasks(execution: Execution, numbers: Iterable[int]) -> dict[int, str]:
    """Return task -> its expired or running timeout, in words."""
    rows = TaskRow.objects.filter(execution_id=execution.pk, task__in=list(numbers))
    return {task: WORDS[clock] for task, clock in rows.values_list("task", "clock") if clock}


def task_notes(execution: Execution, late: Mapping[int, bool]) -> dict[int, str]:
    """Return task -> facts missing in its attempt's events. ``late``: whether it timed out."""
    rows = TaskRow.objects.filter(execution_id=execution.pk, task__in=list(late))
    notes = {}
    for row in rows.only("task", "clock", "dispatches", "kind", "worker"):
        parts = [WORDS.get(row.clock, "") if late[row.task] else "", resend_note(row)]
        notes[row.task] = "; ".join(part for part in parts if part)
    return notes


def resend_note(row: TaskRow) -> str:
    """Return a note if a task was dispatched more than once, else ""."""
    if row.kind == TaskKind.MAP or row.dispatches <= 1:
        return ""
    if row.kind == TaskKind.ACTIVITY and not row.worker.startswith("\x01"):
        return f"dispatched {row.dispatches} times (an earlier poll had ended)"
    return f"dispatched {row.dispatches} times (its worker was lost)"


def clocks_of_events(execution: Execution, previous: Mapping[int, int]) -> dict[int, str]:
    """Return ...TimedOut event -> timeout in words. ``previous``: its previous event."""
    waiting, clocks = dict(previous), {}
    for _ in range(_HOPS):
        if not waiting:
            break
        rows = HistoryEvent.objects.filter(
            execution_id=execution.pk, event_id__in=set(waiting.values())
        )
        chain = {row: (kind, back) for row, kind, back in rows.values_list(*_CHAIN)}
        for event, at in list(waiting.items()):
            kind, back = chain.get(at, ("", 0))
            if kind in event_types.WORK_SCHEDULED:
                clocks[event] = at
            waiting[event] = back
            if not back or event in clocks:
                del waiting[event]
    words = clocks_of_tasks(execution, clocks.values()) if clocks else {}
    return {event: words[task] for event, task in clocks.items() if task in words}


_CHAIN = ("event_id", "type", "previous")
