"""A ``.sync`` task sees the end of its job and mistakes nothing else for it."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from console.integrations import aws, jobs
from console.integrations.outcome import Failed, Outcome, Submitted, Succeeded, TaskAttempt


def task(resource: str, parameters: Any = None, pattern: str = ".sync") -> TaskAttempt:
    """Return a task of ``service:action``."""
    service, action = resource.split(":")
    arn = "arn:aws:states:us-east-1:123456789012:execution:m:x"
    text = engine.dumps(parameters or {})
    return TaskAttempt(
        "service", resource, service, action, text, "key", arn, "token", None, pattern
    )


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the next call answer this; return what was asked."""
    asked: list[TaskAttempt] = []

    def set_answer(outcome: Outcome) -> list[TaskAttempt]:
        def call(attempt: TaskAttempt) -> Outcome:
            asked.append(attempt)
            return outcome

        monkeypatch.setattr(aws, "call", call)
        return asked

    return set_answer


def kept(resource: str, first: Any, parameters: Any = None) -> str:
    """Return what is kept of a job after its first answer."""
    submitted = jobs.submit_job(task(resource, parameters), engine.dumps(first))
    assert isinstance(submitted, Submitted)
    return submitted.job


def test_what_to_ask_is_settled_at_the_beginning(answer: Any) -> None:
    """From the first answer and the state's own parameters."""
    job = kept("glue:startJobRun", {"JobRunId": "r1"}, {"JobName": "j"})
    run = {"JobRun": {"JobRunState": "RUNNING"}}
    asked = answer(Succeeded(engine.dumps(run)))
    assert jobs.poll_job(task("glue:startJobRun"), job) is None
    assert asked[0].action == "getJobRun"
    assert engine.loads(asked[0].input) == {"JobName": "j", "RunId": "r1"}
    jobs.cancel_job(task("glue:startJobRun"), job)
    assert engine.loads(asked[1].input) == {"JobName": "j", "JobRunIds": ["r1"]}


@pytest.mark.parametrize(
    ("resource", "first", "told", "error"),
    [
        ("batch:submitJob", {"JobId": "1"}, {"Jobs": [{"Status": "SUCCEEDED"}]}, None),
        ("batch:submitJob", {"JobId": "1"}, {"Jobs": [{"Status": "FAILED"}]}, "States.TaskFailed"),
        (
            "ecs:runTask",
            {"Tasks": [{"TaskArn": "t"}]},
            {"Tasks": [{"LastStatus": "STOPPED", "Containers": [{"ExitCode": 0}]}]},
            None,
        ),
        (
            "ecs:runTask",
            {"Tasks": [{"TaskArn": "t"}]},
            {"Tasks": [{"LastStatus": "STOPPED", "Containers": [{"ExitCode": 137}]}]},
            "States.TaskFailed",
        ),
        (
            "sagemaker:createTrainingJob",
            {},
            {"TrainingJobName": "j", "TrainingJobStatus": "Stopped"},
            "States.TaskFailed",
        ),
        (
            "codebuild:startBuild",
            {"Build": {"Id": "b"}},
            {"Builds": [{"BuildStatus": "SUCCEEDED"}]},
            None,
        ),
    ],
)
def test_how_jobs_end(answer: Any, resource: str, first: Any, told: Any, error: str | None) -> None:
    """Well, or as States.TaskFailed with the job's description."""
    job = kept(resource, first)
    answer(Succeeded(engine.dumps(told)))
    outcome = jobs.poll_job(task(resource), job)
    assert (outcome.error if isinstance(outcome, Failed) else None) == error
    assert outcome is not None


def test_a_service_out_of_reach_says_nothing_of_the_job(answer: Any) -> None:
    """It is asked again; an error of the service itself ends the task."""
    job = kept("athena:startQueryExecution", {"QueryExecutionId": "q"})
    answer(Failed("Athena.SdkClientException", "connection refused"))
    assert jobs.poll_job(task("athena:startQueryExecution"), job) is None
    answer(Failed("Athena.InvalidRequestException", "no such query"))
    assert isinstance(jobs.poll_job(task("athena:startQueryExecution"), job), Failed)


def test_a_task_that_could_not_be_placed_fails(answer: Any) -> None:
    """ECS answers 200 with what went wrong."""
    del answer
    refused = jobs.submit_job(task("ecs:runTask"), '{"Failures": [{"Reason": "RESOURCE:CPU"}]}')
    assert refused == Failed("AmazonECS.Unknown", '[{"Reason":"RESOURCE:CPU"}]')


def test_a_container_task_that_an_earlier_version_began(answer: Any) -> None:
    """What is kept of it names one task, not a list: it is looked at and stopped all the same."""
    old = engine.dumps({"ask": {"Tasks": ["a"]}, "cancel": {"Cluster": "c", "Task": "a"}})
    container_task = {"LastStatus": "STOPPED", "Containers": [{"ExitCode": 0}]}
    asked = answer(Succeeded(engine.dumps({"Tasks": [container_task]})))
    ended = jobs.poll_job(task("ecs:runTask"), old)
    assert isinstance(ended, Succeeded)
    assert engine.loads(ended.output) == container_task
    jobs.cancel_job(task("ecs:runTask"), old)
    assert engine.loads(asked[1].input) == {"Cluster": "c", "Task": "a"}


def test_nothing_was_begun_and_nothing_said_why() -> None:
    """ECS told neither of a task nor of a failure: there is nothing to wait for."""
    told = jobs.submit_job(task("ecs:runTask"), '{"Tasks": [], "Failures": []}')
    assert isinstance(told, Failed)
    assert told.error == "AmazonECS.Unknown"


@pytest.mark.parametrize(("age_s", "over"), [(10, False), (301, True)])
def test_tasks_that_ecs_does_not_know(answer: Any, age_s: int, over: bool) -> None:
    """Not yet, when they are new; later they are gone, and nothing more is to be learned."""
    about = engine.loads(kept("ecs:runTask", {"Tasks": [{"TaskArn": "a"}, {"TaskArn": "b"}]}))
    about["since"] -= age_s
    told = {"Tasks": [], "Failures": [{"Arn": "a", "Reason": "MISSING"}]}
    answer(Succeeded(engine.dumps(told)))
    outcome = jobs.poll_job(task("ecs:runTask"), engine.dumps(about))
    if over:
        assert isinstance(outcome, Failed)
        assert (outcome.error, outcome.cause) == (
            "AmazonECS.Unknown",
            engine.dumps(told["Failures"]),
        )
    else:
        assert outcome is None
