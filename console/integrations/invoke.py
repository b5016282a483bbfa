"""``lambda:invoke``: call a function by name and return Lambda's response envelope.

An asynchronous invocation (``Event``) is accepted here; the worker makes it after the commit.
``aws-sdk:lambda:invoke`` has the SDK's response, where a function's error does not fail the task.
"""

from __future__ import annotations

import base64
import time
import uuid
from dataclasses import replace
from email.utils import formatdate
from typing import Any

from django.conf import settings

import engine
from console import arns
from console.functions import report
from console.functions.pool import CallRecord
from console.functions.runner import DEFAULT_MEMORY_MB
from console.integrations import aws, function, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

_MOST_LOG = 4096
SDK_SERVICE, SDK_ACTIONS = "aws-sdk:lambda", ("invoke", "invokeAsync")
_STATUS = {"RequestResponse": 200, "Event": 202, "DryRun": 204}
"""InvocationType -> the status of the answer."""


def call(task: TaskAttempt) -> Outcome:
    """Call the registered function of the name, or Lambda at its target."""
    parameters = engine.loads(task.input)
    name_or_arn = parameters.get("FunctionName") if isinstance(parameters, dict) else None
    if not isinstance(name_or_arn, str) or not name_or_arn:
        return aws.call(task)  # which reports the missing parameter
    name = named_function(name_or_arn)
    if targets.find_registered_function(name, function_arn(name), task.machine, sample=task.sample):
        return _registered(task, name, parameters)
    if targets.find_entry("lambda", task.machine):
        return _remote(task)
    return Failed(
        "Lambda.ResourceNotFoundException", _not_found(function_arn(name), str(uuid.uuid4()))
    )


def call_sdk(task: TaskAttempt) -> Outcome:
    """Call a registered function, or Lambda at its target, with the SDK's response."""
    request = aws.build_request(task)
    if isinstance(request, Failed):
        return request
    name = named_function(str(request.sent.get("FunctionName") or ""))
    if not name or not targets.find_registered_function(
        name, function_arn(name), task.machine, sample=task.sample
    ):
        if name and targets.find_entry("lambda", task.machine) is None:
            cause = (
                f"Function not found: {function_arn(name)} (Service: Lambda, Status Code: 404, "
                f"Request ID: {uuid.uuid4()}) (SDK Attempt Count: 1)"
            )
            return Failed("Lambda.ResourceNotFoundException", cause)
        return aws.request_outcome(task, request, lambda: aws.send_request(task, request))
    payload = request.sent.get("InvokeArgs", request.sent.get("Payload", b""))
    parameters = {**request.sent, "Payload": payload.decode() or None}
    if task.action == "invokeAsync":
        parameters["InvocationType"] = "Event"
    outcome = _registered(task, name, parameters)
    if isinstance(outcome, Failed):
        if _is_of_function(outcome.error or ""):
            failed = {
                "ExecutedVersion": "$LATEST",
                "FunctionError": "Unhandled",
                "Payload": outcome.cause or "",
                "StatusCode": 200,
            }
            return Succeeded(engine.dumps(failed), record=outcome.record)
        return outcome
    assert isinstance(outcome, Succeeded)  # noqa: S101 - for the type checker: nothing is waited for
    answer = engine.loads(outcome.output)
    if task.action == "invokeAsync":
        return replace(outcome, output=engine.dumps({"Status": answer["StatusCode"]}))
    if "Payload" in answer:
        answer["Payload"] = engine.dumps(answer["Payload"])
    members = ("ExecutedVersion", "LogResult", "Payload", "StatusCode")
    return replace(
        outcome, output=engine.dumps({key: answer[key] for key in members if key in answer})
    )


def _is_of_function(error: str) -> bool:
    """Whether an error is the function's, not Lambda's refusal or the state's."""
    return error == "Lambda.Unknown" or not error.startswith(("Lambda.", "States."))


def named_function(name_or_arn: str) -> str:
    """Return the name of a function from a name or an ARN."""
    if not name_or_arn.startswith("arn:"):
        return name_or_arn.partition(":")[0]
    parts = name_or_arn.split(":")
    return parts[function.NAME_AT] if len(parts) > function.NAME_AT else ""


def call_by_arn(task: TaskAttempt) -> Outcome:
    """Call a function whose ARN is the Resource: its payload is the result."""
    name = function.function_name(task.resource)
    registered = targets.find_registered_function(
        name, task.resource, task.machine, sample=task.sample
    )
    if registered or not targets.find_entry("lambda", task.machine):
        return function.call(task)
    parameters = {"FunctionName": task.resource, "Payload": engine.loads(task.input)}
    wrapped = replace(
        task, service="lambda", action="invoke", input=engine.dumps(parameters), kind="service"
    )
    outcome = _remote(wrapped)
    if isinstance(outcome, Failed):
        return outcome
    return Succeeded(engine.dumps(engine.loads(outcome.output).get("Payload")))


