"""Call a Lambda function by what the operator registered under its name.

``http(s)://...``: the Lambda invoke protocol (what the runtime interface emulator speaks).
``module:callable``: called as ``callable(event, context)`` in this process (``lambda_runtime``).
Registered in settings, never from a page.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx

import engine
from console import lambda_runtime
from console.integrations import handlers, outbound, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt
from console.integrations.redaction import without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_AT = 6  # arn:aws:lambda:region:account:function:NAME[:qualifier]
_MAX_ANSWER = 6 * 1024 * 1024  # AWS: the largest answer of a synchronous invocation
MAX_LOSSES = 3
"""A callable that was lost so often with its process is what ends the processes (G14)."""
_DEFAULT_TIMEOUT_S = 900  # AWS: no function runs longer


def call(task: TaskAttempt) -> Outcome:
    """Call the function of a task."""
    name = function_name(task.resource)
    found = targets.find_registered_function(name, task.resource, task.machine, sample=task.sample)
    if found is None:
        request = uuid.uuid4()
        return Failed(
            "Lambda.ResourceNotFoundException",
            f"Function not found: {task.resource} (Service: Lambda, Status Code: 404, "
            f"Request ID: {request})",
        )
    return call_target(found[0], name, task)


def call_target(target: str, name: str, task: TaskAttempt) -> Outcome:
    """Call what is registered under a name: a web address or a Python callable."""
    return _call_url(target, task) if is_url(target) else call_python(target, name, task)


def is_url(target: str) -> bool:
    """Tell a web address from a Python callable."""
    return target.startswith(("http://", "https://"))


def find_problem(target: str) -> str:
    """Return why a registered callable cannot be called, "" if nothing is known against it."""
    return "" if is_url(target) else handlers.find_problem(target)


def broken_registrations() -> Iterator[tuple[str, str, str]]:
    """Yield entry, target and problem of each callable that cannot be called."""
    for entry, target in targets.list_registrations():
        problem = find_problem(target)
        if problem:
            yield entry, target, problem


def runs_here(task: TaskAttempt) -> bool:
    """Tell whether a task is a Python callable: it can take this process with it."""
    if task.kind != "lambda":
        return False
    name = function_name(task.resource)
    found = targets.find_registered_function(name, task.resource, task.machine, sample=task.sample)
    return found is not None and not is_url(found[0])


def function_name(arn: str) -> str:
    """Return the function's name in an ARN, without version or alias."""
    return arn.split(":")[NAME_AT]


# -- Python callables ------------------------------------------------------------------------------


def call_python(target: str, name: str, task: TaskAttempt) -> Outcome:
    """Call a registered Python callable, but not one that has taken its process with it."""
    if task.losses >= MAX_LOSSES:
        cause = f"{target} was called {task.losses} times, and each time its process ended"
        return Failed("States.Runtime", cause)
    context = lambda_runtime.make_context(name, task.resource, task.idempotency_key, task.timeout_s)
    try:
        return Succeeded(
            lambda_runtime.run_handler(lambda: handlers.load_handler(target), task.input, context)
        )
    except lambda_runtime.InvocationError as error:
        return Failed(error.name, error.cause)


# -- HTTP ------------------------------------------------------------------------------------------


def _call_url(url: str, task: TaskAttempt) -> Outcome:
    outcome = _asked(url, task)
    if isinstance(outcome, Failed) and outcome.cause:
        return replace(outcome, cause=without_url_secrets(outcome.cause, url))
    return outcome


def _asked(url: str, task: TaskAttempt) -> Outcome:
    headers = {
        "Content-Type": "application/json",
        "X-Amz-Invocation-Type": "RequestResponse",
        "Stepyard-Idempotency-Key": task.idempotency_key,
    }
    seconds = task.timeout_s + outbound.GRACE_S if task.timeout_s else _DEFAULT_TIMEOUT_S
    content = task.input.encode()
    try:
        with outbound.stream_answer(
            "POST", url, seconds, content=content, headers=headers
        ) as answer:
            body = outbound.read_body(answer, _MAX_ANSWER).decode("utf-8")
            return _outcome(answer, body)
    except httpx.TimeoutException:
        return Failed("Sandbox.Timedout", f"{url} did not answer within {seconds} seconds")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        cause = f"Unable to execute HTTP request: {url}: {error}"
        return Failed("Lambda.SdkClientException", cause)


def _outcome(answer: httpx.Response, body: str) -> Outcome:
    if answer.is_error:
        cause = f"the function's endpoint answered {answer.status_code}: {body[:1000]}"
        return Failed("Lambda.ServiceException", cause)
    reported = _error_type(body)
    if "X-Amz-Function-Error" in answer.headers or reported:
        return Failed(reported or "Lambda.Unknown", body)
    try:
        engine.loads(body or "null")
    except engine.JsonTextError as error:
        return Failed("Lambda.Unknown", f"the function's answer is not JSON: {error}")
    return Succeeded(body or "null")


def _error_type(body: str) -> str | None:
    """Return the error type if the body is an error report (the emulator sets no header)."""
    try:
        value = engine.loads(body)
    except engine.JsonTextError:
        return None
    if isinstance(value, dict) and "errorMessage" in value and "errorType" in value:
        return str(value["errorType"])
    return None
