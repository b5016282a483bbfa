"""Store tasks that wait for an external job (``.sync``), and when to check each job again.

A submitted task is *waiting*: no thread and no call holds it. Its outcome arrives by its token, or
by regular checks of its job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

import engine
from console.db import clock, signals
from console.db.writer import write
from console.statuses import DueKind, TaskStatus, Topic
from console.store.state import inbox
from console.store.tasks import claim

if TYPE_CHECKING:
    from console.store.tasks.claim import ClaimedTask

_SUBMIT = (
    f"UPDATE console_taskrow SET status = '{TaskStatus.WAITING}', job = %s, look_due_ms = %s"
    f" WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.STARTED}'"
)
_LATER = (
    "UPDATE console_taskrow SET looks = looks + 1, look_due_ms = %s"
    f" WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.WAITING}'"
)
_JOB = (
    "SELECT job, looks, status FROM console_taskrow"
    " WHERE execution_id = %s AND task = %s AND job <> ''"
)


def submit_job(execution_id: int, task: int, output: str, job: str, look_s: float) -> bool:
    """Record the first answer of a task whose job continues; False if it was closed."""
    due_ms = clock.now_ms() + int(look_s * 1000) if job else None

    def store() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(_SUBMIT, [job, due_ms, execution_id, task])
            if cursor.rowcount != 1:
                return False
        inbox.post_message(execution_id, engine.TaskSubmitted(task, output))
        if due_ms is not None:
            signals.publish_due(due_ms, DueKind.LOOK, execution_id, task)
        return True

    return write(store)


def get_waiting_job(execution_id: int, task: int) -> tuple[ClaimedTask, str, int] | None:
    """Return a waiting task, its job and the number of checks; None if the task no longer waits."""
    with connection.cursor() as cursor:
        cursor.execute(_JOB, [execution_id, task])
        row = cursor.fetchone()
    if row is None or row[2] != "waiting":
        return None
    return claim.get_work(execution_id, task), row[0], row[1]


def schedule_look(execution_id: int, task: int, look_s: float) -> None:
    """Schedule the next check of a job after some seconds."""
    due_ms = clock.now_ms() + int(look_s * 1000)

    def store() -> None:
        with connection.cursor() as cursor:
            cursor.execute(_LATER, [due_ms, execution_id, task])
        signals.publish_due(due_ms, DueKind.LOOK, execution_id, task)

    write(store)


def publish_cancelled(execution_id: int, task: int) -> None:
    """Signal after the commit that the job of a task, if any, is not needed any more."""
    with connection.cursor() as cursor:
        cursor.execute(_JOB, [execution_id, task])
        row = cursor.fetchone()
    if row is not None:
        signals.publish((Topic.CANCEL,), execution_id, task)


def get_cancelled_job(execution_id: int, task: int) -> tuple[ClaimedTask, str] | None:
    """Return a cancelled task and its job; None without a job."""
    with connection.cursor() as cursor:
        cursor.execute(_JOB, [execution_id, task])
        row = cursor.fetchone()
    return None if row is None else (claim.get_work(execution_id, task), row[0])
