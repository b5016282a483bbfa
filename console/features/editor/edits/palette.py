"""The palette of the editor: states, service calls and patterns to insert in an edge."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE_ACCOUNT = "123456789012"
"""AWS's example account: in the ARNs of pieces, until replaced by the project's."""
EXIT = "@exit"
"""Placeholder in ``Next`` and ``Default`` for the former target of the edge."""
States = dict[str, dict[str, Any]]


def of_account(text: str, account: str) -> str:
    """Return a JSON text with the placeholder account of its ARNs replaced by an account."""
    return text.replace(EXAMPLE_ACCOUNT, account)


class PieceGroup(StrEnum):
    """The groups of the palette, in order."""

    FLOW = "States"
    SERVICE = "Tasks"
    PATTERN = "Patterns"


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of the palette. ``make``: query language -> states, the entry first."""

    key: str
    label: str
    hint: str
    group: PieceGroup
    make: Callable[[str], States]


def _jsonata(language: str) -> bool:
    return language == "JSONata"


def _arguments(language: str, path: dict[str, Any], jsonata: dict[str, Any]) -> dict[str, Any]:
    return {"Arguments": jsonata} if _jsonata(language) else {"Parameters": path}


def _pass_state(_: str) -> States:
    return {"Pass": {"Type": "Pass", "Next": EXIT}}


def _wait(_: str) -> States:
    return {"Wait": {"Type": "Wait", "Seconds": 5, "Next": EXIT}}


def _choice(language: str) -> States:
    return {"Choice": {"Type": "Choice", "Choices": [choice_rule(language)], "Default": EXIT}}


def choice_rule(language: str) -> dict[str, Any]:
    """Return the initial rule of a Choice."""
    if _jsonata(language):
        return {"Condition": "{% $exists($states.input.value) %}", "Next": EXIT}
    return {"Variable": "$.value", "IsPresent": True, "Next": EXIT}


def branch(name: str) -> dict[str, Any]:
    """Return a branch, or the block of a Map's processor, with one state."""
    return {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}


def _parallel(_: str) -> States:
    branches = [branch("Branch A"), branch("Branch B")]
    return {"Parallel": {"Type": "Parallel", "Branches": branches, "Next": EXIT}}


def _map_state(_: str) -> States:
    processor = {"ProcessorConfig": {"Mode": "INLINE"}, **branch("Each item")}
    return {"Map": {"Type": "Map", "ItemProcessor": processor, "Next": EXIT}}


def _succeed(_: str) -> States:
    return {"Succeed": {"Type": "Succeed"}}


def _fail(_: str) -> States:
    return {"Fail": {"Type": "Fail", "Error": "Failed", "Cause": "Say here what went wrong"}}


def _task(
    name: str, resource: str, path: dict[str, Any], jsonata: dict[str, Any]
) -> Callable[[str], States]:
    def make(language: str) -> States:
        task = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}"}
        return {name: {**task, **_arguments(language, path, jsonata), "Next": EXIT}}

    return make


