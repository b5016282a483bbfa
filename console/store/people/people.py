"""Change the members of a project and their access keys.

Every change locks the project's row first and reads all data for its decision after that. So
concurrent changes of two owners run in turn, and the second is refused if the first took away that
owner's rights, or if no owner would remain:

1. Ana makes Ben a viewer, and Ben makes Ana a viewer; both were owners when they asked.
2. Ana's change has the lock, finds Ben as the other owner, and commits.
3. Ben's change gets the lock, finds that Ben is no owner any more, and is refused.

Removal deletes everything that would let the person in again: the project's access keys, start
links and the like of features, the invitations by and for them, and, if they belong to no other
project, the password and the login links. A new password,
also an unusable one, ends every session, because a session carries a hash of it (Django's
``get_session_auth_hash``). Adding the person again therefore starts from nothing.

The members of a branch project are those of its parent, with the same roles: changes of the parent
change its branches in the same transaction, and a branch takes none of its own.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.db.models import Q

from console import access
from console.db import audit, branch_names, clock, signals
from console.db.writer import is_outage, write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.feature import Hook, hooked
from console.models import AccessKey, Invitation, LoginLink, Membership, Project, Role
from console.models.key_scope import EVERYTHING, KeyScope
from console.statuses import Topic
from console.store.people import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

LONGEST_NAME = 64
_NAME = re.compile(rf"[\w.@+-]{{1,{LONGEST_NAME}}}")
_MOST_KEYS = 10
LONGEST_DESCRIPTION = 100
"""Maximum characters of an access key's description."""
_MINUTE_MS = 60_000
WARNED_MS = 7 * 24 * 3_600_000
"""The time before its expiry at which a key is shown as expiring."""
_LONGEST_LIFE_MS = 3653 * 24 * 3_600_000
_LONGEST_ADDRESS, _LONGEST_CLIENT = 45, 200
_used: dict[str, int] = {}
"""Key -> the minute (since the epoch) of its last recorded use."""
log = structlog.get_logger(__name__)
RIGHTS = (Topic.RIGHTS,)
"""The channel on which changes of rights are published."""
signals.subscribe(RIGHTS, access.forget_principals)


def put_member(
    project: Project,
    name: str,
    role: str,
    actor: audit.Actor,
    by: User | None = None,
    *,
    needs_owner: bool = True,
) -> Membership:
    """Give a person a role in a project; create a new person without a password.

    A person who belongs to no project loses the password, keys and links of an earlier membership.
    ``by``: the person who asks, who must be an owner; None for the operator's commands.
    ``needs_owner``: the last owner stays one. Raise ValidationException for an invalid name or
    role, if no owner would remain, or for a branch, AccessDeniedException if ``by`` is no owner any
    more.
    """
    check_name_and_role(name, role)
    check_own_members(project)

    def store() -> Membership:
        lock_team(project, by)
        user = locked_user(name)
        membership = Membership.objects.filter(project=project, user=user).first()
        was_owner = membership is not None and membership.role == Role.OWNER
        if membership is not None and was_owner and role != Role.OWNER and needs_owner:
            _check_owner_stays(project, membership)
        if membership is None:
            names.check_new_name(name, names_of(project))
            clear_former_membership(project, user, actor)
        elif role != Role.OWNER:
            _end_invitations(project, user)
        saved, _ = Membership.objects.update_or_create(
            project=project, user=user, defaults={"role": role}
        )
        put_into_branches(project, user, role)
        audit.record(project, actor, "PutMember", name, f"role {role}")
        signals.publish(RIGHTS)
        return saved

    return write(store)


def check_name_and_role(name: str, role: str) -> None:
    """Raise ValidationException for an invalid name or role."""
    if not _NAME.fullmatch(name):
        msg = f"name: {name!r} is not a name of 1 to 64 letters, digits and . @ + - _"
        raise ValidationException(msg)
    names.check_script(name, "name")
    if role not in Role.values:
        msg = f"role must be one of {', '.join(Role.values)}, not {role!r}"
        raise ValidationException(msg)


def check_own_members(project: Project) -> None:
    """Raise ValidationException for a branch, which has the members of its parent."""
    if branch_names.is_branch(project.name):
        parent = branch_names.parent_name(project.name)
        raise ValidationException(
            f"{project.name!r} is a branch of {parent!r}: its members are those of {parent!r}."
        )


