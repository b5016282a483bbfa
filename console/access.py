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
from console.feature import chosen_features
from console.models import AccessKey, LoginLink, Membership, Project, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import AnonymousUser, User
    from django.db.models import QuerySet
    from django.http import HttpRequest

PROJECT_COOKIE = "project"
"""Name of the cookie with the name of the project that a person chose to see."""
_LINK_MS = 24 * 3600 * 1000
ADMINISTRATOR = "administrator"
"""Stands in tables of rights for the administrators of the server, above each role of a project.

It is an attribute of a person (Django's ``is_superuser``), whatever projects they belong to, and
no role: within a project, administrators have the rights of their membership and no others.
"""
_RANK = {role: rank for rank, role in enumerate([*Role, ADMINISTRATOR])}


# The least role for each action of the API and each act of a page; features name their own. An
# action that nobody names is refused for everybody, so that one that was forgotten fails instead
# of standing open.
_OF_CORE: dict[str, str] = {
    **dict.fromkeys(
        [
            "ViewPages",  # whatever a page only shows
            "PutColumns",  # which columns the reader's tables have
            "CreateAccessKey",  # of one's own; those of others take PutMember
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
            "ImportExecution",
            "SharePicture",
            "UpdateMapRun",
            "RevealPayloads",
            "PutView",
            "PutNote",
            "DeleteView",
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
    "CreateInvitation": Role.OWNER,
    "RevokeInvitation": Role.OWNER,
    "RemoveMember": Role.OWNER,
}
_OF_SERVER = {"ViewOperations", "ViewHosts"}
"""What administrators may do besides the actions that the tables reserve for them."""


@cache
def _least_roles() -> dict[str, str]:
    """Return the least role for each action. No feature can change one of the core's."""
    of_features = {
        action: role if role == ADMINISTRATOR else Role(role)
        for feature in chosen_features()
        for role, actions in feature.rights.items()
        for action in actions
    }
    return of_features | _OF_CORE


ANY_KEY = "any key"
"""Stands for the access key of a call whose signature nobody checked. Real ones have no blank."""


class Denied(Exception):
    """The role does not allow the action."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A person with a role in a project; ``key_id`` if they came with an access key, or any.

    ``columns``: as ``Membership`` has them. ``projects``: the names of all projects of a person
    who looks at pages.
    """

    user: User
    project: Project
    role: str
    key_id: str = ""
    columns: str = ""
    projects: tuple[str, ...] = ()


def authorize(principal: Principal, action: str) -> None:
    """Raise ``Denied`` unless the table of rights allows the principal's role an action.

    Actions of other services than Step Functions carry its name: ``events:PutRule``.
    """
    if not is_allowed(principal, action):
        user = principal.user.get_username()
        named = action if ":" in action else f"states:{action}"
        raise Denied(f"User: {user} is not authorized to perform: {named}")


def is_allowed(principal: Principal, action: str) -> bool:
    """Tell whether the table of rights allows the principal's role an action."""
    return _allowed(principal.role, action) or may_administer(principal.user, action)


def may_administer(user: User | AnonymousUser, action: str) -> bool:
    """Tell whether a person may do something as an administrator of the server."""
    if not (user.is_active and user.is_superuser):
        return False
    return action in _OF_SERVER or least_role(action) == ADMINISTRATOR


def least_role(action: str) -> str | None:
    """Return the least role that may do something; None if the table of rights has no such act."""
    return _least_roles().get(action)


def is_still_allowed(
    username: str, project: Project, action: str, membership: int | None = None
) -> bool:
    """Tell whether a person may do now what they asked for earlier.

    ``membership``: the number of the one that they had then, None if it was not kept. Who is
    removed and added again has another one, and starts from nothing.
    """
    found = Membership.objects.filter(
        project=project, user__username=username, user__is_active=True
    ).first()
    if found is None or membership not in (None, found.pk):
        return False
    return _allowed(found.role, action)


def find_membership(username: str, project: Project) -> int | None:
    """Return the number of a person's membership, None if they have none."""
    rows = Membership.objects.filter(project=project, user__username=username)
    return rows.values_list("pk", flat=True).first()


def _allowed(role: str, action: str) -> bool:
    wanted = _least_roles().get(action)
    return wanted is not None and _RANK[Role(role)] >= _RANK[wanted]


# -- access keys -----------------------------------------------------------------------------------


def secret_for(key_id: str) -> str:
    """Return the secret of an access key: derived, so that no table holds it. 40 characters."""
    digest = hmac.new(settings.STATEYARD_KEY_SECRET, key_id.encode(), "sha256").digest()
    return base64.b64encode(digest).decode().replace("+", "A").replace("/", "B")[:40]


def create_access_key(user: User, project: Project, description: str = "") -> AccessKey:
    """Make an access key of a person in a project."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    key_id = "AKIA" + "".join(secrets.choice(alphabet) for _ in range(16))
    return AccessKey.objects.create(
        key_id=key_id,
        user=user,
        project=project,
        description=description,
        created_ms=clock.now_ms(),
    )


_KEPT_S = 5.0  # a change of rights counts within this time where no signal of it arrives
_principals: dict[str, tuple[float, Principal | None]] = {}
_changes = 0
"""How often ``forget_principals`` was called."""


def principal_of_key(key_id: str) -> Principal | None:
    """Return who an access key belongs to; None if there is no such key or it may not be used.

    Remembered for five seconds, so that a busy client does not cost two queries a call.
    """
    return _remembered(key_id, partial(_find_principal, key_id))


def anonymous_principal() -> Principal:
    """Return the first owner: who every caller is where any key is accepted.

    Remembered for five seconds, as that of a key.
    """
    return _remembered(ANY_KEY, _first_owner_principal) or _first_owner_principal()


def _remembered(key_id: str, find: Callable[[], Principal | None]) -> Principal | None:
    now = time.monotonic()
    kept = _principals.get(key_id)
    if kept is not None and kept[0] > now:
        return kept[1]
    if len(_principals) > 1000:  # noqa: PLR2004 - made-up keys must not fill the memory
        _principals.clear()
    before = _changes
    found = find()
    if before == _changes:
        # Otherwise this thread read the rows, and then another one committed a removal and forgot
        # all principals: what was read would let the removed person in for five seconds.
        _principals[key_id] = (now + _KEPT_S, found)
    return found


def forget_principals() -> None:
    """Read the rights of every access key anew: somebody's have changed."""
    global _changes  # noqa: PLW0603 - one a process
    _changes += 1
    _principals.clear()


def _find_principal(key_id: str) -> Principal | None:
    key = (
        AccessKey.objects.select_related("project", "user")
        .filter(key_id=key_id, disabled_ms=None, user__is_active=True)
        .first()
    )
    if key is None:
        return None
    role = _role_in(key.user_id, key.project_id)
    return None if role is None else Principal(key.user, key.project, role, key_id)


def principal_of(request: HttpRequest) -> Principal:
    """Return the signed-in person in the project that they chose, at first their oldest one.

    The choice is a cookie, which counts for a member only. Raise ``PermissionDenied`` if the person
    belongs to no project.
    """
    rows = read_models("memberships", _memberships_of, request.user.pk or 0)
    memberships = sorted(rows, key=attrgetter("pk"))
    chosen = request.COOKIES.get(PROJECT_COOKIE)
    fitting = [row for row in memberships if row.project.name == chosen] or memberships
    found = fitting[0] if fitting else None
    if found is None or not isinstance(request.user, get_user_model()):
        raise PermissionDenied("You belong to no project: ask its owner to add you.")
    names = tuple(row.project.name for row in memberships)
    return Principal(request.user, found.project, found.role, columns=found.columns, projects=names)


def _memberships_of(user_id: int) -> QuerySet[Membership]:
    return Membership.objects.select_related("project").filter(user_id=user_id)


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
    """Return the owner of the default project, made at the first start.

    And whether it was made now. A new one is the administrator, unless the server has another.

    The owner has no password until one is set: a one-time link is the way in.
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
    """Return the token of a fresh one-time link, valid for a day."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.create(
        token_hash=hashlib.sha256(token.encode()).hexdigest(),
        user=user,
        expires_ms=clock.now_ms() + _LINK_MS,
    )
    return token