INPUT = "{% $states.input %}"
_invoke = _task(
    "Call a function",
    "lambda:invoke",
    {"FunctionName": "MyFunction", "Payload.$": "$"},
    {"FunctionName": "MyFunction", "Payload": INPUT},
)
_get_item = _task(
    "Get item",
    "dynamodb:getItem",
    {"TableName": "my-table", "Key": {"id": {"S.$": "$.id"}}},
    {"TableName": "my-table", "Key": {"id": {"S": "{% $states.input.id %}"}}},
)
_put_item = _task(
    "Put item",
    "dynamodb:putItem",
    {"TableName": "my-table", "Item": {"id": {"S.$": "$.id"}}},
    {"TableName": "my-table", "Item": {"id": {"S": "{% $states.input.id %}"}}},
)
_QUEUE = f"https://sqs.us-east-1.amazonaws.com/{EXAMPLE_ACCOUNT}/my-queue"
_send_message = _task(
    "Send message",
    "sqs:sendMessage",
    {"QueueUrl": _QUEUE, "MessageBody.$": "$"},
    {"QueueUrl": _QUEUE, "MessageBody": INPUT},
)
_TOPIC = f"arn:aws:sns:us-east-1:{EXAMPLE_ACCOUNT}:my-topic"
_publish = _task(
    "Publish",
    "sns:publish",
    {"TopicArn": _TOPIC, "Message.$": "$"},
    {"TopicArn": _TOPIC, "Message": INPUT},
)
_put_events = _task(
    "Put events",
    "events:putEvents",
    {"Entries": [{"Source": "my.source", "DetailType": "MyEvent", "Detail.$": "$"}]},
    {"Entries": [{"Source": "my.source", "DetailType": "MyEvent", "Detail": INPUT}]},
)
_MACHINE = f"arn:aws:states:us-east-1:{EXAMPLE_ACCOUNT}:stateMachine:MyMachine"
_start_execution = _task(
    "Run a state machine",
    "states:startExecution.sync:2",
    {"StateMachineArn": _MACHINE, "Input.$": "$"},
    {"StateMachineArn": _MACHINE, "Input": INPUT},
)

_get_object = _task(
    "Get object",
    "aws-sdk:s3:getObject",
    {"Bucket": "my-bucket", "Key.$": "$.key"},
    {"Bucket": "my-bucket", "Key": "{% $states.input.key %}"},
)
_JOB = {"JobName": "my-job", "JobDefinition": "my-definition", "JobQueue": "my-queue"}
_submit_job = _task("Run a batch job", "batch:submitJob.sync", _JOB, _JOB)
_CONTAINER = {"LaunchType": "FARGATE", "Cluster": "my-cluster", "TaskDefinition": "my-task"}
_run_task = _task("Run a container", "ecs:runTask.sync", _CONTAINER, _CONTAINER)
_GLUE_JOB = {"JobName": "my-job"}
_start_job_run = _task("Run a Glue job", "glue:startJobRun.sync", _GLUE_JOB, _GLUE_JOB)
_CONNECTION = f"arn:aws:events:us-east-1:{EXAMPLE_ACCOUNT}:connection/my-connection/0"
_ENDPOINT = {
    "ApiEndpoint": "https://api.example.com/",
    "Method": "GET",
    "InvocationConfig": {"ConnectionArn": _CONNECTION},
}
_call_http = _task("Call an API", "http:invoke", _ENDPOINT, _ENDPOINT)


def _activity(_: str) -> States:
    resource = f"arn:aws:states:us-east-1:{EXAMPLE_ACCOUNT}:activity:MyActivity"
    return {"Wait for a worker": {"Type": "Task", "Resource": resource, "Next": EXIT}}


def default_retrier() -> dict[str, Any]:
    """Return a Retrier with exponential backoff."""
    return {
        "ErrorEquals": ["States.TaskFailed", "States.Timeout"],
        "IntervalSeconds": 2,
        "MaxAttempts": 4,
        "BackoffRate": 2,
        "MaxDelaySeconds": 60,
        "JitterStrategy": "FULL",
    }


def catcher(language: str, target: str) -> dict[str, Any]:
    """Return a Catcher of all errors."""
    if _jsonata(language):
        return {
            "ErrorEquals": ["States.ALL"],
            "Output": "{% $states.errorOutput %}",
            "Next": target,
        }
    return {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": target}


def _retry_with_backoff(language: str) -> States:
    task = _invoke(language)["Call a function"]
    return {
        "Call with retries": {
            **task,
            "Retry": [default_retrier()],
            "Catch": [catcher(language, "Out of retries")],
        },
        "Out of retries": {
            "Type": "Fail",
            "Error": "OutOfRetries",
            "Cause": "The call failed after its last retry",
        },
    }


def _wait_for_approval(language: str) -> States:
    path = {
        "FunctionName": "MyFunction",
        "Payload": {"input.$": "$", "token.$": "$$.Task.Token"},
    }
    jsonata = {
        "FunctionName": "MyFunction",
        "Payload": {"input": INPUT, "token": "{% $states.context.Task.Token %}"},
    }
    return {
        "Wait for approval": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            **_arguments(language, path, jsonata),
            "TimeoutSeconds": 86400,
            "Catch": [
                {"ErrorEquals": ["States.Timeout"], "Next": "Nobody approved"},
            ],
            "Next": EXIT,
        },
        "Nobody approved": {
            "Type": "Fail",
            "Error": "NotApproved",
            "Cause": "Nobody approved within a day",
        },
    }


