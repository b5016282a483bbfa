"""Share the picture of an execution by links that expire and need no sign-in.

A link is signed, not stored: it contains the execution, the expiry and its maker. It is void after
its expiry, or once its maker may no longer share or was removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import signing

from console import access
from console.db import audit, clock
from console.db.writer import write
from console.models import Execution

if TYPE_CHECKING:
    from console.db.audit import Actor

ACTION = "SharePicture"
_SALT = "stepyard.shares"
_HOUR_MS = 3_600_000


class ShareClosed(Exception):
    """The link is void; the text says why."""


def create_share(execution: Execution, hours: int, actor: Actor) -> str:
    """Return a token for the picture of an execution, valid for some hours."""
    until = clock.now_ms() + hours * _HOUR_MS
    reason = f"{hours} h"
    project = execution.project
    write(lambda: audit.record(project, actor, ACTION, execution.arn, reason))
    membership = access.find_membership(actor.name, project)
    return signing.dumps([execution.pk, until, actor.name, membership], salt=_SALT)


def open_share(token: str) -> Execution:
    """Return the execution of a token; raise ``ShareClosed``."""
    try:
        number, until, maker, *membership = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        raise ShareClosed("This link is not one of ours.") from None
    if clock.now_ms() > until:
        raise ShareClosed("This link has expired.")
    rows = Execution.objects.select_related("definition", "project", "runrow")
    execution = rows.filter(pk=number).first()
    if execution is None or not access.is_still_allowed(
        maker, execution.project, ACTION, membership[0] if membership else None
    ):
        raise ShareClosed("This link opens nothing any more.")
    return execution
