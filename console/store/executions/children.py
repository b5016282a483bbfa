"""What becomes of the executions that one has started, when it ends itself?

As with AWS, whoever waits for one (``.sync``) has it stopped, once, as far as that can be done.
With ``stepyard:childPolicy`` *terminate* every one of them is stopped, for sure; with *abandon*
none. A run is marked when it starts the first one, so that no restart forgets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console import clock
from console.models import Execution, RunRow, TaskRow
from console.statuses import ExecutionStatus
from console.store.db.writer import write
from console.store.executions import executions
from console.store.machines import machine_options
from console.store.tasks import claim, schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 100
_SETTLED_MS = 120_000  # a call lasts at most so long: what it has not started by then it never does


def to_end() -> Sequence[int]:
    """Return executions that have ended, with children that must not go on."""
    marked = RunRow.objects.filter(children_end=True).exclude(
        execution__status=ExecutionStatus.RUNNING
    )
    return list(marked.values_list("execution_id", flat=True)[:_AT_ONCE])


def abandoned(execution_id: int) -> bool:
    """Tell whether an execution has ended and leaves its children alone."""
    ended = (
        Execution.objects.filter(pk=execution_id).exclude(status=ExecutionStatus.RUNNING).exists()
    )
    policy = machine_options.CHILD_POLICY
    return ended and machine_options.of_execution(execution_id, policy) == machine_options.ABANDON


def end_child(number: int) -> None:
    """Stop the children of an execution that has ended."""
    parent = Execution.objects.get(pk=number)
    calls = TaskRow.objects.filter(execution_id=number, service__in=schedule.NESTED)
    settled = True
    for child in Execution.objects.filter(parent=number, status=ExecutionStatus.RUNNING):
        _stop(parent, child)
    for call in calls.filter(action="startExecution"):
        found = _started_by(parent, call)
        for child in found:
            if child.status == ExecutionStatus.RUNNING:
                _stop(parent, child)
        settled = settled and (bool(found) or _is_over(call))
    if settled:
        write(lambda: RunRow.objects.filter(pk=number).update(children_end=False))


def _stop(parent: Execution, child: Execution) -> None:
    executions.stop(child, cause=f"The execution that started it ended: {parent.arn}")


def _is_over(call: TaskRow) -> bool:
    """Tell whether a call can no longer start anything."""
    closed_ms = call.closed_ms or clock.now_ms()
    return call.started_ms is None or clock.now_ms() - closed_ms > _SETTLED_MS


def _started_by(parent: Execution, call: TaskRow) -> list[Execution]:
    """Return the execution that a call has started here, if it has come to that."""
    given: Any = engine.loads(call.input)
    machine = str(_given(given, "StateMachineArn")).partition("#")[0]
    name = _given(given, "Name") or claim.work_of(parent.pk, call.task).idempotency_key
    qualified = machine.split(":")
    base = ":".join(qualified[:7])
    rows = Execution.objects.filter(project_id=parent.project_id, state_machine_arn=base, name=name)
    return list(rows.select_related("project").filter(start_ms__gte=parent.start_ms))


def _given(arguments: Any, field: str) -> str:
    """Return an argument of StartExecution, in either spelling."""
    if not isinstance(arguments, dict):
        return ""
    return str(arguments.get(field) or arguments.get(field[0].lower() + field[1:]) or "")
