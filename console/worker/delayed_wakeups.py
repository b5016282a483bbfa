"""Wake the workers a moment after a message that moves nothing, if nothing else came by then.

A process without a worker gives the tasks of activities to their workers. The message of such a
start makes an event and nothing more, and the outcome of the task takes it along if it comes to
this process at once. So most of these messages need no signal to other processes. If this process
dies with one that does, the sweep finds its message.
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
    """Remembers executions for a moment, on a thread of its own: ``start``, ``stop``."""

    def __init__(self) -> None:
        """Nothing is remembered."""
        self._waiting: dict[int, Callable[[], None]] = {}  # and what ends to listen to its steps
        self._due: deque[tuple[float, int]] = deque()
        self._change = threading.Condition()
        self._end: Callable[[], None] | None = None
        self._ended = False

    def start(self) -> None:
        """Begin to hear of messages that may wait."""
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
        """Remember an execution until a step of it is committed here, or the moment is over."""
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
        """Wait until moments are over, and return the executions that were not stepped."""
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
    """Send the signals of executions together."""

    def publish() -> None:
        for number in execution_ids:
            signals.publish_runnable(number)

    if execution_ids:
        write(publish)
        release_connection()