def function_arn(name: str) -> str:
    """Return the ARN of a function of this account."""
    region, account = settings.STATEYARD_REGION, settings.STATEYARD_ACCOUNT
    return f"arn:{arns.partition_of(region)}:lambda:{region}:{account}:function:{name}"


def _registered(task: TaskAttempt, name: str, parameters: dict[str, Any]) -> Outcome:
    payload = parameters.get("Payload")
    body = payload if isinstance(payload, str) else engine.dumps({} if payload is None else payload)
    kind = parameters.get("InvocationType") or "RequestResponse"
    if kind not in _STATUS:
        return Failed("Lambda.AWSLambdaException", _wrong_kind(kind))
    try:
        engine.loads(body)
    except engine.JsonTextError as error:
        return Failed(
            "Lambda.InvalidRequestContentException",
            f"Could not parse request body into json: Could not parse payload into json: {error}",
        )
    invocation = replace(task, kind="lambda", resource=function_arn(name), input=body, pattern="")
    if kind != "RequestResponse":
        wrapped = _invocation_metadata(str(uuid.uuid4()), "", {}, _STATUS[kind])
        event = replace(invocation, timeout_s=None) if kind == "Event" else None
        return Succeeded(engine.dumps(wrapped), event=event)
    begun = time.monotonic()
    outcome = function.call(invocation)
    if isinstance(outcome, Failed):
        return outcome
    record = outcome.record or CallRecord(
        request=str(uuid.uuid4()),
        memory_limit_mb=int(DEFAULT_MEMORY_MB),
        duration_ms=(time.monotonic() - begun) * 1000,
    )
    further = {"X-Amz-Executed-Version": "$LATEST"}
    answer = {"ExecutedVersion": "$LATEST", "Payload": engine.loads(outcome.output)}
    if parameters.get("LogType") == "Tail":
        answer["LogResult"] = further["X-Amz-Log-Result"] = _log_tail(record)
    wrapped = answer | _invocation_metadata(record.request, outcome.output, further, 200)
    return Succeeded(engine.dumps(wrapped), record=outcome.record)


def _invocation_metadata(
    request: str, answer: str, further: dict[str, str], status: int
) -> dict[str, Any]:
    """Return the metadata of an invocation in an optimized integration's result."""
    headers = _headers(request, answer) | further
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {key: [value] for key, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": status,
        },
        "SdkResponseMetadata": {"RequestId": request},
        "StatusCode": status,
    }


def _wrong_kind(kind: Any) -> str:
    return (
        f"1 validation error detected: Value '{kind}' at 'invocationType' failed to satisfy "
        "constraint: Member must satisfy enum value set: [Event, RequestResponse, DryRun] "
        "(Service: AWSLambda; Status Code: 400; Error Code: ValidationException; "
        f"Request ID: {uuid.uuid4()}; Proxy: null)"
    )


def _headers(request: str, answer: str) -> dict[str, str]:
    """Return the HTTP headers in the result [recorded]."""
    return {
        "Connection": "keep-alive",
        "Content-Length": str(len(answer.encode())),
        "Content-Type": "application/json",
        "Date": formatdate(usegmt=True),
        "x-amzn-Remapped-Content-Length": "0",
        "x-amzn-RequestId": request,
        "X-Amzn-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
    }


def _log_tail(record: CallRecord) -> str:
    """Return the last 4 KB of the log in base64, as Lambda does."""
    log = report.log_text(record, record.output).encode()
    return base64.b64encode(log[-_MOST_LOG:]).decode()


def _remote(task: TaskAttempt) -> Outcome:
    """Call Lambda through botocore; a function's error fails the task."""
    outcome = aws.call(task)
    if isinstance(outcome, Failed):
        return outcome
    answer = engine.loads(outcome.output)
    payload = answer.get("Payload", "null")
    try:
        value = engine.loads(payload or "null")
    except engine.JsonTextError:
        value = payload
    if answer.pop("FunctionError", None):
        kind = value.get("errorType") if isinstance(value, dict) else None
        return Failed(kind or "Lambda.Unknown", payload)
    if answer.get("StatusCode") in (_STATUS["Event"], _STATUS["DryRun"]):
        return Succeeded(engine.dumps({k: v for k, v in answer.items() if k != "Payload"}))
    return Succeeded(engine.dumps(answer | {"Payload": value}))


def _not_found(function_arn: str, request: str) -> str:
    return (
        f"Function not found: {function_arn}:$LATEST (Service: AWSLambda; Status Code: 404; "
        f"Error Code: ResourceNotFoundException; Request ID: {request}; Proxy: null)"
    )
