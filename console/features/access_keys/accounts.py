"""Create, change and delete service accounts of a project: accounts of programs such as CI jobs.

A service account is a member with a role, so rights and audit treat it like any other member. It
belongs to one project and has access keys but no sign-in. Its user name contains a slash, which
names of people cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, F, Max, Q

from console import access
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.features.access_keys.models import ServiceAccount
from console.models import Membership, Project, Role
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

ROLES = (Role.VIEWER, Role.OPERATOR, Role.EDITOR)
"""Roles of service accounts. Only a person can be an owner."""
LONGEST_DESCRIPTION = 200
_MOST = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """A service account with its usable keys and the last use of any of them."""

    pk: int
    name: str
    username: str
    description: str
    role: str
    keys: int
    used_ms: int | None


def create_account(
    project: Project,
    name: str,
    role: str,
    description: str,
    actor: audit.Actor,
    by: User | None = None,
) -> ServiceAccount:
    """Create a service account, without a key.

    ``by``: the requesting owner, None for the operator's commands. Raise ValidationException,
    ConflictException for a name in use, AccessDeniedException if ``by`` is not an owner or the
    project is archived.
    """
    if not _NAME.fullmatch(name):
        raise ValidationException(
            f"name: {name!r} is not a name of 1 to 40 letters, digits and . - _, beginning with a"
            " letter or a digit"
        )
    _check_role(role)
    people.check_own_members(project)
    description = people.check_description(description, LONGEST_DESCRIPTION)

    def store() -> ServiceAccount:
        access.check_not_archived(people.lock_team(project, by))
        accounts = ServiceAccount.objects.filter(project=project)
        if accounts.filter(name__iexact=name).exists():
            raise ConflictException(f"The service account {name!r} exists already.")
        if accounts.count() >= _MOST:
            raise ValidationException(f"At most {_MOST} service accounts a project: delete one.")
        user = people.locked_user(f"{name}{access.SERVICE_ACCOUNT_SIGN}{project.account_id}")
        people.clear_former_membership(project, user, actor)
        Membership.objects.create(project=project, user=user, role=role)
        people.put_into_branches(project, user, role)
        audit.record(project, actor, "CreateServiceAccount", name, f"role {role}")
        signals.publish(people.RIGHTS)
        return ServiceAccount.objects.create(
            project=project,
            user=user,
            name=name,
            description=description,
            created_by=actor.name,
            created_ms=clock.now_ms(),
        )

    return write(store)


def change_account(
    project: Project,
    name: str,
    role: str,
    description: str,
    actor: audit.Actor,
    by: User | None = None,
) -> None:
    """Change role and description of a service account. Raises as ``create_account``."""
    _check_role(role)
    description = people.check_description(description, LONGEST_DESCRIPTION)

    def store() -> None:
        access.check_not_archived(people.lock_team(project, by))
        account = _get_account(project, name)
        account.description = description
        account.save(update_fields=["description"])
        Membership.objects.filter(project=project, user=account.user).update(role=role)
        people.put_into_branches(project, account.user, role)
        audit.record(project, actor, "UpdateServiceAccount", name, f"role {role}")
        signals.publish(people.RIGHTS)

    write(store)


def delete_account(project: Project, name: str, actor: audit.Actor, by: User | None = None) -> None:
    """Delete a service account; its keys end at once. Raises as ``create_account``."""

    def store() -> None:
        people.lock_team(project, by)
        user = people.locked_user(_get_account(project, name).user.get_username())
        Membership.objects.filter(project=project, user=user).delete()
        people.clear_former_membership(project, user, actor)
        user.delete()
        audit.record(project, actor, "DeleteServiceAccount", name)
        signals.publish(people.RIGHTS)

    write(store)


def forget_account(project: Project, username: str, actor: audit.Actor) -> None:
    """Delete a service account's row when its membership ends (inside a transaction)."""
    del actor
    ServiceAccount.objects.filter(project=project, user__username=username).delete()


def list_accounts(project: Project) -> list[AccountSummary]:
    """Return the service accounts of a project by name."""
    keys = Q(user__accesskey__project=project)
    usable = keys & Q(user__accesskey__disabled_ms=None, user__accesskey__replaced_by="")
    ends = Q(user__accesskey__expires_ms=None) | Q(user__accesskey__expires_ms__gt=clock.now_ms())
    accounts = ServiceAccount.objects.filter(project=project).annotate(
        username=F("user__username"),
        role=Max("user__membership__role", filter=Q(user__membership__project=project)),
        keys=Count("user__accesskey", filter=usable & ends, distinct=True),
        used_ms=Max("user__accesskey__last_used_ms", filter=keys),
    )
    columns = ("pk", "name", "username", "description", "role", "keys", "used_ms")
    rows: Iterable[dict[str, Any]] = accounts.order_by("name").values(*columns)
    return [AccountSummary(**row) for row in rows]


def _get_account(project: Project, name: str) -> ServiceAccount:
    accounts = ServiceAccount.objects.select_related("user").filter(project=project, name=name)
    account = accounts.first()
    if account is None:
        raise ServiceError(
            ErrorCode.ResourceNotFound, f"{project.name!r} has no service account {name!r}"
        )
    return account


def _check_role(role: str) -> None:
    if role not in {*ROLES}:
        raise ValidationException(f"role must be one of {', '.join(ROLES)}, not {role!r}")
