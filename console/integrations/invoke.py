"""``lambda:invoke``: a function by name, its answer wrapped as the service wraps it."""

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


def call(task: TaskAttempt) -> Outcome:
    """Call the registered function of that name, or the one at the target of ``lambda``."""
    parameters = engine.loads(task.input)
    named = parameters.get("FunctionName") if isinstance(parameters, dict) else None
    if not isinstance(named, str) or not named:
        return aws.call(task)  # which tells what is missing
    name = named.split(":")[function.NAME_AT] if named.startswith("arn:") else named.split(":")[0]
    if targets.find_registered_function(name, function_arn(name), task.machine, sample=task.sample):
        return _registered(task, name, parameters)
    if targets.find_entry("lambda", task.machine):
        return _remote(task)
    return Failed(
        "Lambda.ResourceNotFoundException", _not_found(function_arn(name), str(uuid.uuid4()))
    )


def call_by_arn(task: TaskAttempt) -> Outcome:
    """Call a function named by its ARN alone: the input goes in, the bare answer comes out."""
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
    try:
        engine.loads(body)
    except engine.JsonTextError as error:
        return Failed(
            "Lambda.InvalidRequestContentException",
            f"Could not parse request body into json: Could not parse payload into json: {error}",
        )
    begun = time.monotonic()
    outcome = function.call(replace(task, resource=function_arn(name), input=body))
    if isinstance(outcome, Failed):
        return outcome
    record = outcome.record or CallRecord(
        request=str(uuid.uuid4()),
        memory_limit_mb=int(DEFAULT_MEMORY_MB),
        duration_ms=(time.monotonic() - begun) * 1000,
    )
    request = record.request
    wrapped = {"ExecutedVersion": "$LATEST", "Payload": engine.loads(outcome.output)}
    further = {}
    if parameters.get("LogType") == "Tail":
        wrapped["LogResult"] = further["X-Amz-Log-Result"] = _log_tail(record)
    headers = _headers(request, outcome.output) | further
    wrapped |= {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {key: [value] for key, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": 200,
        },
        "SdkResponseMetadata": {"RequestId": request},
        "StatusCode": 200,
    }
    return Succeeded(engine.dumps(wrapped), record=outcome.record)


def _headers(request: str, answer: str) -> dict[str, str]:
    """Return the headers that the service tells of an invocation [recorded]."""
    return {
        "Connection": "keep-alive",
        "Content-Length": str(len(answer.encode())),
        "Content-Type": "application/json",
        "Date": formatdate(usegmt=True),
        "X-Amz-Executed-Version": "$LATEST",
        "x-amzn-Remapped-Content-Length": "0",
        "x-amzn-RequestId": request,
        "X-Amzn-Trace-Id": f"Root=1-{int(time.time()):08x}-{uuid.uuid4().hex[:24]};Sampled=0",
    }


def _log_tail(record: CallRecord) -> str:
    """Return the last 4 KB of the log as Lambda gives it, in base64."""
    log = report.log_text(record, record.output).encode()
    return base64.b64encode(log[-_MOST_LOG:]).decode()


def _remote(task: TaskAttempt) -> Outcome:
    """Call through botocore; a function's own error is the task's error."""
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
    return Succeeded(engine.dumps(answer | {"Payload": value}))


def _not_found(named: str, request: str) -> str:
    return (
        f"Function not found: {named}:$LATEST (Service: AWSLambda; Status Code: 404; "
        f"Error Code: ResourceNotFoundException; Request ID: {request}; Proxy: null)"
    )
