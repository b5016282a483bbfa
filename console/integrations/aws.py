"""Call an AWS service for a Task with botocore, at the configured target (``targets.json``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.client import BaseClient
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EventStreamError,
    ParamValidationError,
)

import engine
from console.integrations import names, shapes, targets
from console.integrations.event_buses import DEFAULT_BUS, other_buses
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
_NOT_AWS = frozenset({"cache-control"})
"""Headers that Stateyard's API sends and AWS's does not."""
_PLAIN = {"events"}  # optimized, yet their result has no Sdk... members [recorded]
_ADDED = {"glue": {"startJobRun": "JobName"}} | {
    "emr-serverless": dict.fromkeys(
        ("startApplication", "stopApplication", "deleteApplication"), "ApplicationId"
    )
}
"""Optimized call -> the parameter that its result repeats, by the documentation."""


class NullParameterError(Exception):
    """A required parameter is null."""


class UnreadableAnswerError(Exception):
    """The response does not match the service model."""


class TaskTimeoutError(Exception):
    """The service exceeded the time limit of this kind of task."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a task: the operation, and its parameters in botocore's form."""

    operation: Operation
    sent: dict[str, Any]


def call(task: TaskAttempt) -> Outcome:
    """Call the operation that a task names."""
    request = build_request(task)
    return (
        request
        if isinstance(request, Failed)
        else request_outcome(task, request, lambda: send_request(task, request))
    )


def build_request(task: TaskAttempt) -> Request | Failed:
    """Return the request of a task, or its failure if the parameters are invalid."""
    operation = names.find_operation(task.service, task.action)
    if operation is None:
        return Failed("States.Runtime", f"There is no operation behind '{task.resource}'.")
    parameters = engine.loads(task.input)
    added, parameters = names.split_added_fields(task.service, task.action, parameters)
    if any(value is not None for value in added.values()):
        return Failed(
            "States.Runtime",
            f"Stateyard does not carry out {' and '.join(added)} of '{task.resource}'.",
        )
    others = other_buses(task)
    if any(others) and not all(others) and targets.is_here(operation.client, task.machine):
        return Failed(
            "States.Runtime",
            f"Entries: got events for the event bus '{DEFAULT_BUS}' of this server and for others, "
            "wanted one Task for each: the others go to the target of '*' in targets.json.",
        )
    starting = operation.model.name == "StartExecution" and isinstance(parameters, dict)
    if starting and parameters.get("Name") is None:  # also a null, which is not sent
        parameters["Name"] = task.idempotency_key
    try:
        sent = shapes.to_request(
            operation.model.input_shape, parameters, task.idempotency_key, operation.field_name
        )
    except shapes.ParametersError as error:
        return unusable_parameters(task, str(error))
    return Request(operation, sent)


def _outcome(task: TaskAttempt, operation: Operation, answer: dict[str, Any]) -> Succeeded | Failed:
    epoch = operation.old is not None
    result = shapes.from_answer(
        operation.model.output_shape, answer, epoch=epoch, field_name=operation.field_name
    )
    if task.service == "events" and result.get("FailedEntryCount"):
        return Failed("EventBridge.FailedEntry", engine.dumps(result))
    result |= _added(task)
    if epoch and task.service not in _PLAIN:
        own = operation.client == "stepfunctions"
        result |= _metadata(answer.get("ResponseMetadata", {}), _NOT_AWS if own else frozenset())
    return Succeeded(engine.dumps(result))


def request_outcome(
    task: TaskAttempt,
    request: Request,
    send: Callable[[], dict[str, Any]],
    to_outcome: Callable[[TaskAttempt, Operation, dict[str, Any]], Succeeded | Failed] = _outcome,
) -> Succeeded | Failed:
    """Return the outcome of a request. ``send``: returns or raises as botocore does."""
    operation = request.operation
    try:
        answer = send()
    except (NullParameterError, UnreadableAnswerError) as error:
        return Failed(f"{operation.prefix}.SdkClientException", str(error))
    except ParamValidationError as error:
        return unusable_parameters(task, _validation_errors(error))
    except targets.NoTargetError as error:
        return Failed("States.TaskFailed", str(error))
    except ClientError as error:
        return Failed(names.exception_name(operation, *_codes(error)), _cause(operation, error))
    except BotoCoreError as error:
        return Failed(f"{operation.prefix}.SdkClientException", _trouble(error))
    except TaskTimeoutError as error:
        return Failed("States.Timeout", str(error))
    try:
        return to_outcome(task, operation, answer)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return Failed(f"{operation.prefix}.SdkClientException", _unreadable(error))


