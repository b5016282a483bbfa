"""Actions that Step Functions does not offer are refused, and no error has a name of Python's."""

from __future__ import annotations

import builtins
import io
import json
from typing import TYPE_CHECKING, Any

import botocore.exceptions
import pytest
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

import engine
from console import integrations
from console.integrations import names, shapes
from console.integrations.outcome import Failed, TaskAttempt
from console.store.tasks.claim import ClaimedTask
from console.worker import task_delivery
from tests.console.integrations.test_sdk_names import _sample

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCEPTIONS = {
    name
    for module in (builtins, botocore.exceptions)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
SDK_ACTIONS = (
    *("s3:getObject", "s3:listBuckets", "ec2:describeInstances", "rds:describeDBInstances"),
    *("lambda:invoke", "cloudwatch:listMetrics", "sqs:sendMessage", "dynamodb:getItem"),
)


@pytest.mark.parametrize(
    "action",
    [
        "apigatewaymanagementapi:postToConnection",
        "bedrockagentruntime:invokeAgent",
        "bedrockruntime:converseStream",
        "bedrockruntime:invokeModelWithResponseStream",
        "cloudwatchlogs:startLiveTail",
        "emr:describeJobFlows",
        "importexport:listJobs",
        "iotdataplane:publish",
        "kinesis:subscribeToShard",
        "lambda:invokeWithResponseStream",
        "lexruntimev2:startConversation",
        "qbusiness:chat",
        "s3:selectObjectContent",
        "sagemakerruntime:invokeEndpointWithResponseStream",
        "simpledb:select",
        "sts:assumeRole",
    ],
)
def test_an_action_that_aws_does_not_offer_is_refused(action: str) -> None:
    """In the words of the service, and a stored definition calls nothing."""
    arn = f"arn:aws:states:::aws-sdk:{action}"
    task = {"Type": "Task", "Resource": arn, "Parameters": {}, "End": True}
    problems = engine.check(json.dumps({"StartAt": "Call", "States": {"Call": task}}))
    message = (
        f"The resource provided {arn} is not recognized. The value is not a valid resource ARN, or "
        "the resource is not available in this region."
    )
    assert [(problem.code, problem.message, problem.location) for problem in problems] == [
        ("SCHEMA_VALIDATION_FAILED", message, "/States/Call/Resource")
    ]
    service, _, name = action.partition(":")
    assert names.find_operation(f"aws-sdk:{service}", name) is None


@pytest.mark.parametrize(
    "action", ["s3:getObject", "bedrockruntime:invokeModel", "kinesis:putRecord", "lambda:invoke"]
)
def test_other_actions_of_these_services_are_offered(action: str) -> None:
    """A body that is a stream of bytes is read whole."""
    service, _, name = action.partition(":")
    assert names.find_operation(f"aws-sdk:{service}", name) is not None


def test_an_event_stream_of_an_optimized_integration_is_read() -> None:
    """AWS offers InvokeHarness in this form."""
    assert names.find_operation("bedrockagentcore", "invokeHarness") is not None
    assert names.find_operation("aws-sdk:bedrockagentcore", "invokeHarness") is None


# -- errors ----------------------------------------------------------------------------------------


def attempts() -> Iterator[TaskAttempt]:
    """Yield a Task for each action of AWS's services that an optimized integration has, and more.

    (HTTP Tasks and clusters have tests of their own with answers of every kind.)
    """
    actions = {action.partition(".")[0] for action in engine.service_actions()}
    for action in (*sorted(actions), *(f"aws-sdk:{name}" for name in SDK_ACTIONS)):
        service, _, name = action.rpartition(":")
        operation = names.find_operation(service, name)
        if operation is None or service == "states":
            continue
        shape = operation.model.input_shape
        parameters = {}
        if shape is not None:
            sample = _sample(shape, ())
            parameters = shapes.from_answer(
                shape, sample, epoch=False, field_name=operation.field_name
            )
        yield TaskAttempt(
            kind="service",
            resource=f"arn:aws:states:::{action}",
            service=service,
            action=name,
            input=engine.dumps(parameters),
            idempotency_key="k" * 32,
            execution_arn="",
            token="t",
        )


class _Raw(io.BytesIO):
    """A body as urllib3 has it."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        """Yield all of it."""
        yield self.read()


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b'"x"', b"7", b'{"a":', b"<html>", b"<a/>", b"\xff\xfe"),
        *(b'{"Errors": 7, "FailedEntryCount": "x", "Payload": [], "tasks": 3, "Item": "x"}',),
    ],
)
def test_no_answer_of_a_service_makes_an_error_of_python(
    settings: Any, monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    """Every integration takes what no model describes, or fails by a name of the SDK."""
    key = {"access_key_id": "x", "secret_access_key": "x", "region": "us-east-1"}
    settings.STATEYARD_TARGETS = {"*": {"endpoint_url": "http://127.0.0.1:9", **key}}

    def send(self: Any, request: Any) -> AWSResponse:
        del self
        headers = {"content-type": "application/json", "x-amzn-requestid": "r"}
        return AWSResponse(request.url, status, headers, _Raw(body))

    monkeypatch.setattr(URLLib3Session, "send", send)
    reached = 0
    for task in attempts():
        outcome = outcome_of(task)
        reached += not (isinstance(outcome, Failed) and outcome.error == "States.Runtime")
        if isinstance(outcome, Failed):
            assert outcome.error not in EXCEPTIONS, (task.resource, outcome)
            assert outcome.error, (task.resource, outcome)
            assert outcome.error != "States.TaskFailed", (task.resource, outcome)
    assert reached > 40  # the parameters of a few samples have no valid length


def outcome_of(task: TaskAttempt) -> integrations.Outcome:
    """Return what a worker makes of the call of a task."""
    work = ClaimedTask.__new__(ClaimedTask)  # of which the patched functions read nothing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_delivery, "_mocked_outcome", lambda _: None)
        object.__setattr__(work, "kind", task.kind)
        return task_delivery._outcome(work, task)


@pytest.mark.parametrize(
    "error", [AttributeError("x"), KeyError("x"), RecursionError("x"), SystemExit(3)]
)
def test_an_error_of_our_own_has_a_name_of_the_language(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Retry and Catch can take it; the log has what it was."""

    def raising(_: TaskAttempt) -> integrations.Outcome:
        raise error

    monkeypatch.setattr(integrations, "call_task", raising)
    task = TaskAttempt("service", "arn:aws:states:::sqs:sendMessage", "sqs", "", "{}", "k", "", "")
    outcome = outcome_of(task)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.TaskFailed"
    assert "internal error" in str(outcome.cause)
