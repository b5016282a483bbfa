"""Say who has answered a task here, from the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.errors import ErrorCode
from console.models import AuditEntry
from console.store.tasks.answers import APPROVED_WORD, REJECTED_WORD

if TYPE_CHECKING:
    from console.errors import ServiceError
    from console.models import Execution, TaskRow

_ACTIONS = {"SendTaskSuccess": "completed", "SendTaskFailure": "failed"}
_CLOSED = (ErrorCode.TaskTimedOut, ErrorCode.TaskDoesNotExist)


def answer_words(execution: Execution, row: TaskRow) -> str:
    """Say who has answered a task, and how: "ana approved this task".

    A worker, a timeout or a stop of the execution is in no audit: it has ended, and no more.
    """
    reason = f"{row.state}, task {row.task}"
    words = {reason: ""} | {f"{reason}, {word}": word for word in (APPROVED_WORD, REJECTED_WORD)}
    entry = AuditEntry.objects.filter(
        project=execution.project_id, target=execution.arn, action__in=_ACTIONS, reason__in=words
    ).last()
    if entry is None:
        return "This task has ended"
    return f"{entry.actor} {words[entry.reason] or _ACTIONS[entry.action]} this task"


def refusal_words(execution: Execution, row: TaskRow, refused: ServiceError) -> str:
    """Say why an answer was refused; somebody else's was first where the task is closed."""
    if refused.code not in _CLOSED:
        return refused.message
    return f"{answer_words(execution, row)}. Your answer changed nothing."