def send_request(task: TaskAttempt, request: Request) -> dict[str, Any]:
    """Call the service; a service may accept a null required parameter itself.

    botocore would refuse such a request, but the SDK for Java sends it without the parameter
    [recorded]. Nothing has been sent when ``ParamValidationError`` is raised.
    """
    try:
        return _request(task, request, validating=True)
    except ParamValidationError:
        if not _has_null(engine.loads(task.input)):
            raise
    try:
        return _request(task, request, validating=False)
    except (ParamValidationError, KeyError, TypeError, ValueError) as error:
        # The parameter has its place in the URL, so that there is no request without it.
        msg = f"A required parameter must not be null: {error}"
        raise NullParameterError(msg) from None


def _request(task: TaskAttempt, request: Request, *, validating: bool) -> dict[str, Any]:
    operation = request.operation
    home = None if any(other_buses(task)) else task.home
    client = targets.service_client(
        operation.client, home, task.region, task.machine, validating=validating
    )
    try:
        answer: dict[str, Any] = client._make_api_call(  # noqa: SLF001
            operation.model.name, request.sent
        )
    except Exception as error:
        is_client_error = isinstance(error, BotoCoreError | ClientError)
        if is_client_error or not validating or not isinstance(client, BaseClient):
            raise  # without validation it may mean the request, and this server's API says more
        # botocore's parsers raise what they like for an answer that no model describes.
        raise UnreadableAnswerError(_unreadable(error)) from error
    return answer


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_null(part) for part in value.values())
    return value is None or (isinstance(value, list) and any(_has_null(part) for part in value))


def _unreadable(error: Exception) -> str:
    """Return the SDK's message about an unreadable response, on one line."""
    return without_url_secrets(f"Unable to unmarshall response ({error})".replace("\n", " "))


def _validation_errors(error: ParamValidationError) -> str:
    """Return botocore's validation errors beyond types (lengths, ranges), in one line."""
    return ", ".join(str(error.kwargs.get("report", error)).splitlines())


# -- what came back --------------------------------------------------------------------------------


def _added(task: TaskAttempt) -> dict[str, Any]:
    name = _ADDED.get(task.service, {}).get(task.action)
    return {name: engine.loads(task.input)[name]} if name else {}


def _metadata(about: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """Return the HTTP metadata in an optimized integration's result, without ``hidden`` headers."""
    received = about.get("HTTPHeaders", {})
    headers = _headers({name: value for name, value in received.items() if name not in hidden})
    return {
        "SdkHttpMetadata": {
            "AllHttpHeaders": {name: [value] for name, value in headers.items()},
            "HttpHeaders": headers,
            "HttpStatusCode": about.get("HTTPStatusCode", 200),
        },
        "SdkResponseMetadata": {"RequestId": about.get("RequestId", "")},
    }


def _headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers in AWS's spelling; botocore returns them in lower case."""
    spelled = {_SPELLED.get(name, name): value for name, value in headers.items()}
    return {"connection": "keep-alive", **spelled}


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _codes(error: ClientError) -> tuple[str, ...]:
    """Return the error codes of a response: its code, and the shape behind an older code."""
    if isinstance(error, EventStreamError):  # it begins small there
        return (_code(error)[:1].upper() + _code(error)[1:],)
    shape = error.response.get("Error", {}).get("QueryErrorCode")
    return (str(shape), _code(error)) if shape else (_code(error),)


def _cause(operation: Operation, error: ClientError) -> str:
    """Return the Cause of an error as the integration's SDK words it [recorded]."""
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
