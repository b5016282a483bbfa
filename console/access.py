"""Identify the caller of a request, and decide what the caller may do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied

from console.db import clock
from console.db.prepared import read_models
from console.errors import ErrorCode, ServiceError
from console.feature import Hook, chosen_features, hooked
from console.models import AccessKey, LoginLink, Membership, Project, Role
from console.models.key_scope import EVERYTHING, UNNAMED, KeyScope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.auth.models import AnonymousUser, User
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from console.models.key_scope import KeyedResource

PROJECT_COOKIE = "project"
"""Name of the cookie that stores the chosen project's name."""
_LINK_MS = 24 * 3600 * 1000
SERVICE_ACCOUNT_SIGN = "/"
"""The separator in the user name of a service account: ``ci/123456789012``.

No person's name contains it.
"""
ADMINISTRATOR = "administrator"
"""The role of an action that only administrators of the server may perform.

Being an administrator is not a role in a project but a flag of the person (Django's
``is_superuser``). Within a project, administrators have the rights of their membership only.
"""
_RANK = {role: rank for rank, role in enumerate([*Role, ADMINISTRATOR])}


# The least role for each action of the API and each act of a page; features add their own. An
# action without an entry is refused for everybody: a forgotten entry denies access and does not
# grant it.
_OF_CORE: dict[str, str] = {
    **dict.fromkeys(
        [
            "ViewPages",  # every page that only shows data
            "PutColumns",  # which columns the reader's tables have
            "CreateAccessKey",  # own keys only; the keys of other members need PutMember
            "UpdateAccessKey",
            "DescribeActivity",
            "DescribeExecution",
            "DescribeMapRun",
            "DescribeStateMachine",
            "DescribeStateMachineAlias",
            "DescribeStateMachineForExecution",
            "GetExecutionHistory",
            "ListActivities",
            "ListExecutions",
            "ListMapRuns",
            "ListStateMachineAliases",
            "ListStateMachines",
            "ListStateMachineVersions",
            "ListTagsForResource",
            "ValidateStateMachineDefinition",
            "sts:GetCallerIdentity",
        ],
        Role.VIEWER,
    ),
    **dict.fromkeys(
        [
            "StartExecution",
            "StartSyncExecution",
            "StopExecution",
            "RedriveExecution",
            "PauseExecution",
            "ResumeExecution",
            "UpdateMapRun",
            "RevealPayloads",
            "PutNote",
            "GetActivityTask",
            "SendTaskSuccess",
            "SendTaskFailure",
            "SendTaskHeartbeat",
        ],
        Role.OPERATOR,
    ),
    **dict.fromkeys(
        [
            "CreateStateMachine",
            "UpdateStateMachine",
            "DeleteStateMachine",
            "CreateActivity",
            "DeleteActivity",
            "CreateStateMachineAlias",
            "UpdateStateMachineAlias",
            "DeleteStateMachineAlias",
            "PublishStateMachineVersion",
            "DeleteStateMachineVersion",
            "TagResource",
            "UntagResource",
            "PutMaskedPaths",
        ],
        Role.EDITOR,
    ),
    "ViewHosts": Role.OWNER,  # names and numbers of the machines and processes of the server
    "PutMember": Role.OWNER,
    "RemoveMember": Role.OWNER,
    "PutProjectSetting": Role.OWNER,  # quotas and others that the operator can set in a file, too
    "RemoveProjectSetting": Role.OWNER,
}
_OF_SERVER = {"ViewOperations", "ViewHosts"}
"""Actions open to administrators in addition to those with ``ADMINISTRATOR`` as least role."""


@cache
def _least_roles() -> dict[str, str]:
    """Return action -> least role. A feature cannot override an action of the core."""
    of_features = {
        action: role if role == ADMINISTRATOR else Role(role)
        for feature in chosen_features()
        for role, actions in feature.rights.items()
        for action in actions
    }
    return of_features | _OF_CORE


