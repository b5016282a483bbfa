"""End an open task, or send its heartbeat, by hand in place of a worker.

The task is identified by its number, so no token travels
through a page, except when ``reveal_token`` shows one. A free activity task is
claimed first: its history then names the person as the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

import engine
from console.db import audit, rows
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import TaskRow
from console.statuses import TaskKind, TaskStatus
from console.store.tasks import claim, complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Execution


def is_answerable(row: TaskRow) -> bool:
    """Return whether callers may end a task: an activity task, or one with a task token."""
    called_back = row.pattern == engine.IntegrationPattern.WAIT_FOR_TASK_TOKEN
    return row.status != TaskStatus.CLOSED and (row.kind == TaskKind.ACTIVITY or called_back)


def find_task(execution: Execution, task: int) -> TaskRow | None:
    """Return a task of an execution, open or closed."""
    return rows.fetch_one(TaskRow, "execution_id = %s AND task = %s", [execution.pk, task])


def succeed(
    execution: Execution, task: int, output: str, actor: audit.Actor, *, word: str = ""
) -> None:
    """End a task with its output. Raises InvalidOutput, TaskTimedOut, ValidationException.

    ``word``: what the person did, for the audit: ``approved``.
    """

    def end(token: str) -> None:
        complete.succeed(token, output)

    _answer(execution, task, "SendTaskSuccess", actor, end, word=word)


def fail(
    execution: Execution,
    task: int,
    error: str,
    cause: str,
    actor: audit.Actor,
    *,
    word: str = "",
) -> None:
    """End a task with an error. Raises TaskTimedOut, ValidationException.

    ``word``: what the person did, for the audit: ``rejected``.
    """
    problem = engine.failure_problem(error, cause)
    if problem:
        raise ValidationException(problem)

    def end(token: str) -> None:
        complete.fail(token, error or None, cause or None)

    _answer(execution, task, "SendTaskFailure", actor, end, word=word)


def heartbeat(execution: Execution, task: int, actor: audit.Actor) -> None:
    """Restart a task's heartbeat clock; a free activity task is claimed."""
    _answer(execution, task, "SendTaskHeartbeat", actor, complete.heartbeat)


def reveal_token(execution: Execution, task: int, actor: audit.Actor) -> str:
    """Return the token of an open task, and record that it was shown."""
    tokens: list[str] = []
    _answer(execution, task, "RevealTaskToken", actor, tokens.append, take=False)
    return tokens[-1]


def _answer(
    execution: Execution,
    task: int,
    action: str,
    actor: audit.Actor,
    act: Callable[[str], None],
    *,
    take: bool = True,
    word: str = "",
) -> None:
    """Act on an open task by its token, and write the audit entry, in one transaction."""

    def record() -> None:
        row = find_task(execution, task)
        if row is None or not is_answerable(row):
            raise ServiceError(
                ErrorCode.TaskTimedOut, "Task Timed Out: 'Provided task does not exist anymore'"
            )
        if take and row.kind == TaskKind.ACTIVITY:
            claim.claim_by_hand(execution.pk, task, actor.name)
        act(engine.task_token(settings.STATEYARD_TOKEN_KEY, execution.arn, task))
        reason = f"{row.state}, task {task}" + (f", {word}" if word else "")
        audit.record(execution.project, actor, action, execution.arn, reason)

    write(record)