def branches_of(project: Project) -> QuerySet[Project]:
    """Return the branch projects of a project."""
    return Project.objects.filter(name__startswith=project.name + branch_names.MARK)


def put_into_branches(project: Project, user: User, role: str) -> None:
    """Give a member the same role in the project's branches (inside a transaction)."""
    for branch in branches_of(project):
        Membership.objects.update_or_create(project=branch, user=user, defaults={"role": role})


def names_of(project: Project) -> set[str]:
    """Return the names of the members and of the invited people of a project."""
    invited = Invitation.objects.filter(
        project=project, used_ms=None, expires_ms__gt=clock.now_ms()
    )
    members = Membership.objects.filter(project=project)
    return {
        *members.values_list("user__username", flat=True),
        *invited.values_list("name", flat=True),
    }


def remove_member(
    project: Project,
    name: str,
    actor: audit.Actor,
    by: User | None = None,
    *,
    needs_owner: bool = True,
) -> None:
    """End a membership, and delete everything that would let the person in again.

    ``by`` and ``needs_owner``: as for ``put_member``. Raise ValidationException for the last
    owner and for a branch, ResourceNotFound for a person who is no member, AccessDeniedException if
    ``by`` is no owner any more.
    """
    check_own_members(project)

    def store() -> None:
        lock_team(project, by)
        membership = Membership.objects.filter(project=project, user__username=name).first()
        if membership is None:
            raise ServiceError(
                ErrorCode.ResourceNotFound, f"{name!r} is no member of {project.name!r}"
            )
        if membership.role == Role.OWNER and needs_owner:
            _check_owner_stays(project, membership)
        user = locked_user(name)
        membership.delete()
        audit.record(project, actor, "RemoveMember", name)
        clear_former_membership(project, user, actor)
        signals.publish(RIGHTS)

    write(store)


def lock_team(project: Project, by: User | None = None) -> Project:
    """Lock the members and keys of a project for this transaction; return the project.

    Raise AccessDeniedException if ``by`` is given and no owner of the project any more.
    """
    # not FOR UPDATE: that would hold up every insert that refers to the project, as each start does
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if by is not None and not _is_owner(project, by):
        raise ServiceError(
            ErrorCode.AccessDeniedException,
            f"{by.get_username()!r} is no owner of {project.name!r} now",
        )
    return locked


def _is_owner(project: Project, user: User) -> bool:
    rows = Membership.objects.filter(project=project, role=Role.OWNER)
    return rows.filter(user=user, user__is_active=True).exists()


def locked_user(name: str) -> User:
    """Return a person by name, created if new, locked for this transaction.

    Two projects may remove somebody at once: each transaction would see the other membership and
    leave the account open.
    """
    users = get_user_model().objects
    user = users.select_for_update(no_key=True).filter(username=name).first()
    return user or users.create_user(name)


def clear_former_membership(project: Project, user: User, actor: audit.Actor) -> None:
    """Delete the remains of a person's earlier membership.

    Their memberships in branches of the project end with it. If they belong to no project at all,
    that is the whole account: sessions, password and links. An administrator of the server keeps
    the account. ``actor``: who made the change, for the audit entries of features that revoke
    access.
    """
    for branch in branches_of(project):
        Membership.objects.filter(project=branch, user=user).delete()
        clear_former_membership(branch, user, actor)
    _end_invitations(project, user)
    for take_away in hooked(Hook.MEMBER_REMOVED):
        take_away(project, user.get_username(), actor)
    AccessKey.objects.filter(project=project, user=user).delete()
    _close_account_without_project(user)


def _close_account_without_project(user: User) -> None:
    if user.is_superuser or Membership.objects.filter(user=user).exists():
        return
    for close in hooked(Hook.ACCOUNT_CLOSED):
        close(user)
    AccessKey.objects.filter(user=user).delete()
    LoginLink.objects.filter(user=user).delete()
    user.set_unusable_password()
    user.save(update_fields=["password"])


def _end_invitations(project: Project, user: User) -> None:
    """Delete the open invitations by or for a person.

    Otherwise an owner about to be removed could invite themself, and come back later.
    """
    name = user.get_username()
    invitations = Invitation.objects.filter(project=project, used_ms=None)
    invitations.filter(Q(made_by=name) | Q(name=name)).delete()


