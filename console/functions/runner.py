"""Run one function in a child process, as Lambda's Python runtime does.

This file is started by any Python from 3.9 on, so it imports the standard library only. The server
imports it, too: for functions in its own process, and for the pytest plugin.

Theory of operation. The server writes requests to stdin and reads answers from stdout; all output
of the function goes to stderr. Before the function's code is imported, both pipes get other
descriptors that no child inherits, stdin becomes empty, and stdout becomes stderr:

    server                                     this process
    setup: target, folders, memory  ------->   imports the module
               <-----------------------------  ready: import time, or its error
    call: context, event            ------->   calls the function
               <------------- its output ----
               <-----------------------------  the result or the error, source files, memory

A frame begins with the lengths of its two parts, JSON and a text; an answer also has the request's
id. A call takes one write and one read on each side, by one thread. All its output is in its pipe
before the answer; only a server without ``poll`` needs a mark behind it (``process_output``).

A thread reads a third pipe, to which nothing is written. Its end means that the server has gone,
also by kill -9: this process then ends at once, with all its children. Where the server cannot pass
a third pipe (Windows), that thread reads the requests.
"""

from __future__ import annotations

import decimal
import importlib
import importlib.util
import json
import logging
import math
import os
import queue
import signal
import struct
import sys
import threading
import time
import traceback
import uuid
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, BinaryIO

IMPORT_ERROR = "Runtime.ImportModuleError"
SYNTAX_ERROR = "Runtime.UserCodeSyntaxError"
NOT_FOUND = "Runtime.HandlerNotFound"
MARSHAL_ERROR = "Runtime.MarshalError"
EXIT_ERROR = "Runtime.ExitError"
TOO_LARGE = "Function.ResponseSizeTooLarge"
MAX_RESPONSE = 6 * 1024 * 1024 + 100
"""AWS: the largest answer of a synchronous invocation, in bytes."""
DEFAULT_MEMORY_MB = "128"
"""Lambda's default, shown to functions; memory is limited only if a limit is registered."""
REQUEST_HEAD, ANSWER_HEAD = struct.Struct(">II"), struct.Struct(">36sIIdI")
"""Lengths of JSON and text; of an answer also the request, milliseconds and megabytes of memory."""
_MEASURE_S = 0.05
_MOST_MESSAGE, _MOST_LINE = 100_000, 500  # characters of an error and of a line of its stack
_NUMBER = uuid.uuid4().hex  # placeholder for a number inserted later
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_HERE = os.path.dirname(os.path.abspath(__file__))
_LOG_FORMAT = "[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s"


class CognitoIdentity:
    """The mobile client's identity in a context: always empty here."""

    cognito_identity_id = None
    cognito_identity_pool_id = None


