"""How is one action done to many executions, each exactly once, whatever dies meanwhile?

A job is rows. A redrive or a start and the note that it was done are one transaction; a stop is
noted before and after, and stopping twice is stopping once. So a job goes on where its rows stand.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count

from console import access, clock
from console.errors import ErrorCode, ServiceError, ThrottlingException, ValidationException
from console.fast_path import rows
from console.models import BulkItem, BulkJob, Execution
from console.statuses import (
    BulkAction,
    BulkItemStatus,
    BulkJobStatus,
    ExecutionStatus,
    MachineStatus,
)
from console.store.db import audit
from console.store.db.writer import is_outage, write
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from console.models import Project

MOST = 10_000
ACTIONS: dict[str, str] = {
    BulkAction.STOP: "StopExecution",
    BulkAction.REDRIVE: "RedriveExecution",
    BulkAction.START: "StartExecution",
}
"""What can be done to many, and the API's action whose right it takes."""
_BATCH = 100
_OPEN = (BulkItemStatus.ACTING, BulkItemStatus.WAITING)


# -- the dry run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """What an action would do. ``refusals``: why some would be left out, by number."""

    action: str
    chosen: tuple[Execution, ...]
    refusals: Mapping[int, str]

    @property
    def eligible(self) -> list[Execution]:
        """Return those that would be acted on."""
        return [one for one in self.chosen if one.pk not in self.refusals]

    @property
    def excluded(self) -> list[tuple[Execution, str]]:
        """Return those that would be left out, and why."""
        return [(one, self.refusals[one.pk]) for one in self.chosen if one.pk in self.refusals]

    @property
    def owners(self) -> list[tuple[str, int]]:
        """Return who started those that would be acted on, and how many; most first."""
        return Counter(one.started_by for one in self.eligible).most_common()

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Return why others would be left out, and how many; most first."""
        return Counter(self.refusals.values()).most_common()


def plan_job(project: Project, action: str, numbers: Sequence[int]) -> BulkPlan:
    """Return what an action would do to these executions of the project; changes nothing."""
    found = Execution.objects.filter(project=project, pk__in=list(numbers)[:MOST])
    chosen = tuple(
        found.select_related("state_machine")
        .defer("input", "output", "error", "cause", "definition")
        .order_by("-start_ms", "-pk")
    )
    refusals = {one.pk: _refusal(action, one) for one in chosen}
    if action == BulkAction.REDRIVE:
        refusals |= redrive.redrive_refusals([one for one in chosen if not refusals[one.pk]])
    return BulkPlan(action, chosen, {number: why for number, why in refusals.items() if why})


def _refusal(action: str, execution: Execution) -> str:
    """Return why an action cannot be done to an execution, as far as its own row tells."""
    machine = execution.state_machine
    if action == BulkAction.STOP:
        return "" if execution.status == ExecutionStatus.RUNNING else "It has ended"
    if execution.map_run_id is not None:
        return f"A child of a Map Run is {_DONE[action]} by its parent"
    if action == BulkAction.START and (machine is None or machine.status != MachineStatus.ACTIVE):
        return "Its state machine was deleted"
    return ""


_DONE: dict[str, str] = {
    BulkAction.STOP: "stopped",
    BulkAction.REDRIVE: "redriven",
    BulkAction.START: "started",
}


# -- the job ---------------------------------------------------------------------------------------


def create_job(planned: BulkPlan, project: Project, actor: audit.Actor, asked: str = "") -> BulkJob:
    """Store a job for everything chosen; what is refused now is tried, and told, in its turn."""
    items = [
        BulkItem(number=one.pk, arn=one.arn, started_by=one.started_by) for one in planned.chosen
    ]

    def store() -> BulkJob:
        job = BulkJob.objects.create(
            project=project,
            action=planned.action,
            actor=actor.name,
            asked=asked,
            total=len(planned.chosen),
            created_ms=clock.now_ms(),
        )
        for place, item in enumerate(items):
            item.job_id, item.position = job.pk, place
        rows.insert_all(items)
        audit.record(project, actor, _BULK[planned.action], f"bulk/{job.pk}", asked)
        return job

    return write(store)


_BULK: dict[str, str] = {
    BulkAction.STOP: "BulkStop",
    BulkAction.REDRIVE: "BulkRedrive",
    BulkAction.START: "BulkStart",
}


def pause_or_resume(job: BulkJob, *, on: bool, actor: audit.Actor) -> bool:
    """Pause or resume a job; return whether that changed anything."""
    before, after = (
        (BulkJobStatus.PAUSED, BulkJobStatus.RUNNING)
        if on
        else (BulkJobStatus.RUNNING, BulkJobStatus.PAUSED)
    )

    def store() -> bool:
        found = BulkJob.objects.filter(pk=job.pk, status=before)
        changed = found.update(status=after) == 1
        if changed:
            act = "ResumeBulk" if on else "PauseBulk"
            audit.record(job.project, actor, act, f"bulk/{job.pk}")
        return changed

    return write(store)


def count_items(job: BulkJob) -> dict[str, int]:
    """Return how many items stand where."""
    found = (
        BulkItem.objects.filter(job=job)
        .order_by()
        .values_list("status")
        .annotate(Count("position"))
    )
    return dict(found)


# -- the work --------------------------------------------------------------------------------------


def running_jobs() -> list[int]:
    """Return the jobs that have something to do."""
    return list(BulkJob.objects.filter(status=BulkJobStatus.RUNNING).values_list("pk", flat=True))


def work_on_job(number: int) -> bool:
    """Do some of what a job still has to do; return whether there is more to do at once."""
    job = BulkJob.objects.select_related("project").get(pk=number)
    if job.status != BulkJobStatus.RUNNING:
        return False
    items = BulkItem.objects.filter(job=job, status__in=_OPEN).order_by("position")[:_BATCH]
    places = list(items.values_list("position", flat=True))
    if not places:
        write(lambda: _finish(number))
    elif not access.is_still_allowed(job.actor, job.project, ACTIONS[job.action]):
        write(lambda: _deny(job, places))
        return True
    return bool(places) and all(_item(job, place) for place in places)


def _deny(job: BulkJob, places: Sequence[int]) -> None:
    """Refuse what its asker may no longer do: they lost their role since."""
    words = f"User: {job.actor} is not authorized to perform: states:{ACTIONS[job.action]}"
    for place in places:
        _close(job, place, error=ErrorCode.AccessDeniedException, words=words)


def _finish(number: int) -> None:
    found = BulkJob.objects.filter(pk=number, status=BulkJobStatus.RUNNING)
    found.update(status=BulkJobStatus.DONE, ended_ms=clock.now_ms())


def _item(job: BulkJob, place: int) -> bool:
    """Do one item; return whether the job may go on at once."""
    act = _stop if job.action == BulkAction.STOP else _in_one_transaction
    try:
        return act(job, place)
    except ThrottlingException:
        return False  # the sweeper comes back
    except Exception as error:
        if is_outage(error):
            raise
        code, words = _told(error)
        write(lambda: _close(job, place, error=code, words=words))
        return True


def _in_one_transaction(job: BulkJob, place: int) -> bool:
    """Redrive or start again; the deed and the note that it was done are one commit."""

    def store() -> bool:
        item = _claim(job, place)
        if item is None:
            return _goes_on(job)
        result = _DEEDS[job.action](_execution(job, item), _actor(job))
        _close(job, place, result=result)
        return True

    return write(store)


def _redrive(execution: Execution, actor: audit.Actor) -> str:
    redrive.redrive_execution(execution, actor=actor)
    return ""


def _start(execution: Execution, actor: audit.Actor) -> str:
    machine = execution.state_machine
    if machine is None or execution.map_run_id is not None:
        raise ValidationException(_refusal(BulkAction.START, execution))
    case = execution.test_case
    return start_execution(machine, input=execution.input, test_case=case, actor=actor).arn


_DEEDS: dict[str, Callable[[Execution, audit.Actor], str]] = {
    BulkAction.REDRIVE: _redrive,
    BulkAction.START: _start,
}


def _stop(job: BulkJob, place: int) -> bool:
    """Stop, which takes steps of its own: noted before, so that it is known who ended it."""

    def begin_it() -> Execution | None:
        item = _claim(job, place)
        if item is None:
            return None
        execution = _execution(job, item)
        if item.status == BulkItemStatus.WAITING and execution.status != ExecutionStatus.RUNNING:
            _close(
                job, place, error="ExecutionNotRunning", words=_refusal(BulkAction.STOP, execution)
            )
            return None
        BulkItem.objects.filter(job=job, position=place).update(status=BulkItemStatus.ACTING)
        return execution

    execution = write(begin_it)
    if execution is None:
        return _goes_on(job)
    stop_execution(execution, actor=_actor(job))
    execution.refresh_from_db(fields=["status"])
    words = (
        "" if execution.status == ExecutionStatus.ABORTED else _refusal(BulkAction.STOP, execution)
    )
    error = "ExecutionNotRunning" if words else ""
    write(lambda: _close(job, place, error=error, words=words))
    return True


def _claim(job: BulkJob, place: int) -> BulkItem | None:
    """Return an item if it is still to be done (inside a transaction)."""
    if not _goes_on(job):
        return None
    found = BulkItem.objects.select_for_update()
    return found.filter(job=job, position=place, status__in=_OPEN).first()


def _goes_on(job: BulkJob) -> bool:
    return BulkJob.objects.filter(pk=job.pk, status=BulkJobStatus.RUNNING).exists()


def _execution(job: BulkJob, item: BulkItem) -> Execution:
    found = Execution.objects.select_related("project", "state_machine")
    execution = found.filter(project=job.project_id, pk=item.number).first()
    if execution is None:
        raise ServiceError(
            ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{item.arn}'"
        )
    return execution


def _actor(job: BulkJob) -> audit.Actor:
    return audit.Actor(job.actor, request_id=f"bulk/{job.pk}")


def _close(job: BulkJob, place: int, *, error: str = "", words: str = "", result: str = "") -> None:
    """Note what became of an item (inside a transaction)."""
    BulkItem.objects.filter(job=job, position=place).update(
        status=BulkItemStatus.REFUSED if error else BulkItemStatus.DONE,
        error=error[:80],
        words=words,
        result=result,
        at_ms=clock.now_ms(),
    )


def _told(error: Exception) -> tuple[str, str]:
    """Return the name and words of what went wrong."""
    if isinstance(error, ServiceError):
        return error.code, error.message
    return type(error).__name__, str(error)
