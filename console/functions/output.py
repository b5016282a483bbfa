"""Capture the output of a function's call, also where calls share the server's process.

Theory of operation. A function process has one call at a time, so all its output is of that call.
In the server's process, calls and the server print at the same time. So ``CapturedOutput`` sets a
``BoundedOutput`` in a context variable during a call, and wrappers of ``sys.stdout`` and
``sys.stderr`` write to the one of the current context; without a call, to the server's output. A
handler of the root logger does the same with log lines, in Lambda's format; the server's log does
not get these.

A thread that a function starts has no call in its context: its output goes to the server's output,
and so does the output of compiled code and child processes.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from console.functions import runner

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_OUTPUT = 64 * 1024
"""Maximum bytes of a call's output that are stored: its beginning and its end."""
_HALF = MOST_OUTPUT // 2
_OWN_LOGGERS = ("console", "engine")


class BoundedOutput:
    """Keeps the beginning and the end of an output."""

    def __init__(self, request: str = "") -> None:
        self.request = request
        self._first = bytearray()
        self._last = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append text."""
        room = _HALF - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > _HALF:
            self._dropped += len(self._last) - _HALF
            del self._last[:-_HALF]

    def take(self) -> str:
        """Return the text and clear it."""
        first, last, dropped = bytes(self._first), bytes(self._last), self._dropped
        self._first.clear()
        self._last.clear()
        self._dropped = 0
        middle = f"\n... {dropped} bytes are left out ...\n".encode() if dropped else b""
        return (first + middle + last).decode("utf-8", "replace").replace("\0", "\ufffd")


_current: ContextVar[BoundedOutput | None] = ContextVar("output of a call", default=None)
_installing = threading.Lock()


class CapturedOutput:
    """Captures, within ``with``, the output of this thread. ``request``: the id of the call."""

    __slots__ = ("_output", "_token")

    def __init__(self, request: str) -> None:
        self._output = BoundedOutput(request)

    def __enter__(self) -> BoundedOutput:
        """Start capturing."""
        _install()
        self._token = _current.set(self._output)
        return self._output

    def __exit__(self, *_: object) -> None:
        """Stop capturing."""
        _current.reset(self._token)


class _RoutedStream:
    """Writes to the output of the current call, else to the wrapped stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        output = _current.get()
        if output is None:
            written: int = self._stream.write(text)
            return written
        output.add(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the wrapped stream."""
        return getattr(self._stream, name)


class _CallLogHandler(logging.Handler):
    """Writes log records to the output of the current call."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record if a call is running in this context."""
        output = _current.get()
        if output is None or not _is_of_call(record):
            return
        try:
            record.aws_request_id = output.request
            output.add((self.format(record) + "\n").encode("utf-8", "backslashreplace"))
        except Exception:  # noqa: BLE001 - as every handler: a line that cannot be written is lost
            self.handleError(record)


def _is_of_call(record: logging.LogRecord) -> bool:
    return _current.get() is not None and record.name.partition(".")[0] not in _OWN_LOGGERS


class _ServerLinesOnly(logging.Filter):
    """Filter that keeps the log records of calls out of the server's log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is the server's own."""
        return not _is_of_call(record)


_handler = _CallLogHandler()
_handler.setFormatter(runner.lambda_formatter())
_server_lines = _ServerLinesOnly()


def _install() -> None:
    """Install the stream wrappers and the log handler, once."""
    root = logging.getLogger()
    if (
        isinstance(sys.stdout, _RoutedStream)
        and isinstance(sys.stderr, _RoutedStream)
        and _handler in root.handlers
    ):
        return
    with _installing:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _RoutedStream):
                setattr(sys, name, _RoutedStream(stream))
        if _handler not in root.handlers:
            for handler in root.handlers:
                handler.addFilter(_server_lines)
            root.addHandler(_handler)
