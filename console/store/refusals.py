"""Who tried what their role does not allow?  The audit says it, as of what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.store import audit
from console.store.writer import write

if TYPE_CHECKING:
    from console.models import Project


def record(project: Project, actor: audit.Actor, action: str, where: str) -> None:
    """Write an audit row for an action that was refused. ``where``: the page's path."""
    write(lambda: audit.record(project, actor, action, where[:512], "refused: not allowed"))
