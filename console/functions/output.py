"""Keep what a call prints, and find it where calls share the server's process.

Theory of operation. In a process of its own all that a function prints is of one call at a time.
In the server's process many calls print at once, and so does the server. So ``CapturedOutput`` puts
a ``BoundedOutput`` into a context variable for the time of a call, and streams in the place of
``sys.stdout`` and ``sys.stderr`` write to the one of their caller; without one, to where the server
prints. A handler of the root logger does the same with lines of the log, in Lambda's form; they
stay out of the server's log.

A thread that a function starts has no context of a call: what it prints goes to the server's
output, and so does what compiled code or a child process writes.
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
"""Bytes of the output of one call that are kept: its beginning and its end."""
_HALF = MOST_OUTPUT // 2
_OWN_LOGGERS = ("console", "engine")


class BoundedOutput:
    """The beginning and the end of what is added."""

    def __init__(self, request: str = "") -> None:
        self.request = request
        self._first = bytearray()
        self._last = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = _HALF - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > _HALF:
            self._dropped += len(self._last) - _HALF
            del self._last[:-_HALF]

    def take(self) -> str:
        """Return the text, and begin anew."""
        first, last, dropped = bytes(self._first), bytes(self._last), self._dropped
        self._first.clear()
        self._last.clear()
        self._dropped = 0
        middle = f"\n... {dropped} bytes are left out ...\n".encode() if dropped else b""
        return (first + middle + last).decode("utf-8", "replace").replace("\0", "\ufffd")


_current: ContextVar[BoundedOutput | None] = ContextVar("output of a call", default=None)
_installing = threading.Lock()


class CapturedOutput:
    """Keeps, within ``with``, what this thread prints and logs. ``request``: the id of the call."""

    __slots__ = ("_output", "_token")

    def __init__(self, request: str) -> None:
        self._output = BoundedOutput(request)

    def __enter__(self) -> BoundedOutput:
        """Begin."""
        _install()
        self._token = _current.set(self._output)
        return self._output

    def __exit__(self, *_: object) -> None:
        """End."""
        _current.reset(self._token)


class _RoutedStream:
    """Writes to the output of the call that writes, else to the stream it stands for."""

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
        """Return everything else of the stream."""
        return getattr(self._stream, name)


class _CallLogHandler(logging.Handler):
    """Writes lines of the log to the output of the call that logs."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, if a call logs it."""
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
    """Keeps the lines of calls out of the server's log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is the server's."""
        return not _is_of_call(record)


_handler = _CallLogHandler()
_handler.setFormatter(runner.lambda_formatter())
_server_lines = _ServerLinesOnly()


def _install() -> None:
    """Put streams and handler into their places, where they are not yet."""
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
