"""What work is open?  A task is a row from the commit that scheduled it to the one that ends it.

Its side effect starts only after that first commit. Who has it is told in ``claim``, how it ends
in ``complete``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console.fast_path import rows, sql
from console.models import RunRow, TaskRow
from console.statuses import DueKind, TaskClock, TaskKind, TaskStatus, Topic
from console.store.db import signals
from console.store.db.texts import storable
from console.store.machines import activity_limits, machine_options
from console.store.tasks import timeouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


CALLED = (TaskKind.LAMBDA, TaskKind.SERVICE)  # kinds that this server calls itself
NESTED = ("states", "aws-sdk:sfn")
"""Services whose startExecution starts a child."""


def schedule_tasks(
    execution_id: int, arn: str, wanted: Sequence[engine.RunTask], now_ms: int
) -> None:
    """Write the rows of tasks."""
    if not wanted:
        return
    activities = [one.resource for one in wanted if one.kind == TaskKind.ACTIVITY]
    limits = activity_limits.limits_of(activities) if activities else {}
    made = [
        _task_row(
            execution_id, arn, one, now_ms, limits.get(one.resource, activity_limits.NO_LIMITS)
        )
        for one in wanted
    ]
    rows.insert_rows(TaskRow, made)
    if any(one.service in NESTED and one.action == "startExecution" for one in wanted):
        _mark_parent(execution_id)
    for one, row in zip(wanted, made, strict=True):
        _offer(execution_id, one)
        publish_deadlines(execution_id, one.task, row["timeout_due_ms"], row["heartbeat_due_ms"])


def _mark_parent(execution_id: int) -> None:
    """Note that the children of an execution end with it, if its machine has it so."""
    policy = machine_options.of_execution(execution_id, machine_options.CHILD_POLICY)
    if policy == machine_options.TERMINATE:
        RunRow.objects.filter(pk=execution_id).update(children_end=True)


def _task_row(
    execution_id: int, arn: str, wanted: engine.RunTask, now_ms: int, limits: activity_limits.Limits
) -> dict[str, Any]:
    """Return the row of a task. Most clocks of an activity start when a worker has it."""
    called = wanted.kind in CALLED
    timeout_s = wanted.timeout_seconds or limits.start_to_close
    heartbeat_s = wanted.heartbeat_seconds or limits.heartbeat
    due_ms, which = _first_clock(wanted, timeout_s, now_ms, limits)
    return {
        "execution_id": execution_id,
        "task": wanted.task,
        "kind": wanted.kind,
        "resource": wanted.resource,
        "service": wanted.service,
        "action": wanted.action,
        "pattern": str(wanted.pattern),
        "state": storable(wanted.state),
        "input": wanted.input,
        "credentials": wanted.credentials or "",
        "attempt": wanted.attempt,
        "entered_event": wanted.entered_event,
        "token_hash": hash_of(token_of(arn, wanted.task)),
        "timeout_s": timeout_s,
        "heartbeat_s": heartbeat_s,
        "timeout_due_ms": due_ms,
        "clock": which,
        "close_due_ms": timeouts.close_due(now_ms, limits)
        if wanted.kind == TaskKind.ACTIVITY
        else None,
        "heartbeat_due_ms": timeouts.due_ms(now_ms, heartbeat_s) if called else None,
        "scheduled_ms": now_ms,
    }


def _first_clock(
    wanted: engine.RunTask, timeout_s: int | None, now_ms: int, limits: activity_limits.Limits
) -> tuple[int | None, str]:
    """Return when the first clock of a new task runs out, and which it is.

    None for what cannot last: a Map Run's children and plain calls have limits of their own.
    """
    lasting = wanted.kind == TaskKind.ACTIVITY or bool(wanted.pattern)
    if wanted.kind == TaskKind.MAP or (timeout_s is None and not lasting):
        return None, ""
    last_ms = timeouts.close_due(now_ms, limits)
    if wanted.kind in CALLED:
        begun = TaskClock.START_TO_CLOSE, timeouts.due_ms(now_ms, timeout_s)
    else:
        begun = TaskClock.SCHEDULE_TO_START, timeouts.due_ms(now_ms, limits.schedule_to_start)
    return timeouts.first_due(*begun, now_ms, last_ms)


def _offer(execution_id: int, wanted: engine.RunTask) -> None:
    """Tell whoever does this kind of work that there is some."""
    if wanted.kind in CALLED:
        signals.publish((Topic.TASK,), execution_id, wanted.task)
    elif wanted.kind == TaskKind.MAP:
        signals.publish((Topic.MAP,), execution_id, wanted.task)
    else:
        signals.publish((Topic.OFFERED,), execution_id, wanted.task, wanted.resource)
        signals.publish((Topic.ACTIVITY, wanted.resource))


def publish_deadlines(
    execution_id: int, task: int, timeout_ms: int | None, heartbeat_ms: int | None
) -> None:
    """Signal when the task will be late, for the timer queue."""
    for kind, due_ms in ((DueKind.TIMEOUT, timeout_ms), (DueKind.HEARTBEAT, heartbeat_ms)):
        if due_ms is not None:
            signals.publish_due(due_ms, kind, execution_id, task)


def close_task(execution_id: int, task: int, now_ms: int) -> bool:
    """Close a task; return whether it was open."""
    with sql.cursor() as cursor:
        cursor.execute(
            f"UPDATE console_taskrow SET status = '{TaskStatus.CLOSED}',"
            " closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL, look_due_ms = NULL"
            f" WHERE execution_id = %s AND task = %s AND status <> '{TaskStatus.CLOSED}'",
            [now_ms, execution_id, task],
        )
        return bool(cursor.rowcount == 1)


def close_tasks(execution_id: int, now_ms: int) -> None:
    """Close every open task of an execution."""
    with sql.cursor() as cursor:
        cursor.execute(
            f"UPDATE console_taskrow SET status = '{TaskStatus.CLOSED}',"
            " closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL, look_due_ms = NULL"
            f" WHERE execution_id = %s AND status <> '{TaskStatus.CLOSED}'",
            [now_ms, execution_id],
        )


def closed_among(wanted: Iterable[Any]) -> list[tuple[int, int]]:
    """Return those of the tasks (execution, task) that have ended."""
    asked = set(wanted)
    if not asked:
        return []
    found = TaskRow.objects.filter(
        status=TaskStatus.CLOSED,
        execution_id__in={execution for execution, _ in asked},
        task__in={task for _, task in asked},
    )
    return [one for one in found.values_list("execution_id", "task") if one in asked]


def token_of(arn: str, task: int) -> str:
    """Return the token of a task: made anew each time, so that no row holds it."""
    return engine.task_token(settings.STEPYARD_TOKEN_KEY, arn, task)


def hash_of(token: str) -> str:
    """Return what a row keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
