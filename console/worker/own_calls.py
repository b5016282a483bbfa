"""Run a Task that calls this server's own API (``states:startExecution``) without an HTTP request.

So such Tasks work while the web processes are down. A call that is one transaction, such as
StartExecution, is committed together with the outcome of its task:

1. a worker is killed before the commit: there is no child, and the task is called again;
2. it is killed after the commit: the child exists, and the task refers to it;
3. the task ends meanwhile, by its timeout or a Stop: its row is closed, and no child is started.

During a database outage the call waits, and is repeated if it was not committed. A call with a
later answer, such as StartSyncExecution, holds no thread until then (``Waiting``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from botocore.exceptions import BotoCoreError
from structlog.contextvars import bound_contextvars

from console import execution_rights, integrations, own_api, own_client
from console.access import Denied, Principal
from console.db.audit import Actor
from console.db.writer import Change, is_outage, release_connection
from console.errors import ErrorCode, ServiceError
from console.integrations import aws, event_buses, names, targets
from console.models import Execution, Role
from console.own_api import Parent
from console.store.executions.find import with_project
from console.store.tasks import claim, complete, jobs, schedule
from console.worker.retrying import retry_during_outage

import engine  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.model import OperationModel

    from console.db import signals
    from console.integrations import Outcome, TaskAttempt

log = structlog.get_logger(__name__)
OWN_SERVICES = {
    **dict.fromkeys(schedule.NESTED, targets.OWN),
    **dict.fromkeys(("events", "aws-sdk:eventbridge"), "events"),
    "aws-sdk:scheduler": "scheduler",
    "aws-sdk:cloudwatch": "cloudwatch",
    "aws-sdk:cloudwatchlogs": "logs",
}
"""Service in a Resource -> botocore's name, for the services that this server has."""
_INSIST_S = 600.0
"""The time for which a call without a time limit waits for the database.

Then its task runs again.
"""


