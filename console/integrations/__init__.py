"""Services that a Task can call: one module per service; add new modules to ``REGISTRY``.

A module has ``call(task) -> Succeeded | Failed``. It runs outside any transaction and may take its
time. It sees the engine's door only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from console.integrations import (
    aws,
    emr,
    harness,
    invoke,
    jobs,
    kubernetes,
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
    "eks": kubernetes.call,
    "elasticmapreduce": emr.call,
    "lambda": invoke.call,
    "http": web.call,
    "apigateway": web.call,
}
"""Service -> how it is called; ``aws-sdk:...`` all go to ``aws``."""


def call_task(task: TaskAttempt) -> Outcome:
    """Call what a task names and return its outcome; a service nobody knows is a failed task."""
    denial = permissions.find_denial(task)
    if denial is not None:
        return denial
    if task.kind == "lambda":
        return invoke.call_by_arn(task)
    if task.service == invoke.SDK_SERVICE and task.action in invoke.SDK_ACTIONS:
        return apply_pattern(task, invoke.call_sdk(task))
    if task.service.startswith(names.SDK):
        return apply_pattern(task, aws.call(task))
    integration = REGISTRY.get(task.service)
    if integration is None:
        cause = f"The service integration '{task.resource}' cannot be called from here yet."
        return Failed("States.TaskFailed", cause, refused=bool(task.pattern))
    return apply_pattern(task, integration(task))


def call_for_test(task: TaskAttempt, exchange: Exchange) -> Outcome:
    """Call the service of a task; ``exchange`` records the request and response of an HTTP Task."""
    denied = permissions.find_denial(task) is not None
    return web.call(task, exchange) if task.service == "http" and not denied else call_task(task)


def apply_pattern(task: TaskAttempt, outcome: Outcome) -> Outcome:
    """Return what a first answer means for the pattern of the task."""
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
    """Look at a job; return the task's outcome, None while the job goes on."""
    return _followed(task).poll_job(task, job)


def cancel_job(task: TaskAttempt, job: str) -> Outcome | None:
    """Stop a job whose task is over; no more than an attempt, as with the service."""
    return _followed(task).cancel_job(task, job)


class _Jobs(Protocol):
    def submit_job(self, task: TaskAttempt, answer: str) -> Submitted | Failed: ...

    def poll_job(self, task: TaskAttempt, job_text: str) -> Outcome | None: ...

    def cancel_job(self, task: TaskAttempt, job_text: str) -> Outcome | None: ...


def _followed(task: TaskAttempt) -> _Jobs:
    """Return the module that knows the task's jobs: ``jobs``, which follows ``jobtable``."""
    return kubernetes if (task.service, task.action) == ("eks", "runJob") else jobs


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