def set_administrator(name: str, *, administers: bool, actor: audit.Actor) -> None:
    """Make a person (created if new) an administrator of the server, or end that.

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
    """Set a person's password, which ends all sessions with the old one.

    ``user``: as it was when the current password was checked. ``encoded``: from ``make_password``,
    which takes too long to be called here. Return False, and change nothing, if the password has
    changed meanwhile: the person changed it elsewhere, or was removed.
    """

    def store() -> bool:
        before = get_user_model().objects.filter(pk=user.pk, password=user.password)
        if before.update(password=encoded) != 1:
            return False
        audit.record(project, actor, "ChangePassword", user.get_username())
        return True

    return write(store)


def choose_columns(project: Project, user: User, chosen: str) -> None:
    """Store a member's columns of tables. ``chosen``: as in ``Membership``."""
    memberships = Membership.objects.filter(project=project, user=user)
    write(lambda: memberships.update(columns=chosen))


def _check_owner_stays(project: Project, leaving: Membership) -> None:
    """Raise unless another owner remains."""
    owners = Membership.objects.filter(project=project, role=Role.OWNER, user__is_active=True)
    if not owners.exclude(pk=leaving.pk).exists():
        raise ValidationException("A project keeps at least one owner: make somebody else one.")


def service_accounts(project: Project) -> list[User]:
    """Return the service accounts of a project by name: members that only sign calls."""
    members = Membership.objects.filter(project=project).select_related("user")
    users = [member.user for member in members.order_by("user__username")]
    without = [user for user in users if not user.has_usable_password()]
    persons = provider_accounts(without)
    return [user for user in without if user.pk not in persons]


def provider_accounts(users: Iterable[User]) -> set[int]:
    """Return the ids of accounts whose person signs in by a provider."""
    user_ids = [user.pk for user in users]
    return {user_id for find in hooked(Hook.PROVIDER_ACCOUNTS) for user_id in find(user_ids)}


def new_key_of_service_account(
    name: str,
    project: Project,
    actor: audit.Actor,
    by: User,
    description: str = "",
    *,
    scope: KeyScope = EVERYTHING,
    expires_ms: int | None = None,
) -> tuple[AccessKey, str]:
    """Create an access key of a service account, like ``new_key``.

    Only a person may create their own key, because the audit attributes its calls to them. ``by``:
    the person who asks. Raise ValidationException for a name that is no service account of the
    project, AccessDeniedException if ``by`` is no owner.
    """
    user = next((user for user in service_accounts(project) if user.get_username() == name), None)
    if user is None:
        raise ValidationException(f"{name!r} is no service account of {project.name!r}")
    return new_key(user, project, actor, by, description, scope=scope, expires_ms=expires_ms)


def new_key(
    user: User,
    project: Project,
    actor: audit.Actor,
    by: User | None = None,
    description: str = "",
    *,
    scope: KeyScope = EVERYTHING,
    expires_ms: int | None = None,
) -> tuple[AccessKey, str]:
    """Create an access key of a member; return it and its secret, which is not stored.

    ``by``: the owner who asks for the key of another member, None for one's own and for the
    operator's commands. ``description``: the program or person that uses it. ``scope``: the part of
    the member's rights that the key has. Raise ValidationException for a person who is no member or
    has too many keys, for a description that is too long and an expiry in the past,
    AccessDeniedException if ``by`` is no owner any more, and in an archived project.
    """
    description = check_description(description, LONGEST_DESCRIPTION)
    check_expiry(expires_ms)

    def store() -> AccessKey:
        # 1. a removal deletes the keys, 2. this one is inserted, 3. both commit: without the lock
        # the key would stay, and work again as soon as the person is added again
        access.check_not_archived(lock_team(project, by))
        if not Membership.objects.filter(project=project, user=user).exists():
            raise ValidationException(f"{user.get_username()!r} is no member of {project.name!r}")
        if usable_keys(project, user).count() >= _MOST_KEYS:
            raise ValidationException(f"At most {_MOST_KEYS} keys a person: delete an old one.")
        key = access.create_access_key(
            user, project, description, scope=scope, expires_ms=expires_ms
        )
        reason = ", ".join([user.get_username(), *limits_in_words(key)])
        audit.record(project, actor, "CreateAccessKey", key.key_id, reason)
        return key

    key = write(store)
    return key, access.secret_for(key.key_id)