def _poll_until_done(language: str) -> States:
    task = _invoke(language)["Call a function"]
    if _jsonata(language):
        result: dict[str, Any] = {"Output": "{% $states.result.Payload %}"}
        rules = [
            {"Condition": "{% $states.input.status = 'DONE' %}", "Next": EXIT},
            {"Condition": "{% $states.input.status = 'FAILED' %}", "Next": "Job failed"},
        ]
    else:
        result = {"OutputPath": "$.Payload"}
        rules = [
            {"Variable": "$.status", "StringEquals": "DONE", "Next": EXIT},
            {"Variable": "$.status", "StringEquals": "FAILED", "Next": "Job failed"},
        ]
    return {
        "Get status": {**task, **result, "Next": "Is it done?"},
        "Is it done?": {"Type": "Choice", "Choices": rules, "Default": "Wait for the job"},
        "Wait for the job": {"Type": "Wait", "Seconds": 30, "Next": "Get status"},
        "Job failed": {"Type": "Fail", "Error": "JobFailed", "Cause": "The job reported a failure"},
    }


_FLOW, _SERVICE, _PATTERN = PieceGroup.FLOW, PieceGroup.SERVICE, PieceGroup.PATTERN
PIECES: dict[str, Piece] = {
    piece.key: piece
    for piece in (
        Piece("pass", "Pass", "passes or sets data", _FLOW, _pass_state),
        Piece("choice", "Choice", "chooses one of several paths", _FLOW, _choice),
        Piece("parallel", "Parallel", "runs branches in parallel", _FLOW, _parallel),
        Piece("map", "Map", "runs states for each item", _FLOW, _map_state),
        Piece("wait", "Wait", "waits for a time", _FLOW, _wait),
        Piece("succeed", "Succeed", "ends well", _FLOW, _succeed),
        Piece("fail", "Fail", "ends with an error", _FLOW, _fail),
        Piece("lambda", "Lambda function", "lambda:invoke", _SERVICE, _invoke),
        Piece("execution", "State machine", "states:startExecution", _SERVICE, _start_execution),
        Piece("get-item", "DynamoDB get item", "dynamodb:getItem", _SERVICE, _get_item),
        Piece("put-item", "DynamoDB put item", "dynamodb:putItem", _SERVICE, _put_item),
        Piece("sqs", "SQS message", "sqs:sendMessage", _SERVICE, _send_message),
        Piece("sns", "SNS message", "sns:publish", _SERVICE, _publish),
        Piece("events", "EventBridge event", "events:putEvents", _SERVICE, _put_events),
        Piece("s3", "S3 object", "aws-sdk:s3:getObject", _SERVICE, _get_object),
        Piece("http", "HTTP endpoint", "http:invoke", _SERVICE, _call_http),
        Piece("activity", "Activity", "work for your own workers", _SERVICE, _activity),
        Piece("batch", "Batch job", "batch:submitJob", _SERVICE, _submit_job),
        Piece("ecs", "ECS task", "ecs:runTask", _SERVICE, _run_task),
        Piece("glue", "Glue job", "glue:startJobRun", _SERVICE, _start_job_run),
        Piece("retry", "Retry with backoff", "call, retry, fail", _PATTERN, _retry_with_backoff),
        Piece("approval", "Wait for approval", "task token, timeout", _PATTERN, _wait_for_approval),
        Piece("poll", "Poll until done", "ask, wait, ask again", _PATTERN, _poll_until_done),
    )
}
"""Key -> piece, in the order of the palette."""
