"""Parameters that cannot form a request are refused before a task is scheduled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.test_state.scenarios.scenario import scenario_of
from console.features.test_state.web.recorded import read_recording
from console.integrations import parameters
from console.models import TaskRow
from tests.console.store.helpers import create, drain, one, start, types

if TYPE_CHECKING:
    from console.models import Project

ROLE = "arn:aws:iam::123456789012:role/test"
ITEM = {"TableName": "t", "Item": {"id": {"S": "1"}}}
RUN = {"TaskDefinition": "d", "Cluster": "c"}
PAGE = {"ApiEndpoint": "https://x", "Method": "GET", "InvocationConfig": {"ConnectionArn": "c"}}
GATE = {"ApiEndpoint": "x.execute-api.us-east-1.amazonaws.com", "Method": "GET"}
NOT_A_PUT = (
    "The value for the field 'Item' must be an OBJECT, got [], "
    'The field "Wrong" is not supported by Step Functions, '
    "The field 'TableName' is required but was missing"
)
CONTAINERS = "Overrides.ContainerOverrides"


def judged(resource: str, values: Any) -> str:
    """Return what is said of the parameters of a Task."""
    arn = f"arn:aws:states:::{resource}"
    state = {"Type": "Task", "Resource": arn, "End": True}
    machine = engine.parse(json.dumps({"StartAt": "T", "States": {"T": state}}))
    task_state: Any = machine.block.states["T"]
    return parameters.parameter_problem(task_state.resource, "T", values)


@pytest.mark.parametrize(
    ("resource", "values"),
    [
        ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": {"an": "object"}}),
        ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "m", "DelaySeconds": None}),
        ("dynamodb:putItem", ITEM),
        ("lambda:invoke", {"FunctionName": "f", "Payload": {"any": [1, None]}}),
        ("states:startExecution", {"StateMachineArn": "a", "Input": {"a": 1}}),
        (
            "elasticmapreduce:addStep",
            {"ClusterId": "j", "Step": {"Name": "s", "HadoopJarStep": {"Jar": "j"}}},
        ),
        ("elasticmapreduce:modifyInstanceFleetByName", {"ClusterId": "j"}),
        ("ecs:runTask", RUN | {"Overrides": {"ContainerOverrides": [{"Name": "n", "Cpu": 4}]}}),
        (
            "aws-sdk:s3:getObject",
            {"Bucket": "b", "Key": "k", "IfModifiedSince": "2026-01-02T03:04:05Z"},
        ),
        ("bedrock:invokeModel", {"ModelId": "m", "Input": {"S3Uri": "s3://b/i"}, "Output": None}),
        ("http:invoke", PAGE),
        ("apigateway:invoke", GATE | {"QueryParameters": {"a": ["1", "2"]}}),
    ],
)
def test_what_could_be_a_request(resource: str, values: Any) -> None:
    """Objects become texts, tokens come by themselves, null is as good as nothing."""
    assert judged(resource, values) == ""


@pytest.mark.parametrize(
    ("resource", "values", "problem"),
    [
        (
            "bedrock:invokeModel",
            {"ModelId": "m", "Input": {"S3Url": "s3://b/i"}, "Output": {"S3Uri": 1}},
            (
                'The field "Input.S3Url" is not supported by Step Functions, '
                "The value for the field 'Output.S3Uri' must be a STRING"
            ),
        ),
        (
            "sqs:sendMessage",
            {"QueueUrl": "q"},
            "The field 'MessageBody' is required but was missing",
        ),
        (
            *("lambda:invoke", {"FunctionName": "f", "TaskToken": "t"}),
            'The field "TaskToken" is not supported by Step Functions',
        ),
        (
            *("sqs:sendMessage", {"QueueUrl": 7, "MessageBody": "m"}),
            "The value for the field 'QueueUrl' must be a STRING, got 7",
        ),
        (
            *("ecs:runTask", RUN | {"Overrides": {"ContainerOverrides": [{"Cpu": "4"}]}}),
            f"The value for the field '{CONTAINERS}[0].Cpu' must be an INTEGER, got \"4\"",
        ),
        (
            *("ecs:runTask", RUN | {"Overrides": {"ContainerOverrides": {"Name": "n"}}}),
            f'The value for the field \'{CONTAINERS}\' must be an ARRAY, got {{"Name":"n"}}',
        ),
        (
            *("ecs:runTask", RUN | {"EnableExecuteCommand": 1}),
            "The value for the field 'EnableExecuteCommand' must be a BOOLEAN, got 1",
        ),
        (
            *("ecs:runTask", RUN | {"Count": True}),
            "The value for the field 'Count' must be an INTEGER, got true",
        ),
        (
            *("dynamodb:putItem", {"Item": [], "Wrong": 1}),
            NOT_A_PUT,
        ),
        ("aws-sdk:s3:getObject", "text", 'The Parameters must be an OBJECT, got "text"'),
        (
            *("apigateway:invoke", GATE | {"Headers": {"a": {}}}),
            "The value of the field 'Headers' has an invalid format",
        ),
        ("http:invoke", {"Method": "GET"}, "The field 'ApiEndpoint' is required but was missing"),
    ],
)
def test_what_could_be_none(resource: str, values: Any, problem: str) -> None:
    """What is wrong is said with its place, what came and what is wanted; all of it at once."""
    assert judged(resource, values) == problem


def test_a_long_value_and_many_problems_are_cut() -> None:
    """A cause is for people."""
    values = {f"Wrong{number}": "x" for number in range(40)} | {"QueueUrl": ["y" * 500]}
    said = judged("sqs:sendMessage", values)
    assert said.count("not supported") == 10
    long = judged("ecs:runTask", RUN | {"Tags": "z" * 500})
    assert len(long) < 150


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pattern", ["", ".waitForTaskToken"])
def test_nothing_is_scheduled(project: Project, pattern: str) -> None:
    """The execution ends with States.Runtime, which nothing catches, and says what was sent."""
    message = {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"} if pattern else {"QueueUrl": "q"}
    state = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::sqs:sendMessage{pattern}",
        "Parameters": message | {"DelaySeconds.$": "$.delay"},
        "Retry": [{"ErrorEquals": ["States.ALL"]}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}],
    }
    definition = one("T", **state)
    definition["States"]["C"] = {"Type": "Pass", "End": True}
    ended = drain(start(create(project, definition), {"delay": "soon"}))
    assert types(ended) == ["ExecutionStarted", "TaskStateEntered", "ExecutionFailed"]
    assert (ended.status, ended.error) == ("FAILED", "States.Runtime")
    assert ended.cause.startswith(
        "An error occurred while executing the state 'T' (entered at the event id #2). "
        'The Parameters \'{"QueueUrl":"q",'
    )
    assert 'must be an INTEGER, got "soon"' in ended.cause
    assert not TaskRow.objects.exists()
    played = engine.replay(
        json.dumps(scenario_of(read_recording(ended))), None, parameters.parameter_problem
    )
    places = [each.where for each in played]
    assert places == ["cause"] * bool(pattern)  # the cause has the task token of the run


@pytest.mark.django_db(transaction=True)
def test_a_mocked_state_is_not_judged(project: Project, settings: Any) -> None:
    """What a test case answers needs no request."""
    case = {"TestCases": {"Quick": {"T": "Sent"}}}
    settings.STATEYARD_MOCKS = {"StateMachines": {"machine": case}}
    arn = "arn:aws:states:::sqs:sendMessage"
    execution = start(create(project, one("T", Type="Task", Resource=arn, Parameters={})))
    assert types(drain(execution))[-1] == "TaskStarted"
