"""Deliver a scheduled task: call its service or function, and record the outcome as a message."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from structlog.contextvars import bound_contextvars

import engine
from console import integrations
from console.db import clock
from console.db.project_names import project_of
from console.db.writer import is_outage, release_connection
from console.feature import Hook, hooked
from console.functions import asynchronous
from console.functions.pool import CallRecord
from console.integrations import function, mocks, permissions, targets
from console.integrations.outcome import (
    Failed,
    Submitted,
    Succeeded,
    TaskAttempt,
    internal_failure,
)
from console.models import Execution, TaskRow
from console.samples import is_sample
from console.statuses import TaskKind
from console.store.executions import children, recorded_answers
from console.store.tasks import claim, jobs, schedule
from console.worker import own_calls
from console.worker.crash_journal import JOURNAL
from console.worker.retrying import retry_during_outage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from django.db.models import QuerySet


log = structlog.get_logger(__name__)
_MOCKED_JOB = '"mocked"'
"""Stands for the job or the callback of a mocked Task, whose outcome the test case has."""
_INSIST_S = 600.0  # an outcome is worth waiting for the database; after that the task runs again


@dataclass(frozen=True, slots=True)
class UnrecordedOutcome:
    """The outcome of a call before it is recorded. ``message``: for the execution."""

    work: claim.ClaimedTask
    outcome: integrations.Outcome
    message: engine.TaskSucceeded | engine.TaskFailed

    def record(self) -> None:
        """Record the outcome on its own."""
        with _log_with_task(self.work):
            _record(self.work, self.outcome)

    def committed(self) -> None:
        """Finish after the outcome was committed with a step of its execution."""
        _invoke_event(self.work, self.outcome)


def deliver_task(execution_id: int, number: int) -> own_calls.Waiting | None:
    """Claim a task for this process, call it, and record its only outcome.

    Return what to poll for the answer, if it comes later; None if the task has ended.
    """
    result = call_task(execution_id, number)
    if isinstance(result, UnrecordedOutcome):
        result.record()
        return None
    return result


def call_task(execution_id: int, number: int) -> own_calls.Waiting | UnrecordedOutcome | None:
    """Deliver a task; the caller records the outcome if the execution waits for it."""
    work = claim.claim_call(execution_id, number)
    if work is None:
        return None  # claimed by another thread, or cancelled
    with _log_with_task(work):
        if work.dispatches > 1:
            log.info("task re-dispatched")
        task, denied = retry_during_outage(lambda: _checked_task(work), _INSIST_S)
        if not denied and own_calls.is_own(task) and _mocked_outcome(work) is None:
            called = own_calls.begin_call(work, task)
            if called is None:
                log.info("a task had ended before its call")
            return called if isinstance(called, own_calls.Waiting) else None
        outcome = _outcome(work, task)
        if outcome.record is not None:
            _tell_of_call(work, outcome.record.function, outcome.record)
        waits_for_call = work.kind in schedule.CALLED and not work.pattern
        if waits_for_call and not isinstance(outcome, Submitted):
            return UnrecordedOutcome(work, outcome, own_calls.outcome_message(work, outcome))
        _record(work, outcome)
    return None


def _log_with_task(work: claim.ClaimedTask) -> AbstractContextManager[None]:
    """Add the task to every line logged within."""
    return bound_contextvars(execution=work.execution_arn, task=work.task)


def deliver_sample_activity(execution_id: int, number: int) -> own_calls.Waiting | None:
    """Deliver an activity's task if it is of a sample state machine."""
    roles = Execution.objects.filter(pk=execution_id).values_list("role_arn", flat=True)
    return deliver_task(execution_id, number) if is_sample(roles.first() or "") else None


def look_at_job(execution_id: int, number: int) -> None:
    """Poll the job of a waiting task, and record its outcome if the job has ended."""
    waiting_job = jobs.get_waiting_job(execution_id, number)
    if waiting_job is None:
        return
    work, job, looks = waiting_job
    with _log_with_task(work):
        try:
            outcome: integrations.Outcome | None
            if job == _MOCKED_JOB:
                outcome = _mocked_outcome(work)
            else:
                task = _task(work, trusted=True)
                release_connection()
                outcome = integrations.poll_job(task, job)
        except Exception as error:
            if is_outage(error):
                raise  # its row is due, so the clock brings it back
            log.exception("looking at a job raised")
            outcome = None
        if outcome is None:
            jobs.schedule_look(execution_id, number, integrations.next_look_s(looks))
        else:
            _record(work, outcome)


def cancel_job(execution_id: int, number: int) -> None:
    """Cancel the job of a finished task, as far as the service can."""
    cancelled_job = jobs.get_cancelled_job(execution_id, number)
    if cancelled_job is None:
        return
    _cancel(*cancelled_job)


