"""Find the execution that a failed one is compared with: the last success of its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.models import Execution
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from django.db.models import QuerySet


def successes_beside(execution: Execution) -> QuerySet[Execution]:
    """Return the other executions of the same machine that succeeded, the newest first."""
    machine = execution.state_machine_id
    if machine is None:
        return Execution.objects.none()
    rows = Execution.objects.filter(state_machine=machine, status=ExecutionStatus.SUCCEEDED)
    return rows.exclude(pk=execution.pk).order_by("-start_ms", "-pk")


def has_last_success(execution: Execution) -> bool:
    """Tell whether an execution ended badly and there is a success to compare it with.

    ``Scope.execution`` has asked that with the execution; of one read otherwise it is not known.
    """
    return bool(getattr(execution, "has_last_success", False))
