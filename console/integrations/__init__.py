"""Integrations: call the service that a Task's Resource names. One module per service.

A module has ``call(task) -> Succeeded | Failed`` and an entry in ``REGISTRY``. It runs outside any
transaction and may take its time. It imports only the engine's public interface.
"""

from __future__ import annotations

from dataclasses import replace

from console.integrations import (
    aws,
    harness,
    invoke,
    jobs,
    names,
    permissions,
    web,
)
from console.integrations.home import Home
from console.integrations.jobs import next_look_s
from console.integrations.outcome import Failed, Outcome, Submitted, Succeeded, TaskAttempt
from console.integrations.wire import Exchange

REGISTRY = {
    **dict.fromkeys(names.OPTIMIZED, aws.call),
    "bedrockagentcore": harness.call,
    "lambda": invoke.call,
    "http": web.call,
    "apigateway": web.call,
}
"""Service -> the function that calls it; all ``aws-sdk:...`` services are called by ``aws``.

The feature ``service_jobs`` replaces some.
"""


def call_task(task: TaskAttempt) -> Outcome:
    """Call the service of a task and return the outcome; an unknown service fails the task."""
    denial = permissions.find_denial(task)
    if denial is not None:
        return denial
    if task.kind == "lambda":
        return invoke.call_by_arn(task)
    if task.service == invoke.SDK_SERVICE and task.action in invoke.SDK_ACTIONS:
        return apply_pattern(task, invoke.call_sdk(task))
    if task.service.startswith(names.SDK):
        return apply_pattern(task, aws.call(task))
    if cause := jobs.left_out(task.service, task.action, task.pattern):
        return Failed("States.TaskFailed", cause, refused=bool(task.pattern))
    integration = jobs.service_jobs().calls.get(task.service) or REGISTRY.get(task.service)
    if integration is None:
        cause = f"The service integration '{task.resource}' cannot be called from here yet."
        return Failed("States.TaskFailed", cause, refused=bool(task.pattern))
    return apply_pattern(task, integration(task))


def call_for_test(task: TaskAttempt, exchange: Exchange) -> Outcome:
    """Call the service of a task; ``exchange`` records the request and response of an HTTP Task."""
    denied = permissions.find_denial(task) is not None
    return web.call(task, exchange) if task.service == "http" and not denied else call_task(task)


def apply_pattern(task: TaskAttempt, outcome: Outcome) -> Outcome:
    """Convert a service's first answer to the outcome for the pattern (``.sync``, callback)."""
    if task.pattern and isinstance(outcome, Succeeded):
        begun = replace(_begun(task, outcome.output), record=outcome.record)
        outcome = begun if isinstance(begun, Failed) else replace(begun, event=outcome.event)
    if task.pattern and isinstance(outcome, Failed):
        return replace(outcome, refused=True)
    return outcome


def _begun(task: TaskAttempt, answer: str) -> Outcome:
    if task.pattern == ".waitForTaskToken":
        return jobs.placement_failure(task, answer) or Submitted(answer)
    return _followed(task).submit_job(task, answer)


def poll_job(task: TaskAttempt, job: str) -> Outcome | None:
    """Poll a ``.sync`` job; return the task's outcome, None while the job is running."""
    return _followed(task).poll_job(task, job)


def cancel_job(task: TaskAttempt, job: str) -> Outcome | None:
    """Try to cancel the job of a finished task, as Step Functions does."""
    return _followed(task).cancel_job(task, job)


def _followed(task: TaskAttempt) -> jobs.JobRunner:
    """Return the module that runs the task's job: ``jobs`` unless its service has its own."""
    return jobs.service_jobs().runners.get((task.service, task.action), jobs)


__all__ = [
    "REGISTRY",
    "Exchange",
    "Failed",
    "Home",
    "Outcome",
    "Submitted",
    "Succeeded",
    "TaskAttempt",
    "apply_pattern",
    "call_for_test",
    "call_task",
    "cancel_job",
    "next_look_s",
    "poll_job",
]
