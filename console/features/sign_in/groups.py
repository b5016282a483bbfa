"""Store the table of groups: which role a provider's group has in a project.

The operator's settings take precedence over the table. A change applies when a person's groups are
next read, at sign-in or refresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Q

from console import access
from console.db import audit
from console.db.branch_names import MARK
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.features.sign_in.claims import EVERYBODY
from console.features.sign_in.models import ADMINISTRATOR, GroupRole
from console.models import Project, Role
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

LONGEST_GROUP = 255
SERVER = "the server"
"""Stands for the server, in place of a project, in messages and the audit."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A role of a group, for the page.

    ``project``: "" for the server. ``number``: the number of the row that the page can remove, None
    for the operator's settings. ``overruled``: the settings give the group another role there.
    """

    provider_id: str
    provider: str
    group: str
    project: str
    role: str
    number: int | None = None
    overruled: bool = False


def list_rows() -> list[GroupRow]:
    """Return the rows of the settings and the table, by provider and group."""
    rows = []
    table = list(GroupRole.objects.select_related("project").order_by("group", "pk"))
    for provider_id, provider in settings.STATEYARD_OIDC.items():
        name = provider_name(provider_id)
        role_of_group = _roles_of_groups(provider)
        rows += [
            GroupRow(provider_id, name, group, project, role)
            for (group, project), role in role_of_group.items()
        ]
        rows += [
            GroupRow(
                *(provider_id, name, row.group, _project_name(row), row.role, row.pk),
                overruled=(row.group, _project_name(row)) in role_of_group,
            )
            for row in table
            if row.provider_id == provider_id
        ]
    rows += [  # of providers that the settings do not have any more
        GroupRow(row.provider_id, row.provider_id, row.group, _project_name(row), row.role, row.pk)
        for row in table
        if row.provider_id not in settings.STATEYARD_OIDC
    ]
    return rows


def provider_name(provider_id: str) -> str:
    """Return the provider's name on the sign-in button."""
    return str(settings.STATEYARD_OIDC[provider_id].get("name", provider_id))


def put_row(provider_id: str, group: str, project: str, role: str, actor: audit.Actor) -> None:
    """Give a group a role in a project. ``project``: "" for the server.

    Raise ValidationException for an invalid value and for a row of the settings, ResourceNotFound
    for an unknown project.
    """
    _check_row(provider_id, group, project, role)

    def store() -> None:
        locked = _lock_project(project)
        GroupRole.objects.update_or_create(
            provider_id=provider_id,
            group=group,
            project=locked if project else None,
            defaults={"role": role},
        )
        words = f"{role} of {project or SERVER}"
        audit.record(locked, actor, "PutGroupRole", f"{group}@{provider_id}", words)

    write(store)


def remove_row(number: int, actor: audit.Actor) -> GroupRole:
    """Remove a group's role; return the removed row. Raise ResourceNotFound."""

    def store() -> GroupRole:
        row = GroupRole.objects.select_related("project").filter(pk=number).first()
        if row is None:
            raise ServiceError(ErrorCode.ResourceNotFound, "This group was removed meanwhile.")
        project = row.project or access.default_project()
        people.lock_team(project)
        GroupRole.objects.filter(pk=number).delete()
        words = f"{row.role} of {row.project.name if row.project else SERVER}"
        audit.record(project, actor, "RemoveGroupRole", f"{row.group}@{row.provider_id}", words)
        return row

    return write(store)


def governed_projects(
    provider_id: str, further: Collection[int], *, locked: bool = True
) -> dict[str, Project]:
    """Return name -> project whose members a provider determines, in the order of locks.

    ``further``: ids of projects to add. ``locked``: lock them, as ``people.lock_team`` does, inside
    the caller's transaction, with one statement for all: there may be hundreds.
    """
    names = {project for _, project in _roles_of_groups(settings.STATEYARD_OIDC[provider_id])}
    rows = GroupRole.objects.filter(provider_id=provider_id, project__isnull=False)
    numbers = {*rows.values_list("project_id", flat=True), *further}
    projects = Project.objects.select_for_update(no_key=True) if locked else Project.objects.all()
    projects = projects.filter(Q(pk__in=numbers) | Q(name__in=names)).exclude(name__contains=MARK)
    return {project.name: project for project in projects.order_by("pk")}


def effective_provider(
    provider_id: str, projects: Iterable[Project]
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a provider's settings with the table's rows added, and the projects of these rows.

    ``projects``: the result of ``governed_projects`` (in the same transaction).
    """
    provider = settings.STATEYARD_OIDC[provider_id]
    names = {project.pk: project.name for project in projects}
    table = {group: dict(roles) for group, roles in provider.get("groups", {}).items()}
    administrators = list(provider.get("administrators", ()))
    of_table = set()
    for row in GroupRole.objects.filter(provider_id=provider_id):
        if row.project_id is None:
            administrators.append(row.group)
        elif row.project_id in names:
            name = names[row.project_id]
            table.setdefault(row.group, {}).setdefault(name, row.role)
            of_table.add(name)
    merged = {**provider, "groups": table, "administrators": administrators}
    return merged, frozenset(of_table)


def _roles_of_groups(provider: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return (group, project) -> role in the operator's settings."""
    roles = {
        (group, project): role
        for group, by_project in provider.get("groups", {}).items()
        for project, role in by_project.items()
    }
    return roles | {(group, ""): ADMINISTRATOR for group in provider.get("administrators", ())}


def _project_name(row: GroupRole) -> str:
    return row.project.name if row.project else ""


def _check_row(provider_id: str, group: str, project: str, role: str) -> None:
    """Raise ValidationException for an invalid row, or one that the settings have."""
    if provider_id not in settings.STATEYARD_OIDC:
        raise ValidationException(f"There is no provider {provider_id!r}.")
    if not group or len(group) > LONGEST_GROUP or not group.isprintable():
        raise ValidationException(f"The group must have 1 to {LONGEST_GROUP} printable characters.")
    if project and role not in Role.values:
        raise ValidationException("In a project, a group has a role: choose one of the four.")
    if not project and role != ADMINISTRATOR:
        raise ValidationException("On the server, a group can only be administrator.")
    if not project and group == EVERYBODY:
        raise ValidationException("Everybody (*) cannot administer the server.")
    if (group, project) in _roles_of_groups(settings.STATEYARD_OIDC[provider_id]):
        raise ValidationException(
            f"The operator's settings already decide on {group!r} and {project or SERVER}."
        )


def _lock_project(name: str) -> Project:
    """Return the locked project whose audit records a change; for the server ``default``."""
    if not name:
        return people.lock_team(access.default_project())
    project = Project.objects.filter(name=name).exclude(name__contains=MARK).first()
    if project is None:
        raise ServiceError(ErrorCode.ResourceNotFound, f"There is no project {name!r}.")
    return people.lock_team(project)
