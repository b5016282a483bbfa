"""Run a Python handler in the server's process, as Lambda's Python runtime does.

The context object, the JSON of the result and the error names are those of awslambdaric, the
runtime interface client that AWS publishes. Its package is not used, because it needs a compiled
client and runs on Linux only. ``console.functions.runner`` has the same for child processes.

The module needs neither settings nor a database: the server and the pytest plugin both use it.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import engine
from console.functions.runner import (
    DEFAULT_MEMORY_MB,
    EXIT_ERROR,
    InvocationError,
    LambdaContext,
    invoke_handler,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_S = 900
"""AWS: no function runs longer."""
_STREAM = time.strftime("%Y/%m/%d/[$LATEST]", time.gmtime()) + uuid.uuid4().hex
"""Lambda has a log stream for each process that runs a function."""


def make_context(name: str, arn: str, idempotency_key: str, seconds: float | None) -> LambdaContext:
    """Return the context of a new invocation. ``seconds``: its timeout, None for no limit."""
    request, deadline = str(uuid.uuid4()), deadline_ms(seconds)
    name, *others = function_fields(name)
    return LambdaContext(name, arn, request, idempotency_key, deadline, *others)


def deadline_ms(seconds: float | None) -> int:
    """Return the deadline of an invocation in epoch milliseconds."""
    return int((time.time() + min(seconds or MOST_S, MOST_S)) * 1000)


def function_fields(name: str, memory_mb: int = 0) -> tuple[str, str, str, str]:
    """Return the context fields of a function: name, memory, log group and stream.

    ``memory_mb``: 0 for the default.
    """
    memory = str(memory_mb) if memory_mb else DEFAULT_MEMORY_MB
    return name, memory, f"/aws/lambda/{name}", _STREAM


def run_handler(
    load: Callable[[], Callable[[Any, Any], Any]], event: str, context: LambdaContext
) -> str:
    """Load a handler and call it with an event, both as JSON text; raise InvocationError."""
    request = context.aws_request_id
    try:
        return check_answer(invoke_handler(load, engine.loads(event), context), request)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise exit_error(code, request) from error


def check_answer(text: str, request: str) -> str:
    """Return the answer of a function; raise InvocationError if it is not JSON."""
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        message = f"the function's answer is not JSON: {error}"
        raise InvocationError("Lambda.Unknown", message, request) from error
    return text


def exit_error(code: int, request: str) -> InvocationError:
    """Return the error for an exited process. ``code``: its return code, as in Popen."""
    reason = "Runtime exited without providing a reason"
    if code > 0:
        reason = f"Runtime exited with error: exit status {code}"
    elif code < 0:
        reason = f"Runtime exited with error: signal: {_signal_name(-code)}"
    return InvocationError(EXIT_ERROR, f"RequestId: {request} Error: {reason}", request)


def _signal_name(number: int) -> str:
    """Return a signal in Lambda's words: "killed", "segmentation fault"."""
    import signal

    try:
        return (signal.strsignal(number) or str(number)).lower()
    except ValueError:
        return str(number)
