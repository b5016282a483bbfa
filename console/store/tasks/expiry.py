"""Time out tasks after their deadline, unless a heartbeat has moved the deadline meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

import engine
from console.db import clock
from console.db.writer import write
from console.statuses import TaskClock, TaskStatus
from console.store.state import inbox
from console.store.tasks import jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

# The deadline is in the condition: a heartbeat that came in a moment ago must win.
_LATE = (
    f"UPDATE console_taskrow SET status = '{TaskStatus.CLOSED}',"
    " closed_ms = %s, timeout_due_ms = NULL,"
    " heartbeat_due_ms = NULL, look_due_ms = NULL{which}"
    f" WHERE execution_id = %s AND task = %s AND status <> '{TaskStatus.CLOSED}'"
    " AND {column} <= %s"
)
_TIMEOUT = _LATE.format(column="timeout_due_ms", which="")
_HEARTBEAT = _LATE.format(column="heartbeat_due_ms", which=f", clock = '{TaskClock.HEARTBEAT}'")


_ALL_LATE = (
    "SELECT task FROM console_taskrow"
    f" WHERE execution_id = %s AND status <> '{TaskStatus.CLOSED}'"
    " AND (timeout_due_ms <= %s OR heartbeat_due_ms <= %s)"
)


def expire_tasks(late: Iterable[tuple[int, int]]) -> int:
    """Time out the late tasks (execution, task) in one transaction.

    Return how many. All other late tasks of these executions time out, too, because the engine
    needs simultaneous timeouts together.
    """
    executions = sorted({execution_id for execution_id, _ in late})
    return write(lambda: sum(_expire_late(execution_id) for execution_id in executions))


def _expire_late(execution_id: int) -> int:
    now_ms = clock.now_ms()
    with connection.cursor() as cursor:
        cursor.execute(_ALL_LATE, [execution_id, now_ms, now_ms])
        # every transaction locks these rows in one order, against deadlocks
        tasks = sorted(task for (task,) in cursor.fetchall())
    return sum(_expire(execution_id, task) for task in tasks)


def _expire(execution_id: int, task: int) -> bool:
    """Close a late task, and post the message to its execution (inside a transaction)."""
    now_ms = clock.now_ms()
    for sql in (_TIMEOUT, _HEARTBEAT):
        with connection.cursor() as cursor:
            cursor.execute(sql, [now_ms, execution_id, task, now_ms])
            closed = cursor.rowcount == 1
        if closed:
            jobs.publish_cancelled(execution_id, task)
            inbox.post_message(execution_id, engine.TaskTimedOut(task, heartbeat=sql is _HEARTBEAT))
            return True
    return False
