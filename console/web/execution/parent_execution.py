"""Find the parent of an execution, and the state that started it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from console.models import Execution, TaskRow
from console.store.tasks.schedule import NESTED
from engine import IntegrationPattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MOST_CALLS = 1_000
"""Among how many calls the one is looked for that started a child and did not wait for it."""


class StartCall(NamedTuple):
    """A Task call that started an execution. ``closed_ms``: None while it is open."""

    state: str
    scheduled_ms: int
    closed_ms: int | None


@dataclass(frozen=True, slots=True)
class ParentExecution:
    """The parent of an execution. ``state``: the starting state, "" if ambiguous."""

    execution: Execution
    state: str


def parent_of(execution: Execution) -> ParentExecution | None:
    """Return the parent of an execution, None without one or if deleted."""
    run = execution.map_run
    number = run.parent_id if run else execution.parent
    if number is None:
        return None
    rows = Execution.stored.filter(project=execution.project_id, pk=number)
    parent = rows.only("arn", "name", "state_machine_arn", "imported_ms", "status").first()
    if parent is None:
        return None
    task = run.task if run else execution.parent_task
    return ParentExecution(parent, _state_of_call(parent, execution, task))


def _state_of_call(parent: Execution, child: Execution, task: int | None) -> str:
    if task is not None:
        calls = TaskRow.objects.filter(execution_id=parent.pk, task=task)
        return calls.values_list("state", flat=True).first() or ""
    calls_by_parent = calls_that_did_not_wait([parent.pk])
    return only_state_at(calls_by_parent.get(parent.pk, ()), child.start_ms)


def calls_that_did_not_wait(parents: Collection[int]) -> dict[int, list[StartCall]]:
    """Return execution id -> its calls that started executions without waiting.

    One query, none for no executions. A child of such a call does not know its task.
    """
    calls: dict[int, list[StartCall]] = {}
    if not parents:
        return calls
    rows = TaskRow.objects.filter(
        execution_id__in=parents, service__in=NESTED, action="startExecution"
    ).exclude(pattern__in=(IntegrationPattern.SYNC, IntegrationPattern.SYNC_2))
    columns = rows.values_list("execution_id", "state", "scheduled_ms", "closed_ms")
    for number, state, begun, closed in columns.order_by("execution_id", "task")[:_MOST_CALLS]:
        calls.setdefault(number, []).append(StartCall(state, begun, closed))
    return calls


def only_state_at(calls: Iterable[StartCall], start_ms: int) -> str:
    """Return the state whose call started an execution at a time, "" if ambiguous.

    A call begins before its child, and is over after that.
    """
    states = {
        call.state
        for call in calls
        if call.scheduled_ms <= start_ms and (call.closed_ms is None or call.closed_ms >= start_ms)
    }
    return states.pop() if len(states) == 1 else ""
