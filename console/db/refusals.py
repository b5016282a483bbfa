"""Record in the audit trail the actions that a role did not allow, under their own name.

An entry under the name of an action itself therefore means that the action was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.db import audit
from console.db.writer import write

if TYPE_CHECKING:
    from console.models import Project


REFUSED = "Refused"


def record_refused(project: Project, actor: audit.Actor, action: str, where: str) -> None:
    """Write an audit row for an action that was refused. ``where``: the page's path."""
    write(lambda: audit.record(project, actor, REFUSED, where[:512], action))
