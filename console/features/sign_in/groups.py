"""Keep the roles of a provider's groups in projects, beside the operator's settings.

The settings come first: where they give a group a role in a project, the table has no say. A change
counts from the next time that a person's groups are read.
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
"""Stands in a message and in the audit where a project would."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A role of a group, as the page shows it.

    ``project``: "" for the server. ``number``: of the row that the page can remove, None for the
    operator's settings. ``overruled``: the settings give the group another role there.
    """

    provider_id: str
    provider: str
    group: str
    project: str
    role: str
    number: int | None = None
    overruled: bool = False


def list_rows() -> list[GroupRow]:
    """Return the settings' rows and the table's, in the order of the providers and the groups."""
    rows = []
    table = list(GroupRole.objects.select_related("project").order_by("group", "pk"))
    for provider_id, provider in settings.STATEYARD_OIDC.items():
        name = provider_name(provider_id)
        said = _settled(provider)
        rows += [
            GroupRow(provider_id, name, group, project, role)
            for (group, project), role in said.items()
        ]
        rows += [
            GroupRow(
                *(provider_id, name, row.group, _project_name(row), row.role, row.pk),
                overruled=(row.group, _project_name(row)) in said,
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
    """Return what the button of the sign-in page calls a provider."""
    return str(settings.STATEYARD_OIDC[provider_id].get("name", provider_id))


def put_row(provider_id: str, group: str, project: str, role: str, actor: audit.Actor) -> None:
    """Give a group a role in a project. ``project``: "" for the server.

    Raise ValidationException for a value that is none or a row of the settings, ResourceNotFound
    for a project that does not exist.
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
    """Take a role from a group; return the row as it was. Raise ResourceNotFound."""

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
    """Return name -> project, for those that a provider decides on, in the order of their locks.

    ``further``: numbers of projects to add. ``locked``: as ``people.lock_team`` locks one, inside
    the caller's transaction, and with one statement for all: there may be hundreds.
    """
    names = {project for _, project in _settled(settings.STATEYARD_OIDC[provider_id])}
    rows = GroupRole.objects.filter(provider_id=provider_id, project__isnull=False)
    numbers = {*rows.values_list("project_id", flat=True), *further}
    projects = Project.objects.select_for_update(no_key=True) if locked else Project.objects.all()
    projects = projects.filter(Q(pk__in=numbers) | Q(name__in=names)).exclude(name__contains=MARK)
    return {project.name: project for project in projects.order_by("pk")}


def effective_provider(
    provider_id: str, projects: Iterable[Project]
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a provider's settings with the rows of the table, and the projects of these rows.

    ``projects``: those of ``governed_projects``. (Inside the same transaction.)
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


def _settled(provider: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return group and project -> role, as the operator's settings say."""
    roles = {
        (group, project): role
        for group, by_project in provider.get("groups", {}).items()
        for project, role in by_project.items()
    }
    return roles | {(group, ""): ADMINISTRATOR for group in provider.get("administrators", ())}


def _project_name(row: GroupRole) -> str:
    return row.project.name if row.project else ""


def _check_row(provider_id: str, group: str, project: str, role: str) -> None:
    """Raise ValidationException for a row that cannot be, or that the settings have."""
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
    if (group, project) in _settled(settings.STATEYARD_OIDC[provider_id]):
        raise ValidationException(
            f"The operator's settings already decide on {group!r} and {project or SERVER}."
        )


def _lock_project(name: str) -> Project:
    """Return the locked project whose audit has a change; for the server it is ``default``."""
    if not name:
        return people.lock_team(access.default_project())
    project = Project.objects.filter(name=name).exclude(name__contains=MARK).first()
    if project is None:
        raise ServiceError(ErrorCode.ResourceNotFound, f"There is no project {name!r}.")
    return people.lock_team(project)
