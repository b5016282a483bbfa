"""Time out Standard executions after one year, as AWS does.

A redrive starts a new year. A timer that is set at the start would cost one row for every
execution, and few run for a year. So this module sets the timer a day before the year ends, also
for executions that an earlier version started.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.db.models import Q

import engine
from console.db import clock
from console.db.writer import write
from console.models import Execution, Project, Timer
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.executions import step_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

YEAR_MS = engine.MAX_EXECUTION_S * 1000
AHEAD_MS = 24 * 3_600_000
"""The time before the end of the year at which the timer is set."""
_AT_ONCE = 100  # in one transaction


def arm_ends() -> int:
    """Set the timer of each execution whose year ends within a day; return their number.

    A later timer of TimeoutSeconds from an earlier version is moved.
    """
    before_ms = clock.now_ms() - YEAR_MS + AHEAD_MS
    armed = 0
    for execution_ids in _old_executions(before_ms):
        for start in range(0, len(execution_ids), _AT_ONCE):
            armed += write(partial(_arm_some, sorted(execution_ids[start : start + _AT_ONCE])))
    return armed


def _old_executions(before_ms: int) -> Iterator[list[int]]:
    """Yield the running executions that began long ago, by the indexes of lists and Map Runs."""
    running = Execution.objects.filter(
        status=ExecutionStatus.RUNNING, start_ms__lte=before_ms
    ).filter(Q(redrive_ms__isnull=True) | Q(redrive_ms__lte=before_ms))
    for project in Project.objects.values_list("pk", flat=True):
        rows = running.filter(project=project, map_run__isnull=True)
        yield list(rows.values_list("pk", flat=True))
    children = running.filter(
        map_run__status=MapRunStatus.RUNNING, map_run__start_ms__lte=before_ms
    )
    yield list(children.values_list("pk", flat=True))


def _arm_some(execution_ids: Sequence[int]) -> int:
    return sum(map(_set_timer, execution_ids))


def _set_timer(execution_id: int) -> bool:
    """Set the timer of one execution, unless it ends before (inside a transaction)."""
    # The lock keeps the end out, which takes it, too, before it deletes all timers. Else:
    # 1. This reads RUNNING.  2. The execution ends, its timers are deleted.  3. This arms one for
    # an execution that has ended, and a redrive that arms its own fails.
    rows = Execution.objects.select_for_update().filter(
        pk=execution_id, status=ExecutionStatus.RUNNING
    )
    row = rows.values_list("start_ms", "redrive_ms").first()
    if row is None:
        return False
    due_ms = (row[1] or row[0]) + YEAR_MS
    of_execution = Timer.objects.filter(execution_id=execution_id, name=engine.EXECUTION_TIMER)
    if of_execution.filter(due_ms__lte=due_ms).exists():
        return False
    step_rows.drop_timers(execution_id, [engine.EXECUTION_TIMER])
    step_rows.set_timers(execution_id, [engine.SetTimer(engine.EXECUTION_TIMER, due_ms)])
    return True
