"""Approve or reject a task in a person's name, and find in the audit that somebody did so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from console.errors import ValidationException
from console.store.tasks import manual

if TYPE_CHECKING:
    from console.db import audit
    from console.models import Execution

REJECTED = "Rejected"
"""The error of a task that a person has rejected."""
APPROVED_WORD, REJECTED_WORD = "approved", "rejected"
"""The last word of the reason of an entry of the audit, if a person has approved or rejected."""
LONGEST_QUESTION, LONGEST_COMMENT = 500, 1_000
"""Characters of what a person is asked, and of what they say to it."""


def answer_task(
    execution: Execution, task: int, actor: audit.Actor, *, approve: bool, comment: str = ""
) -> None:
    """Approve or reject a task: it ends with who did so as its output, or with ``Rejected``."""
    comment = comment.strip()
    if len(comment) > LONGEST_COMMENT:
        raise ValidationException(f"The comment is longer than {LONGEST_COMMENT} characters")
    if approve:
        said = {"approved": True, "by": actor.name} | ({"comment": comment} if comment else {})
        manual.succeed(
            execution, task, json.dumps(said, ensure_ascii=False), actor, word=APPROVED_WORD
        )
    else:
        cause = f"Rejected by {actor.name}" + (f": {comment}" if comment else "")
        manual.fail(execution, task, REJECTED, cause, actor, word=REJECTED_WORD)


def read_answer(action: str, reason: str) -> tuple[str, str]:
    """Return the word of an answer in the audit, "" if it is none, and the rest of its reason."""
    rest, _, word = reason.rpartition(", ")
    words = {"SendTaskSuccess": APPROVED_WORD, "SendTaskFailure": REJECTED_WORD}
    return (word, rest) if word == words.get(action) else ("", reason)
