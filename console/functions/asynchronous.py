"""Invoke functions asynchronously, as Lambda does for ``InvocationType: Event``.

The invocation is accepted before the function runs. A failed invocation is retried twice, after one
minute and after two more. Source: "How Lambda handles errors and retries with asynchronous
invocation" of the documentation. The queue is in memory: waiting invocations end with the process.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
RETRY_S = (60.0, 120.0)
_THREADS = 4
"""The number of threads per project, so that no project delays the functions of another."""
_IDLE_S = 10.0
_MOST = 10_000


@dataclass(order=True, slots=True)
class _Invocation:
    due: float
    number: int
    call: Callable[[int], str] = field(compare=False)
    name: str = field(compare=False)
    attempt: int = field(default=0, compare=False)


class AsynchronousInvocations:
    """Invocations of a project that wait for a thread or for their next attempt."""

    def __init__(self, threads: int = _THREADS) -> None:
        """Start no thread yet."""
        self._change = threading.Condition()  # guards all below
        self._queue: list[_Invocation] = []
        self._numbers = itertools.count()
        self._size = threads
        self._threads = 0
        self._idle = 0

    def submit(self, name: str, call: Callable[[int], str]) -> None:
        """Queue an invocation of a function.

        ``call``: gets the number of the attempt, from 0 on, and returns the name of the function's
        error, "" if there was none.
        """
        with self._change:
            if len(self._queue) >= _MOST:
                log.error("an asynchronous invocation is lost: too many wait", function=name)
                return
            self._push(_Invocation(time.monotonic(), next(self._numbers), call, name))

    def _push(self, invocation: _Invocation) -> None:
        heapq.heappush(self._queue, invocation)
        if self._idle < len(self._queue) and self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._work, name="function-events", daemon=True).start()
        self._change.notify()

    def _work(self) -> None:
        while (invocation := self._next()) is not None:
            try:
                error = invocation.call(invocation.attempt)
            except Exception:
                log.exception("an asynchronous invocation raised", function=invocation.name)
                error = "States.TaskFailed"
            if error:
                self._again(invocation, error)

    def _next(self) -> _Invocation | None:
        """Wait for a due invocation; None after a while without any."""
        with self._change:
            until = time.monotonic() + _IDLE_S
            while True:
                now = time.monotonic()
                due = self._queue[0].due if self._queue else None
                if due is not None and due <= now:
                    return heapq.heappop(self._queue)
                # One thread stays for later retries.
                if now >= until and (due is None or self._threads > 1):
                    self._threads -= 1
                    return None
                wake = until if now < until else now + _IDLE_S
                self._idle += 1
                self._change.wait(min(wake, due if due is not None else wake) - now)
                self._idle -= 1

    def _again(self, invocation: _Invocation, error: str) -> None:
        if invocation.attempt >= len(RETRY_S):
            log.warning(
                "an asynchronous invocation failed for good", function=invocation.name, error=error
            )
            return
        wait_s = RETRY_S[invocation.attempt]
        log.info(
            "an asynchronous invocation failed",
            function=invocation.name,
            error=error,
            next_attempt_s=wait_s,
        )
        with self._change:
            due = time.monotonic() + wait_s
            self._push(
                _Invocation(
                    due,
                    next(self._numbers),
                    invocation.call,
                    invocation.name,
                    invocation.attempt + 1,
                )
            )


_of_projects: dict[str, AsynchronousInvocations] = {}
_guard = threading.Lock()


def submit_invocation(project: str, name: str, call: Callable[[int], str]) -> None:
    """Queue an invocation of a function of a project."""
    with _guard:
        invocations = _of_projects.setdefault(project, AsynchronousInvocations())
    invocations.submit(name, call)
