"""Count the accepted starts that wait for this process's worker, to refuse more under overload.

Accepting a start takes less time than running the execution. A client that starts executions as
fast as it can would build a growing queue, in which later executions wait ever longer. So the API
refuses starts while many wait and the oldest has waited for two seconds.

Starts that wait because functions are slow are no overload of this server and are all accepted.
Only a process that also runs its executions (``up``) has this information. Workers of a team take
their share, and the accepting web processes stay behind them.
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
"""A start that waits for longer does not count: another worker has it, or it is lost."""


class WaitingStarts:
    """The started executions that no worker has begun yet."""

    def __init__(self) -> None:
        """Start without a worker in this process."""
        self._since: OrderedDict[int, float] = OrderedDict()
        self._is_held_up: Callable[[], bool] | None = None
        self._lock = threading.Lock()
        self.is_known = False
        """Whether a worker of this process steps the added executions."""

    def work(self, is_held_up: Callable[[], bool] | None) -> None:
        """Begin or end (None) work in this process. ``is_held_up``: whether functions are slow."""
        with self._lock:
            self._is_held_up = is_held_up
            self.is_known = is_held_up is not None
            self._since.clear()

    def add(self, execution_id: int) -> None:
        """Record a committed start that a worker of this process must continue."""
        with self._lock:
            self._since[execution_id] = time.monotonic()

    def begin(self, execution_id: int) -> None:
        """Record that a worker begins with an execution."""
        if self._since:
            with self._lock:
                self._since.pop(execution_id, None)

    def too_many(self) -> bool:
        """Return whether another start would wait for long."""
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
