"""Know which accepted starts wait for a worker of this process, so that not too many are accepted.

To accept a start takes less time than to work it. A client that starts executions as fast as it is
answered would leave a queue that grows, behind which each later execution waits: so the API refuses
starts while the oldest that waits has waited for two seconds, if many do.

What waits because the functions are slow is no overload of this server: then all starts are taken.
Only a process that works what it accepts knows this (``up``). Workers of a team take their share,
and the web processes that accept stay behind them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MANY_WAITING = 256
LONG_WAIT_S = 2.0
_FORGOTTEN_S = 60.0
"""What waits for longer is none of our queue's: its worker has lost or left it."""


class WaitingStarts:
    """Executions that were started by a caller, until a worker begins with them."""

    def __init__(self) -> None:
        """Nobody works here."""
        self._since: OrderedDict[int, float] = OrderedDict()
        self._is_held_up: Callable[[], bool] | None = None
        self._lock = threading.Lock()
        self.is_known = False
        """Whether a worker of this process begins with what is added."""

    def work(self, is_held_up: Callable[[], bool] | None) -> None:
        """Begin to work in this process, or end (None). ``is_held_up``: are functions slow?"""
        with self._lock:
            self._is_held_up = is_held_up
            self.is_known = is_held_up is not None
            self._since.clear()

    def add(self, execution_id: int) -> None:
        """Note that a start was committed which a worker of this process has to go on with."""
        with self._lock:
            self._since[execution_id] = time.monotonic()

    def begin(self, execution_id: int) -> None:
        """Note that a worker begins with an execution."""
        if self._since:
            with self._lock:
                self._since.pop(execution_id, None)

    def too_many(self) -> bool:
        """Tell whether another start would wait for long."""
        is_held_up = self._is_held_up
        if is_held_up is None or len(self._since) < MANY_WAITING:
            return False
        return self._longest_wait_s() > LONG_WAIT_S and not is_held_up()

    def _longest_wait_s(self) -> float:
        now = time.monotonic()
        with self._lock:
            while self._since:
                oldest = next(iter(self._since))
                waited_s = now - self._since[oldest]
                if waited_s < _FORGOTTEN_S:
                    return waited_s
                del self._since[oldest]
        return 0.0


WAITING_STARTS = WaitingStarts()
