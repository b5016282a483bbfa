"""Delete an archived project with all its data, in batches.

Theory of operation
===================

``begin_deletion`` removes all members, keys and invitations, and writes a ``ProjectDeletion``, in
one transaction: from then on the project cannot be opened or restored. The rest is deleted in
batches, each a transaction:

1. Running executions lose their snapshots, tasks and timers, so that they take no more steps: a
   parent must not handle the error of a child that is already deleted.
2. Executions are deleted, newest first: a child of a Map Run, or of a Task, before its parent.
3. The rows of all other tables are deleted (``rows_of_project``), then tags and unused definitions.
4. The project itself is deleted with its ``ProjectDeletion``.

After a crash the ``ProjectDeletion`` remains, and the next process continues. The server's leading
worker and the shell command may both work on it; a lease lets one work at a time. The first and the
last step are recorded in the server's audit trail, which stays.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.db import IntegrityError
from django.db.models import F

from console.db import audit, clock, signals
from console.db.branch_names import MARK
from console.db.postgres import patient_statements
from console.db.writer import write
from console.errors import ConflictException, ValidationException
from console.feature import Hook, hooked
from console.features.projects import rows_of_project
from console.features.projects.models import ProjectDeletion
from console.features.projects.store import check_may_end, locked_project
from console.models import (
    AccessKey,
    AuditEntry,
    DebugEdit,
    Definition,
    Execution,
    HaltedExecution,
    InboxMessage,
    Invitation,
    MapRun,
    Membership,
    Pause,
    Project,
    RunRow,
    TaskRow,
    Timer,
)
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.executions import retention
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
ACTION = "DeleteProject"
LEASE_MS = 15_000
"""The time after its last batch for which other processes leave a deletion alone."""
PAUSE_S = 0.02
"""The pause between two batches, in which other writers get the database."""
_RUNNER = f"{os.getpid()}-{secrets.token_hex(8)}"
_SHOWN = 20
_TURN_S = 5.0
"""The time for which the server works on a deletion before it continues with other jobs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a deletion: deleted executions, and their total."""

    removed: int
    total: int

    def __str__(self) -> str:
        return f"{self.removed} of {self.total} executions removed"


def begin_deletion(name: str, confirmed: str, actor: audit.Actor) -> ProjectDeletion:
    """Begin to delete an archived project; nobody can open it afterwards.

    ``confirmed``: its name, typed. A deletion that has begun continues. Raise ResourceNotFound,
    ValidationException for another text or a project of the server, ConflictException for a project
    that is not archived.
    """
    check_may_end(name, "deleted")

    def store() -> ProjectDeletion:
        project = locked_project(name)
        if confirmed != name:
            raise ValidationException(f"Type the name of the project, {name!r}, to delete it.")
        deletion = ProjectDeletion.objects.filter(project=project).first()
        if deletion is not None:
            return deletion
        if project.archived_ms is None:
            raise ConflictException(f"The project {name!r} is active: archive it first.")
        _remove_people(project, actor)
        executions = Execution.stored.filter(project=project).count()
        # the number tells ``verify_audit`` whose rows are missing by right
        size = f"account {project.account_id}, {executions} executions"
        reason = f"begin: {size}, project {project.pk}"
        audit.record(None, actor, ACTION, name, reason)
        return ProjectDeletion.objects.create(
            project=project, actor=actor.name, began_ms=clock.now_ms(), total=executions
        )

    return write(store)


def _remove_people(project: Project, actor: audit.Actor) -> None:
    """End all memberships, as if each member had been removed (inside a transaction)."""
    for member in Membership.objects.filter(project=project).select_related("user"):
        user = people.locked_user(member.user.get_username())
        member.delete()
        people.clear_former_membership(project, user, actor)
    AccessKey.objects.filter(project=project).delete()
    Invitation.objects.filter(project=project).delete()
    signals.publish(people.RIGHTS)


def progress_of(name: str) -> Progress | None:
    """Return a deletion's progress, None if the project is deleted or there is none."""
    rows = ProjectDeletion.objects.filter(project__name=name).values_list("removed", "total")
    row = rows.first()
    return None if row is None else Progress(*row)


def past_deletions() -> list[AuditEntry]:
    """Return the latest finished deletions, without branches, from the server's audit trail."""
    ends = AuditEntry.objects.filter(project=None, action=ACTION, reason__startswith="end: ")
    return list(ends.exclude(target__contains=MARK).order_by("-pk")[:_SHOWN])


def continue_deletions() -> None:
    """Work for some seconds on each deletion without a lease of another process."""
    for number in list(ProjectDeletion.objects.values_list("pk", flat=True)):
        work_on_deletion(number, partial(_is_before, time.monotonic() + _TURN_S))


