"""Approve or reject a task in a person's name, and find these answers in the audit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from console.errors import ValidationException
from console.store.tasks import manual

if TYPE_CHECKING:
    from console.db import audit
    from console.models import Execution

REJECTED = "Rejected"
"""The error of a rejected task."""
APPROVED_WORD, REJECTED_WORD = "approved", "rejected"
"""The last word in the reason of an audit entry for an approval or a rejection."""
LONGEST_QUESTION, LONGEST_COMMENT = 500, 1_000
"""Maximum characters of the question and of the comment."""


def answer_task(
    execution: Execution, task: int, actor: audit.Actor, *, approve: bool, comment: str = ""
) -> None:
    """End a task as approved (its output names the person) or failed with ``Rejected``."""
    comment = comment.strip()
    if len(comment) > LONGEST_COMMENT:
        raise ValidationException(f"The comment is longer than {LONGEST_COMMENT} characters")
    if approve:
        answer = {"approved": True, "by": actor.name} | ({"comment": comment} if comment else {})
        manual.succeed(
            execution, task, json.dumps(answer, ensure_ascii=False), actor, word=APPROVED_WORD
        )
    else:
        cause = f"Rejected by {actor.name}" + (f": {comment}" if comment else "")
        manual.fail(execution, task, REJECTED, cause, actor, word=REJECTED_WORD)


def read_answer(action: str, reason: str) -> tuple[str, str]:
    """Return the answer in an audit entry ("" if none), and the reason without it."""
    rest, _, word = reason.rpartition(", ")
    words = {"SendTaskSuccess": APPROVED_WORD, "SendTaskFailure": REJECTED_WORD}
    return (word, rest) if word == words.get(action) else ("", reason)
