"""Run bulk jobs: apply one action to many executions, exactly once each, despite crashes.

A job and its items are rows. A redrive, start, replay, pause or resume is committed together with
its item's outcome. A stop takes several transactions: the item is marked before it, and stopping
twice has no further effect. So after a crash a job continues from its rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count

from console import access
from console.db import audit, clock, rows
from console.db.writer import is_outage, write
from console.errors import ErrorCode, ServiceError, ThrottlingException, ValidationException
from console.features.bulk import replays
from console.features.bulk.models import BulkItem, BulkJob
from console.models import Execution
from console.statuses import (
    BulkAction,
    BulkItemStatus,
    BulkJobStatus,
    ExecutionStatus,
)
from console.store.executions import redrive
from console.store.executions.refusals import ACTIONS, refusal_of, refusals_of
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.state import pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from console.models import Project

MOST = 10_000
NOT_RUNNING = "ExecutionNotRunning"
"""The error of an item whose execution had ended before the job could stop it."""
_BATCH = 100
_OPEN = (BulkItemStatus.ACTING, BulkItemStatus.WAITING)


# -- the dry run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """The dry run of an action. ``refusals``: execution number -> why it is excluded."""

    action: str
    chosen: tuple[Execution, ...]
    refusals: Mapping[int, str]

    @property
    def eligible(self) -> list[Execution]:
        """Return the executions that the job would act on."""
        return [execution for execution in self.chosen if execution.pk not in self.refusals]

    @property
    def excluded(self) -> list[tuple[Execution, str]]:
        """Return the excluded executions with the reasons."""
        return [
            (execution, self.refusals[execution.pk])
            for execution in self.chosen
            if execution.pk in self.refusals
        ]

    @property
    def owners(self) -> list[tuple[str, int]]:
        """Return who started the eligible executions, with counts, highest first."""
        return Counter(execution.started_by for execution in self.eligible).most_common()

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons of exclusions with counts, highest first."""
        return Counter(self.refusals.values()).most_common()


def plan_job(project: Project, action: str, numbers: Sequence[int]) -> BulkPlan:
    """Return the dry run of an action on executions of a project."""
    executions = Execution.objects.filter(project=project, pk__in=list(numbers)[:MOST])
    chosen = tuple(
        executions.select_related("state_machine", "pause")
        .defer("input", "output", "error", "cause")
        .order_by("-start_ms", "-pk")
    )
    return BulkPlan(action, chosen, refusals_of(action, chosen))


# -- the job ---------------------------------------------------------------------------------------


def create_job(
    plan: BulkPlan,
    project: Project,
    actor: audit.Actor,
    request_text: str = "",
    *,
    error: str = "",
    cause: str = "",
    stops_clock: bool = False,
    note: str = "",
) -> BulkJob:
    """Store a job for all selected executions, including those that the plan excludes.

    The job tries each of them and records a refusal then. ``error`` and ``cause``: for a stop.
    ``stops_clock`` and ``note``: for a pause.
    """
    items = [
        BulkItem(number=execution.pk, arn=execution.arn, started_by=execution.started_by)
        for execution in plan.chosen
    ]

    def store() -> BulkJob:
        job = BulkJob.objects.create(
            project=project,
            action=plan.action,
            actor=actor.name,
            asked=request_text,
            error=error,
            cause=cause,
            stops_clock=stops_clock,
            note=note,
            total=len(plan.chosen),
            created_ms=clock.now_ms(),
        )
        for position, item in enumerate(items):
            item.job_id, item.position = job.pk, position
        rows.insert_all(items)
        audit.record(project, actor, _BULK[plan.action], f"bulk/{job.pk}", request_text)
        return job

    return write(store)


_BULK: dict[str, str] = {
    BulkAction.STOP: "BulkStop",
    BulkAction.REDRIVE: "BulkRedrive",
    BulkAction.START: "BulkStart",
    BulkAction.PAUSE: "BulkPauseExecutions",
    BulkAction.RESUME: "BulkResumeExecutions",
    BulkAction.REPLAY: "BulkReplay",
}


