"""Find the last successful execution of a state machine, to compare a failed one with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from console.models import Execution, StateMachine
from console.statuses import UNSUCCESSFUL, ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

MOST_SUGGESTED = 3
_MOST_LOOKED_AT = 10


def successes_beside(execution: Execution) -> QuerySet[Execution]:
    """Return the other successful executions of the state machine, newest first."""
    machine = execution.state_machine_id
    if machine is None:
        return Execution.objects.none()
    rows = Execution.objects.filter(state_machine=machine, status=ExecutionStatus.SUCCEEDED)
    return rows.exclude(pk=execution.pk).order_by("-start_ms", "-pk")


def failures_beside_success(executions: Iterable[Execution]) -> list[Execution]:
    """Return each state machine's first failure among some executions, if it ever succeeded.

    At most ``MOST_SUGGESTED``, by one query.
    """
    first: dict[int, Execution] = {}
    for execution in executions:
        if execution.status in UNSUCCESSFUL and execution.state_machine_id is not None:
            first.setdefault(execution.state_machine_id, execution)
    if not first:
        return []
    of_machine = {"state_machine": OuterRef("pk"), "status": ExecutionStatus.SUCCEEDED}
    machines = StateMachine.objects.filter(
        Exists(Execution.objects.filter(**of_machine)), pk__in=list(first)[:_MOST_LOOKED_AT]
    )
    succeeded = set(machines.values_list("pk", flat=True))
    suggested = [each for machine, each in first.items() if machine in succeeded]
    return suggested[:MOST_SUGGESTED]


def has_last_success(execution: Execution) -> bool:
    """Whether an execution failed and there is a success to compare it with.

    Without a query where ``Scope.execution`` has asked that with the execution.
    """
    cached: bool | None = getattr(execution, "has_last_success", None)
    if cached is not None:
        return cached
    return execution.status in UNSUCCESSFUL and successes_beside(execution).exists()
