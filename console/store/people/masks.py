"""Store the masked paths of a project, and record who revealed masked values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import engine
from console.db import audit, clock, signals
from console.db.rows import storable
from console.db.writer import write
from console.errors import ConflictException, ValidationException
from console.models import AuditEntry, Project
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.models import Execution

MOST = 100
LONGEST = 256
FOR_MS = 10 * 60 * 1000
"""The duration of a reveal on a page, and the period of reads that one audit row covers."""
_REVEAL = "RevealPayloads"
_PUT = "PutMaskedPaths"


def revision_of(masked: str) -> str:
    """Return the revision of a project's masked paths."""
    return hashlib.sha256(masked.encode()).hexdigest()[:16]


def put_paths(
    project: Project, paths: Iterable[str], actor: audit.Actor, revision: str = ""
) -> list[str]:
    """Replace a project's masked paths, for its pages and the API; return them normalized.

    ``revision``: the revision that was edited, "" to skip the check for concurrent changes. Raise
    ValidationException for an invalid path, and for too many paths; ConflictException if the paths
    have another revision by now.
    """
    unique_paths = list(dict.fromkeys(path for path in (path.strip() for path in paths) if path))
    if len(unique_paths) > MOST:
        raise ValidationException(
            f"{len(unique_paths)} masked paths are too many. At most {MOST} are accepted."
        )
    for place, path in enumerate(unique_paths, 1):
        check_path(place, path)

    def store() -> None:
        now = Project.objects.select_for_update().get(pk=project.pk).masked
        if revision and revision != revision_of(now):
            raise ConflictException("The masked paths were changed since")
        Project.objects.filter(pk=project.pk).update(masked="\n".join(unique_paths))
        audit.record(project, actor, _PUT, project.name, ", ".join(unique_paths) or "none")
        signals.publish(people.RIGHTS)  # what is kept of an access key has its project in it

    write(store)
    return unique_paths


def last_change(project: Project) -> AuditEntry | None:
    """Return the audit entry of the last change of masked paths, None without one."""
    rows = AuditEntry.objects.exclude(action="StartExecution")  # as the index of targets has them
    return rows.filter(target=project.name, project=project, action=_PUT).order_by("-pk").first()


def check_path(place: int, path: str) -> None:
    """Raise ValidationException for an invalid path. ``place``: its number in the list."""
    if len(path) > LONGEST or path != storable(path) or len(path.splitlines()) != 1:
        msg = f"Path {place} must be one line of at most {LONGEST} characters."
        raise ValidationException(msg)
    try:
        engine.compile_path_set([path])
    except engine.EngineError as error:
        raise ValidationException(f"Path {place}: {error}.") from None


def reveal_values(execution: Execution, reason: str, actor: audit.Actor) -> None:
    """Record that a person is about to see an execution's masked values."""
    project, arn = execution.project, execution.arn
    write(lambda: audit.record(project, actor, _REVEAL, arn, reason))


def note_reads(project: Project, arns: Iterable[str], reason: str, actor: audit.Actor) -> None:
    """Record that a person is about to read masked values by the API.

    Within ``FOR_MS`` there is one row for each execution and person, in all processes together,
    because a client may poll. Reads by a Task on behalf of a person have separate entries.
    """

    def store() -> None:
        rows = AuditEntry.objects.filter(target__in=unique_arns, project=project, actor=actor.name)
        rows = rows.filter(execution=actor.execution)
        rows = rows.filter(action=_REVEAL, at_ms__gt=clock.now_ms() - FOR_MS)
        recorded = set(rows.values_list("target", flat=True))
        for arn in unique_arns:
            if arn not in recorded:
                audit.record(project, actor, _REVEAL, arn, reason)

    unique_arns = list(dict.fromkeys(arns))
    write(store)