_READING = {"RevealPayloads", "ViewHosts"}
"""Read-only actions that need a higher role than viewer."""
_REVOKING = {"RemoveMember", "RevokeInvitation", "UpdateAccessKey"}
"""Actions that take access away: an archived project allows them, too."""
_LASTING = {"SharePicture", "CreateStartLink"}
"""A link created by one of these actions stays valid while its project is archived.

A start link then still refuses to start executions.
"""

ANY_KEY = "any key"
"""Key id of calls to a server that checks no signatures. The blank keeps it apart from real ids."""


class Denied(Exception):
    """The role, the scope of the access key or an archived project does not allow the action."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request: a person with a role in a project.

    ``key_id``: the access key that signed the request, "" on a page, ``ANY_KEY`` if signatures are
    not checked. ``columns``: the chosen table columns, as ``Membership`` stores them. ``projects``:
    on pages, the names of all projects of the person. ``scope`` and ``expires_ms``: those of the
    key. ``needs_second_factor``: on pages, one of the projects requires it
    (``Hook.MEMBERSHIP_ROWS``).
    """

    user: User
    project: Project
    role: str
    key_id: str = ""
    columns: str = ""
    projects: tuple[str, ...] = ()
    needs_second_factor: bool = False
    scope: KeyScope = EVERYTHING
    expires_ms: int | None = None


def authorize(
    principal: Principal, action: str, resources: Sequence[KeyedResource] = (UNNAMED,)
) -> None:
    """Raise ``Denied`` unless the principal may perform an action.

    First, the scope of the access key must allow the action. The actions of administrators of the
    server are then allowed. For all others, the table of rights decides by the principal's role,
    and an archived project refuses changes. ``resources``: what the action is performed on. A key
    that is limited to state machines may not perform an action on anything else.

    Step Functions' actions have no prefix; other services' have one, as ``events:PutRule``.
    """
    check_scope(principal, action, resources)
    if may_administer(principal.user, action):
        return
    if not _allowed(principal.role, action):
        raise Denied(_denial(principal, action))
    if is_refused_by_archive(principal.project, action):
        raise Denied(archive_words(principal.project))


def _denial(principal: Principal, action: str) -> str:
    full_action = action if ":" in action else f"states:{action}"
    return f"User: {principal.user.get_username()} is not authorized to perform: {full_action}"


_OF_EVERY_KEY = "sts:GetCallerIdentity"
"""Actions that every key may perform; on AWS they need no permission either."""


def check_scope(
    principal: Principal, action: str, resources: Sequence[KeyedResource] = (UNNAMED,)
) -> None:
    """Raise ``Denied`` unless the scope of the principal's access key allows an action."""
    scope = principal.scope
    if scope is EVERYTHING or action == _OF_EVERY_KEY:
        return
    denied = resources[0]
    if scope.allows_action(action, is_reading=least_role(action) == Role.VIEWER):
        outside = scope.outside(resources)
        if outside is None:
            return
        denied = outside
    raise Denied(
        f"{_denial(principal, action)} on resource: {denied.arn} because the scope of access key"
        f" {principal.key_id} does not allow it"
    )


def is_allowed(principal: Principal, action: str) -> bool:
    """Return whether a principal may perform an action, by role or as an administrator."""
    if may_administer(principal.user, action):
        return True
    return _allowed(principal.role, action) and not is_refused_by_archive(principal.project, action)


def is_refused_by_archive(project: Project, action: str) -> bool:
    """Return whether an action is refused because the project is archived.

    An archived project refuses every change, except to take access away.
    """
    if project.archived_ms is None or action in _READING | _REVOKING:
        return False
    return least_role(action) != Role.VIEWER or action == "CreateAccessKey"


def archive_words(project: Project) -> str:
    """Return why an archived project refuses something."""
    return (
        f"The project {project.name!r} is archived: it is read-only until an administrator of the"
        " server unarchives it"
    )


def check_not_archived(project: Project) -> None:
    """Raise AccessDeniedException for an archived project."""
    if project.archived_ms is not None:
        raise ServiceError(ErrorCode.AccessDeniedException, archive_words(project))


def may_administer(user: User | AnonymousUser, action: str) -> bool:
    """Return whether a person is an administrator and the action is one for administrators."""
    if not (user.is_active and user.is_superuser):
        return False
    return action in _OF_SERVER or least_role(action) == ADMINISTRATOR