class LambdaContext:
    """The second argument of a handler: Lambda's names and types, and ``idempotency_key``.

    ``deadline_ms``: when the time of the function is over, in epoch milliseconds.
    """

    def __init__(
        self,
        function_name: str,
        invoked_function_arn: str,
        aws_request_id: str,
        idempotency_key: str,
        deadline_ms: int,
        memory_limit_in_mb: str = DEFAULT_MEMORY_MB,
        log_group_name: str = "",
        log_stream_name: str = "",
    ) -> None:
        self.function_name = function_name
        self.function_version = "$LATEST"
        self.invoked_function_arn = invoked_function_arn
        self.aws_request_id = aws_request_id
        self.idempotency_key = idempotency_key
        self.deadline_ms = deadline_ms
        self.memory_limit_in_mb = memory_limit_in_mb
        self.log_group_name = log_group_name
        self.log_stream_name = log_stream_name
        self.client_context = None
        self.tenant_id = None
        self.identity = CognitoIdentity()

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the timeout, at least 0."""
        return max(0, self.deadline_ms - int(time.time() * 1000))

    def log(self, message: object) -> None:
        """Write a message to stdout, unchanged."""
        sys.stdout.write(str(message))


class HandlerError(Exception):
    """A callable cannot be called. ``name``: the error's name in Lambda's runtime."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class InvocationError(Exception):
    """An invocation failed. ``name``: the error; ``cause``: the report of Lambda's runtime."""

    def __init__(
        self, name: str, message: str, request: str, stack_trace: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.name, self.message, self.stack_trace = name, message[:_MOST_MESSAGE], stack_trace or []
        members = {"errorMessage": self.message, "errorType": name, "requestId": request}
        report = {**members, "stackTrace": self.stack_trace}
        self.cause = json.dumps(report, ensure_ascii=False, separators=(",", ":"))


def invoke_handler(
    load: Callable[[], Callable[[Any, Any], Any]], event: Any, context: LambdaContext
) -> str:
    """Load a handler, call it with an event, and return its result as JSON text.

    Raise InvocationError; a handler's SystemExit passes.
    """
    request = context.aws_request_id
    try:
        result = load()(event, context)
    except HandlerError as error:
        raise InvocationError(error.name, str(error), request) from error
    except Exception as error:
        stack = _stack_trace(error)
        raise InvocationError(type(error).__name__, str(error), request, stack) from error
    return _response(result, request)


def import_handler(target: str) -> Callable[[Any, Any], Any]:
    """Import ``module:callable``; raise HandlerError, or the exception of the module."""
    name, _, attribute = target.partition(":")
    try:
        member: Any = importlib.import_module(name)
    except ImportError as error:
        raise HandlerError(IMPORT_ERROR, f"Unable to import module '{name}': {error}") from error
    except SyntaxError as error:
        raise HandlerError(SYNTAX_ERROR, f"Syntax error in module '{name}': {error}") from error
    try:
        for part in attribute.split("."):
            member = getattr(member, part)
    except AttributeError:
        raise HandlerError(NOT_FOUND, missing_handler(attribute, name)) from None
    handler: Callable[[Any, Any], Any] = member
    return handler


def missing_handler(attribute: str, module: str) -> str:
    """Return Lambda's message for a name that the module lacks."""
    return f"Handler '{attribute}' missing on module '{module}'"


# -- what a handler returns ------------------------------------------------------------------------


def encode_result(value: Any) -> str:
    """Return the JSON text that awslambdaric writes.

    A Decimal has all its digits, a named tuple is an object, bytes within it are UTF-8 texts.
    """
    numbers: list[str] = []
    text = _encode(_plain(value, numbers))
    for index, number in enumerate(numbers):
        text = text.replace(f'"{_NUMBER}-{index}-"', number, 1)
    return text


def _plain(value: Any, numbers: list[str]) -> Any:
    """Convert a value for json; a Decimal becomes a text that is replaced by its digits later."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, decimal.Decimal):
        numbers.append("NaN" if value.is_nan() else str(value))
        return f"{_NUMBER}-{len(numbers) - 1}-"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {
            name.decode() if isinstance(name, bytes) else name: _plain(member, numbers)
            for name, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item, numbers) for item in value]
    return value  # which json refuses, with the name of its class


def _response(result: Any, request: str) -> str:
    """Return a handler's return value as JSON text; bytes are sent unchanged."""
    try:
        text = result.decode() if isinstance(result, bytes) else encode_result(result)
        size = len(text.encode())  # a lone surrogate has no bytes
    except Exception as error:
        message = f"Unable to marshal response: {error}"
        raise InvocationError(MARSHAL_ERROR, message, request) from error
    if size > MAX_RESPONSE:
        message = f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
        raise InvocationError(TOO_LARGE, f"{message}({MAX_RESPONSE} bytes).", request)
    return text


def _stack_trace(error: BaseException) -> list[str]:
    """Return the frames of the function's own code, without the runtime's and import frames."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.filename.startswith(_HERE) or "importlib" in frame.filename for frame in frames]
    first = own.index(False) if False in own else len(frames)
    return [
        f'  File "{os.path.basename(frame.filename)}", line {frame.lineno}, '
        f"in {frame.name}\n    {str(frame.line)[:_MOST_LINE]}\n"
        for frame in frames[first:]
        if "importlib" not in frame.filename
    ]


# -- the process -----------------------------------------------------------------------------------


class FunctionRunner:
    """The main loop of the process: one setup, then calls until the pipe ends.

    ``life``: the pipe that ends with the server, None if there is none.
    """

    def __init__(self, requests: BinaryIO, answers: int, life: int | None) -> None:
        self._requests = requests
        self._answers = answers
        self._life = life
        self._read: queue.SimpleQueue[tuple[Any, bytes]] = queue.SimpleQueue()
        self._handler: Callable[[Any, Any], Any] | None = None
        self._context: list[str] = []
        self._mark = ""
        self._reported: set[str] = set()
        self._known_modules, self._pid = 0, os.getpid()
        self._memory_mb, self._measured_at = 0, -math.inf

    def run(self) -> None:
        """Answer requests until the pipe ends."""
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            setup, _ = self._next()
            self._set_up(setup)
            while True:
                self._call(*self._next())
        except EOFError:
            _end_group()

    def _watch(self) -> None:
        """End this process when the server has ended."""
        try:
            if self._life is not None:
                os.read(self._life, 1)
            while self._life is None:
                self._read.put(read_request(self._requests))
        finally:
            _end_group()

    def _next(self) -> tuple[Any, bytes]:
        return self._read.get() if self._life is None else read_request(self._requests)

    def _set_up(self, setup: dict[str, Any]) -> None:
        sys.path[:0] = [folder for folder in setup["first"] if folder not in sys.path]
        sys.path += [folder for folder in setup["last"] if folder not in sys.path]
        self._context, self._mark = setup["context"], setup["mark"]
        _limit_memory(setup["memory_mb"])
        begun = time.perf_counter()
        failure: dict[str, Any] = {}
        try:
            self._handler = import_handler(setup["target"])
        except HandlerError as error:
            failure = {"error": error.name, "message": str(error), "stack": []}
        except SystemExit as error:
            _leave(error)
        except Exception as error:  # noqa: BLE001 - whatever the module raises is its caller's
            name, stack = type(error).__name__, _stack_trace(error)
            failure = {"error": name, "message": str(error)[:_MOST_MESSAGE], "stack": stack}
        if failure:
            print_error(failure["error"], failure["message"], failure["stack"])
        self._answer(setup["request"], begun, failure, "")

    def _call(self, header: list[Any], event: bytes) -> None:
        name, *figures = self._context
        request, arn, key, deadline_ms, trace = header
        context = LambdaContext(name, arn, request, key, deadline_ms, *figures)
        os.environ["_X_AMZN_TRACE_ID"] = trace
        _RequestFilter.request = request
        begun = time.perf_counter()
        failure = {}
        try:
            text = invoke_handler(self._load, json.loads(event.decode()), context)
        except InvocationError as error:
            failure, text = {"error": error.name}, error.cause
            print_error(error.name, error.message, error.stack_trace)
        except SystemExit as error:
            _leave(error)
        self._answer(request, begun, failure, text)

    def _load(self) -> Callable[[Any, Any], Any]:
        if self._handler is None:
            raise HandlerError(NOT_FOUND, "the function was not imported")
        return self._handler

    def _answer(self, request: str, begun: float, header: dict[str, Any], text: str) -> None:
        took_ms = (time.perf_counter() - begun) * 1000
        _flush()
        if os.getpid() != self._pid:
            os._exit(0)  # a child that the function has forked: the answer is its parent's
        if len(sys.modules) != self._known_modules:
            self._known_modules = len(sys.modules)
            header["files"] = list(self._new_files())
        now = time.monotonic()
        if now - self._measured_at > _MEASURE_S:
            self._measured_at, self._memory_mb = now, _used_memory_mb()
        if self._mark:
            try:
                os.write(2, self._mark.format(request).encode())
            except OSError:  # the function has closed it
                header["closed"] = True
        head = json.dumps(header).encode() if header else b""
        data = text.encode("utf-8", "replace")
        start = ANSWER_HEAD.pack(request.encode(), len(head), len(data), took_ms, self._memory_mb)
        write_all(self._answers, start + head + data)

    def _new_files(self) -> Iterable[tuple[str, str, int, int, int]]:
        """Yield newly imported source files, each with its compiled file and stamp."""
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if not isinstance(path, str) or not path.endswith(".py") or path in self._reported:
                continue
            self._reported.add(path)
            if _is_installed(path):
                continue
            try:
                status = os.stat(path)
            except OSError:
                continue
            cached = importlib.util.cache_from_source(path)
            yield path, cached, status.st_mtime_ns, status.st_size, status.st_ino


class _RequestFilter(logging.Filter):
    """Log filter that adds the request id to each record."""

    request = ""

    def filter(self, record: logging.LogRecord) -> bool:
        record.aws_request_id = self.request
        return True


def read_request(pipe: BinaryIO) -> tuple[Any, bytes]:
    """Return the next request's JSON value and text; raise EOFError at the pipe's end."""
    header, length = REQUEST_HEAD.unpack(_exactly(pipe, REQUEST_HEAD.size))
    return json.loads(_exactly(pipe, header).decode()), _exactly(pipe, length)


def write_all(pipe: int, frame: bytes) -> None:
    """Write a frame to a pipe; raise OSError if its reader has gone."""
    rest = memoryview(frame)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _exactly(pipe: BinaryIO, length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _is_installed(path: str) -> bool:
    """Whether a file is Python's, a package's, or this one, so it is never edited."""
    return path.startswith((os.path.dirname(os.__file__), _HERE)) or "site-packages" in path


def _limit_memory(memory_mb: int) -> None:
    """Limit the process to this much memory beyond its present use, where supported."""
    if not memory_mb:
        return
    with suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (mapped + memory_mb * 1024 * 1024,) * 2)


def _used_memory_mb() -> int:
    """Return the peak memory of the process, 0 if unknown."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return math.ceil(int(line.split()[1]) / 1024)
    except (OSError, ValueError):
        pass  # no Linux: getrusage, which on Linux also counts what the server has had
    try:
        import resource
    except ImportError:
        return 0
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return math.ceil(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def print_error(name: str, message: str, stack_trace: list[str]) -> None:
    """Write an error to the output as Lambda's runtime does."""
    trace = "".join(["Traceback (most recent call last):\n", *stack_trace]) if stack_trace else ""
    with suppress(OSError, ValueError, AttributeError):  # the function has closed or replaced it
        sys.stdout.write(f"[ERROR] {name}: {message}\n{trace}")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:  # each call is here: suppress takes longer
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the function has closed or replaced it
            continue


def _leave(error: SystemExit) -> None:
    """Exit with the function's code, without waiting for its threads."""
    code = error.code
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    _flush()
    os._exit((code or 0) & 0xFF)


def _end_group() -> None:
    """End this process and all its children: the server has gone."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _take_pipes() -> tuple[BinaryIO, int]:
    """Move the server's pipes to descriptors that no child of the function inherits."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def lambda_formatter() -> logging.Formatter:
    """Return a log formatter with the format of Lambda's runtime."""
    formatter = logging.Formatter(_LOG_FORMAT, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    return formatter


def _log_as_lambda() -> None:
    """Configure the root logger as Lambda's runtime does."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(lambda_formatter())
    handler.addFilter(_RequestFilter())
    logging.getLogger().addHandler(handler)


def main() -> None:
    """Serve the parent process until it ends."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    life = int(sys.argv.pop()) if len(sys.argv) > 1 else None
    if life is not None:
        os.set_inheritable(life, False)
    _log_as_lambda()
    FunctionRunner(*_take_pipes(), life).run()


if __name__ == "__main__":
    main()
