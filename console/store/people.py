"""Who belongs to a project, and which access keys do they have?"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import structlog
from django.contrib.auth import get_user_model
from django.db import DatabaseError

from console import access, clock
from console.errors import ResourceNotFound, ValidationException
from console.models import AccessKey, Membership, Role
from console.store import audit
from console.store.writer import write

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from console.models import Project

_NAME = re.compile(r"[\w.@+-]{1,64}")
_MOST_KEYS = 10
_USED_S = 60.0
_used: dict[str, float] = {}
log = structlog.get_logger(__name__)


def put_member(project: Project, name: str, role: str, actor: audit.Actor) -> Membership:
    """Give a person (made if they are new, without a password) a role in a project.

    Raise ValidationException for a name or role that is none, or if no owner would be left.
    """
    if not _NAME.fullmatch(name):
        msg = f"name: got {name!r}, wanted 1 to 64 letters, digits and . @ + - _"
        raise ValidationException(msg)
    if role not in Role.values:
        msg = f"role: got {role!r}, wanted one of {', '.join(Role.values)}"
        raise ValidationException(msg)

    def store() -> Membership:
        users = get_user_model().objects
        user = users.filter(username=name).first() or users.create_user(name)
        found = Membership.objects.filter(project=project, user=user).first()
        if found is not None and found.role == Role.OWNER and role != Role.OWNER:
            _check_owner_stays(project, found)
        made, _ = Membership.objects.update_or_create(
            project=project, user=user, defaults={"role": role}
        )
        audit.record(project, actor, "PutMember", name, f"role {role}")
        return made

    return write(store)


def remove_member(project: Project, name: str, actor: audit.Actor) -> None:
    """End a membership and disable its keys.

    Raise ValidationException for the last owner, ResourceNotFound for who is no member.
    """

    def store() -> None:
        found = Membership.objects.filter(project=project, user__username=name).first()
        if found is None:
            raise ResourceNotFound(f"{name!r} is no member of {project.name!r}")
        if found.role == Role.OWNER:
            _check_owner_stays(project, found)
        AccessKey.objects.filter(project=project, user=found.user, disabled_ms=None).update(
            disabled_ms=clock.now_ms()
        )
        found.delete()
        audit.record(project, actor, "RemoveMember", name)

    write(store)


def choose_columns(project: Project, user: User, chosen: str) -> None:
    """Keep which columns of tables a member wants to see. ``chosen``: as ``Membership`` has it."""
    found = Membership.objects.filter(project=project, user=user)
    write(lambda: found.update(columns=chosen))


def _check_owner_stays(project: Project, leaving: Membership) -> None:
    """Raise unless somebody else owns the project, too."""
    owners = Membership.objects.select_for_update().filter(project=project, role=Role.OWNER)
    if not [one for one in owners if one.pk != leaving.pk]:
        raise ValidationException("A project keeps at least one owner: make somebody else one.")


def new_key(user: User, project: Project, actor: audit.Actor) -> tuple[AccessKey, str]:
    """Make a key of a member; return it and its secret, which is shown this once.

    Raise ValidationException for who is no member or has too many keys.
    """

    def store() -> AccessKey:
        if not Membership.objects.filter(project=project, user=user).exists():
            raise ValidationException(f"{user.get_username()!r} is no member of {project.name!r}")
        if AccessKey.objects.filter(project=project, user=user).count() >= _MOST_KEYS:
            raise ValidationException(f"At most {_MOST_KEYS} keys a person: delete an old one.")
        key = access.new_key(user, project)
        audit.record(project, actor, "CreateAccessKey", key.key_id, user.get_username())
        return key

    key = write(store)
    return key, access.secret_for(key.key_id)


def switch_key(project: Project, key_id: str, *, on: bool, actor: audit.Actor) -> AccessKey:
    """Let a key be used, or not; raise ResourceNotFound."""

    def store() -> AccessKey:
        key = get_key(project, key_id)
        key.disabled_ms = None if on else clock.now_ms()
        key.save(update_fields=["disabled_ms"])
        audit.record(project, actor, "EnableAccessKey" if on else "DisableAccessKey", key_id)
        return key

    return write(store)


def delete_key(project: Project, key_id: str, actor: audit.Actor) -> None:
    """Delete a key for ever; raise ResourceNotFound."""

    def store() -> None:
        get_key(project, key_id).delete()
        audit.record(project, actor, "DeleteAccessKey", key_id)

    write(store)


def get_key(project: Project, key_id: str) -> AccessKey:
    """Return a key of the project; raise ResourceNotFound."""
    key = AccessKey.objects.select_related("user").filter(project=project, key_id=key_id).first()
    if key is None:
        raise ResourceNotFound(f"There is no access key {key_id!r}")
    return key


def note_use(key_id: str) -> None:
    """Keep when a key was last used (its signature was right), to the minute.

    No call fails by it.
    """
    now = time.monotonic()
    if now < _used.get(key_id, 0.0):
        return
    _used[key_id] = now + _USED_S
    moment = clock.now_ms()
    try:
        write(lambda: AccessKey.objects.filter(key_id=key_id).update(last_used_ms=moment))
    except DatabaseError:
        log.warning("cannot keep when a key was used", key_id=key_id)