def actions_of_server() -> list[str]:
    """Return the actions that only administrators of the server may perform."""
    return sorted(action for action, least in _least_roles().items() if least == ADMINISTRATOR)


def least_role(*actions: str) -> str | None:
    """Return the least role for any of these actions; None if no table of rights has them."""
    roles = [role for action in actions if (role := _least_roles().get(action))]
    return min(roles, key=_RANK.__getitem__, default=None)


def is_still_allowed(
    username: str, project: Project, action: str, membership: int | None = None
) -> bool:
    """Return whether a person may still perform an action that they requested earlier.

    Used when a stored request (a bulk job, a start link) is carried out. ``membership``: the id of
    the person's membership at the time of the request, None if it was not stored. A person who was
    removed and added again has a new membership, and requests made under the old one are refused.
    So are requests that change something in an archived project.
    """
    if action not in _LASTING and is_refused_by_archive(project, action):
        return False
    current = Membership.objects.filter(
        project=project, user__username=username, user__is_active=True
    ).first()
    if current is None or membership not in (None, current.pk):
        return False
    return _allowed(current.role, action)


def find_membership(username: str, project: Project) -> int | None:
    """Return the id of a person's membership in a project, None if they are no member."""
    rows = Membership.objects.filter(project=project, user__username=username)
    return rows.values_list("pk", flat=True).first()


def _allowed(role: str, action: str) -> bool:
    least = _least_roles().get(action)
    return least is not None and _RANK[Role(role)] >= _RANK[least]


# -- access keys -----------------------------------------------------------------------------------


def secret_for(key_id: str) -> str:
    """Return the secret of an access key, 40 characters; it is derived and never stored."""
    digest = hmac.new(settings.STATEYARD_KEY_SECRET, key_id.encode(), "sha256").digest()
    return base64.b64encode(digest).decode().replace("+", "A").replace("/", "B")[:40]


def create_access_key(
    user: User,
    project: Project,
    description: str = "",
    *,
    scope: KeyScope = EVERYTHING,
    expires_ms: int | None = None,
) -> AccessKey:
    """Create an access key for a person in a project."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    key_id = "AKIA" + "".join(secrets.choice(alphabet) for _ in range(16))
    return AccessKey.objects.create(
        key_id=key_id,
        user=user,
        project=project,
        description=description,
        created_ms=clock.now_ms(),
        scope=scope.as_text(),
        expires_ms=expires_ms,
    )


_KEPT_S = 5.0  # without a signal, other processes notice a change of rights after this time
_principals: dict[str, tuple[float, Principal | None]] = {}
_changes = 0
"""The number of calls of ``forget_principals``."""


def principal_of_key(key_id: str) -> Principal | None:
    """Return the owner of an access key; None if the key is unknown or may not be used.

    The result is cached for five seconds, which saves a busy client two queries a call.
    """
    principal = principal_of_ended_key(key_id)
    return None if principal is None or has_ended(principal) else principal


def principal_of_ended_key(key_id: str) -> Principal | None:
    """Return the owner of an access key, also after its expiry, to tell the caller the reason."""
    return _remembered(key_id, partial(_find_principal, key_id))


def has_ended(principal: Principal) -> bool:
    """Return whether the principal's access key has expired."""
    return principal.expires_ms is not None and principal.expires_ms <= clock.now_ms()


def anonymous_principal() -> Principal:
    """Return the first owner, used as the caller of every request if any access key is accepted.

    Cached for five seconds, as in ``principal_of_key``.
    """
    return _remembered(ANY_KEY, _first_owner_principal) or _first_owner_principal()


def _remembered(key_id: str, find: Callable[[], Principal | None]) -> Principal | None:
    now = time.monotonic()
    remembered = _principals.get(key_id)
    if remembered is not None and remembered[0] > now:
        return remembered[1]
    if len(_principals) > 1000:  # noqa: PLR2004 - made-up keys must not fill the memory
        _principals.clear()
    before = _changes
    principal = find()
    if before == _changes:
        # Otherwise there would be a race: this thread reads the rows, another thread commits a
        # removal and clears the cache, this thread stores what it read, and the removed person
        # has access for five seconds more.
        _principals[key_id] = (now + _KEPT_S, principal)
    return principal


