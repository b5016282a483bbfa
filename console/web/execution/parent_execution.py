"""Find the execution that started another one, and the state of it that did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

import engine
from console.models import Execution, TaskRow
from console.store.tasks.schedule import NESTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

_MOST_CALLS = 50
"""Among how many calls the one is looked for that started a child and did not wait for it."""


@dataclass(frozen=True, slots=True)
class ParentExecution:
    """The execution that started another one. ``state``: of it, "" if that is not certain."""

    execution: Execution
    state: str


def parent_of(execution: Execution) -> ParentExecution | None:
    """Return what started an execution, None if no execution did or it was deleted."""
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
    calls = TaskRow.objects.filter(execution_id=parent.pk)
    if task is not None:
        return calls.filter(task=task).values_list("state", flat=True).first() or ""
    return _state_that_did_not_wait(calls, child)


def _state_that_did_not_wait(calls: QuerySet[TaskRow], child: Execution) -> str:
    """Return the state of the call that started a child, which does not name its task.

    A call begins before its child, and is over after that: mostly this leaves one state. Of
    several at once, the one that names the machine and the name of the child, if that is one only.
    """
    open_then = Q(closed_ms=None) | Q(closed_ms__gte=child.start_ms)
    starts = calls.filter(
        open_then,
        service__in=NESTED,
        action="startExecution",
        scheduled_ms__lte=child.start_ms,
    ).order_by("task")
    states = set(starts.values_list("state", flat=True)[:_MOST_CALLS])
    if len(states) > 1:
        rows = starts.values_list("state", "input")[:_MOST_CALLS]
        states = _states_that_name(child, list(rows))
    return states.pop() if len(states) == 1 else ""


def _states_that_name(child: Execution, calls: Sequence[tuple[str, str]]) -> set[str]:
    states = set()
    for state, text in calls:
        arguments: Any = engine.loads(text)
        if not isinstance(arguments, dict):
            continue
        machine = str(arguments.get("StateMachineArn") or arguments.get("stateMachineArn"))
        base = ":".join(machine.partition("#")[0].split(":")[:7])  # without version and alias
        name = arguments.get("Name") or arguments.get("name") or child.name
        if base == child.state_machine_arn and name == child.name:
            states.add(state)
    return states
