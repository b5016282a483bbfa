"""Create, rename and list projects.

``default`` belongs to the first owner and the samples have a project of their own: the server finds
both by their names, so neither can be renamed. Names differ in more than capital letters.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Q

from console.db import audit, signals
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.models import Project, Role
from console.samples import PROJECT as SAMPLES
from console.store.people import people
from console.store.people.sample_project import SAMPLES_ACCOUNT

DEFAULT = "default"
FIXED_NAMES = (DEFAULT, SAMPLES)
"""Names by which the server finds projects of its own."""
LONGEST_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_SMALLEST_ACCOUNT, _ACCOUNTS = 10**11, 9 * 10**11


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project as an administrator sees it, with the numbers of active members and owners."""

    pk: int
    name: str
    account_id: str
    members: int
    owners: int


def create_project(name: str, account_id: str, owner: str, actor: audit.Actor) -> Project:
    """Create a project with its first owner.

    ``account_id``: 12 digits, "" to draw one. ``owner``: a person's name; the person is created if
    they are new. Raise ValidationException for a malformed value, ConflictException for a name or
    an account id that is taken.
    """
    _check_name(name)
    if account_id and not _ACCOUNT_ID.fullmatch(account_id):
        raise ValidationException(f"account: got {account_id!r}, wanted 12 digits")
    people.check_name_and_role(owner, Role.OWNER)

    def store() -> Project:
        _check_name_is_free(name)
        account = account_id or _draw_account_id()
        if _is_taken(account):
            raise ConflictException(f"Account {account} is taken.")
        project = Project.objects.create(name=name, account_id=account)
        audit.record(project, actor, "CreateProject", name, f"account {account}, owner {owner}")
        people.put_member(project, owner, Role.OWNER, actor)
        return project

    return write(store)


def rename_project(name: str, new_name: str, actor: audit.Actor) -> Project:
    """Rename a project; its ARNs have the account id and stay as they are.

    Raise ResourceNotFound, ValidationException for a malformed name or a project of the server,
    ConflictException for a name that is taken.
    """
    _check_name(new_name)
    if name in FIXED_NAMES:
        raise ValidationException(f"The project {name!r} cannot be renamed.")

    def store() -> Project:
        project = Project.objects.select_for_update(no_key=True).filter(name=name).first()
        if project is None:
            raise ServiceError(ErrorCode.ResourceNotFound, f"There is no project {name!r}.")
        _check_name_is_free(new_name, but=project)
        project.name = new_name
        project.save(update_fields=["name"])
        audit.record(project, actor, "RenameProject", new_name, f"was {name}")
        signals.publish(people.RIGHTS)
        return project

    return write(store)


def list_projects() -> list[ProjectSummary]:
    """Return all projects, the oldest first, with the numbers of active members and owners."""
    active = Q(membership__user__is_active=True)
    projects = Project.objects.order_by("pk").annotate(
        members=Count("membership", filter=active),
        owners=Count("membership", filter=active & Q(membership__role=Role.OWNER)),
    )
    columns = ("pk", "name", "account_id", "members", "owners")
    return [ProjectSummary(*row) for row in projects.values_list(*columns)]


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValidationException(
            f"name: got {name!r}, wanted 1 to {LONGEST_NAME} letters, digits and . - _,"
            " beginning with a letter or a digit"
        )


def _check_name_is_free(name: str, but: Project | None = None) -> None:
    others = Project.objects.exclude(pk=but.pk) if but else Project.objects.all()
    is_reserved = name.casefold() in FIXED_NAMES
    if is_reserved or others.filter(name__iexact=name).exists():
        raise ConflictException(f"The name {name!r} is taken.")


def _draw_account_id() -> str:
    """Return an account id that no project has."""
    while True:
        account = str(_SMALLEST_ACCOUNT + secrets.randbelow(_ACCOUNTS))
        if not _is_taken(account):
            return account


def _is_taken(account: str) -> bool:
    """Tell whether a project has an account id, or the server needs it for one of its own."""
    own = (SAMPLES_ACCOUNT, settings.STATEYARD_ACCOUNT)
    return account in own or Project.objects.filter(account_id=account).exists()