def pause_or_resume(job: BulkJob, *, on: bool, actor: audit.Actor) -> bool:
    """Pause or resume a job; return whether it changed."""
    before, after = (
        (BulkJobStatus.PAUSED, BulkJobStatus.RUNNING)
        if on
        else (BulkJobStatus.RUNNING, BulkJobStatus.PAUSED)
    )

    def store() -> bool:
        jobs = BulkJob.objects.filter(pk=job.pk, status=before)
        changed = jobs.update(status=after) == 1
        if changed:
            act = "ResumeBulk" if on else "PauseBulk"
            audit.record(job.project, actor, act, f"bulk/{job.pk}")
        return changed

    return write(store)


def count_items(job: BulkJob) -> dict[str, int]:
    """Return status -> number of items of a job."""
    counts = (
        BulkItem.objects.filter(job=job)
        .order_by()
        .values_list("status")
        .annotate(Count("position"))
    )
    return dict(counts)


# -- the work --------------------------------------------------------------------------------------


def running_jobs() -> list[int]:
    """Return the jobs with work to do."""
    return list(BulkJob.objects.filter(status=BulkJobStatus.RUNNING).values_list("pk", flat=True))


def work_on_job(number: int) -> bool:
    """Process some items of a job; return whether there is more to do at once."""
    job = BulkJob.objects.select_related("project").get(pk=number)
    if job.status != BulkJobStatus.RUNNING:
        return False
    items = BulkItem.objects.filter(job=job, status__in=_OPEN).order_by("position")[:_BATCH]
    positions = list(items.values_list("position", flat=True))
    if not positions:
        write(lambda: _finish(number))
    elif not access.is_still_allowed(job.actor, job.project, ACTIONS[job.action]):
        write(lambda: _deny(job, positions))
        return True
    return bool(positions) and all(_item(job, position) for position in positions)


def _deny(job: BulkJob, positions: Sequence[int]) -> None:
    """Refuse the remaining items if the job's actor has lost the right to its action.

    The same if the project was archived.
    """
    words = f"User: {job.actor} is not authorized to perform: states:{ACTIONS[job.action]}"
    if access.is_refused_by_archive(job.project, ACTIONS[job.action]):
        words = access.archive_words(job.project)
    for position in positions:
        _close(job, position, error=ErrorCode.AccessDeniedException, words=words)


def _finish(number: int) -> None:
    jobs = BulkJob.objects.filter(pk=number, status=BulkJobStatus.RUNNING)
    jobs.update(status=BulkJobStatus.DONE, ended_ms=clock.now_ms())


def _item(job: BulkJob, position: int) -> bool:
    """Process one item; return whether the job may continue at once."""
    try:
        return _OTHER_ACTS.get(job.action, _in_one_transaction)(job, position)
    except ThrottlingException:
        return False  # the sweeper comes back
    except Exception as error:
        if is_outage(error):
            raise
        code, words = _error_code_and_message(error)
        write(lambda: _close(job, position, error=code, words=words))
        return True


def _in_one_transaction(job: BulkJob, position: int) -> bool:
    """Run an action other than stop, and mark the item as done, in one transaction."""

    def store() -> bool:
        item = _claim(job, position)
        if item is None:
            return _goes_on(job)
        result = _ACTS[job.action](_execution(job, item), _actor(job), job)
        _close(job, position, result=result)
        return True

    return write(store)


def _redrive(execution: Execution, actor: audit.Actor, _job: BulkJob) -> str:
    redrive.redrive_execution(execution, actor=actor)
    return ""


def _start(execution: Execution, actor: audit.Actor, _job: BulkJob) -> str:
    machine = execution.state_machine
    if machine is None or execution.map_run_id is not None:
        raise ValidationException(refusal_of(BulkAction.START, execution))
    case = execution.test_case
    return start_execution(machine, input=execution.input, test_case=case, actor=actor).arn