def _cancel(work: claim.ClaimedTask, job: str) -> None:
    if job == _MOCKED_JOB:
        return
    if work.service in schedule.NESTED and children.abandons_children(work.execution_id):
        return
    with _log_with_task(work):
        task = _task(work, trusted=True)
        release_connection()
        outcome = retry_during_outage(lambda: integrations.cancel_job(task, job), _INSIST_S)
        if isinstance(outcome, Failed):
            log.info("a job could not be stopped", service=work.service)


def _record(work: claim.ClaimedTask, outcome: integrations.Outcome) -> None:
    """Record the outcome of a call: the end of the task, or its submitted job."""
    number = work.execution_id
    if retry_during_outage(lambda: own_calls.record_outcome(work, outcome), _INSIST_S):
        _invoke_event(work, outcome)
        return
    log.info("late outcome dropped")
    if (
        isinstance(outcome, Submitted)
        and outcome.job
        and schedule.closed_among([(number, work.task)])
    ):
        _cancel(work, outcome.job)  # the job began after the end of its task


def warn_of_broken_functions() -> None:
    """Log each registered callable known to fail, without importing code."""
    for entry, target, problem in function.broken_registrations():
        log.warning(
            "a registered function cannot be called", entry=entry, target=target, problem=problem
        )


def registered_activities() -> frozenset[str]:
    """Return the names of activities with a registered callable, for any project."""
    sections = settings.STATEYARD_FUNCTIONS.get(targets.PROJECTS)
    registries = [settings.STATEYARD_FUNCTIONS]
    registries += sections.values() if isinstance(sections, dict) else ()
    return _activities(name for registry in registries for name in registry)


def sample_activities() -> frozenset[str]:
    """Return the names of activities that callables work for sample state machines only."""
    return _activities(settings.STATEYARD_SAMPLE_FUNCTIONS)


def all_activities() -> frozenset[str]:
    """Return the names of activities that callables work for any state machine."""
    return registered_activities() | sample_activities()


def _activities(functions: Iterable[str]) -> frozenset[str]:
    split = (name.partition(":") for name in functions)
    return frozenset(
        activity for kind, _, activity in split if kind == TaskKind.ACTIVITY and activity
    )


def works_activity(arn: str) -> bool:
    """Whether a registered callable of the project works an activity."""
    return targets.find_activity(activity_name(arn), project_of(arn), sample=False) is not None


def activity_name(arn: str) -> str:
    """Return the name in an activity's ARN."""
    return arn.rsplit(":", 1)[-1]


def _outcome(work: claim.ClaimedTask, task: TaskAttempt) -> integrations.Outcome:
    """Call the integration; any exception, even SystemExit, becomes the failure of the task."""
    try:
        mocked, in_process = retry_during_outage(lambda: _prepare_call(work, task), _INSIST_S)
        release_connection()  # the call may take its time
        if mocked is not None:
            return _submit_mocked(mocked) if work.pattern else mocked
        if work.kind == TaskKind.ACTIVITY:
            return _call_activity(work, task)
        with JOURNAL.of(work.execution_id, work.task) if in_process else nullcontext():
            return integrations.call_task(task)
    except BaseException:
        log.exception("a call raised")
        return internal_failure(task)


def _checked_task(work: claim.ClaimedTask) -> tuple[TaskAttempt, bool]:
    """Return the task, and whether its project denies the call."""
    task = _task(work)
    return task, permissions.find_denial(task) is not None


def _prepare_call(
    work: claim.ClaimedTask, task: TaskAttempt
) -> tuple[Succeeded | Failed | None, bool]:
    """Read what the call needs; return a mocked outcome, and whether the call runs here."""
    mocked = _mocked_outcome(work)
    is_call = mocked is None and work.kind != TaskKind.ACTIVITY
    return mocked, is_call and function.runs_here(task)


def _tell_of_call(work: claim.ClaimedTask, function_name: str, record: CallRecord) -> None:
    """Notify features of a function call."""
    for tell in hooked(Hook.FUNCTION_CALLED):
        tell(work.execution_id, work.task, function_name, record)


def _invoke_event(work: claim.ClaimedTask, outcome: integrations.Outcome) -> None:
    """Queue the asynchronous invocation that a recorded outcome carries, if any.

    Its failures are in the logs of the function alone.
    """
    if isinstance(outcome, Failed) or outcome.event is None:
        return
    event = outcome.event
    name = function.function_name(event.resource)

    def call(attempt: int) -> str:
        with _log_with_task(work):
            started_ms = clock.now_ms()
            in_process = function.runs_here(event)
            with JOURNAL.of(work.execution_id, work.task) if in_process else nullcontext():
                outcome = integrations.call_task(event)
            error = (outcome.error or "Lambda.Unknown") if isinstance(outcome, Failed) else ""
            record = outcome.record
            if record is None and isinstance(outcome, Failed):
                record = CallRecord(
                    function=name,
                    request=str(uuid.uuid4()),
                    started_ms=started_ms,
                    duration_ms=clock.now_ms() - started_ms,
                    output=f"[ERROR] {error}: {outcome.cause or ''}\n",
                    error=error,
                )
            if record is not None:
                _tell_of_call(work, name, record)
            log.debug("an asynchronous invocation was made", attempt=attempt, error=error)
            return error

    asynchronous.submit_invocation(event.project, name, call)


