"""Call a Lambda function at its registered target: a URL or a Python callable.

A target ``http(s)://...`` is called with the Lambda invoke protocol of the runtime interface
emulator. A target ``module:callable`` is called as ``callable(event, context)``, in a process of
its own (``console.functions``) or in this process (``lambda_runtime``).
"""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

import engine
from console.config.function_options import SHARED, FunctionOptions
from console.db import clock
from console.functions import checks, handlers, lambda_runtime, pool
from console.functions.output import CapturedOutput
from console.functions.process import FunctionKey
from console.functions.runner import DEFAULT_MEMORY_MB, InvocationError, print_error
from console.integrations import outbound, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt
from console.integrations.redaction import redact_json, url_secrets, without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.config.function_options import FoundFunction

_IDEMPOTENCY = "Stateyard-Idempotency-Key"
_NO_OPTIONS = FunctionOptions()
NAME_AT = 6  # arn:aws:lambda:region:account:function:NAME[:qualifier]
_MAX_ANSWER = 6 * 1024 * 1024  # AWS: the largest answer of a synchronous invocation
MAX_LOSSES = 3
"""Lost processes after which a callable is blamed and no longer called (G14)."""
_DEFAULT_TIMEOUT_S = 900  # AWS: no function runs longer


def call(task: TaskAttempt) -> Outcome:
    """Call the function of a task at its registered target."""
    name = function_name(task.resource)
    registration = targets.find_registered_function(
        name, task.resource, task.machine, sample=task.sample
    )
    if registration is None:
        request = uuid.uuid4()
        return Failed(
            "Lambda.ResourceNotFoundException",
            f"Function not found: {task.resource} (Service: Lambda, Status Code: 404, "
            f"Request ID: {request})",
        )
    return call_target(registration.target, name, task, registration.options)


def call_target(
    target: str, name: str, task: TaskAttempt, options: FunctionOptions = _NO_OPTIONS
) -> Outcome:
    """Call a target: a URL or a Python callable."""
    return _call_url(target, task) if is_url(target) else call_python(target, name, task, options)


def is_url(target: str) -> bool:
    """Return whether a target is a URL, not a Python callable."""
    return target.startswith(("http://", "https://"))


def find_problem(registration: FoundFunction) -> str:
    """Return why a registered callable cannot be called, "" if no problem is known."""
    if is_url(registration.target):
        return ""
    if shares_process(registration.options):
        return handlers.find_problem(registration.target)
    return checks.find_problem(registration.target, registration.options)


def shares_process(options: FunctionOptions) -> bool:
    """Return whether a callable runs in this process."""
    return (
        options.process == SHARED
        if options.process
        else not options.python and not settings.STATEYARD_FUNCTION_PROCESSES
    )


def broken_registrations() -> Iterator[tuple[str, str, str]]:
    """Yield (entry, target, problem) for each callable that cannot be called."""
    for registration in targets.list_registrations():
        problem = find_problem(registration)
        if problem:
            yield registration.where, registration.target, problem


def runs_here(task: TaskAttempt) -> bool:
    """Whether a task calls a callable in this process, which it could crash."""
    if task.kind != "lambda":
        return False
    name = function_name(task.resource)
    registration = targets.find_registered_function(
        name, task.resource, task.machine, sample=task.sample
    )
    return (
        registration is not None
        and not is_url(registration.target)
        and shares_process(registration.options)
    )


def function_name(arn: str) -> str:
    """Return the function's name in an ARN, without version or alias."""
    return arn.split(":")[NAME_AT]


# -- Python callables ------------------------------------------------------------------------------


def call_python(
    target: str, name: str, task: TaskAttempt, options: FunctionOptions = _NO_OPTIONS
) -> Outcome:
    """Call a registered Python callable."""
    if shares_process(options):
        return _call_shared(target, name, task)
    limit_s = min(options.timeout_s or lambda_runtime.MOST_S, task.timeout_s or math.inf)
    own_limit = options.timeout_s and options.timeout_s <= limit_s
    call = pool.ProcessCall(
        FunctionKey(name, target, options, tuple(handlers.search_folders())),
        task.resource,
        task.idempotency_key,
        task.input,
        limit_s,
        # the Task's own time limit is enforced by the store, with States.Timeout
        limit_s if own_limit else limit_s + outbound.GRACE_S,
    )
    result = pool.call_in_process(call)
    if result.error:
        return Failed(result.error, result.text, record=result.record)
    try:
        text = lambda_runtime.check_answer(result.text, result.record.request)
    except InvocationError as error:
        return Failed(error.name, error.cause, record=result.record)
    return Succeeded(text, record=result.record)


def _call_shared(target: str, name: str, task: TaskAttempt) -> Outcome:
    """Call a callable in this process, unless it has crashed the process too often."""
    if task.losses >= MAX_LOSSES:
        cause = f"{target} was called {task.losses} times, and each time its process ended"
        return Failed("States.Runtime", cause)
    context = lambda_runtime.make_context(name, task.resource, task.idempotency_key, task.timeout_s)
    request, started_ms, begun = context.aws_request_id, clock.now_ms(), time.perf_counter()
    with CapturedOutput(request) as output:
        try:
            load = partial(handlers.load_handler, target)
            outcome: Outcome = Succeeded(lambda_runtime.run_handler(load, task.input, context))
        except InvocationError as error:
            print_error(error.name, error.message, error.stack_trace)
            outcome = Failed(error.name, error.cause)
    output_text = output.take()
    if not output_text:
        return outcome  # a row for each call would cost more than the call itself
    record = pool.CallRecord(
        function=name,
        request=request,
        started_ms=started_ms,
        memory_limit_mb=int(DEFAULT_MEMORY_MB),
        duration_ms=(time.perf_counter() - begun) * 1000,
        output=output_text,
        error=outcome.error or "" if isinstance(outcome, Failed) else "",
    )
    return replace(outcome, record=record)


# -- HTTP ------------------------------------------------------------------------------------------


def _call_url(url: str, task: TaskAttempt) -> Outcome:
    outcome = _asked(url, task)
    if isinstance(outcome, Failed) and outcome.cause:
        return replace(outcome, cause=without_url_secrets(outcome.cause, url))
    secrets = url_secrets(url)
    if isinstance(outcome, Succeeded) and secrets:
        value = redact_json(engine.loads(outcome.output), secrets)
        return replace(outcome, output=engine.dumps(value))
    return outcome


def _asked(url: str, task: TaskAttempt) -> Outcome:
    headers = {
        "Content-Type": "application/json",
        "X-Amz-Invocation-Type": "RequestResponse",
        _IDEMPOTENCY: task.idempotency_key,
    }
    seconds = task.timeout_s + outbound.GRACE_S if task.timeout_s else _DEFAULT_TIMEOUT_S
    content = task.input.encode()
    try:
        answer = outbound.send_request(
            "POST", url, seconds, most=_MAX_ANSWER, content=content, headers=headers
        )
        return _outcome(answer, answer.body.decode("utf-8"))
    except outbound.CallTimeout:
        return Failed("Sandbox.Timedout", f"{url} did not answer within {seconds} seconds")
    except (outbound.CallError, ValueError) as error:
        cause = f"Unable to execute HTTP request: {url}: {error}"
        return Failed("Lambda.SdkClientException", cause)


def _outcome(answer: outbound.HttpAnswer, body: str) -> Outcome:
    if answer.is_error:
        cause = f"the function's endpoint answered {answer.status}: {body[:1000]}"
        return Failed("Lambda.ServiceException", cause)
    reported = _error_type(body)
    if answer.header("x-amz-function-error") or reported:
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
