"""Create, rename, archive and list projects.

The server finds ``default`` (the first owner's) and the project of the samples by name, so neither
can be renamed or archived. Two names must not differ in case only.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Count, F, Q

from console.db import audit, branch_names, clock, signals
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.features.projects.models import ProjectDeletion
from console.models import Execution, Project, Role
from console.samples import PROJECT as SAMPLES
from console.statuses import ExecutionStatus
from console.store.events import outbox
from console.store.people import people
from console.store.people.sample_project import SAMPLES_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT = "default"
FIXED_NAMES = (DEFAULT, SAMPLES)
"""Names by which the server finds projects of its own."""
LONGEST_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_SMALLEST_ACCOUNT, _ACCOUNTS = 10**11, 9 * 10**11


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project as an administrator sees it.

    It includes the numbers of active members, owners and running executions, and the time of
    archiving. ``to_delete``: the number of its executions when its deletion began; ``deleted``: how
    many of them are deleted already.
    """

    pk: int
    name: str
    account_id: str
    members: int
    owners: int
    archived_ms: int | None
    deleted: int | None
    to_delete: int | None
    running: int


def create_project(name: str, account_id: str, owner: str, actor: audit.Actor) -> Project:
    """Create a project with its first owner.

    ``account_id``: 12 digits, "" to draw one. ``owner``: the name of a person of this server.
    Raise ValidationException for a malformed value or an unknown owner, ConflictException for a
    name or an account id that is taken.
    """
    _check_name(name)
    if account_id and not _ACCOUNT_ID.fullmatch(account_id):
        raise ValidationException(f"account: {account_id!r} is not an account ID of 12 digits")

    def store() -> Project:
        _check_name_is_free(name)
        _check_person_exists(owner)
        account = account_id or free_account_id(secrets.randbelow(_ACCOUNTS))
        if _is_taken(account):
            raise ConflictException(f"Account {account} is taken.")
        project = Project.objects.create(name=name, account_id=account)
        audit.record(project, actor, "CreateProject", name, f"account {account}, owner {owner}")
        people.put_member(project, owner, Role.OWNER, actor)
        return project

    return write(store)


def rename_project(name: str, new_name: str, actor: audit.Actor) -> Project:
    """Rename a project and its branches; ARNs have account ids and do not change.

    Raise ResourceNotFound, ValidationException for a malformed name, a branch or a project of the
    server, ConflictException for a name that is taken or too long for the branches, and while the
    project is being deleted.
    """
    _check_name(new_name)
    if name in FIXED_NAMES:
        raise ValidationException(f"The project {name!r} cannot be renamed.")
    if branch_names.is_branch(name):
        raise ValidationException(f"{name!r} has the name of its branch: it cannot be renamed.")

    def store() -> Project:
        project = _project_to_change(name)
        _check_name_is_free(new_name, but=project)
        _rename_branches(project, new_name)
        project.name = new_name
        project.save(update_fields=["name"])
        audit.record(project, actor, "RenameProject", new_name, f"was {name}")
        signals.publish(people.RIGHTS)
        return project

    return write(store)


def _rename_branches(project: Project, new_name: str) -> None:
    branches = list(people.branches_of(project))
    for branch in branches:
        branch.name = new_name + branch.name[len(project.name) :]
        if len(branch.name) > branch_names.LONGEST:
            raise ConflictException(
                f"The name {new_name!r} is too long for the branch {branch.name!r}: delete it first"
            )
    Project.objects.bulk_update(branches, ["name"])


def archive_project(name: str, actor: audit.Actor) -> Project:
    """Make a project read-only; running executions continue to their end.

    Its rules and schedules do not fire, and no execution can be started. An archived project does
    not change. Raise ResourceNotFound, ValidationException for a project of the server.
    """
    check_may_end(name, "archived")

    def store() -> Project:
        project = locked_project(name)
        if project.archived_ms is None:
            _set_archived(project, clock.now_ms())
            audit.record(project, actor, "ArchiveProject", name)
        return project

    return write(store)