def _pause(execution: Execution, actor: audit.Actor, job: BulkJob) -> str:
    pause.pause_execution(execution, actor, stops_clock=job.stops_clock, note=job.note)
    return ""


def _resume(execution: Execution, actor: audit.Actor, _job: BulkJob) -> str:
    pause.resume_execution(execution, actor)
    return ""


_ACTS: dict[str, Callable[[Execution, audit.Actor, BulkJob], str]] = {
    BulkAction.REDRIVE: _redrive,
    BulkAction.START: _start,
    BulkAction.PAUSE: _pause,
    BulkAction.RESUME: _resume,
}


def _stop(job: BulkJob, position: int) -> bool:
    """Stop an execution, which takes several transactions.

    The item is marked first, to know after a crash that this job stopped the execution.
    """

    def begin() -> Execution | None:
        item = _claim(job, position)
        if item is None:
            return None
        execution = _execution(job, item)
        if item.status == BulkItemStatus.WAITING and execution.status != ExecutionStatus.RUNNING:
            _close(
                job,
                position,
                error=NOT_RUNNING,
                words=refusal_of(BulkAction.STOP, execution),
            )
            return None
        BulkItem.objects.filter(job=job, position=position).update(status=BulkItemStatus.ACTING)
        return execution

    execution = write(begin)
    if execution is None:
        return _goes_on(job)
    stop_execution(execution, error=job.error or None, cause=job.cause or None, actor=_actor(job))
    execution.refresh_from_db(fields=["status"])
    words = (
        ""
        if execution.status == ExecutionStatus.ABORTED
        else refusal_of(BulkAction.STOP, execution)
    )
    error = NOT_RUNNING if words else ""
    write(lambda: _close(job, position, error=error, words=words))
    return True


def _replay(job: BulkJob, position: int) -> bool:
    """Replay an execution from its failed state, with the new definition.

    Its history, which may be long, is read before the transaction.
    """
    item = BulkItem.objects.filter(job=job, position=position).first()
    if item is None or not _goes_on(job):
        return _goes_on(job)
    execution = _execution(job, item)
    begin = replays.read_beginning(execution)

    def store() -> bool:
        if _claim(job, position) is None:
            return _goes_on(job)
        started = replays.start_from(execution, begin, _actor(job))
        _close(job, position, result=started.arn)
        return True

    return write(store)


_OTHER_ACTS: dict[str, Callable[[BulkJob, int], bool]] = {
    BulkAction.STOP: _stop,
    BulkAction.REPLAY: _replay,
}
"""Actions that take more than one transaction."""


def _claim(job: BulkJob, position: int) -> BulkItem | None:
    """Return an item if it is still unprocessed (inside a transaction)."""
    if not _goes_on(job):
        return None
    items = BulkItem.objects.select_for_update()
    return items.filter(job=job, position=position, status__in=_OPEN).first()


def _goes_on(job: BulkJob) -> bool:
    return BulkJob.objects.filter(pk=job.pk, status=BulkJobStatus.RUNNING).exists()


def _execution(job: BulkJob, item: BulkItem) -> Execution:
    executions = Execution.objects.select_related("project", "state_machine")
    execution = executions.filter(project=job.project_id, pk=item.number).first()
    if execution is None:
        raise ServiceError(
            ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{item.arn}'"
        )
    return execution


def _actor(job: BulkJob) -> audit.Actor:
    return audit.Actor(job.actor, request_id=f"bulk/{job.pk}")


def _close(
    job: BulkJob, position: int, *, error: str = "", words: str = "", result: str = ""
) -> None:
    """Record the outcome of an item (inside a transaction)."""
    BulkItem.objects.filter(job=job, position=position).update(
        status=BulkItemStatus.REFUSED if error else BulkItemStatus.DONE,
        error=error[:80],
        words=words,
        result=result,
        at_ms=clock.now_ms(),
    )


def _error_code_and_message(error: Exception) -> tuple[str, str]:
    """Return the code and the message of an error."""
    if isinstance(error, ServiceError):
        return error.code, error.message
    return type(error).__name__, str(error)
