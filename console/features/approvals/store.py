"""Approval links: signed tokens with which anyone can answer one task until they expire.

A link is signed, not stored: the token has the task, the expiry, the creator and the shown data. It
is invalid after its expiry, after the end of the task, and when its creator was removed or has lost
the right to create links. Opening it changes nothing; an answer is a POST of its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core import signing

from console import access
from console.db import audit, clock
from console.db.writer import write
from console.errors import ValidationException
from console.models import Execution
from console.store.people import names
from console.store.tasks import manual
from console.store.tasks.answers import LONGEST_QUESTION, answer_task

if TYPE_CHECKING:
    from console.models import TaskRow

ACTION = "CreateApprovalLink"
LONGEST_NAME = 80
_SALT = "stepyard.approvals"
_HOUR_MS = 3_600_000
_ACTOR = 150
_ASK = "Ask the sender for a new link."


class ApprovalClosed(Exception):
    """The link is invalid, with the reason. ``advice``: the remedy for the reader."""

    def __init__(self, why: str, advice: str = _ASK) -> None:
        super().__init__(why)
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Approval:
    """Contents of an approval link. ``until_ms``: expiry; ``with_input``: shows the input."""

    execution: Execution
    task: TaskRow
    maker: str
    note: str
    with_input: bool
    until_ms: int


def create_approval_link(
    execution: Execution,
    task: int,
    hours: int,
    actor: audit.Actor,
    *,
    note: str = "",
    with_input: bool = False,
) -> str:
    """Return a token for an open task, valid for some hours; raise ValidationException."""
    row = manual.find_task(execution, task)
    if row is None or not manual.is_answerable(row):
        raise ValidationException("Only an open task of an activity or a callback can be answered")
    if len(note) > LONGEST_QUESTION:
        raise ValidationException(f"The note is longer than {LONGEST_QUESTION} characters")
    until = clock.now_ms() + hours * _HOUR_MS
    reason = f"{row.state}, task {task}, {hours} h"
    write(lambda: audit.record(execution.project, actor, ACTION, execution.arn, reason))
    membership = access.find_membership(actor.name, execution.project)
    parts = [
        execution.pk,
        execution.start_ms,
        task,
        until,
        actor.name,
        note,
        with_input,
        membership,
    ]
    return signing.dumps(parts, salt=_SALT, compress=True)


def open_approval(token: str) -> Approval:
    """Return the contents of a valid link; raise ``ApprovalClosed``."""
    try:
        parts = signing.loads(token, salt=_SALT)
        number, start_ms, task, until, maker, note, with_input, *membership = parts
    except (signing.BadSignature, ValueError):
        raise ApprovalClosed("This link is not valid.", f"It may be incomplete. {_ASK}") from None
    if clock.now_ms() > until:
        raise ApprovalClosed("This link has expired.")
    rows = Execution.objects.select_related("definition", "project", "runrow")
    execution = rows.filter(pk=number, start_ms=start_ms).first()
    if execution is None or not access.is_still_allowed(
        maker, execution.project, ACTION, membership[0] if membership else None
    ):
        raise ApprovalClosed("This link is no longer valid.")
    row = manual.find_task(execution, task)
    if row is None or not manual.is_answerable(row):
        raise ApprovalClosed(
            "This task has been answered or has ended.", "There is nothing left to do."
        )
    return Approval(execution, row, maker, note, with_input, until)


def answer_by_link(token: str, *, approve: bool, name: str, comment: str) -> None:
    """Answer the task of a link, under the name the approver typed.

    Raise ``ApprovalClosed``, ValidationException, and what an answer by hand raises.
    """
    approval = open_approval(token)
    name = " ".join(name.split())
    names.check_free_name(name, LONGEST_NAME)
    made_by = f"{audit.BY_APPROVAL_LINK}{approval.maker}"
    actor = f"{name[: _ACTOR - len(made_by)]}{made_by}"
    by = audit.Actor(actor, acting_for=(approval.maker,))
    answer_task(approval.execution, approval.task.task, by, approve=approve, comment=comment)
