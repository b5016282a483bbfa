"""Explain the timeout of an execution or a task: the limit, and what happened to children.

AWS's events name neither.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

import engine
from console import arns
from console.models import Execution, HistoryEvent, MapRun, TaskRow
from console.statuses import ExecutionStatus, TaskClock, TaskKind
from console.store.machines import machine_options
from console.web.core import formatting
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_POLICIES = {
    machine_options.REQUEST_CANCEL: "children of waiting Tasks are stopped, as on AWS",
    machine_options.TERMINATE: "all children are stopped",
    machine_options.ABANDON: "no child is stopped",
}
_EXPRESS_S = 300


@dataclass(frozen=True, slots=True)
class TimeoutExplanation:
    """``limit``: the expired limit. ``children``: their status now, "" without any.

    ``policy``: the value of ``stateyard:childPolicy`` and what it means.
    """

    limit: str
    children: str = ""
    policy: str = ""


def explain_timeout(execution: Execution) -> TimeoutExplanation | None:
    """Return the explanation; None for an execution that did not time out."""
    if execution.status != ExecutionStatus.TIMED_OUT:
        return None
    children = "; ".join(_children_lines(execution))
    if not children:
        return TimeoutExplanation(limit_that_ran_out(execution))
    return TimeoutExplanation(limit_that_ran_out(execution), children, _policy_text(execution))


def event_facts(execution: Execution, number: int) -> tuple[tuple[str, str], ...]:
    """Return name and text of facts missing in the ExecutionTimedOut event ``number``."""
    before = HistoryEvent.objects.filter(execution_id=execution.pk, event_id__lt=number)
    redriven = before.filter(type="ExecutionRedriven").exists()
    return (
        ("limit", _limit_text(execution, redriven=redriven)),
        (machine_options.CHILD_POLICY, _policy_text(execution)),
    )


def limit_that_ran_out(execution: Execution) -> str:
    """Return the expired time limit of an execution in words."""
    return _limit_text(execution, redriven=bool(execution.redrive_ms))


def _policy_text(execution: Execution) -> str:
    policy = machine_options.of_execution(execution.pk, machine_options.CHILD_POLICY)
    return f"{policy}: {_POLICIES[policy]}"


def _limit_text(execution: Execution, *, redriven: bool) -> str:
    definition = json.loads(execution.definition.text)  # an imported one may be anything
    seconds = definition.get("TimeoutSeconds") if isinstance(definition, dict) else None
    express = arns.is_express(execution.arn)
    most_s = _EXPRESS_S if express else engine.MAX_EXECUTION_S
    since = "its last redrive" if redriven else "its start"
    if isinstance(seconds, int) and seconds < most_s:
        span = formatting.duration_text(seconds * formatting.SECOND)
        return f"TimeoutSeconds of the state machine: {span} since {since}"
    if express:
        return "Express executions run for up to 5 minutes"
    return f"Standard executions run for up to one year since {since}"


def _children_lines(execution: Execution) -> Iterator[str]:
    nested = Execution.objects.filter(parent=execution.pk).values("status")
    counts = Counter({row["status"]: row["n"] for row in nested.order_by().annotate(n=Count("pk"))})
    if counts:
        yield f"{_counted(counts)} (started by Tasks)"
    runs = MapRun.objects.filter(parent=execution.pk).aggregate(
        **{str(status): Sum(status.lower()) for status in _MAP_STATUSES}, started=Sum("started")
    )
    ended = Counter[str]({status: runs[status] or 0 for status in _MAP_STATUSES})
    ended[ExecutionStatus.RUNNING] = (runs["started"] or 0) - ended.total()
    if runs["started"]:
        yield f"{_counted(ended)} (of Map Runs)"


_MAP_STATUSES = (
    ExecutionStatus.SUCCEEDED,
    ExecutionStatus.FAILED,
    ExecutionStatus.TIMED_OUT,
    ExecutionStatus.ABORTED,
)


def _counted(counts: Counter[str]) -> str:
    words = {status: label.word.lower() for status, label in formatting.EXECUTION.items()}
    return ", ".join(
        f"{counts[status]:,} {word}" for status, word in words.items() if counts[status] > 0
    )


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
