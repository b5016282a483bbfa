"""Store start links: secret URLs that start executions by HTTP; secrets are stored as hashes.

A link stops working while its creator lacks the right to create one. It ends for good with the
creator's membership: a person who is added again has a new membership. This also holds if the
server had no notifications feature when the creator was removed.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from console import access
from console.db import audit, clock, rows
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, StateMachineDoesNotExist, ValidationException
from console.models import StartLink, StateMachine
from console.statuses import MachineStatus
from console.store.machines.machines import lock_clause

if TYPE_CHECKING:
    from console.models import Project

_MAKE, _REVOKE = "CreateStartLink", "RevokeStartLink"
ACTOR = audit.START_LINK
_MOST = 20
_NAME = 64
_MINUTE_MS = 60_000


def create_link(machine: StateMachine, name: str, actor: audit.Actor) -> tuple[StartLink, str]:
    """Create a link; return it and its secret, which is shown only once.

    Raise ValidationException for an invalid name and for too many links;
    StateMachineDeleting and StateMachineDoesNotExist.
    """
    name = " ".join(name.split())
    if not name or len(name) > _NAME or not name.isprintable():
        raise ValidationException(
            f"name: enter 1 to {_NAME} characters to name the user of the link"
        )
    secret = secrets.token_urlsafe(32)

    def store() -> StartLink:
        row = rows.fetch_one(StateMachine, lock_clause("id = %s"), [machine.pk])
        if row is None:
            raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{machine.arn}'")
        if row.status == MachineStatus.DELETING:
            raise ServiceError(
                ErrorCode.StateMachineDeleting, f"State Machine is being deleted: '{machine.arn}'"
            )
        if StartLink.objects.filter(machine=machine, revoked_ms=None).count() >= _MOST:
            raise ValidationException(f"At most {_MOST} start links a machine: revoke an old one.")
        link = StartLink.objects.create(
            machine=machine,
            name=name,
            secret_hash=_hashed(secret),
            created_by=actor.name,
            membership=access.find_membership(actor.name, machine.project),
            created_ms=clock.now_ms(),
        )
        audit.record(machine.project, actor, _MAKE, machine.arn, name)
        return link

    return write(store), secret


def revoke_link(machine: StateMachine, number: int, actor: audit.Actor) -> StartLink:
    """Revoke a link for good; raise ResourceNotFound."""

    def store() -> StartLink:
        links = StartLink.objects.select_for_update().filter(machine=machine, revoked_ms=None)
        link = links.filter(pk=number).first()
        if link is None:
            raise ServiceError(ErrorCode.ResourceNotFound, "There is no such start link any more")
        link.revoked_ms = clock.now_ms()
        link.save(update_fields=["revoked_ms"])
        audit.record(machine.project, actor, _REVOKE, machine.arn, link.name)
        return link

    return write(store)


def revoke_links_of(project: Project, person: str, actor: audit.Actor) -> None:
    """Revoke all links that a person created in a project (in the caller's transaction)."""
    links = StartLink.objects.select_for_update(of=("self",)).select_related("machine")
    for link in links.filter(machine__project=project, created_by=person, revoked_ms=None):
        StartLink.objects.filter(pk=link.pk).update(revoked_ms=clock.now_ms())
        audit.record(project, actor, _REVOKE, link.machine.arn, f"{link.name}, made by {person}")


def find_link(machine: str, secret: str) -> StartLink | None:
    """Return the link of a state machine's name and a secret, None if unknown or closed."""
    links = StartLink.objects.select_related("machine__project").filter(machine__name=machine)
    link = links.filter(secret_hash=_hashed(secret)).first()
    return link if link is not None and is_open(link) else None


def is_open(link: StartLink) -> bool:
    """Whether a link starts executions: not revoked, and its creator still has the right."""
    if link.revoked_ms is not None:
        return False
    project = link.machine.project
    if link.membership is None and _was_removed_since(link):
        return False
    return access.is_still_allowed(link.created_by, project, _MAKE, link.membership)


def _was_removed_since(link: StartLink) -> bool:
    """Whether the creator of a link without a membership was removed after its creation."""
    removed = audit.find_latest(link.machine.project, link.created_by, "RemoveMember")
    return removed is not None and removed.at_ms >= link.created_ms


def note_use(link: StartLink) -> None:
    """Record the last use of a link, to the minute."""
    now_ms = clock.now_ms()
    if now_ms // _MINUTE_MS != (link.used_ms or 0) // _MINUTE_MS:
        write(lambda: StartLink.objects.filter(pk=link.pk).update(used_ms=now_ms))


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
