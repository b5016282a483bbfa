"""Write audit entries: one append-only row per change, with actor, action and target.

An entry has no payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import clock, rows
from console.db.rows import storable
from console.models import AuditEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.models import Project


LONGEST_REASON = 256
"""Maximum characters of a reason; longer reasons are cut."""
START_LINK = "link "
"""Prefix of a start link's name as the starter of an execution."""
BY_APPROVAL_LINK = ", by a link of "
"""Separator between the name that a link's user typed and the name of the link's maker."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a change: user name, access key if any, and request id.

    ``execution``: the ARN of the execution whose Task acts; ``name`` has started it then.
    ``acting_for``: whose rights limit the results of the action, if this is not ``user``.
    """

    name: str = ""
    key_id: str = ""
    request_id: str = ""
    execution: str = ""
    acting_for: tuple[str, ...] = ()


NOBODY = Actor()


def record(
    project: Project | None, actor: Actor, action: str, target: str, reason: str = ""
) -> None:
    """Write an audit row (inside the caller's transaction).

    ``project``: None for the audit of the server, which outlives every project.
    """
    record_all(project, actor, [(action, target, reason)])


def record_all(
    project: Project | None, actor: Actor, changes: Iterable[tuple[str, str, str]]
) -> None:
    """Write an audit row for each action, target and reason, by one statement."""
    about = {
        "at_ms": clock.now_ms(),
        "project_id": project and project.pk,
        "actor": actor.name,
        "key_id": actor.key_id,
        "request_id": actor.request_id,
        "execution": actor.execution,
    }
    entries = [
        {**about, "action": action, "target": target, "reason": storable(reason[:LONGEST_REASON])}
        for action, target, reason in changes
    ]
    rows.insert_rows(AuditEntry, entries)


def find_latest(project: Project, target: str, *actions: str) -> AuditEntry | None:
    """Return the latest entry for a target with one of these actions, None without one."""
    entries = AuditEntry.objects.filter(project=project, target=target, action__in=actions)
    return entries.order_by("-pk").first()
