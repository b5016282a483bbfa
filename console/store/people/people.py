"""Keep who belongs to a project, and which access keys they have.

Every change takes the lock of the project's row first and reads after it what it decides on. So two
owners who act at once act one after the other, and the second one is refused if the first one took
their rights away or would leave no owner:

1. Ana makes Ben a viewer, and Ben makes Ana a viewer; both were owners when they asked.
2. Ana's change has the lock, finds Ben as the other owner, and commits.
3. Ben's change gets the lock, finds that Ben is no owner any more, and is refused.

Removal takes everything away that would let the person in again: the project's access keys, what
features opened in their name (start links), the invitations that they made or that were made for
them, and, if they belong to no other project, the password and the login links. A new password,
also an unusable one, ends every session, because a session carries a hash of it (Django's
``get_session_auth_hash``). Adding the person again therefore starts from nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import structlog
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.db.models import Q

from console import access
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.feature import Hook, hooked
from console.models import AccessKey, Invitation, LoginLink, Membership, Project, Role
from console.statuses import Topic
from console.store.people import names

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

_NAME = re.compile(r"[\w.@+-]{1,64}")
_MOST_KEYS = 10
LONGEST_DESCRIPTION = 100
"""Characters that say what uses an access key."""
_MINUTE_MS = 60_000
_used: dict[str, int] = {}
"""Key -> the minute since the epoch in which its last use was kept."""
log = structlog.get_logger(__name__)
RIGHTS = (Topic.RIGHTS,)
"""The channel on which changes of rights are published."""
signals.subscribe(RIGHTS, access.forget_principals)


def put_member(
    project: Project, name: str, role: str, actor: audit.Actor, by: User | None = None
) -> Membership:
    """Give a person (made if they are new, without a password) a role in a project.

    A person who belongs to no project loses the password, keys and links of an earlier membership.
    ``by``: the person who asks, who must be an owner; None for the operator's commands. Raise
    ValidationException for a name or role that is none, or if no owner would be left,
    AccessDeniedException if ``by`` is no owner any more.
    """
    check_name_and_role(name, role)

    def store() -> Membership:
        lock_team(project, by)
        user = locked_user(name)
        membership = Membership.objects.filter(project=project, user=user).first()
        if membership is not None and membership.role == Role.OWNER and role != Role.OWNER:
            _check_owner_stays(project, membership)
        if membership is None:
            names.check_new_name(name, names_of(project))
            begin_anew(project, user, actor)
        elif role != Role.OWNER:
            _end_invitations(project, user)
        made, _ = Membership.objects.update_or_create(
            project=project, user=user, defaults={"role": role}
        )
        audit.record(project, actor, "PutMember", name, f"role {role}")
        signals.publish(RIGHTS)
        return made

    return write(store)


def check_name_and_role(name: str, role: str) -> None:
    """Raise ValidationException for a name nobody can have, or a role that is none."""
    if not _NAME.fullmatch(name):
        msg = f"name: got {name!r}, wanted 1 to 64 letters, digits and . @ + - _"
        raise ValidationException(msg)
    names.check_script(name, "name")
    if role not in Role.values:
        msg = f"role: got {role!r}, wanted one of {', '.join(Role.values)}"
        raise ValidationException(msg)


def names_of(project: Project) -> set[str]:
    """Return the names of the members of a project, and of the people who are invited."""
    invited = Invitation.objects.filter(
        project=project, used_ms=None, expires_ms__gt=clock.now_ms()
    )
    members = Membership.objects.filter(project=project)
    return {
        *members.values_list("user__username", flat=True),
        *invited.values_list("name", flat=True),
    }


def remove_member(project: Project, name: str, actor: audit.Actor, by: User | None = None) -> None:
    """End a membership, and with it everything that would let the person in again.

    ``by``: as for ``put_member``. Raise ValidationException for the last owner, ResourceNotFound
    for a person who is no member, AccessDeniedException if ``by`` is no owner any more.
    """

    def store() -> None:
        lock_team(project, by)
        membership = Membership.objects.filter(project=project, user__username=name).first()
        if membership is None:
            raise ServiceError(
                ErrorCode.ResourceNotFound, f"{name!r} is no member of {project.name!r}"
            )
        if membership.role == Role.OWNER:
            _check_owner_stays(project, membership)
        user = locked_user(name)
        membership.delete()
        audit.record(project, actor, "RemoveMember", name)
        begin_anew(project, user, actor)
        signals.publish(RIGHTS)

    write(store)


def lock_team(project: Project, by: User | None = None) -> None:
    """Let nobody else change the project's team or keys in this transaction.

    Raise AccessDeniedException if ``by`` is given and no owner of the project any more.
    """
    # not FOR UPDATE: that would hold up every insert that refers to the project, as each start does
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if by is not None and not _is_owner(project, by):
        raise ServiceError(
            ErrorCode.AccessDeniedException,
            f"{by.get_username()!r} is no owner of {project.name!r} now",
        )


def _is_owner(project: Project, user: User) -> bool:
    rows = Membership.objects.filter(project=project, role=Role.OWNER)
    return rows.filter(user=user, user__is_active=True).exists()


def locked_user(name: str) -> User:
    """Return a person of a name, made if they are new; nobody else changes them meanwhile.

    Two projects may remove somebody at once: each would take the other one's membership for one
    that stays, and the account would stay open.
    """
    users = get_user_model().objects
    user = users.select_for_update(no_key=True).filter(username=name).first()
    return user or users.create_user(name)


def begin_anew(project: Project, user: User, actor: audit.Actor) -> None:
    """Take away what a person, who is no member of the project, has left of a membership.

    If they belong to no project at all, that is the whole account: sessions, password and links.
    An administrator of the server keeps the account.
    ``actor``: who revokes what features opened in their name, for the audit.
    """
    _end_invitations(project, user)
    for take_away in hooked(Hook.MEMBER_REMOVED):
        take_away(project, user.get_username(), actor)
    AccessKey.objects.filter(project=project, user=user).delete()
    _close_account_without_project(user)


def _close_account_without_project(user: User) -> None:
    if user.is_superuser or Membership.objects.filter(user=user).exists():
        return
    AccessKey.objects.filter(user=user).delete()
    LoginLink.objects.filter(user=user).delete()
    user.set_unusable_password()
    user.save(update_fields=["password"])


def _end_invitations(project: Project, user: User) -> None:
    """Delete the open invitations by or for a person.

    An owner who is to be removed could otherwise invite themself, and come back later.
    """
    name = user.get_username()
    invitations = Invitation.objects.filter(project=project, used_ms=None)
    invitations.filter(Q(made_by=name) | Q(name=name)).delete()


def set_administrator(name: str, *, administers: bool, actor: audit.Actor) -> None:
    """Make a person an administrator of the server, or end that; a new person is created.

    The audit of the project ``default`` has it. Raise ValidationException for a name nobody can
    have, ResourceNotFound if there is no such administrator to end.
    """
    check_name_and_role(name, Role.VIEWER)

    def store() -> None:
        default = access.default_project()
        if not administers and not _administrators().filter(username=name).exists():
            raise ServiceError(ErrorCode.ResourceNotFound, f"{name!r} is no administrator")
        user = locked_user(name)
        user.is_superuser = administers
        user.save(update_fields=["is_superuser"])
        if not administers:
            _close_account_without_project(user)
        action = "PutAdministrator" if administers else "RemoveAdministrator"
        audit.record(default, actor, action, name)
        signals.publish(RIGHTS)

    write(store)


def _administrators() -> QuerySet[User]:
    return get_user_model().objects.filter(is_superuser=True)


def set_password(project: Project, user: User, encoded: str, actor: audit.Actor) -> bool:
    """Set a person's password; every session ends that has a hash of the one before.

    ``user``: as it was when the current password was checked. ``encoded``: from ``make_password``,
    which takes too long to be called here. Return False, and change nothing, if the password is
    another one by now: the person changed it elsewhere, or was removed.
    """

    def store() -> bool:
        before = get_user_model().objects.filter(pk=user.pk, password=user.password)
        if before.update(password=encoded) != 1:
            return False
        audit.record(project, actor, "ChangePassword", user.get_username())
        return True

    return write(store)


def choose_columns(project: Project, user: User, chosen: str) -> None:
    """Keep which columns of tables a member wants to see. ``chosen``: as ``Membership`` has it."""
    memberships = Membership.objects.filter(project=project, user=user)
    write(lambda: memberships.update(columns=chosen))


def _check_owner_stays(project: Project, leaving: Membership) -> None:
    """Raise unless somebody else owns the project, too."""
    owners = Membership.objects.filter(project=project, role=Role.OWNER, user__is_active=True)
    if not owners.exclude(pk=leaving.pk).exists():
        raise ValidationException("A project keeps at least one owner: make somebody else one.")


def service_accounts(project: Project) -> list[User]:
    """Return the members that have no password, by name: programs, which sign their calls."""
    members = Membership.objects.filter(project=project).select_related("user")
    users = [member.user for member in members.order_by("user__username")]
    return [user for user in users if not user.has_usable_password()]


def new_key_of_service_account(
    name: str, project: Project, actor: audit.Actor, by: User, description: str = ""
) -> tuple[AccessKey, str]:
    """Make a key of a member that has no password, as ``new_key`` does.

    A person's key is theirs alone to make: what it does is theirs in the audit. ``by``: the person
    who asks. Raise ValidationException for who is no such member, AccessDeniedException if ``by``
    is no owner.
    """
    user = next((user for user in service_accounts(project) if user.get_username() == name), None)
    if user is None:
        raise ValidationException(f"{name!r} is no service account of {project.name!r}")
    return new_key(user, project, actor, by, description)


def new_key(
    user: User,
    project: Project,
    actor: audit.Actor,
    by: User | None = None,
    description: str = "",
) -> tuple[AccessKey, str]:
    """Make a key of a member; return it and its secret, which is shown this once.

    ``by``: the owner who asks for the key of another member, None for one's own and for the
    operator's commands. ``description``: what uses it. Raise ValidationException for who is no
    member or has too many keys, and for a description that is too long, AccessDeniedException if
    ``by`` is no owner any more.
    """
    description = _check_description(description)

    def store() -> AccessKey:
        # 1. a removal deletes the keys, 2. this one is inserted, 3. both commit: without the lock
        # the key would stay, and work again as soon as the person is added again
        lock_team(project, by)
        if not Membership.objects.filter(project=project, user=user).exists():
            raise ValidationException(f"{user.get_username()!r} is no member of {project.name!r}")
        if AccessKey.objects.filter(project=project, user=user).count() >= _MOST_KEYS:
            raise ValidationException(f"At most {_MOST_KEYS} keys a person: delete an old one.")
        key = access.create_access_key(user, project, description)
        audit.record(project, actor, "CreateAccessKey", key.key_id, user.get_username())
        return key

    key = write(store)
    return key, access.secret_for(key.key_id)


def describe_key(
    project: Project, key_id: str, description: str, actor: audit.Actor, by: User
) -> None:
    """Say what uses a key. ``by``: the person who asks, as for ``delete_key``.

    Raise AccessDeniedException, ValidationException and ResourceNotFound.
    """
    description = _check_description(description)

    def store() -> None:
        lock_team(project)
        _check_may_change(get_key(project, key_id), by)
        AccessKey.objects.filter(project=project, key_id=key_id).update(description=description)
        audit.record(project, actor, "DescribeAccessKey", key_id, description)

    write(store)


def _check_description(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > LONGEST_DESCRIPTION or not text.isprintable():
        raise ValidationException(f"Description: wanted {LONGEST_DESCRIPTION} characters at most")
    return text


def switch_key(
    project: Project, key_id: str, *, on: bool, actor: audit.Actor, by: User | None = None
) -> AccessKey:
    """Let a key be used, or not.

    The person who has the key may enable it if they disabled it themselves; a key that somebody
    else disabled, or of which that is not known, is enabled by an owner only. ``by``: the person
    who asks; None for the operator's commands, which may do everything. Raise ResourceNotFound or
    AccessDeniedException.
    """

    def store() -> AccessKey:
        lock_team(project)
        key = get_key(project, key_id)
        as_owner = _check_may_change(key, by)
        if on and not as_owner and key.disabled_ms and key.disabled_by != actor.name:
            raise ServiceError(
                ErrorCode.AccessDeniedException,
                "An owner disabled this key: ask an owner to enable it.",
            )
        if on:
            key.disabled_ms, key.disabled_by = None, ""
        elif key.disabled_ms is None or as_owner:  # else: it would take the owner's place
            key.disabled_ms, key.disabled_by = clock.now_ms(), actor.name
        key.save(update_fields=["disabled_ms", "disabled_by"])
        audit.record(project, actor, "EnableAccessKey" if on else "DisableAccessKey", key_id)
        signals.publish(RIGHTS)
        return key

    return write(store)


def delete_key(project: Project, key_id: str, actor: audit.Actor, by: User | None = None) -> None:
    """Delete a key for ever. ``by`` and what is raised: as for ``switch_key``."""

    def store() -> None:
        lock_team(project)
        key = get_key(project, key_id)
        _check_may_change(key, by)
        key.delete()
        audit.record(project, actor, "DeleteAccessKey", key_id)
        signals.publish(RIGHTS)

    write(store)


def _check_may_change(key: AccessKey, by: User | None) -> bool:
    """Return whether a change of a key is made as an owner; raise if it may not be made at all."""
    if by is None or _is_owner(key.project, by):
        return True
    if key.user_id != by.pk:
        raise ServiceError(
            ErrorCode.AccessDeniedException,
            f"{key.key_id} is another person's key: only an owner changes it",
        )
    return False


def get_key(project: Project, key_id: str) -> AccessKey:
    """Return a key of the project; raise ResourceNotFound."""
    keys = AccessKey.objects.select_related("user", "project").filter(project=project)
    key = keys.filter(key_id=key_id).first()
    if key is None:
        raise ServiceError(ErrorCode.ResourceNotFound, f"There is no access key {key_id!r}")
    return key


def note_use(key_id: str) -> None:
    """Keep when a key was last used (its signature was right), to the minute.

    No call fails by it.
    """
    moment = clock.now_ms()
    minute = moment // _MINUTE_MS
    if _used.get(key_id) == minute:
        return
    _used[key_id] = minute
    try:
        write(lambda: AccessKey.objects.filter(key_id=key_id).update(last_used_ms=moment))
    except DatabaseError:
        log.warning("cannot keep when a key was used", key_id=key_id)
