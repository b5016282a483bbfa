"""Timer queue: an in-memory heap of near due times, refilled from the rows."""

from __future__ import annotations

import heapq
import threading
from functools import partial
from typing import TYPE_CHECKING

from console.db import clock
from console.db.writer import release_connection
from console.models import TaskRow, Timer
from console.statuses import TaskStatus
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from console.store.tasks.workers import Share

# (epoch milliseconds, what: timer, timeout, heartbeat or look; execution id, task)
Due = tuple[int, str, int, int]
_LOOK_S = 1.0
_AT_ONCE = 50_000  # timers read per refill, earliest first
HORIZON_MS = 5_000
"""The length of the future for which rows are read; nearer timers arrive as signals."""


class TimerQueue:
    """Calls ``fire(what, execution_id, task)`` at each due time, never earlier."""

    def __init__(self, fire: Callable[[str, int, int], None]) -> None:
        """``fire`` must return quickly."""
        self._fire = fire
        self._heap: list[Due] = []
        self._known: set[Due] = set()
        self._change = threading.Condition()
        self._stopping = False

    def add(self, due_ms: int, kind: str, execution_id: int, task: int = 0) -> None:
        """Add a due time within the horizon; later timers are only in the rows."""
        if due_ms <= clock.now_ms() + HORIZON_MS:
            self._add_all([(due_ms, kind, execution_id, task)])

    def _add_all(self, entries: Iterable[Due]) -> None:
        with self._change:
            new = [due for due in dict.fromkeys(entries) if due not in self._known]
            self._known.update(new)
            first = self._heap[0] if self._heap else None
            for due in new:
                heapq.heappush(self._heap, due)
            if new and self._heap[0] != first:
                self._change.notify()

    def refill(self, share: Share) -> None:
        """Read overdue entries and due times within the horizon from the rows of a share."""
        until = clock.now_ms() + HORIZON_MS
        timers = share.part(Timer.objects.filter(due_ms__lte=until)).order_by("due_ms")
        due = timers.values_list("due_ms", "execution_id")[:_AT_ONCE]
        self._add_all([(due_ms, "timer", execution_id, 0) for due_ms, execution_id in due])
        for kind in ("timeout", "heartbeat", "look"):
            column = f"{kind}_due_ms"
            rows = TaskRow.objects.filter(**{f"{column}__lte": until}).exclude(
                status=TaskStatus.CLOSED
            )
            deadlines = share.part(rows).values_list(column, "execution_id", "task")
            self._add_all([(due_ms, kind, *task) for due_ms, *task in deadlines])

    def run(self) -> None:
        """Fire due entries until ``stop`` is called."""
        nothing: list[Due] = []
        while not self._stopping:
            for due in log_errors("the timer queue could not read the time", self._next, nothing):
                # A timer that fails here keeps its row, and the next refill reads it again.
                log_errors("something due failed", partial(self._fire, *due[1:]), None)
            release_connection()

    def _next(self) -> list[Due]:
        """Wait for up to a second; return the due entries in order."""
        now_ms = clock.now_ms()  # may ask the database, so not while holding the lock
        due: list[Due] = []
        with self._change:
            while self._heap and self._heap[0][0] <= now_ms:
                due.append(heapq.heappop(self._heap))
            self._known.difference_update(due)
            if not due and not self._stopping:
                wait_s = (self._heap[0][0] - now_ms) / 1000 if self._heap else _LOOK_S
                self._change.wait(min(wait_s, _LOOK_S))
        return due

    def stop(self) -> None:
        """End ``run``."""
        with self._change:
            self._stopping = True
            self._change.notify()