def unarchive_project(name: str, actor: audit.Actor) -> Project:
    """Reactivate an archived project; schedules do not fire for missed times.

    Raise ResourceNotFound, and ConflictException while the project is being deleted.
    """

    def store() -> Project:
        project = _project_to_change(name)
        if project.archived_ms is not None:
            _set_archived(project, None)
            audit.record(project, actor, "UnarchiveProject", name)
        return project

    return write(store)


def _set_archived(project: Project, archived_ms: int | None) -> None:
    project.archived_ms = archived_ms
    project.save(update_fields=["archived_ms"])
    outbox.forget_rules()
    signals.publish(people.RIGHTS)


def check_may_end(name: str, act: str) -> None:
    """Raise ValidationException for a project the server needs. ``act``: the refused action."""
    if name in FIXED_NAMES:
        raise ValidationException(
            f"The project {name!r} belongs to the server: it cannot be {act}."
        )


def locked_project(name: str) -> Project:
    """Return a project locked for this transaction; raise ResourceNotFound."""
    project = Project.objects.select_for_update(no_key=True).filter(name=name).first()
    if project is None:
        raise missing_project(name)
    return project


def missing_project(name: str) -> ServiceError:
    """Return the error for an unknown project name."""
    return ServiceError(ErrorCode.ResourceNotFound, f"There is no project {name!r}.")


def _project_to_change(name: str) -> Project:
    """Return a locked project; raise ConflictException during its deletion."""
    project = locked_project(name)
    if ProjectDeletion.objects.filter(project=project).exists():
        raise ConflictException(f"The project {name!r} is being deleted.")
    return project


def list_projects() -> list[ProjectSummary]:
    """Return all projects, oldest first."""
    active = Q(membership__user__is_active=True)
    projects = Project.objects.order_by("pk").annotate(
        members=Count("membership", filter=active),
        owners=Count("membership", filter=active & Q(membership__role=Role.OWNER)),
        deleted=F("deletion__removed"),
        to_delete=F("deletion__total"),
    )
    columns = ("pk", "name", "account_id", "members", "owners", "archived_ms")
    rows: Iterable[dict[str, Any]] = projects.values(*columns, "deleted", "to_delete")
    return [ProjectSummary(**row, running=_count_running(row["pk"])) for row in rows]


def _count_running(project: int) -> int:
    running = Execution.objects.filter(project=project, status=ExecutionStatus.RUNNING)
    return running.filter(map_run=None).count()


def _check_person_exists(name: str) -> None:
    """Raise ValidationException for an unknown person, who could not sign in as owner."""
    if not get_user_model().objects.filter(username=name, is_active=True).exists():
        raise ValidationException(
            f"owner: there is nobody called {name!r}. Add the person to a project first, on its"
            f" page Members or with: stateyard member {name} --project default"
        )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValidationException(
            f"name: {name!r} is not a name of 1 to {LONGEST_NAME} letters, digits and . - _,"
            " beginning with a letter or a digit"
        )


def _check_name_is_free(name: str, but: Project | None = None) -> None:
    others = Project.objects.exclude(pk=but.pk) if but else Project.objects.all()
    is_reserved = name.casefold() in FIXED_NAMES
    if is_reserved or others.filter(name__iexact=name).exists():
        raise ConflictException(f"The name {name!r} is taken.")


def free_account_id(number: int) -> str:
    """Return an unused account id, derived from a number if possible."""
    while True:
        account = str(_SMALLEST_ACCOUNT + number % _ACCOUNTS)
        if not _is_taken(account):
            return account
        number += 1


def _is_taken(account: str) -> bool:
    """Whether a project or the server itself uses an account id."""
    own = (SAMPLES_ACCOUNT, settings.STATEYARD_ACCOUNT)
    return account in own or Project.objects.filter(account_id=account).exists()
