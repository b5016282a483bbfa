"""Confirm that a worker got its task, even if the database failed during the claim.

The answer to a COMMIT may be lost with its connection. The worker that claimed the task then reads
the row again. Without this, the task could stay started although no worker has it:

1. a worker claims a task and commits;
2. the database commits, and the connection breaks before its answer arrives;
3. the worker drops the task, and the row stays started until its deadline, if it has one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from console.db.writer import drop_broken_connection, is_outage
from console.models import TaskRow
from console.statuses import TaskStatus
from console.store.tasks import claim

if TYPE_CHECKING:
    from console.db.writer import Change
    from console.store.tasks.claim import ClaimedTask

_PATIENCE_S = 20.0
_PAUSE_S = 0.2


def claim_activity_task(activity_arn: str, worker: str) -> Change[ClaimedTask | None] | None:
    """Claim the oldest open task of an activity, and check the claim after an outage."""
    claimed: list[ClaimedTask] = []

    def rescue(error: Exception) -> ClaimedTask | None:
        if not claimed or not is_outage(error):
            raise error
        return _find_claim(claimed[-1])

    return claim.pending_activity_task(activity_arn, worker, claimed, rescue)


def _find_claim(work: ClaimedTask) -> ClaimedTask | None:
    """Return the task if our claim was committed, else None."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        drop_broken_connection()
        try:
            mine = TaskRow.objects.filter(
                execution_id=work.execution_id,
                task=work.task,
                status=TaskStatus.STARTED,
                started_ms=work.started_ms,
                dispatches=work.dispatches,
            ).exists()
        except Exception as error:
            if not is_outage(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return work if mine else None