def usable_keys(project: Project, user: User) -> QuerySet[AccessKey]:
    """Return the keys of a member that are not expired or rotated."""
    keys = AccessKey.objects.filter(project=project, user=user, replaced_by="")
    return keys.filter(Q(expires_ms=None) | Q(expires_ms__gt=clock.now_ms()))


def check_expiry(expires_ms: int | None) -> None:
    """Raise ValidationException for an expiry that has passed or is more than ten years away."""
    now_ms = clock.now_ms()
    if expires_ms is not None and not now_ms < expires_ms <= now_ms + _LONGEST_LIFE_MS:
        raise ValidationException("The expiry date must be in the future, within ten years")


def limits_in_words(key: AccessKey) -> list[str]:
    """Return the scope and the expiry of a key for the audit, [] without limits."""
    scope = KeyScope.of_text(key.scope)
    words = [] if scope is EVERYTHING else [scope.in_words()]
    if key.expires_ms is not None:
        day = datetime.fromtimestamp(key.expires_ms / 1000, UTC)
        words.append(f"until {day:%Y-%m-%d %H:%M} UTC")
    return words


def describe_key(
    project: Project, key_id: str, description: str, actor: audit.Actor, by: User
) -> None:
    """Set the description of a key. ``by``: the asking person, as for ``delete_key``.

    Raise AccessDeniedException, ValidationException and ResourceNotFound.
    """
    description = check_description(description, LONGEST_DESCRIPTION)

    def store() -> None:
        access.check_not_archived(lock_team(project))
        _check_may_change(get_key(project, key_id), by)
        AccessKey.objects.filter(project=project, key_id=key_id).update(description=description)
        audit.record(project, actor, "DescribeAccessKey", key_id, description)

    write(store)


def check_description(text: str, longest: int) -> str:
    """Return a description with single blanks; raise ValidationException if it is too long."""
    text = " ".join(text.split())
    if len(text) > longest or not text.isprintable():
        raise ValidationException(
            f"The description must be one line of at most {longest} characters"
        )
    return text


def switch_key(
    project: Project, key_id: str, *, on: bool, actor: audit.Actor, by: User | None = None
) -> AccessKey:
    """Enable or disable a key.

    The person who has the key may enable it if they disabled it themselves; a key that somebody
    else disabled, or of which that is not known, is enabled by an owner only. ``by``: the person
    who asks; None for the operator's commands, which may do everything. Raise ResourceNotFound or
    AccessDeniedException.
    """

    def store() -> AccessKey:
        locked = lock_team(project)
        if on:
            access.check_not_archived(locked)
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
    """Delete a key. ``by`` and exceptions: as for ``switch_key``."""

    def store() -> None:
        lock_team(project)
        key = get_key(project, key_id)
        _check_may_change(key, by)
        key.delete()
        audit.record(project, actor, "DeleteAccessKey", key_id)
        signals.publish(RIGHTS)

    write(store)


def _check_may_change(key: AccessKey, by: User | None) -> bool:
    """Return whether a key is changed as an owner; raise if it must not be changed."""
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


def note_use(key_id: str, address: str = "", client: str = "") -> None:
    """Record time, address and client of a key's last use, once a minute.

    (The signature was valid.) The first call of a minute counts: the row is written once, by the
    first process. Errors do not fail the call. ``client``: the user agent.
    """
    moment = clock.now_ms()
    minute = moment // _MINUTE_MS
    if _used.get(key_id) == minute:
        return
    _used[key_id] = minute
    unused = Q(last_used_ms=None) | Q(last_used_ms__lt=minute * _MINUTE_MS)
    rows = AccessKey.objects.filter(unused, key_id=key_id)
    printable = "".join(character for character in client if character.isprintable())
    use = {
        "last_used_ms": moment,
        "last_used_from": address[:_LONGEST_ADDRESS],
        "last_used_client": printable[:_LONGEST_CLIENT],
    }
    try:
        write(lambda: rows.update(**use))
    except DatabaseError as error:
        if not is_outage(error):  # an outage has lines of its own
            log.warning("cannot keep when a key was used", key_id=key_id)