def _is_before(moment_s: float) -> bool:
    return time.monotonic() < moment_s


def work_on_deletion(number: int, go_on: Callable[[], bool] = lambda: True) -> bool:
    """Delete batches until done or ``go_on`` is False; return whether the project is deleted.

    Return False at once while another process works on it.
    """
    if not write(partial(_claim, number)):
        return not ProjectDeletion.objects.filter(pk=number).exists()
    try:
        with patient_statements():
            while _delete_batch(number):
                if not go_on():
                    return False
                time.sleep(PAUSE_S)
            return not ProjectDeletion.objects.filter(pk=number).exists()
    finally:
        write(partial(_release, number))


def _claim(number: int) -> bool:
    """Take or renew the lease of a deletion for ``LEASE_MS`` (inside a transaction)."""
    now_ms = clock.now_ms()
    mine = ProjectDeletion.objects.filter(pk=number, runner=_RUNNER)
    free = ProjectDeletion.objects.filter(pk=number, lease_until_ms__lte=now_ms)
    changes = {"runner": _RUNNER, "lease_until_ms": now_ms + LEASE_MS}
    return bool(mine.update(**changes) or free.update(**changes))


def _release(number: int) -> None:
    mine = ProjectDeletion.objects.filter(pk=number, runner=_RUNNER)
    mine.update(runner="", lease_until_ms=0)


def _delete_batch(number: int) -> bool:
    """Delete some rows in one transaction; return whether there may be more."""
    try:
        if _stop_some(number) or _delete_executions(number):
            return True
        if any(is_needed(number) for is_needed in hooked(Hook.PROJECT_AUDIT_NEEDED)):
            return False  # the next turn asks again
        if write(lambda: _claim(number) and rows_of_project.delete_some(number)):
            return True
        _delete_unused_definitions()
        deleted_count = _delete_project(number)
    except IntegrityError:  # another process inserted a row that refers to a deleted one
        return True
    if deleted_count:
        log.info("a project was deleted", project=number)
        write(lambda: AuditEntry.objects.filter(project_id=number).delete())
    return False


def _stop_some(number: int) -> bool:
    """Remove the snapshots, tasks and timers of some executions; return whether there were any."""
    running = RunRow.objects.filter(
        execution__project=number, execution__status=ExecutionStatus.RUNNING
    )
    numbers = list(running.values_list("pk", flat=True)[: retention.BATCH])

    def store() -> bool:
        if not _claim(number):
            return False
        runs = MapRun.objects.filter(parent__in=numbers, status=MapRunStatus.RUNNING)
        runs.update(status=MapRunStatus.ABORTED)
        of_runs = (RunRow, TaskRow, Timer, InboxMessage, Pause, HaltedExecution, DebugEdit)
        for model in of_runs:
            model.objects.filter(execution__in=numbers).delete()
        return True

    return bool(numbers) and write(store)


def _delete_executions(number: int) -> bool:
    """Delete the latest executions of a project; return whether there were any."""
    newest = Execution.stored.filter(project=number).order_by("-start_ms", "-pk")
    numbers = list(newest.values_list("pk", flat=True)[: retention.BATCH])
    for group in retention.bounded_groups(numbers) if numbers else ():
        for map_run in MapRun.objects.filter(parent__in=group).values_list("pk", flat=True):
            retention.drop_map_items(map_run)
        if not write(partial(_delete_group, number, group)):
            return False
    return bool(numbers)


def _delete_group(number: int, group: list[int]) -> bool:
    if not _claim(number):
        return False
    Execution.stored.filter(pk__in=group).only("pk").delete()
    counted = ProjectDeletion.objects.filter(pk=number)
    counted.update(removed=F("removed") + len(group))
    return True


def _delete_unused_definitions() -> None:
    for keys in rows_of_project.unused_definitions():
        write(Definition.objects.filter(pk__in=keys).delete)


def _delete_project(number: int) -> bool:
    """Delete the project row; return whether this process did it."""

    def store() -> bool:
        if not _claim(number):
            return False
        # FOR UPDATE holds up every insert that refers to the project, which fails then
        project = Project.objects.select_for_update().get(pk=number)
        deletion = ProjectDeletion.objects.get(pk=number)
        rows_of_project.delete_tags(project.account_id)
        actor = audit.Actor(deletion.actor)
        reason = f"end: account {project.account_id}, {deletion.removed} executions"
        audit.record(None, actor, ACTION, project.name, reason)
        project.delete()
        signals.publish(people.RIGHTS)
        return True

    return write(store)
