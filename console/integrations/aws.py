"""How is an operation of an AWS service called?  Through botocore, at the operator's target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

import engine
from console.integrations import names, shapes, targets
from console.integrations.outcome import (
    Failed,
    Outcome,
    Succeeded,
    TaskAttempt,
    unusable_parameters,
)
from console.integrations.redaction import without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.integrations.names import Operation

_SPELLED = {
    "content-length": "Content-Length",
    "content-type": "Content-Type",
    "date": "Date",
    "x-amzn-requestid": "x-amzn-RequestId",
    "x-amzn-trace-id": "X-Amzn-Trace-Id",
    "x-amz-executed-version": "X-Amz-Executed-Version",
}
_PLAIN = {"events"}  # optimized, yet their result has no Sdk... members [recorded]
_ADDED = {"glue": {"startJobRun": "JobName"}} | {
    "emr-serverless": dict.fromkeys(
        ("startApplication", "stopApplication", "deleteApplication"), "ApplicationId"
    )
}
"""Optimized calls -> the parameter that their result tells again, by the documentation."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a task asks of a service: the operation, and its parameters as botocore wants them."""

    operation: Operation
    sent: dict[str, Any]


def call(task: TaskAttempt) -> Outcome:
    """Call what a task names."""
    asked = build_request(task)
    return (
        asked
        if isinstance(asked, Failed)
        else request_outcome(task, asked, lambda: _send(task, asked))
    )


def build_request(task: TaskAttempt) -> Request | Failed:
    """Return what a task asks for, or how it fails without a call."""
    operation = names.find_operation(task.service, task.action)
    if operation is None:
        return Failed("States.Runtime", f"There is no operation behind '{task.resource}'.")
    parameters = engine.loads(task.input)
    if operation.model.name == "StartExecution" and isinstance(parameters, dict):
        parameters.setdefault("Name", task.idempotency_key)
    try:
        sent = shapes.to_request(operation.model.input_shape, parameters, task.idempotency_key)
    except shapes.ParametersError as error:
        return unusable_parameters(task, str(error))
    return Request(operation, sent)


def request_outcome(
    task: TaskAttempt, asked: Request, send: Callable[[], dict[str, Any]]
) -> Succeeded | Failed:
    """Return what came of a request. ``send``: returns or raises what botocore does."""
    operation = asked.operation
    try:
        answer = send()
    except ParamValidationError as error:
        return unusable_parameters(task, _reported(error))
    except targets.NoTargetError as error:
        return Failed("States.TaskFailed", str(error))
    except ClientError as error:
        return Failed(names.exception_name(operation, _code(error)), _cause(operation, error))
    except BotoCoreError as error:
        return Failed(f"{operation.prefix}.SdkClientException", _trouble(error))
    return _outcome(task, operation, answer)


def _send(task: TaskAttempt, asked: Request) -> dict[str, Any]:
    operation = asked.operation
    client = targets.service_client(operation.client, task.home, task.region, task.machine)
    answer: dict[str, Any] = client._make_api_call(operation.model.name, asked.sent)  # noqa: SLF001
    return answer


def _reported(error: ParamValidationError) -> str:
    """Return what botocore finds wrong beyond the types - lengths, ranges - in one line."""
    return ", ".join(str(error.kwargs.get("report", error)).splitlines())


# -- what came back --------------------------------------------------------------------------------


def _outcome(task: TaskAttempt, operation: Operation, answer: dict[str, Any]) -> Succeeded | Failed:
    epoch = operation.old is not None
    found = shapes.from_answer(operation.model.output_shape, answer, epoch=epoch)
    if task.service == "events" and found.get("FailedEntryCount"):
        return Failed("EventBridge.FailedEntry", engine.dumps(found))
    found |= _added(task)
    if epoch and task.service not in _PLAIN:
        found |= _metadata(answer.get("ResponseMetadata", {}))
    return Succeeded(engine.dumps(found))


def _added(task: TaskAttempt) -> dict[str, Any]:
    name = _ADDED.get(task.service, {}).get(task.action)
    return {name: engine.loads(task.input)[name]} if name else {}


def _metadata(about: dict[str, Any]) -> dict[str, Any]:
    """Return what optimized integrations tell of the HTTP answer."""
    headers = _headers(about.get("HTTPHeaders", {}))
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": about.get("HTTPStatusCode", 200),
        },
        "SdkResponseMetadata": {"RequestId": about.get("RequestId", "")},
    }


def _headers(headers: dict[str, str]) -> dict[str, str]:
    """Spell headers as AWS sends them; botocore hands them out in lower case."""
    known = {_SPELLED.get(name, name): value for name, value in headers.items()}
    return {"connection": "keep-alive", **known}


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _cause(operation: Operation, error: ClientError) -> str:
    """Return message and circumstances as the SDK of the integration words them [recorded]."""
    about = error.response.get("ResponseMetadata", {})
    message = error.response.get("Error", {}).get("Message", "")
    status, request = about.get("HTTPStatusCode", 400), about.get("RequestId", "")
    if operation.old is not None:
        return (
            f"{message} (Service: {operation.old.shown}; Status Code: {status}; "
            f"Error Code: {_code(error)}; Request ID: {request}; Proxy: null)"
        )
    further = f", Extended Request ID: {about['HostId']}" if "HostId" in about else ""
    return (
        f"{message} (Service: {operation.prefix}, Status Code: {status}, "
        f"Request ID: {request}{further}) (SDK Attempt Count: 1)"
    )


def _trouble(error: BotoCoreError) -> str:
    return without_url_secrets(f"Unable to execute HTTP request: {error}")
