"""A call that was refused is distinguished from a task that failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db import clock
from console.features.metrics import samples
from console.features.test_state.scenarios.scenario import scenario_of
from console.features.test_state.web.recorded import read_recording
from console.models import Execution, HistoryEvent, InboxMessage, TaskRow
from console.store.tasks import claim, complete, jobs
from console.worker import task_delivery
from tests.console.store.helpers import create, drain, one, start, types

if TYPE_CHECKING:
    from console.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
MESSAGE = {"QueueUrl": "https://sqs/q", "MessageBody": {"token.$": "$$.Task.Token"}}
BATCH = {"JobDefinition": "d", "JobName": "n", "JobQueue": "q"}


def calling(project: Project, resource: str, parameters: dict[str, Any]) -> Execution:
    """Return an execution whose one task is scheduled. Nobody has said where its call goes."""
    arn = f"arn:aws:states:::{resource}"
    execution = start(create(project, one("T", Type="Task", Resource=arn, Parameters=parameters)))
    return drain(execution)


@pytest.mark.parametrize(
    ("resource", "parameters", "ending"),
    [
        ("sqs:sendMessage", {"QueueUrl": "https://sqs/q", "MessageBody": "m"}, "TaskFailed"),
        ("sqs:sendMessage.waitForTaskToken", MESSAGE, "TaskSubmitFailed"),
        ("batch:submitJob.sync", BATCH, "TaskSubmitFailed"),
    ],
)
def test_what_was_never_submitted(
    project: Project, resource: str, parameters: Any, ending: str
) -> None:
    """Only a call that begins something else has a submission; a metric counts both as failed."""
    execution = calling(project, resource, parameters)
    task_delivery.deliver_task(execution.pk, TaskRow.objects.get().task)
    drain(execution)
    assert types(execution)[2:] == ["TaskScheduled", "TaskStarted", ending, "ExecutionFailed"]
    details = json.loads(HistoryEvent.objects.get(type=ending).details)
    assert "No target is configured" in details["cause"]
    task_samples = samples.samples_of(project.pk, "tasks", 0, clock.now_ms() + 60_000)
    names = [sample.series.metric for sample in task_samples]
    assert names.count("ServiceIntegrationsFailed") == 1
    ended = Execution.objects.get(pk=execution.pk)
    assert engine.replay(json.dumps(scenario_of(read_recording(ended)))) == []


def test_a_token_that_is_sent_back_while_the_call_goes_on(project: Project) -> None:
    """The task failed, though it was not submitted yet; what the call answers comes too late."""
    execution = calling(project, "sqs:sendMessage.waitForTaskToken", MESSAGE)
    number = TaskRow.objects.get().task
    work = claim.claim_call(execution.pk, number)
    assert work is not None
    complete.fail(work.token, "Refunded")
    assert not jobs.submit_job(execution.pk, number, "{}", "", 0)
    drain(execution)
    assert types(execution)[4:] == ["TaskFailed", "ExecutionFailed"]


def test_a_message_says_only_what_is_not_so_by_default(project: Project) -> None:
    """A worker of the version before, which knows no refusals, reads every other failure."""
    execution = calling(project, "sqs:sendMessage.waitForTaskToken", MESSAGE)
    work = claim.claim_call(execution.pk, TaskRow.objects.get().task)
    assert work is not None
    complete.fail(work.token)
    assert json.loads(InboxMessage.objects.get().body) == {"task": work.task}
