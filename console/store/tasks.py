"""What work is open, who has it, and who may end it?

A task is a row from the commit that scheduled it; its side effect starts only after that. The first
committed outcome closes the row and puts its message into the inbox in the same transaction.

(Above 300 lines: scheduling, taking and ending share the row and its rules.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db.models import F

import engine
from console import clock
from console.errors import InvalidOutput, InvalidToken, TaskDoesNotExist, TaskTimedOut
from console.models import TaskRow
from console.store import hints, inbox
from console.store.writer import write

if TYPE_CHECKING:
    from console.models import Project

_CALLED = ("lambda", "service")  # kinds that this server calls itself
_TOKEN_LENGTH = 44


@dataclass(frozen=True, slots=True)
class Work:
    """A task somebody took.

    ``idempotency_key``: the same for every dispatch of the same attempt.
    """

    execution_id: int
    execution_arn: str
    task: int
    kind: str
    resource: str
    service: str
    action: str
    pattern: str
    input: str
    token: str
    idempotency_key: str
    dispatches: int


# -- scheduling, inside the commit of a step -------------------------------------------------------


def schedule(execution_id: int, arn: str, command: engine.RunTask, now_ms: int) -> None:
    """Write the row of a task."""
    called = command.kind in _CALLED
    TaskRow(
        execution_id=execution_id,
        task=command.task,
        kind=command.kind,
        resource=command.resource,
        service=command.service,
        action=command.action,
        pattern=str(command.pattern),
        state=command.state,
        input=command.input,
        credentials=command.credentials or "",
        attempt=command.attempt,
        entered_event=command.entered_event,
        token_hash=_hash(_token(arn, command.task)),
        timeout_s=command.timeout_seconds,
        heartbeat_s=command.heartbeat_seconds,
        timeout_due_ms=_due(now_ms, command.timeout_seconds) if called else None,
        heartbeat_due_ms=_due(now_ms, command.heartbeat_seconds) if called else None,
        scheduled_ms=now_ms,
    ).save(force_insert=True)
    if called:
        hints.tell(("task",), execution_id, command.task)
        _announce(execution_id, command.task, now_ms, command)
    elif command.kind == "map":
        hints.tell(("map",), execution_id, command.task)
    else:
        hints.tell(("activity", command.resource))


def _announce(execution_id: int, task: int, now_ms: int, row: Any) -> None:
    """Let the clockwork know when the task will be late."""
    for what in ("timeout", "heartbeat"):
        seconds = getattr(row, f"{what}_seconds", None) or getattr(row, f"{what}_s", None)
        if seconds:
            hints.due(now_ms + seconds * 1000, what, execution_id, task)


def close(execution_id: int, task: int, now_ms: int) -> bool:
    """Close a task; return whether it was open."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE console_taskrow SET status = 'closed', closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL WHERE execution_id = %s AND task = %s AND status <> 'closed'",
            [now_ms, execution_id, task],
        )
        return bool(cursor.rowcount == 1)


