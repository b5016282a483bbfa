"""Did a worker get its task, though the database fell silent while it was handed out?

The answer to a COMMIT may be lost with its connection. Whoever took a task then looks again whether
it is theirs: else it would be started and in nobody's hands, until a deadline it may not have.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from console.models import TaskRow
from console.statuses import TaskStatus
from console.store.db.writer import drop_broken_connection, is_outage
from console.store.tasks import claim

if TYPE_CHECKING:
    from console.store.db.pending import Pending
    from console.store.tasks.claim import ClaimedTask

_PATIENCE_S = 20.0
_PAUSE_S = 0.2


def claim_activity_task(activity_arn: str, worker: str) -> Pending[ClaimedTask | None] | None:
    """Take the oldest open task of an activity, as ``claims.taking_activity_task``."""
    asked: list[ClaimedTask] = []

    def rescue(error: Exception) -> ClaimedTask | None:
        if not asked or not is_outage(error):
            raise error
        return _find_claim(asked[-1])

    return claim.pending_activity_task(activity_arn, worker, asked, rescue)


def _find_claim(work: ClaimedTask) -> ClaimedTask | None:
    """Return the task if it was taken by us, None if the commit never was."""
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
