"""Stop or keep the child executions of an execution that ends.

As on AWS, a child execution that a Task waits for (``.sync``) is stopped once, on a best-effort
basis. With ``stateyard:childPolicy`` *terminate* every child is stopped, and the stop is retried
until it succeeds; with *abandon* no child is stopped. A run is marked when it starts its first
child, so that a restart does not forget the children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console.db import clock
from console.db.writer import write
from console.models import Execution, RunRow, TaskRow
from console.statuses import ExecutionStatus
from console.store.executions.stop import stop_execution
from console.store.machines import machine_options
from console.store.tasks import claim, schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 100
_SETTLED_MS = 120_000  # maximum duration of a call; after that it starts nothing


def to_end() -> Sequence[int]:
    """Return ended executions whose children must be stopped."""
    marked = RunRow.objects.filter(children_end=True).exclude(
        execution__status=ExecutionStatus.RUNNING
    )
    return list(marked.values_list("execution_id", flat=True)[:_AT_ONCE])


def abandons_children(execution_id: int) -> bool:
    """Return whether an execution has ended and keeps its children running."""
    ended = (
        Execution.objects.filter(pk=execution_id).exclude(status=ExecutionStatus.RUNNING).exists()
    )
    policy = machine_options.CHILD_POLICY
    return ended and machine_options.of_execution(execution_id, policy) == machine_options.ABANDON


def end_child(number: int) -> None:
    """Stop the children of an ended execution."""
    parent = Execution.objects.get(pk=number)
    calls = TaskRow.objects.filter(execution_id=number, service__in=schedule.NESTED)
    settled = True
    for child in Execution.objects.filter(parent=number, status=ExecutionStatus.RUNNING):
        _stop(parent, child)
    for call in calls.filter(action="startExecution"):
        started = _started_by(parent, call)
        for child in started:
            if child.status == ExecutionStatus.RUNNING:
                _stop(parent, child)
        settled = settled and (bool(started) or _is_over(call))
    if settled:
        write(lambda: RunRow.objects.filter(pk=number).update(children_end=False))


def _stop(parent: Execution, child: Execution) -> None:
    stop_execution(child, cause=f"The execution that started it ended: {parent.arn}")


def _is_over(call: TaskRow) -> bool:
    """Return whether a call can no longer start an execution."""
    closed_ms = call.closed_ms or clock.now_ms()
    return call.started_ms is None or clock.now_ms() - closed_ms > _SETTLED_MS


def _started_by(parent: Execution, call: TaskRow) -> list[Execution]:
    """Return the execution that a call has started in this project, [] without one."""
    arguments: Any = engine.loads(call.input)
    machine = str(_argument(arguments, "StateMachineArn")).partition("#")[0]
    name = _argument(arguments, "Name") or claim.get_work(parent.pk, call.task).idempotency_key
    qualified = machine.split(":")
    base = ":".join(qualified[:7])
    rows = Execution.objects.filter(project_id=parent.project_id, state_machine_arn=base, name=name)
    return list(rows.select_related("project").filter(start_ms__gte=parent.start_ms))


def _argument(arguments: Any, field: str) -> str:
    """Return an argument of StartExecution, in either spelling."""
    if not isinstance(arguments, dict):
        return ""
    return str(arguments.get(field) or arguments.get(field[0].lower() + field[1:]) or "")
