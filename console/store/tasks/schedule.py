"""Write the row of a scheduled task; it is open from the scheduling commit to the ending commit.

The task is called only after that first commit. ``claim`` gives it to a worker, ``complete`` ends
it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console.db import rows, signals
from console.db.rows import Statement, storable
from console.models import RunRow, TaskRow
from console.statuses import DueKind, TaskClock, TaskKind, TaskStatus, Topic
from console.store.machines import activity_limits, machine_options
from console.store.tasks import timeouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_CLOSED = (
    f"UPDATE console_taskrow SET status = '{TaskStatus.CLOSED}', closed_ms = %s,"
    " timeout_due_ms = NULL, heartbeat_due_ms = NULL, look_due_ms = NULL"
)
_CLOSE = Statement(
    35,
    f"{_CLOSED} WHERE execution_id = %s AND task = %s AND status <> '{TaskStatus.CLOSED}'",
    ("bigint", "bigint", "integer"),
    key=(1, 2),
    returning="execution_id, task",
    joins=True,
)
_CLOSE_ALL = Statement(
    70,
    f"{_CLOSED} WHERE execution_id = %s AND status <> '{TaskStatus.CLOSED}'",
    ("bigint", "bigint"),
)
CALLED = (TaskKind.LAMBDA, TaskKind.SERVICE)  # kinds that this server calls itself
NESTED = ("states", "aws-sdk:sfn")
"""Services whose startExecution starts a child."""


def schedule_tasks(
    execution_id: int,
    arn: str,
    tasks: Sequence[engine.RunTask],
    now_ms: int,
    limits: Mapping[str, activity_limits.Limits] | None = None,
) -> None:
    """Write the rows of one or more tasks.

    ``limits``: of the activities; read if missing.
    """
    if limits is None:
        limits = activity_limits.limits_of(
            arn, (task.resource for task in tasks if task.kind == TaskKind.ACTIVITY)
        )
    task_rows = [
        _task_row(
            execution_id, arn, task, now_ms, limits.get(task.resource, activity_limits.NO_LIMITS)
        )
        for task in tasks
    ]
    rows.insert_rows(TaskRow, task_rows)
    if any(task.service in NESTED and task.action == "startExecution" for task in tasks):
        _mark_parent(execution_id)
    for task, row in zip(tasks, task_rows, strict=True):
        _offer(execution_id, task)
        publish_deadlines(execution_id, task.task, row["timeout_due_ms"], row["heartbeat_due_ms"])


def record_answered(execution_id: int, arn: str, task: engine.RunTask, now_ms: int) -> None:
    """Write the row of a task that a user answered or a fault failed; it is never called."""
    row = _task_row(execution_id, arn, task, now_ms, activity_limits.NO_LIMITS)
    clocks = dict.fromkeys(("timeout_due_ms", "heartbeat_due_ms", "close_due_ms"))
    closed = {"status": TaskStatus.CLOSED, "closed_ms": now_ms}
    rows.insert_rows(TaskRow, [{**row, **clocks, **closed}])


def _mark_parent(execution_id: int) -> None:
    """Mark an execution whose children end with it, if its machine says so."""
    policy = machine_options.of_execution(execution_id, machine_options.CHILD_POLICY)
    if policy == machine_options.TERMINATE:
        RunRow.objects.filter(pk=execution_id).update(children_end=True)


def _task_row(
    execution_id: int, arn: str, task: engine.RunTask, now_ms: int, limits: activity_limits.Limits
) -> dict[str, Any]:
    """Return the row of a task. Most clocks of an activity task start when it is claimed."""
    called = task.kind in CALLED
    timeout_s = task.timeout_seconds or limits.start_to_close
    heartbeat_s = task.heartbeat_seconds or limits.heartbeat
    due_ms, clock_name = _first_clock(task, timeout_s, now_ms, limits)
    return {
        "execution_id": execution_id,
        "task": task.task,
        "kind": task.kind,
        "resource": task.resource,
        "service": task.service,
        "action": task.action,
        "pattern": str(task.pattern),
        "state": storable(task.state),
        "input": task.input,
        "credentials": task.credentials or "",
        "attempt": task.attempt,
        "entered_event": task.entered_event,
        "token_hash": hash_of(token_of(arn, task.task)),
        "timeout_s": timeout_s,
        "heartbeat_s": heartbeat_s,
        "timeout_due_ms": due_ms,
        "clock": clock_name,
        "close_due_ms": timeouts.close_due(now_ms, limits)
        if task.kind == TaskKind.ACTIVITY
        else None,
        "heartbeat_due_ms": timeouts.due_ms(now_ms, heartbeat_s) if called else None,
        "scheduled_ms": now_ms,
    }


def _first_clock(
    task: engine.RunTask, timeout_s: int | None, now_ms: int, limits: activity_limits.Limits
) -> tuple[int | None, str]:
    """Return the first deadline of a new task, and its clock.

    None for a Map Run and for plain calls, which have limits of their own.
    """
    lasting = task.kind == TaskKind.ACTIVITY or bool(task.pattern)
    if task.kind == TaskKind.MAP or (timeout_s is None and not lasting):
        return None, ""
    last_ms = timeouts.close_due(now_ms, limits)
    if task.kind in CALLED:
        begun = TaskClock.START_TO_CLOSE, timeouts.due_ms(now_ms, timeout_s)
    else:
        begun = TaskClock.SCHEDULE_TO_START, timeouts.due_ms(now_ms, limits.schedule_to_start)
    return timeouts.first_due(*begun, now_ms, last_ms)


def _offer(execution_id: int, task: engine.RunTask) -> None:
    """Signal a new task to the workers of its kind."""
    if task.kind in CALLED:
        signals.publish((Topic.TASK,), execution_id, task.task)
    elif task.kind == TaskKind.MAP:
        signals.publish((Topic.MAP,), execution_id, task.task)
    else:
        signals.publish((Topic.OFFERED,), execution_id, task.task, task.resource)
        signals.publish((Topic.ACTIVITY, task.resource))


def publish_deadlines(
    execution_id: int, task: int, timeout_ms: int | None, heartbeat_ms: int | None
) -> None:
    """Signal the deadlines of a task to the timer queue."""
    for kind, due_ms in ((DueKind.TIMEOUT, timeout_ms), (DueKind.HEARTBEAT, heartbeat_ms)):
        if due_ms is not None:
            signals.publish_due(due_ms, kind, execution_id, task)


def close_task(execution_id: int, task: int, now_ms: int) -> bool:
    """Close a task; return whether it was open."""
    return rows.change(_CLOSE, [(now_ms, execution_id, task)]) == 1


def close_tasks(execution_id: int, now_ms: int) -> None:
    """Close every open task of an execution."""
    rows.change(_CLOSE_ALL, [(now_ms, execution_id)])


def closed_among(tasks: Iterable[Any]) -> list[tuple[int, int]]:
    """Return the closed tasks among these (execution, task) pairs."""
    keys = set(tasks)
    if not keys:
        return []
    closed = TaskRow.objects.filter(
        status=TaskStatus.CLOSED,
        execution_id__in={execution for execution, _ in keys},
        task__in={task for _, task in keys},
    )
    return [key for key in closed.values_list("execution_id", "task") if key in keys]


def token_of(arn: str, task: int) -> str:
    """Return the token of a task, derived each time, so that no row holds it."""
    return engine.task_token(settings.STATEYARD_TOKEN_KEY, arn, task)


def hash_of(token: str) -> str:
    """Return the hash of a token for the task's row."""
    return hashlib.sha256(token.encode()).hexdigest()
