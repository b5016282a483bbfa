"""Delay the wake-up signal of messages that normally need none, in processes without a worker.

Starting an activity's task sends such a message: it only adds an event, and the outcome of the task
usually commits it within moments. If nothing does, the signal is sent after the delay. If this
process dies first, the sweep of a worker finds the message.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from console.db import signals
from console.db.writer import release_connection, write
from console.statuses import Topic
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable

MOMENT_S = 0.3
"""Even on a busy machine most workers that answer at once have answered by then.

A process that is woken earlier steps the run in between; then the outcome is recorded by itself.
"""


class DelayedWakeups:
    """Holds execution ids for a moment, on its own thread: ``start``, ``stop``."""

    def __init__(self) -> None:
        """Start empty."""
        self._waiting: dict[int, Callable[[], None]] = {}  # and what ends to listen to its steps
        self._due: deque[tuple[float, int]] = deque()
        self._change = threading.Condition()
        self._end: Callable[[], None] | None = None
        self._ended = False

    def start(self) -> None:
        """Subscribe to messages whose signal can be delayed."""
        self._end = signals.subscribe((Topic.SOON,), self._add)
        threading.Thread(target=self._run, name="delayed-wakeups", daemon=True).start()

    def stop(self) -> None:
        """Unsubscribe, and drop the waiting executions."""
        if self._end is not None:
            self._end()
        with self._change:
            self._ended = True
            waiting = list(self._waiting)
            self._change.notify()
        for number in waiting:
            self._drop(number)

    def _add(self, execution_id: int) -> None:
        """Keep an execution until this process commits a step of it or the delay is over."""
        end = signals.subscribe((Topic.EXECUTION, execution_id), partial(self._drop, execution_id))
        with self._change:
            before = self._waiting.pop(execution_id, None)
            self._waiting[execution_id] = end
            self._due.append((time.monotonic() + MOMENT_S, execution_id))
            self._change.notify()
        if before is not None:
            before()

    def _drop(self, execution_id: int) -> None:
        with self._change:
            end = self._waiting.pop(execution_id, None)
        if end is not None:
            end()

    def _run(self) -> None:
        while not self._ended:
            wake = partial(_wake, self._next())
            log_errors("waking executions failed", wake, None)  # the sweep finds their messages

    def _next(self) -> list[int]:
        """Wait for delays to end; return the executions that were not stepped meanwhile."""
        with self._change:
            while not (self._due or self._ended):
                self._change.wait()
            wait_s = self._due[0][0] - time.monotonic() if self._due else 0
        if wait_s > 0:
            time.sleep(wait_s)
        over = []
        now = time.monotonic()
        with self._change:
            while self._due and self._due[0][0] <= now:
                over.append(self._due.popleft()[1])
            over = [number for number in dict.fromkeys(over) if number in self._waiting]
        for number in over:
            self._drop(number)
        return over


def _wake(execution_ids: list[int]) -> None:
    """Send the signals of several executions together."""

    def publish() -> None:
        for number in execution_ids:
            signals.publish_runnable(number)

    if execution_ids:
        write(publish)
        release_connection()