def _call_activity(work: claim.ClaimedTask, task: TaskAttempt) -> integrations.Outcome:
    """Call the function registered for an activity, for a task of the activity."""
    name = activity_name(work.resource)
    activity = targets.find_activity(name, task.project, sample=task.sample)
    if activity is None:  # it was when the task was offered
        return Failed("States.TaskFailed", f"No callable works the activity {name} here any more")
    in_process = function.shares_process(activity.options)
    with JOURNAL.of(work.execution_id, work.task) if in_process else nullcontext():
        return function.call_python(activity.target, name, task, activity.options)


def _mocked_outcome(work: claim.ClaimedTask) -> Succeeded | Failed | None:
    """Return the mocked outcome of the state in the execution's test case, if any."""
    if not work.test_case:
        return None
    if recorded_answers.is_import_case(work.test_case):
        answer = recorded_answers.recorded_answer(work.execution_id, work.task)
        if answer is None:
            return None
        return (
            Failed(answer.error, answer.cause)
            if answer.output is None
            else Succeeded(answer.output)
        )
    before = claim.invocations_before(work)
    mocked = mocks.mocked_outcome(
        _machine_of(work.execution_arn), work.test_case, work.state, before
    )
    if work.kind == TaskKind.LAMBDA and isinstance(mocked, Succeeded):
        return _payload(mocked)
    return mocked


def _machine_of(execution_arn: str) -> targets.MachineKey:
    return targets.MachineKey(project_of(execution_arn), targets.machine_of(execution_arn))


def _payload(mocked: Succeeded) -> Succeeded:
    """Return the payload of a Lambda answer: a Task with a function's ARN returns only this."""
    answer = engine.loads(mocked.output)
    is_answer = isinstance(answer, dict) and "Payload" in answer
    return Succeeded(engine.dumps(answer["Payload"])) if is_answer else mocked


def _submit_mocked(mocked: Succeeded | Failed) -> Submitted:
    """Return a mocked job or callback as submitted: its outcome follows at the next poll."""
    output = mocked.output if isinstance(mocked, Succeeded) else "{}"
    return Submitted(output, job=_MOCKED_JOB, look_s=0)


def is_mocked(execution_id: int, task: int) -> bool:
    """Whether a test case mocks the outcome of a task."""
    test_case = claim.find_test_case(execution_id, task)
    if test_case is None:
        return False
    arn, case, state = test_case
    if recorded_answers.is_import_case(case):
        return recorded_answers.recorded_answer(execution_id, task) is not None
    return mocks.are_in_use() and mocks.is_mocked(_machine_of(arn), case, state)


def mocked_activities(rows: QuerySet[TaskRow]) -> list[tuple[int, int]]:
    """Return (execution, task) of activity tasks that a test case mocks."""
    return [key for key in rows.values_list("execution_id", "task") if is_mocked(*key)]


def _task(work: claim.ClaimedTask, *, trusted: bool = False) -> TaskAttempt:
    """Return a task as a ``TaskAttempt``. ``trusted``: to poll or stop its own job."""
    return TaskAttempt(
        kind=work.kind,
        resource=work.resource,
        service=work.service,
        action=work.action,
        input=work.input,
        idempotency_key=work.idempotency_key,
        execution_arn=work.execution_arn,
        token=work.token,
        timeout_s=work.timeout_s,
        pattern=work.pattern,
        losses=work.losses,
        project=project_of(work.execution_arn),
        home=(
            own_calls.OwnApi(work, trusted=trusted)
            if work.service in own_calls.OWN_SERVICES
            else None
        ),
        sample=is_sample(work.role_arn),
        role_arn=work.role_arn or "",
        assumes_role=_assumes_role(work),
    )


def _assumes_role(work: claim.ClaimedTask) -> bool:
    """Whether a Task has Credentials; read only where a role is enforced."""
    machine = _machine_of(work.execution_arn)
    if not any(enforces(machine.project, machine.name) for enforces in hooked(Hook.ROLE_ENFORCED)):
        return False
    rows = TaskRow.objects.filter(execution_id=work.execution_id, task=work.task)
    return rows.exclude(credentials="").exists()