def forget_principals() -> None:
    """Clear the cache of principals, because the rights of a person have changed."""
    global _changes  # noqa: PLW0603 - one a process
    _changes += 1
    _principals.clear()


def _find_principal(key_id: str) -> Principal | None:
    key = (
        AccessKey.objects.select_related("project", "user")
        .filter(key_id=key_id, disabled_ms=None, user__is_active=True)
        .first()
    )
    if key is None or any(is_paused(key.user_id) for is_paused in hooked(Hook.ACCOUNT_PAUSED)):
        return None
    role = _role_in(key.user_id, key.project_id)
    if role is None:
        return None
    scope = KeyScope.of_text(key.scope)
    return Principal(key.user, key.project, role, key_id, scope=scope, expires_ms=key.expires_ms)


def principal_of(request: HttpRequest) -> Principal:
    """Return the signed-in person with the role in their chosen project.

    A cookie names the project. Without one, or if the person is no member of that project, the
    oldest membership counts. Raise ``PermissionDenied`` if the person belongs to no project, and
    for a service account.
    """
    if is_service_account(request.user):
        raise PermissionDenied("A service account does not sign in: it has access keys.")
    rows = read_models("memberships", _memberships_of, request.user.pk or 0)
    memberships = sorted(rows, key=attrgetter("pk"))
    chosen = request.COOKIES.get(PROJECT_COOKIE)
    fitting = [row for row in memberships if row.project.name == chosen] or memberships
    membership = fitting[0] if fitting else None
    if membership is None or not isinstance(request.user, get_user_model()):
        raise PermissionDenied("You belong to no project: ask its owner to add you.")
    names = tuple(row.project.name for row in memberships)
    return Principal(
        request.user,
        membership.project,
        membership.role,
        columns=membership.columns,
        projects=names,
        needs_second_factor=any(getattr(row, "needs_second_factor", False) for row in memberships),
    )


def is_service_account(user: User | AnonymousUser) -> bool:
    """Return whether a user is a service account of a project and no person."""
    return SERVICE_ACCOUNT_SIGN in user.get_username()


def _memberships_of(user_id: int) -> QuerySet[Membership]:
    rows = Membership.objects.select_related("project").filter(user_id=user_id)
    for add in hooked(Hook.MEMBERSHIP_ROWS):
        rows = add(rows)
    return rows


def _role_in(user_id: int, project_id: int) -> str | None:
    membership = Membership.objects.filter(user_id=user_id, project_id=project_id)
    return membership.values_list("role", flat=True).first()


# -- the first owner -------------------------------------------------------------------------------


def default_project() -> Project:
    """Return the project ``default``, created if it is missing."""
    project, _ = Project.objects.get_or_create(
        name="default", defaults={"account_id": settings.STATEYARD_ACCOUNT}
    )
    return project


def first_owner() -> tuple[User, Project, bool]:
    """Return the owner of the default project, the project, and whether the owner is new.

    A missing owner is created, without a password: the first sign-in is by a one-time link. A new
    owner becomes the administrator of the server if there is no other.
    """
    project = default_project()
    users = get_user_model().objects
    membership = Membership.objects.filter(project=project, role=Role.OWNER).first()
    if membership is not None:
        return users.get(pk=membership.user_id), project, False
    user = users.filter(username="owner").first() or users.create_user("owner")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    if not users.filter(is_superuser=True, is_active=True).exists():
        user.is_superuser = True
        user.save(update_fields=["is_superuser"])
    return user, project, True


def _first_owner_principal() -> Principal:
    user, project, _ = first_owner()
    return Principal(user, project, Role.OWNER, ANY_KEY)


def create_login_link(user: User) -> str:
    """Create a one-time login link, valid for a day; return its token."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        token_hash=hashlib.sha256(token.encode()).hexdigest(),
        user=user,
        expires_ms=clock.now_ms() + _LINK_MS,
    )
    return token