def close_all(execution_id: int, now_ms: int) -> None:
    """Close every open task of an execution."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE console_taskrow SET status = 'closed', closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL WHERE execution_id = %s AND status <> 'closed'",
            [now_ms, execution_id],
        )


# -- taking work -----------------------------------------------------------------------------------


def claim(execution_id: int, task: int) -> Work | None:
    """Take a scheduled function or service task; None if it is not to be had."""

    def take() -> Work | None:
        taken = TaskRow.objects.filter(
            execution_id=execution_id, task=task, status="scheduled", kind__in=_CALLED
        ).update(status="started", started_ms=clock.now_ms(), dispatches=F("dispatches") + 1)
        return _work(execution_id, task) if taken else None

    return write(take)


def claim_map(execution_id: int, task: int) -> Work | None:
    """Take the scheduled task of a distributed Map (inside a transaction)."""
    taken = TaskRow.objects.filter(
        execution_id=execution_id, task=task, status="scheduled", kind="map"
    ).update(status="started", started_ms=clock.now_ms(), dispatches=F("dispatches") + 1)
    return _work(execution_id, task) if taken else None


def scheduled_maps() -> list[tuple[int, int]]:
    """Return (execution, task) of Map tasks that nobody has taken."""
    rows = TaskRow.objects.filter(status="scheduled", kind="map")
    return list(rows.values_list("execution_id", "task"))


def is_closed(execution_id: int, task: int) -> bool:
    """Tell whether a task has ended."""
    return TaskRow.objects.filter(execution_id=execution_id, task=task, status="closed").exists()


def take_activity_task(activity_arn: str, worker: str = "") -> Work | None:
    """Take the oldest open task of an activity for a worker; None if there is none."""
    if not _waiting(activity_arn).exists():
        return None

    def take() -> Work | None:
        row = _waiting(activity_arn).first()
        if row is None:
            return None
        now_ms = clock.now_ms()
        taken = TaskRow.objects.filter(
            execution_id=row.execution_id, task=row.task, status="scheduled"
        ).update(
            status="started",
            started_ms=now_ms,
            worker=worker,
            dispatches=F("dispatches") + 1,
            timeout_due_ms=_due(now_ms, row.timeout_s),
            heartbeat_due_ms=_due(now_ms, row.heartbeat_s),
        )
        if not taken:
            return None
        _announce(row.execution_id, row.task, now_ms, row)
        inbox.post(row.execution_id, engine.TaskStarted(row.task, worker or None))
        return _work(row.execution_id, row.task)

    return write(take)


def _waiting(activity_arn: str) -> Any:
    rows = TaskRow.objects.filter(resource=activity_arn, status="scheduled", kind="activity")
    return rows.order_by("scheduled_ms", "execution_id", "task")


def release_called() -> int:
    """Offer again what a process that is gone had started to call; return how many tasks."""

    def release() -> int:
        rows = TaskRow.objects.filter(status="started", kind__in=_CALLED, pattern="")
        return rows.update(status="scheduled")

    return write(release)


def _work(execution_id: int, task: int) -> Work:
    row = TaskRow.objects.select_related("execution").get(execution_id=execution_id, task=task)
    arn = row.execution.arn
    key = f"{arn}/{row.entered_event}/{row.attempt}"
    return Work(
        execution_id,
        arn,
        task,
        row.kind,
        row.resource,
        row.service,
        row.action,
        row.pattern,
        row.input,
        _token(arn, task),
        hashlib.sha256(key.encode()).hexdigest()[:32],
        row.dispatches,
    )


# -- ending work -----------------------------------------------------------------------------------


def finish(execution_id: int, message: engine.TaskSucceeded | engine.TaskFailed) -> bool:
    """Record the outcome of a task that this server called.

    Return False if it was closed before.
    """

    def record() -> bool:
        if not close(execution_id, message.task, clock.now_ms()):
            return False
        inbox.post(execution_id, message)
        return True

    return write(record)


def succeed(token: str, output: str, project: Project | None = None) -> None:
    """SendTaskSuccess. Raises InvalidToken, InvalidOutput, TaskDoesNotExist or TaskTimedOut."""
    try:
        engine.loads(output)
    except engine.JsonTextError as error:
        raise InvalidOutput(f"Invalid Output: '{error}'") from None
    _end(token, project, lambda row: engine.TaskSucceeded(row.task, output))


def fail(
    token: str,
    error: str | None = None,
    cause: str | None = None,
    project: Project | None = None,
) -> None:
    """SendTaskFailure. Raises InvalidToken, TaskDoesNotExist or TaskTimedOut."""
    _end(token, project, lambda row: engine.TaskFailed(row.task, error, cause))


def heartbeat(token: str, project: Project | None = None) -> None:
    """SendTaskHeartbeat: starts the heartbeat clock anew; writes no event."""

    def beat() -> None:
        row = _open(token, project)
        now_ms = clock.now_ms()
        due_ms = _due(now_ms, row.heartbeat_s) if row.heartbeat_due_ms else None
        TaskRow.objects.filter(
            execution_id=row.execution_id, task=row.task, status="started"
        ).update(heartbeat_ms=now_ms, heartbeat_due_ms=due_ms)
        if due_ms:
            hints.due(due_ms, "heartbeat", row.execution_id, row.task)

    write(beat)


def _end(token: str, project: Project | None, message: Any) -> None:
    def record() -> None:
        row = _open(token, project)
        if not close(row.execution_id, row.task, clock.now_ms()):
            raise _too_late()
        inbox.post(row.execution_id, message(row))

    write(record)


def _open(token: str, project: Project | None) -> TaskRow:
    """Return the row a token opens; a token works only in the project that owns the task."""
    if len(token) != _TOKEN_LENGTH or not token.isascii():
        raise InvalidToken("Invalid Token: 'Invalid token'")
    rows = TaskRow.objects.filter(token_hash=_hash(token))
    row = (rows if project is None else rows.filter(execution__project=project)).first()
    if row is None:
        raise TaskDoesNotExist("Task does not exist: 'Provided task does not exist anymore'")
    if row.status == "closed":
        raise _too_late()
    return row


def _too_late() -> TaskTimedOut:
    return TaskTimedOut("Task Timed Out: 'Provided task does not exist anymore'")


# -- being late ------------------------------------------------------------------------------------


def expire(execution_id: int, task: int) -> bool:
    """Time a task out if one of its deadlines has passed; return whether it did."""

    def time_out() -> bool:
        now_ms = clock.now_ms()
        row = TaskRow.objects.filter(execution_id=execution_id, task=task).first()
        if row is None or row.status == "closed":
            return False
        heartbeat_due = row.heartbeat_due_ms is not None and row.heartbeat_due_ms <= now_ms
        timeout_due = row.timeout_due_ms is not None and row.timeout_due_ms <= now_ms
        if not (heartbeat_due or timeout_due) or not close(execution_id, task, now_ms):
            return False
        inbox.post(execution_id, engine.TaskTimedOut(task, heartbeat=not timeout_due))
        return True

    return write(time_out)


# -- small things ----------------------------------------------------------------------------------


def _token(arn: str, task: int) -> str:
    return engine.task_token(settings.STEPYARD_TOKEN_KEY, arn, task)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _due(now_ms: int, seconds: int | None) -> int | None:
    return None if seconds is None else now_ms + seconds * 1000
