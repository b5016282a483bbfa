"""How does a scheduled task become a call, and its outcome a message?"""

from __future__ import annotations

import structlog

from console import integrations
from console.integrations import function
from console.integrations.outcome import Succeeded, Task
from console.store import tasks

import engine  # isort: skip

log = structlog.get_logger(__name__)
BUILTIN_WORKER = "stepyard-builtin"


def deliver(execution_id: int, number: int) -> None:
    """Take a function or service task, call it, and record its one outcome."""
    work = tasks.claim(execution_id, number)
    if work is None:
        return  # somebody else has it, or it was cancelled
    if work.dispatches > 1:
        log.info("task re-dispatched", execution=work.execution_arn, task=number)
    _record(work, integrations.call(_task(work)))


def work_activity(activity_arn: str, target: str) -> bool:
    """Take one task of an activity that a registered callable works.

    Return whether there was one.
    """
    work = tasks.take_activity_task(activity_arn, BUILTIN_WORKER)
    if work is None:
        return False
    _record(work, function.call_python(target, activity_arn.rsplit(":", 1)[-1], _task(work)))
    return True


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
    )


def _record(work: tasks.Work, outcome: integrations.Outcome) -> None:
    message: engine.TaskSucceeded | engine.TaskFailed
    if isinstance(outcome, Succeeded):
        message = engine.TaskSucceeded(work.task, outcome.output)
    else:
        message = engine.TaskFailed(work.task, outcome.error, outcome.cause)
    if not tasks.finish(work.execution_id, message):
        log.info("late outcome dropped", execution=work.execution_arn, task=work.task)