# -- who calls -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnApi:
    """A service of this server with the interface of a botocore client (``integrations.Home``).

    ``trusted``: used to poll or stop an execution that a call has started.
    """

    work: claim.ClaimedTask
    region: str = ""
    trusted: bool = False
    service: str = targets.OWN

    def client(self, service: str, region: str) -> OwnApi:
        """Return the client object for calls."""
        return OwnApi(self.work, region, self.trusted, service)

    def _make_api_call(self, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        """Call an operation; return or raise as a botocore client does."""
        model = names.service_model(self.service).operation_model(name)
        return own_client.as_botocore(model, lambda: own_client.finish(self.begin(model, sent)))

    def begin(self, model: OperationModel, sent: dict[str, Any]) -> own_api.Begun:
        """Begin an operation, as ``own_api.answer``; raise ``ServiceError``."""
        return own_api.answer(
            self._caller(model.name), model.name, own_client.wire_params(model, sent)
        )

    def _caller(self, action: str) -> own_api.Caller:
        """Return the execution as the caller; raise AccessDeniedException without rights."""
        work = self.work
        execution = with_project(work.execution_id)
        try:
            principal = self._principal(execution, action)
        except Denied as error:
            raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None
        people = execution_rights.people_of(execution)
        actor = Actor(execution.started_by, execution=execution.arn, acting_for=people)
        waits = work.task if work.pattern.startswith(".sync") else None
        parent = Parent(execution.pk, execution.depth or 0, waits)
        return own_api.Caller(principal, actor, self.region, self.trusted, parent, self.service)

    def _principal(self, execution: Execution, action: str) -> Principal:
        if self.trusted:
            return execution_rights.principal_with(execution, Role.OPERATOR)
        scope = "states" if self.service == targets.OWN else self.service
        return execution_rights.principal_of(execution, f"{scope}:{action}")


# -- the call of a task ----------------------------------------------------------------------------


def is_own(task: TaskAttempt) -> bool:
    """Whether a task calls a service of this server."""
    service = OWN_SERVICES.get(task.service)
    if service is None or not targets.is_here(service, task.machine):
        return False
    return not any(event_buses.other_buses(task))


def begin_call(work: claim.ClaimedTask, task: TaskAttempt) -> Outcome | Waiting | None:
    """Make the call of a task and record its outcome; return the outcome or the wait.

    None if the task had ended before, so that nothing was called.
    """
    asked = aws.build_request(task)
    if not isinstance(asked, aws.Request):
        return _recorded(work, integrations.apply_pattern(task, asked))
    call = _Call(work, task, asked)
    seconds = min(task.timeout_s or _INSIST_S, _INSIST_S)
    try:
        # Once it has begun, it never begins again: an operation may have written by then, as
        # StartSyncExecution has, whose answer is not a change that is still to be written.
        begun = retry_during_outage(call.begin, seconds)
        release_connection()
        return call.go_on(begun, seconds)
    except Exception as error:
        if is_outage(error):
            raise  # the sweep finds the unclaimed task and calls it again
        return _recorded(work, call.refused(error))


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a task: its request, and the conversion of the answer to the task's outcome."""

    work: claim.ClaimedTask
    task: TaskAttempt
    asked: aws.Request

    def begin(self) -> own_api.Begun:
        """Send the request; return the answer, the pending change, or a wait."""
        client = OwnApi(self.work, self.task.region, service=self.asked.operation.client)
        return client.begin(self.asked.operation.model, self.asked.sent)

    def go_on(self, begun: own_api.Begun, seconds: float) -> Outcome | Waiting | None:
        """Run a call to its end or its wait. ``seconds``: the longest database outage to bear."""
        if isinstance(begun, Change):
            return retry_during_outage(begun.inside(self._store).result, seconds)
        if isinstance(begun, dict):  # read here, and not by the one thread that writes
            return _recorded(self.work, self.outcome_of(lambda: begun))
        waiting = Waiting(self, begun)
        try:
            return waiting.outcome if waiting.look() else waiting
        except Exception as error:
            if not is_outage(error):
                raise
            return waiting

    def _store(self, send: Callable[[], dict[str, Any]]) -> Outcome | None:
        """Apply the change of a call and record its outcome, in one transaction."""
        if not claim.still_started(self.work):
            return None
        outcome = self.outcome_of(send)
        return outcome if record_outcome(self.work, outcome) else None

    def outcome_of(self, send: Callable[[], dict[str, Any]]) -> Outcome:
        """Return the task's outcome for an answer or a refusal; database errors are raised."""
        model = self.asked.operation.model
        outcome = aws.request_outcome(
            self.task, self.asked, lambda: own_client.as_botocore(model, send)
        )
        return integrations.apply_pattern(self.task, outcome)

    def refused(self, error: Exception) -> Outcome:
        """Return the task's outcome for an error of an operation, other than an outage."""
        if not isinstance(error, ServiceError | BotoCoreError):
            log.error("a call raised", exc_info=error)
            error = ServiceError(ErrorCode.InternalFailure, "The processing has failed")
        return self.outcome_of(_raising(error))


# -- a call that waits -----------------------------------------------------------------------------


class _TaskEnded(Exception):
    """The task ended while its call was being answered."""


class Waiting:
    """A call with a later answer; it holds no thread meanwhile.

    Otherwise waiting calls could hold all threads of a worker, and the execution they wait for,
    whose Tasks need threads, could never end.
    """

    def __init__(self, call: _Call, wait: own_api.LongPoll) -> None:
        """``wait``: the long poll to check, and its limit in seconds."""
        self._call = call
        self._wait = wait
        self._deadline = time.monotonic() + wait.seconds
        self.outcome: Outcome | None = None
        """The outcome, once the call is over; None if its task had ended before."""

    @property
    def topic(self) -> signals.Channel:
        """Return the channel that signals a possible answer."""
        return self._wait.topic

    @property
    def one_each(self) -> bool:
        """Whether a signal wakes one waiter or all of them."""
        return self._wait.one_each

    def look(self) -> bool:
        """Check for the answer and record it; return whether the wait is over.

        Raise an outage of the database: the wait is not over then.
        """
        work = self._call.work
        with bound_contextvars(execution=work.execution_arn, task=work.task):
            try:
                return self._look()
            except Exception as error:
                if is_outage(error):
                    raise
                return self._record(self._call.refused(error))

    def _look(self) -> bool:
        if not claim.still_started(self._call.work, lock=False):
            return True
        answer = self._wait.look()
        if isinstance(answer, Change):
            return self._take(answer)
        if answer is None:
            return self._late()
        return self._record(self._call.outcome_of(lambda: answer))

    def _take(self, pending: Change[dict[str, Any] | None]) -> bool:
        """Commit an answer that is a change (an activity's task) with the task's outcome.

        Both are committed or neither: a task taken for a call that has ended meanwhile would be
        lost.
        """

        def store(send: Callable[[], dict[str, Any] | None]) -> Outcome | None:
            if not claim.still_started(self._call.work):
                raise _TaskEnded
            answer = send()
            if answer is None:
                return None
            outcome = self._call.outcome_of(lambda: answer)
            if not record_outcome(self._call.work, outcome):
                raise _TaskEnded
            return outcome

        try:
            self.outcome = pending.inside(store).result()
        except _TaskEnded:
            return True
        return self.outcome is not None or self._late()

    def _late(self) -> bool:
        """Give the answer for a timeout if the wait has reached its limit."""
        if time.monotonic() < self._deadline:
            return False
        return self._record(self._call.outcome_of(lambda: self._wait.otherwise))

    def _record(self, outcome: Outcome) -> bool:
        self.outcome = outcome if record_outcome(self._call.work, outcome) else None
        return True


# -- what came of a call ---------------------------------------------------------------------------


def _raising(error: Exception) -> Callable[[], dict[str, Any]]:
    def send() -> dict[str, Any]:
        raise error

    return send


def _recorded(work: claim.ClaimedTask, outcome: Outcome) -> Outcome | None:
    return (
        outcome if retry_during_outage(lambda: record_outcome(work, outcome), _INSIST_S) else None
    )


def record_outcome(work: claim.ClaimedTask, outcome: Outcome) -> bool:
    """Record the outcome of a call; return False if its task had ended before.

    The outcome is an end, or a submitted job.
    """
    if isinstance(outcome, integrations.Submitted):
        about = (work.task, outcome.output, outcome.job, outcome.look_s)
        return jobs.submit_job(work.execution_id, *about)
    return complete.complete_call(work.execution_id, outcome_message(work, outcome))


def outcome_message(
    work: claim.ClaimedTask, outcome: integrations.Succeeded | integrations.Failed
) -> engine.TaskSucceeded | engine.TaskFailed:
    """Return the outcome of a call as a message to its execution."""
    if isinstance(outcome, integrations.Succeeded):
        return engine.TaskSucceeded(work.task, outcome.output)
    return engine.TaskFailed(work.task, outcome.error, outcome.cause, outcome.refused)
