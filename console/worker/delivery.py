"""How does a scheduled task become a call, and its outcome a message?"""

from __future__ import annotations

import structlog
from django.conf import settings

from console import integrations
from console.integrations import function
from console.integrations.outcome import Failed, Succeeded, Task
from console.store import tasks
from console.worker.guard import insist

import engine  # isort: skip

log = structlog.get_logger(__name__)
_INSIST_S = 600.0  # an outcome is worth waiting for the database; after that the task runs again


def deliver(execution_id: int, number: int) -> None:
    """Take a task that is worked here, do it, and record its one outcome."""
    work = tasks.claim(execution_id, number)
    if work is None:
        return  # somebody else has it, or it was cancelled
    if work.dispatches > 1:
        log.info("task re-dispatched", execution=work.execution_arn, task=number)
    outcome = _outcome(work)
    recorded = insist(lambda: tasks.finish(work.execution_id, _message(work, outcome)), _INSIST_S)
    if not recorded:
        log.info("late outcome dropped", execution=work.execution_arn, task=work.task)


def builtin_activities() -> dict[str, str]:
    """Return name -> target of the activities that registered callables work."""
    found = {}
    for name, target in settings.STEPYARD_FUNCTIONS.items():
        kind, _, activity = name.partition(":")
        if kind == "activity" and activity:
            found[activity] = target
    return found


def activity_name(arn: str) -> str:
    """Return the name in an activity's ARN."""
    return arn.rsplit(":", 1)[-1]


def _outcome(work: tasks.Work) -> integrations.Outcome:
    """Do the work; whatever an integration raises is the task's failure, even a wish to exit."""
    try:
        if work.kind == "activity":
            name = activity_name(work.resource)
            return function.call_python(builtin_activities()[name], name, _task(work))
        return integrations.call(_task(work))
    except BaseException as error:
        log.exception("a call raised", execution=work.execution_arn, task=work.task)
        return Failed(type(error).__name__, str(error))


def _task(work: tasks.Work) -> Task:
    return Task(
        kind=work.kind,
        resource=work.resource,
        service=work.service,
        action=work.action,
        input=work.input,
        idempotency_key=work.idempotency_key,
        execution_arn=work.execution_arn,
        token=work.token,
        timeout_s=work.timeout_s,
    )


def _message(
    work: tasks.Work, outcome: integrations.Outcome
) -> engine.TaskSucceeded | engine.TaskFailed:
    if isinstance(outcome, Succeeded):
        return engine.TaskSucceeded(work.task, outcome.output)
    return engine.TaskFailed(work.task, outcome.error, outcome.cause)
