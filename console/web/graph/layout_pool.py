"""Pool of child processes for Graphviz layouts, which can be killed.

A caller borrows a child for one picture (``LayoutPool.session``), which may take several layouts:
one a group. Together they have ``PROCESSOR_S`` of processor time and ``LIMIT_S`` of wall time. At
the first limit the child ends itself: the graph is too large. The second one comes first only on a
busy machine: the parent kills the child, and the same graph may fit later. A killed child is
replaced at once.

A child ends when its pipe is closed, also after kill -9 of the parent; a working one at its limit
of processor time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from console.functions.cpu_affinity import allowed_processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LIMIT_S = 2.0
PROCESSOR_S = 1.5
CHILDREN = 2
MOST_WAITING = 8
WAIT_S = 0.5
"""The time for which a caller waits for a child.

With ``LIMIT_S`` and the page itself it is below 3 s.
"""
_START_S = 5.0
_ENDING_S = 1.0
_MOST_PICTURES = 200  # of one child: what Graphviz does not give back would fill its memory
_MOST_BYTES = 16 * 1024 * 1024  # of an answer
_PIPE_BYTES = getattr(select, "PIPE_BUF", 512)  # what can be written at once
_talkers = futures.ThreadPoolExecutor(CHILDREN, "layout")  # starts no thread by itself
_CHILD = Path(__file__).resolve().with_name("layout_child.py")


class LayoutFailure(StrEnum):
    """The reason why Graphviz made no layout."""

    TIME = "time"
    """The layout took more than ``PROCESSOR_S`` of processor time."""
    SLOW = "slow"
    """The layout took more than ``LIMIT_S``, because the processor was busy."""
    CRASH = "crash"
    """The child ended: by the limit of memory, or by a fault of Graphviz."""
    QUEUE = "queue"
    """No child was free in time."""


class NotLaidOut(Exception):
    """Graphviz did not lay out a graph."""

    def __init__(self, reason: LayoutFailure) -> None:
        super().__init__(reason)
        self.reason = reason


class LayoutChild:
    """One child process, used by one caller at a time."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        """``options``: further arguments of ``layout_child``."""
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._pictures = 0
        self._ready = False

    @property
    def pid(self) -> int:
        """Return the process id, 0 without a process."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Start a process, without waiting until it is ready; raise ``OSError``."""
        processors = ",".join(map(str, sorted(allowed_processors())))
        command = [sys.executable, "-I", str(_CHILD), *self._options, "--processors", processors]
        self._pictures, self._ready = 0, False
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in a terminal is for the server, which closes it
        )

    def begin(self) -> None:
        """Ensure a ready process; raise ``NotLaidOut`` if there is none in time."""
        if self._process is not None and self._pictures >= _MOST_PICTURES:
            self.end()
        try:
            if self._process is None or self._process.poll() is not None:
                self.end()
                self.start()
        except OSError:
            raise NotLaidOut(LayoutFailure.QUEUE) from None
        if not self._ready and not _within_deadline(self._line, time.monotonic() + _START_S):
            self.end()
            raise NotLaidOut(LayoutFailure.QUEUE)
        self._ready = True
        self._pictures += 1

    def ask(self, dot: str, seconds: float, deadline: float) -> dict[str, Any]:
        """Return the child's answer; raise ``NotLaidOut`` after the child has ended.

        ``seconds``: of processor time; ``deadline``: on the monotonic clock.
        """
        request = json.dumps({"dot": dot, "seconds": seconds}).encode() + b"\n"
        try:
            answer = self._exchange(request, deadline)
        except OSError:  # the process ended before it read everything
            answer = b""
        if answer is None:
            self.end()
            raise NotLaidOut(LayoutFailure.SLOW)
        try:
            layout: dict[str, Any] = json.loads(answer)
        except ValueError:  # nothing, or the beginning of an answer: the process has ended
            code = self.end(_ENDING_S)
            timed = code == -getattr(signal, "SIGPROF", 0)
            raise NotLaidOut(LayoutFailure.TIME if timed else LayoutFailure.CRASH) from None
        return layout

    def _exchange(self, request: bytes, deadline: float) -> bytes | None:
        """Return the child's line; empty if it ended, None at the deadline."""
        return _within_deadline(lambda until: self._talk(request, until), deadline)

    def _talk(self, request: bytes, deadline: float) -> bytes | None:
        process = self._process
        if process is None or process.stdin is None:
            return b""
        view = memoryview(request)
        while view:  # a child that reads nothing must not hold its caller: the pipe is not large
            if not _ready(process.stdin, "POLLOUT", deadline):
                return None
            view = view[os.write(process.stdin.fileno(), view[:_PIPE_BYTES]) :]
        return self._line(deadline)

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line of the process; empty at its end, None at the deadline."""
        process = self._process
        if process is None or process.stdout is None:
            return b""
        answer = bytearray()
        while not answer.endswith(b"\n"):
            if not _ready(process.stdout, "POLLIN", deadline):
                return None
            part = os.read(process.stdout.fileno(), 1 << 20)
            answer += part
            if not part or len(answer) > _MOST_BYTES:
                return b""
        return bytes(answer)

    def end(self, grace_s: float = 0.0) -> int | None:
        """Kill the process and its children; return its exit code.

        ``grace_s``: how long to wait for its own end, if it is ending.
        """
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        with contextlib.suppress(OSError, AttributeError):  # gone, or Windows
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return process.returncode


def _within_deadline(talk: Callable[[float], bytes | None], deadline: float) -> bytes | None:
    """Return the result of ``talk``, called with the deadline; None at the deadline.

    Windows has no poll: there ``talk`` blocks, in a thread, and ends when the child is killed.
    """
    if hasattr(select, "poll"):
        return talk(deadline)
    try:
        return _talkers.submit(talk, math.inf).result(max(deadline - time.monotonic(), 0))
    except futures.TimeoutError:
        return None


def _ready(pipe: IO[bytes], event: str, deadline: float) -> bool:
    """Wait until a pipe can be used; False at the deadline. Without one it may block.

    ``select.select`` raises for descriptors above 1023, which a server with many connections has.
    """
    if deadline == math.inf:
        return True
    poll = select.poll()
    poll.register(pipe, getattr(select, event))
    return bool(poll.poll(max(deadline - time.monotonic(), 0) * 1000))


class LayoutSession:
    """A borrowed child, with the remaining limits of one picture."""

    def __init__(self, child: LayoutChild) -> None:
        self._child = child
        self._seconds = PROCESSOR_S
        self._deadline = time.monotonic() + LIMIT_S

    def lay_out(self, dot: str) -> dict[str, Any]:
        """Return the layout of the child (see ``layout_child``); raise ``NotLaidOut``."""
        if self._seconds <= 0:
            raise NotLaidOut(LayoutFailure.TIME)
        answer = self._child.ask(dot, self._seconds, self._deadline)
        self._seconds -= answer["seconds"]
        drawn: dict[str, Any] = answer["drawn"]
        return drawn


class LayoutPool:
    """A few children, each lent to one caller at a time. ``lent``: number in use."""

    def __init__(self, children: Sequence[LayoutChild]) -> None:
        """Start no child yet."""
        self._free = list(children)
        self._waiting = 0
        self._returned = threading.Condition()
        self.lent = 0

    @contextlib.contextmanager
    def session(self) -> Iterator[LayoutSession]:
        """Lend a child for one picture; raise ``NotLaidOut`` if none is free in time."""
        child = self._take()
        try:
            child.begin()
            yield LayoutSession(child)
        except BaseException:  # its answer may be unread: the next caller must not get it
            child.end()
            with contextlib.suppress(OSError):
                child.start()  # it starts up before the next caller needs it
            raise
        finally:
            with self._returned:
                self.lent -= 1
                self._free.append(child)
                self._returned.notify()

    def _take(self) -> LayoutChild:
        deadline = time.monotonic() + WAIT_S
        with self._returned:
            while not self._free:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or self._waiting >= MOST_WAITING:
                    raise NotLaidOut(LayoutFailure.QUEUE)
                self._waiting += 1
                try:
                    self._returned.wait(remaining_s)
                finally:
                    self._waiting -= 1
            self.lent += 1
            return self._free.pop()

    def end(self) -> None:
        """End the idle children."""
        with self._returned:
            for child in self._free:
                child.end()


POOL = LayoutPool([LayoutChild() for _ in range(CHILDREN)])
atexit.register(POOL.end)
