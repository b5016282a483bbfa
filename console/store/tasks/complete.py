"""End open tasks by SendTaskSuccess, SendTaskFailure and results of calls by this server.

SendTaskHeartbeat only restarts a task's heartbeat clock. The first committed outcome closes the
task's row and puts its message into the inbox in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console.db import clock, rows, signals
from console.db.writer import Change, immediate, is_embedded, write
from console.errors import ErrorCode, InvalidToken, ServiceError, ValidationException
from console.models import TaskRow
from console.statuses import DueKind, TaskStatus
from console.store.state import inbox
from console.store.tasks import schedule, timeouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

    Ahead = Callable[[int, engine.TaskSucceeded | engine.TaskFailed], Callable[[], bool] | None]
    """Computes the step of an outcome of an execution's task, if that can be done at once.

    Returns a function to call inside the transaction, or None if the step cannot be computed at
    once. The function writes the step and returns True, or returns False if only the outcome must
    be recorded.
    """

_TOKEN_LENGTH = 44
_OWNED = (
    "EXISTS (SELECT 1 FROM console_execution e"
    " WHERE e.id = console_taskrow.execution_id AND e.project_id = %s)"
)


def complete_call(execution_id: int, message: engine.TaskSucceeded | engine.TaskFailed) -> bool:
    """Record the outcome of a call by this server.

    Return False if it was closed before.
    """

    def record() -> bool:
        if not schedule.close_task(execution_id, message.task, clock.now_ms()):
            return False
        inbox.post_message(execution_id, message)
        return True

    return write(record, mergeable=True)


def pending_success(
    token: str, output: str, project: Project | None = None, ahead: Ahead | None = None
) -> Change[None]:
    """SendTaskSuccess. Raises InvalidToken, TaskDoesNotExist, TaskTimedOut or InvalidOutput.

    The service checks the token first, then the output. ``ahead``: computes the next step.
    """
    _check_token(token)
    if engine.is_too_long(output):
        limit = engine.payload_limit()
        raise ValidationException(
            "1 validation error detected: Value at 'output' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limit.most} ({limit.unit})"
        )
    problem = _output_problem(output)

    def message(row: TaskRow) -> engine.TaskSucceeded:
        if problem:
            raise ServiceError(ErrorCode.InvalidOutput, f"Invalid Output: '{problem}'")
        return engine.TaskSucceeded(row.task, output)

    return _ending(token, project, message, ahead)


def _output_problem(output: str) -> str:
    """Return why an output is not JSON, "" if it is."""
    try:
        engine.loads(output)
    except engine.JsonTextError as error:
        return str(error)
    return ""


def pending_failure(
    token: str,
    error: str | None = None,
    cause: str | None = None,
    project: Project | None = None,
    ahead: Ahead | None = None,
) -> Change[None]:
    """SendTaskFailure. Raises InvalidToken, TaskDoesNotExist or TaskTimedOut.

    ``ahead``: computes the following step.
    """
    return _ending(token, project, lambda row: engine.TaskFailed(row.task, error, cause), ahead)


def pending_heartbeat(token: str, project: Project | None = None) -> Change[None]:
    """SendTaskHeartbeat: restart the heartbeat clock; writes no event."""

    def beat() -> None:
        row = _open_task(token, project)
        now_ms = clock.now_ms()
        due_ms = timeouts.due_ms(now_ms, row.heartbeat_s) if row.heartbeat_due_ms else None
        tasks = TaskRow.objects.filter(execution_id=row.execution_id, task=row.task)
        if not tasks.exclude(status=TaskStatus.CLOSED).update(
            heartbeat_ms=now_ms, heartbeat_due_ms=due_ms
        ):
            raise _too_late()
        if due_ms:
            signals.publish_due(due_ms, DueKind.HEARTBEAT, row.execution_id, row.task)

    return Change(beat)


def _ending(token: str, project: Project | None, message: Any, ahead: Ahead | None) -> Change[None]:
    def read() -> TaskRow:
        return _open_task(token, project)

    open_task = None if is_embedded() and ahead is None else read()
    follow = ahead(open_task.execution_id, message(open_task)) if ahead and open_task else None

    def record() -> None:
        if follow is not None and follow():
            return
        # Reading the row here would prevent merging, so the row read before is assumed. If the task
        # was closed meanwhile, this change runs again by itself, reads the row, and raises
        # TaskTimedOut.
        row = rows.read_or_assume(read, assumed=open_task) if open_task else read()
        outcome = message(row)
        if not schedule.close_task(row.execution_id, row.task, clock.now_ms()):
            raise _too_late()
        inbox.post_message(row.execution_id, outcome)

    return Change(record, mergeable=True)


succeed, fail, heartbeat = (
    immediate(pending_success),
    immediate(pending_failure),
    immediate(pending_heartbeat),
)
"""Run the functions above and wait for the commit."""


def _check_token(token: str) -> None:
    """Raise InvalidToken for a text that cannot be a task token of this server."""
    if len(token) != _TOKEN_LENGTH or not token.isascii():
        raise InvalidToken("Invalid Token: 'Invalid token'")


def _open_task(token: str, project: Project | None) -> TaskRow:
    """Return the row of a token; a token works only in the project that owns the task."""
    _check_token(token)
    where = "token_hash = %s"
    values: list[Any] = [schedule.hash_of(token)]
    if project is not None:
        where, values = f"{where} AND {_OWNED}", [*values, project.pk]
    row = rows.fetch_one(TaskRow, where, values)
    if row is None:
        raise ServiceError(
            ErrorCode.TaskDoesNotExist,
            "Task does not exist: 'Provided task does not exist anymore'",
        )
    if row.status == TaskStatus.CLOSED:
        raise _too_late()
    return row


def execution_of_token(token: str, project: Project) -> str:
    """Return the ARN of a token's execution, "" for an unknown token."""
    tasks = TaskRow.objects.filter(token_hash=schedule.hash_of(token), execution__project=project)
    return tasks.values_list("execution__arn", flat=True).first() or ""


def _too_late() -> ServiceError:
    return ServiceError(
        ErrorCode.TaskTimedOut, "Task Timed Out: 'Provided task does not exist anymore'"
    )
