"""Without the feature, a Task that needs it fails before anything is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import engine
from console import feature, integrations
from console.features.targets import explain
from console.integrations import aws, jobs, parameters, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt
from tests.features.service_jobs.test_jobs import task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings

SENTENCE = "STATEYARD_FEATURES leaves out service_jobs, which runs '{}'."
LEFT_OUT = [
    ("glue:startJobRun", ".sync"),
    ("ecs:runTask", ".sync"),
    ("eks:runJob", ".sync"),
    ("eks:call", ""),
    ("elasticmapreduce:addStep", ""),
    ("elasticmapreduce:createCluster", ".sync"),
]
RUNNING = [("states:startExecution", ".sync:2"), ("glue:startJobRun", ""), ("eks:listClusters", "")]


@pytest.fixture
def calls(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Leave the feature out, and note the calls of services."""
    asked: list[str] = []

    def call(attempt: TaskAttempt) -> Outcome:
        asked.append(attempt.action)
        return Succeeded('{"ExecutionArn": "e"}')

    monkeypatch.setattr(aws, "call", call)
    for service in ("states", "glue", "eks"):
        monkeypatch.setitem(integrations.REGISTRY, service, call)
    names = (name for name in settings.STATEYARD_FEATURES if name != "service_jobs")
    settings.STATEYARD_FEATURES = tuple(names)
    _forget_features()
    yield asked
    _forget_features()


def _forget_features() -> None:
    feature.chosen_features.cache_clear()
    feature.hooked.cache_clear()


@pytest.mark.parametrize(("resource", "pattern"), LEFT_OUT)
def test_its_tasks_fail_with_a_sentence(calls: list[str], resource: str, pattern: str) -> None:
    """No job is started that nobody would poll."""
    outcome = integrations.call_task(task(resource, pattern=pattern))
    cause = SENTENCE.format(resource + pattern)
    assert outcome == Failed("States.TaskFailed", cause, refused=bool(pattern))
    assert calls == []


@pytest.mark.parametrize(("resource", "pattern"), RUNNING)
def test_other_tasks_run(calls: list[str], resource: str, pattern: str) -> None:
    """Nested executions are waited for, and services are called without waiting for a job."""
    outcome = integrations.call_task(task(resource, pattern=pattern))
    assert not isinstance(outcome, Failed)
    assert calls == [resource.partition(":")[2]]


def test_a_running_job_fails(calls: list[str]) -> None:
    """A job from before the feature was left out is neither polled nor cancelled."""
    attempt = task("glue:startJobRun")
    outcome = integrations.poll_job(attempt, '{"ask": {}}')
    assert outcome == Failed("States.TaskFailed", SENTENCE.format("glue:startJobRun.sync"))
    assert integrations.cancel_job(attempt, '{"ask": {}}') is None
    assert calls == []
    assert jobs.find_job("states", "startExecution") is not None


def test_the_page_of_calls_says_so(calls: list[str]) -> None:
    """Its parameters are not checked, and the plan has the sentence."""
    resource = engine.parse_resource("arn:aws:states:::elasticmapreduce:addStep.sync")
    assert resource is not None
    assert parameters.parameter_problem(resource, "S", {"ClusterId": "j-1"}) == ""
    plan = explain.plan_call(resource, {}, targets.NOBODY)
    assert plan.problem == SENTENCE.format("elasticmapreduce:addStep.sync")
    assert calls == []
