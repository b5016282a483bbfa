"""Detect edit conflicts: another person saved the same text while a form was open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import audit
from console.models import Project
from console.store.people import masks

if TYPE_CHECKING:
    from console.models import AuditEntry


@dataclass(frozen=True, slots=True)
class SaveConflict:
    """Another person's save. ``revision``: the one that *Save mine over theirs* may replace.

    ``saved_by``: "" and ``saved_ms``: None if nobody knows; ``theirs``: label and text of fields.
    """

    revision: str
    saved_by: str
    saved_ms: int | None
    theirs: tuple[tuple[str, str], ...]


def paths_conflict(project: Project) -> SaveConflict:
    """Return the conflict in the masked paths."""
    now = Project.objects.get(pk=project.pk).masked
    entry = audit.find_latest(project, project.name, "PutMaskedPaths")
    return save_conflict(masks.revision_of(now), entry, (("Their paths", now),))


def save_conflict(
    revision: str, entry: AuditEntry | None, theirs: tuple[tuple[str, str], ...]
) -> SaveConflict:
    """Return the conflict from an audit entry and the present fields."""
    by, at_ms = (entry.actor, entry.at_ms) if entry else ("", None)
    return SaveConflict(revision, by, at_ms, theirs)
