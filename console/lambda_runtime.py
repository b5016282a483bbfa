"""Run a Python callable as the Python runtime of Lambda runs a handler.

The context object, the JSON of the result and the names of errors are those of awslambdaric, the
runtime interface client that AWS publishes. Its package is not used: it brings a compiled client of
the runtime's own API for Linux alone. What it encodes with, simplejson, is used here, too.

The module needs neither settings nor a database: the server and the pytest plugin both use it.
"""

from __future__ import annotations

import decimal
import math
import sys
import time
import traceback
import uuid
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simplejson
from simplejson.raw_json import RawJSON

import engine

if TYPE_CHECKING:
    from collections.abc import Callable

IMPORT_ERROR = "Runtime.ImportModuleError"
SYNTAX_ERROR = "Runtime.UserCodeSyntaxError"
NOT_FOUND = "Runtime.HandlerNotFound"
MARSHAL_ERROR = "Runtime.MarshalError"
EXIT_ERROR = "Runtime.ExitError"
TOO_LARGE = "Function.ResponseSizeTooLarge"
MAX_RESPONSE = 6 * 1024 * 1024 + 100
"""AWS: the largest answer of a synchronous invocation, in bytes."""
_MOST_S = 900
"""AWS: no function runs longer."""
_MEMORY_MB = "128"
"""Lambda's default. Nothing holds a callable in this process to it."""
_OURS = (__file__, str(Path(__file__).parent / "integrations"))
"""Files whose frames no stack trace begins with: the runtime's own."""
_STREAM = time.strftime("%Y/%m/%d/[$LATEST]", time.gmtime()) + uuid.uuid4().hex
"""Lambda has a log stream for each process that runs a function."""


@dataclass(frozen=True, slots=True)
class CognitoIdentity:
    """Who calls, for mobile clients: nobody here."""

    cognito_identity_id: str | None = None
    cognito_identity_pool_id: str | None = None


@dataclass(slots=True)
class LambdaContext:
    """The second argument of a handler: Lambda's names and types, and ``idempotency_key``.

    ``deadline_ms``: when the time of the Task is over, in epoch milliseconds.
    """

    function_name: str
    invoked_function_arn: str
    aws_request_id: str
    idempotency_key: str
    deadline_ms: int
    memory_limit_in_mb: str = _MEMORY_MB
    function_version: str = "$LATEST"
    log_group_name: str = ""
    log_stream_name: str = ""
    client_context: None = None
    tenant_id: None = None
    identity: CognitoIdentity = field(default_factory=CognitoIdentity)

    def get_remaining_time_in_millis(self) -> int:
        """Return how many milliseconds are left, 0 if none is."""
        return max(0, self.deadline_ms - int(time.time() * 1000))

    def log(self, message: object) -> None:
        """Write to stdout, as it is."""
        sys.stdout.write(str(message))


class _Encoder(simplejson.JSONEncoder):
    """Writes what awslambdaric writes: a Decimal with all digits, a named tuple as an object."""

    def __init__(self) -> None:
        super().__init__(
            use_decimal=False, ensure_ascii=False, allow_nan=True, separators=(",", ":")
        )

    def default(self, o: Any) -> Any:
        """Write a Decimal; anything else raises TypeError."""
        if isinstance(o, decimal.Decimal):
            return math.nan if o.is_nan() else RawJSON(str(o))
        return super().default(o)


_encode = _Encoder().encode


class HandlerError(Exception):
    """A callable cannot be called. ``name``: of the error, as Lambda's runtime has it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class InvocationError(Exception):
    """An invocation failed. ``name``: of the error; ``cause``: the report of Lambda's runtime."""

    def __init__(
        self, name: str, message: str, request: str, stack_trace: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.name = name
        self.cause = engine.dumps(
            {
                "errorMessage": message,
                "errorType": name,
                "requestId": request,
                "stackTrace": stack_trace or [],
            }
        )


def make_context(name: str, arn: str, idempotency_key: str, seconds: int | None) -> LambdaContext:
    """Return the context of a new invocation. ``seconds``: that it may take, None for no limit."""
    deadline = time.time() + min(seconds or _MOST_S, _MOST_S)
    return LambdaContext(
        function_name=name,
        invoked_function_arn=arn,
        aws_request_id=str(uuid.uuid4()),
        idempotency_key=idempotency_key,
        deadline_ms=int(deadline * 1000),
        log_group_name=f"/aws/lambda/{name}",
        log_stream_name=_STREAM,
    )


def run_handler(
    load: Callable[[], Callable[[Any, Any], Any]], event: str, context: LambdaContext
) -> str:
    """Load a handler and call it with an event, both as JSON text; raise InvocationError."""
    request = context.aws_request_id
    try:
        result = load()(engine.loads(event), context)
    except HandlerError as error:
        raise InvocationError(error.name, str(error), request) from error
    except SystemExit as error:
        said = f"RequestId: {request} Error: {_exit_text(error)}"
        raise InvocationError(EXIT_ERROR, said, request) from error
    except Exception as error:
        stack = _stack_trace(error)
        raise InvocationError(type(error).__name__, str(error), request, stack) from error
    return _response(result, request)


def _response(result: Any, request: str) -> str:
    """Return what a handler returned, as JSON text: bytes are sent as they are."""
    try:
        text = result.decode() if isinstance(result, bytes) else _encode(result)
        text.encode()  # a lone surrogate has no bytes
    except Exception as error:
        said = f"Unable to marshal response: {error}"
        raise InvocationError(MARSHAL_ERROR, said, request) from error
    size = engine.byte_size(text)
    if size > MAX_RESPONSE:
        said = f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
        raise InvocationError(TOO_LARGE, f"{said}({MAX_RESPONSE} bytes).", request)
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        said = f"the function's answer is not JSON: {error}"
        raise InvocationError("Lambda.Unknown", said, request) from error
    return text


def _exit_text(error: SystemExit) -> str:
    if error.code in (None, 0):
        return "Runtime exited without providing a reason"
    return f"Runtime exited with exit status {error.code if isinstance(error.code, int) else 1}"


def _stack_trace(error: Exception) -> list[str]:
    """Return the frames of the function's own code: not the runtime's, nor those of an import."""
    frames = dropwhile(
        lambda frame: frame.filename.startswith(_OURS), traceback.extract_tb(error.__traceback__)
    )
    return [
        f'  File "{Path(frame.filename).name}", line {frame.lineno}, '
        f"in {frame.name}\n    {frame.line}\n"
        for frame in frames
        if "importlib" not in frame.filename
    ]
