"""Say why a Map Run was aborted: AWS shows the status alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.statuses import ExecutionStatus, MapRunStatus
from console.web.execution import audit_trail

if TYPE_CHECKING:
    from console.models import MapRun
    from console.web.execution.audit_trail import AuditedAction


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a Map Run was aborted. ``stop``: the stop of its execution, None if it was another."""

    words: str
    stop: AuditedAction | None = None


def stop_reason(run: MapRun) -> StopReason | None:
    """Return why a Map Run was aborted, None of others and where it is not known."""
    if run.status != MapRunStatus.ABORTED:
        return None
    if run.parent.status == ExecutionStatus.ABORTED:
        return StopReason("Its execution was stopped", audit_trail.audit_trail_of(run.parent).stop)
    if run.parent.status == ExecutionStatus.TIMED_OUT:
        return StopReason("The time of its execution was over")
    if run.parent.redrive_count:
        return None
    return StopReason("A state beside it failed, which stopped it")
