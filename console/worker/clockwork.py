"""What is due, and when?  A heap of moments in memory, filled from the rows."""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING

from console import clock
from console.models import TaskRow, Timer

if TYPE_CHECKING:
    from collections.abc import Callable

# (epoch milliseconds, what: timer, timeout or heartbeat; execution id, task)
Due = tuple[int, str, int, int]
HORIZON_MS = 5_000
"""How far ahead the rows are read; what is set nearer than that arrives as a hint."""


class Clockwork:
    """Calls ``fire(what, execution_id, task)`` when something is due, never earlier."""

    def __init__(self, fire: Callable[[str, int, int], None]) -> None:
        """``fire`` must return quickly."""
        self._fire = fire
        self._heap: list[Due] = []
        self._known: set[Due] = set()
        self._change = threading.Condition()
        self._stopping = False

    def add(self, due_ms: int, what: str, execution_id: int, task: int = 0) -> None:
        """Remember something that is due within the horizon; the rows keep the rest."""
        due = (due_ms, what, execution_id, task)
        with self._change:
            if due in self._known or due_ms > clock.now_ms() + HORIZON_MS:
                return
            self._known.add(due)
            heapq.heappush(self._heap, due)
            if self._heap[0] == due:
                self._change.notify()

    def refill(self) -> None:
        """Read from the rows what is due within the horizon, or overdue."""
        until = clock.now_ms() + HORIZON_MS
        timers = Timer.objects.filter(due_ms__lte=until).values_list("due_ms", "execution_id")
        for due_ms, execution_id in timers.iterator():
            self.add(due_ms, "timer", execution_id)
        for what in ("timeout", "heartbeat"):
            column = f"{what}_due_ms"
            rows = TaskRow.objects.filter(**{f"{column}__lte": until}).exclude(status="closed")
            for due_ms, execution_id, task in rows.values_list(column, "execution_id", "task"):
                self.add(due_ms, what, execution_id, task)

    def run(self) -> None:
        """Fire what is due until ``stop`` is called."""
        while True:
            with self._change:
                if self._stopping:
                    return
                wait_s = self._wait_s()
                if wait_s > 0:
                    self._change.wait(min(wait_s, 1.0))
                    continue
                due = heapq.heappop(self._heap)
                self._known.discard(due)
            self._fire(due[1], due[2], due[3])

    def _wait_s(self) -> float:
        if not self._heap:
            return 1.0
        return (self._heap[0][0] - clock.now_ms()) / 1000

    def stop(self) -> None:
        """End ``run``."""
        with self._change:
            self._stopping = True
            self._change.notify()
