"""Create, extend, list and delete branches, and issue their access keys.

Every change locks the parent's row, then the branch's project, and reads after that. So two jobs
that create the same branch at once get the same project, and a branch that is extended while it
expires is either extended or deleted, not both.

A branch is archived when it expires, and deleted after ``STATEYARD_BRANCH_GRACE_DAYS``. It is
archived and deleted with its parent.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from console import access
from console.db import audit, clock, signals
from console.db.branch_names import branch_project_name
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.features.branches.copies import copy_project
from console.features.branches.models import Branch, BranchKey
from console.features.projects import deletion
from console.features.projects import store as projects
from console.features.projects.models import ProjectDeletion
from console.models import AccessKey, Execution, Membership, Project
from console.statuses import ExecutionStatus
from console.store.people import people
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.access import Principal

DEFAULT_TTL = "3d"
LONGEST_NAME = 200
_TTL = re.compile(r"([1-9]\d{0,4})([mhd])")
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_TTL_MS = 90 * _UNITS_MS["d"]
_NOT_IN_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|/\.|\.lock(/|$)")
_MOST_FAILURES = 20
_SERVER = audit.Actor("stateyard")


@dataclass(frozen=True, slots=True)
class PutBranch:
    """The result of ``put_branch``. ``created``: whether the branch is new."""

    branch: Branch
    created: bool


@dataclass(frozen=True, slots=True)
class ListedBranch:
    """A branch for lists. ``deleting``: its deletion has begun."""

    name: str
    project: str
    account_id: str
    made_by: str
    made_ms: int
    expires_ms: int
    archived_ms: int | None
    deleting: bool


def put_branch(parent: Project, name: str, ttl: str, actor: audit.Actor) -> PutBranch:
    """Create a branch of a project, or extend it. ``ttl``: its lifetime from now, such as ``3d``.

    Raise ValidationException for an invalid value, for a parent that is a branch, and for too many
    branches; AccessDeniedException for an archived project, ConflictException during its deletion.
    """
    lasts_ms = parse_ttl(ttl)
    if not 1 <= len(name) <= LONGEST_NAME or _NOT_IN_NAME.search(name):
        raise ValidationException(f"branch: {name!r} is not the name of a branch, as git has them")

    def store() -> PutBranch:
        locked = people.lock_team(parent)
        access.check_not_archived(locked)
        if Branch.objects.filter(project=locked).exists():
            raise ValidationException(
                f"The project {locked.name!r} is a branch itself: make branches of its parent."
            )
        now_ms = clock.now_ms()
        expires_ms = now_ms + lasts_ms
        branch = _branches(locked).filter(name=name).first()
        created = branch is None
        if branch is None:
            branch = _create_branch(locked, name, now_ms, expires_ms, actor)
        else:
            _extend_branch(branch, expires_ms, actor)
        audit.record(locked, actor, "PutBranch", name, f"for {ttl}")
        signals.publish(people.RIGHTS)
        return PutBranch(branch, created)

    return write(store)


def _create_branch(
    parent: Project, name: str, now_ms: int, expires_ms: int, actor: audit.Actor
) -> Branch:
    being_deleted = ProjectDeletion.objects.filter(project=OuterRef("project"))
    count = Branch.objects.filter(~Exists(being_deleted), parent=parent).count()
    if count >= settings.STATEYARD_BRANCHES:
        raise ValidationException(
            f"The project {parent.name!r} has {count} of {settings.STATEYARD_BRANCHES} branches:"
            " delete one."
        )
    project_name = branch_project_name(parent.name, name)
    if Project.objects.filter(name__iexact=project_name).exists():
        raise ConflictException(f"A former branch {name!r} is being deleted: try again.")
    digest = hashlib.sha256(f"{parent.account_id}/{name}".encode()).digest()
    account_id = projects.free_account_id(int.from_bytes(digest[:8]))
    project = Project.objects.create(name=project_name, account_id=account_id, masked=parent.masked)
    branch = Branch.objects.create(
        project=project,
        parent=parent,
        name=name,
        made_by=actor.name,
        made_ms=now_ms,
        expires_ms=expires_ms,
    )
    machines = copy_project(parent, project, now_ms)
    reason = f"branch {name} of {parent.name}, {machines} state machines"
    audit.record(project, actor, "CreateProject", project_name, reason)
    return branch


def _extend_branch(branch: Branch, expires_ms: int, actor: audit.Actor) -> None:
    project = projects.locked_project(branch.project.name)
    if project.archived_ms is not None:  # refused while it is being deleted
        projects.unarchive_project(project.name, actor)
    branch.expires_ms = expires_ms
    branch.save(update_fields=["expires_ms"])


def parse_ttl(text: str) -> int:
    """Parse a time such as ``3d``, ``12h`` or ``30m`` to ms; raise ValidationException."""
    match = _TTL.fullmatch(text)
    milliseconds = int(match[1]) * _UNITS_MS[match[2]] if match else 0
    if not 0 < milliseconds <= _LONGEST_TTL_MS:
        raise ValidationException(f"ttl: {text!r} is not a time such as 30m, 12h or 3d, up to 90d")
    return milliseconds


def get_branch(parent: Project, name: str) -> Branch:
    """Return a branch of a project; raise ResourceNotFound."""
    branch = _branches(parent).filter(name=name).first()
    if branch is None:
        raise ServiceError(
            ErrorCode.ResourceNotFound, f"The project {parent.name!r} has no branch {name!r}."
        )
    return branch


def _branches(parent: Project) -> QuerySet[Branch]:
    return Branch.objects.filter(parent=parent).select_related("project")


def list_branches(parents: list[int]) -> dict[int, list[ListedBranch]]:
    """Return project id -> its branches, by name, for some projects."""
    being_deleted = ProjectDeletion.objects.filter(project=OuterRef("project"))
    rows = Branch.objects.filter(parent__in=parents).order_by("name").select_related("project")
    branches: dict[int, list[ListedBranch]] = {}
    for row in rows.annotate(deleting=Exists(being_deleted)):
        listed = ListedBranch(
            name=row.name,
            project=row.project.name,
            account_id=row.project.account_id,
            made_by=row.made_by,
            made_ms=row.made_ms,
            expires_ms=row.expires_ms,
            archived_ms=row.project.archived_ms,
            deleting=row.deleting,
        )
        branches.setdefault(row.parent_id, []).append(listed)
    return branches


def delete_branch(parent: Project, name: str, actor: audit.Actor) -> None:
    """Archive a branch and begin its deletion, which the server completes.

    Raise ResourceNotFound.
    """

    def store() -> None:
        locked = people.lock_team(parent)
        branch = get_branch(locked, name)
        _begin_deletion(branch.project, actor)
        audit.record(locked, actor, "DeleteBranch", name)

    write(store)


def _begin_deletion(project: Project, actor: audit.Actor) -> None:
    projects.archive_project(project.name, actor)
    deletion.begin_deletion(project.name, project.name, actor)


def put_key(parent: Project, name: str, principal: Principal, actor: audit.Actor) -> AccessKey:
    """Return the caller's key of a branch, created at the first call with a key of the parent.

    It has the scope and expiry of the parent's key.

    Raise ResourceNotFound, and AccessDeniedException for an archived branch, a disabled key, and a
    caller who is no longer a member.
    """

    def store() -> AccessKey:
        project = get_branch(people.lock_team(parent), name).project
        access.check_not_archived(project)
        rows = BranchKey.objects.filter(project=project, origin=principal.key_id)
        row = rows.select_related("key").first()
        if row is None:
            if not Membership.objects.filter(project=project, user=principal.user).exists():
                raise ServiceError(
                    ErrorCode.AccessDeniedException,
                    f"{actor.name!r} is no member of {project.name!r}",
                )
            description = f"by {principal.key_id}"
            key = access.create_access_key(
                principal.user,
                project,
                description,
                scope=principal.scope,
                expires_ms=principal.expires_ms,
            )
            BranchKey.objects.create(key=key, project=project, origin=principal.key_id)
            audit.record(project, actor, "CreateAccessKey", key.key_id, actor.name)
            return key
        if row.key.disabled_ms is not None:
            raise ServiceError(
                ErrorCode.AccessDeniedException,
                f"The key {row.key.key_id} of the branch {name!r} is disabled: enable it on the"
                " page Access keys of the branch.",
            )
        return row.key

    return write(store)


def list_failures(branch: Branch, since_ms: int) -> list[tuple[str, str]]:
    """Return ARN and status of executions that failed since a time, oldest first."""
    unsuccessful = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
    failed = Execution.objects.filter(
        project=branch.pk, map_run=None, status__in=unsuccessful, stop_ms__gte=since_ms
    )
    return list(failed.order_by("stop_ms", "pk").values_list("arn", "status")[:_MOST_FAILURES])


# -- what time and parents end ---------------------------------------------------------------------


def end_branches() -> int:
    """Archive and delete branches that have expired or whose parent ends; return how many.

    An error of one branch is logged and does not affect the others.
    """
    at_work = Project.objects.filter(pk=OuterRef("parent_id"), archived_ms=None)
    due = Branch.objects.filter(Q(expires_ms__lte=clock.now_ms()) | ~Exists(at_work))
    due = due.exclude(Exists(ProjectDeletion.objects.filter(project=OuterRef("project"))))
    numbers = list(due.values_list("pk", flat=True))
    return sum(
        log_errors("a branch did not end", partial(_end_branch, number), False)
        for number in numbers
    )


def _end_branch(number: int) -> bool:
    """Archive a branch or begin its deletion, if due; return whether it was."""

    def store() -> bool:
        branch = Branch.objects.get(pk=number)
        locked = Project.objects.select_for_update(no_key=True).filter(pk=branch.parent_id)
        parent = locked.first()
        branch = Branch.objects.select_related("project").get(pk=number)  # as it is now
        has_parent = parent and not ProjectDeletion.objects.filter(project=parent).exists()
        grace_ms = settings.STATEYARD_BRANCH_GRACE_DAYS * _UNITS_MS["d"]
        now_ms = clock.now_ms()
        if not has_parent or branch.expires_ms + grace_ms <= now_ms:
            _begin_deletion(branch.project, _SERVER)
            return True
        is_over = branch.expires_ms <= now_ms or (parent and parent.archived_ms is not None)
        if is_over and branch.project.archived_ms is None:
            projects.archive_project(branch.project.name, _SERVER)
            return True
        return False

    return write(store)


def end_keys() -> None:
    """Delete branch keys whose parent key was deleted, disabled or has expired."""
    origins = AccessKey.objects.filter(key_id=OuterRef("origin"), disabled_ms=None)
    origins = origins.filter(Q(expires_ms=None) | Q(expires_ms__gt=clock.now_ms()))
    ended = list(BranchKey.objects.filter(~Exists(origins)).values_list("pk", flat=True))
    if ended:
        write(partial(_delete_keys, ended))


def _delete_keys(key_ids: list[str]) -> None:
    for key in AccessKey.objects.filter(pk__in=key_ids).select_related("project"):
        audit.record(key.project, _SERVER, "DeleteAccessKey", key.key_id, "its parent's key ended")
        key.delete()
    signals.publish(people.RIGHTS)
