"""Lend function processes to calls: queue callers, start processes, make room.

Theory of operation. A process that comes back goes straight to the caller of its function that has
waited longest, so nobody is woken in vain. A caller starts a process at once if its function has
none, and after ``_PATIENCE_S`` if all are busy: short calls share the processes that there are,
since a start takes longer than many of them, and long ones get a process each. At the limit, the
process that has been idle longest makes room for another function. Without an idle one, the next
process that comes back does, if somebody has waited ``_LONG_S`` for room:

1. The limit is 1, and function A is called without a pause.
2. A call of B waits. Each time the process comes back, a call of A waits, too.
3. After a second the process of A is ended as it comes back, and B starts its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.functions.process import FunctionKey, FunctionProcess

_PATIENCE_S = 0.05
_LONG_S = 1.0
_STARTING = max(2, os.cpu_count() or 1)
"""So many are started at once: more would only slow each other down."""


@dataclass(eq=False, slots=True)
class WaitingCaller:
    """A waiting call. ``answered``: locked until a process is lent or may be started (None)."""

    key: FunctionKey
    since: float
    answered: threading.Lock = field(default_factory=threading.Lock)
    is_answered: bool = False
    process: FunctionProcess | None = None


class ProcessLender:
    """The pool of processes. Callers of every method but ``take`` hold its lock."""

    def __init__(self, limit: int, lock: threading.Lock) -> None:
        self._limit = limit
        self._lock = lock
        self._idle: dict[FunctionKey, list[FunctionProcess]] = {}
        self._counts: Counter[FunctionKey] = Counter()  # with those that are being started
        self._starting = 0
        self._waiting: dict[FunctionKey, deque[WaitingCaller]] = {}
        self._for_room: deque[WaitingCaller] = deque()
        self._surplus: list[FunctionProcess] = []

    def take(self, key: FunctionKey) -> FunctionProcess | None:
        """Return a process of a function, or None: the caller starts one, which is counted."""
        with self._lock:
            idle = self._idle.get(key)
            if idle:
                process = idle.pop()
                if not idle:
                    del self._idle[key]
                return process
            caller = WaitingCaller(key, time.monotonic())
            caller.answered.acquire()
            self._waiting.setdefault(key, deque()).append(caller)
            if not self._counts[key]:
                self._wait_for_room(caller)
        if not caller.answered.acquire(timeout=_PATIENCE_S):
            with self._lock:
                self._wait_for_room(caller)
            caller.answered.acquire()
        return caller.process

    def started(self) -> None:
        """Note that a start is over, whatever came of it."""
        self._starting -= 1
        self._grant_room()

    def give_back(self, process: FunctionProcess) -> None:
        """Lend a process to the next caller of its function, or keep it."""
        caller = self._next_caller(process.key)
        if caller is not None and self._is_urgent(caller):
            self._waiting[process.key].appendleft(caller)
            self._surplus.append(process)
            self.forget(process.key)
        elif caller is not None:
            _answer(caller, process)
        else:
            process.idle_since = time.monotonic()
            self._idle.setdefault(process.key, []).append(process)
            self._grant_room()

    def forget(self, key: FunctionKey) -> None:
        """Note that a process which was lent, or could not be started, is gone."""
        self._counts[key] -= 1
        if not self._counts[key]:
            caller = self._next_caller(key)  # nobody else starts one for it
            if caller is not None:
                self._waiting[key].appendleft(caller)
                self._for_room.append(caller)
        self._grant_room()

    def idle(self) -> Iterator[FunctionProcess]:
        """Yield the processes that nobody uses."""
        for processes in self._idle.values():
            yield from processes

    def remove(self, process: FunctionProcess) -> None:
        """Forget an idle process."""
        self._remove(process)
        self._grant_room()

    def _remove(self, process: FunctionProcess) -> None:
        processes = self._idle[process.key]
        processes.remove(process)
        if not processes:
            del self._idle[process.key]
        self._counts[process.key] -= 1

    @property
    def has_surplus(self) -> bool:
        """Tell, also without the lock, whether processes had to make room."""
        return bool(self._surplus)

    def take_surplus(self) -> list[FunctionProcess]:
        """Return the processes that had to make room, for the caller to end."""
        surplus, self._surplus = self._surplus, []
        return surplus

    # -- room --------------------------------------------------------------------------------------

    def _wait_for_room(self, caller: WaitingCaller) -> None:
        if not caller.is_answered:
            self._for_room.append(caller)
            self._grant_room()

    def _grant_room(self) -> None:
        """Let callers start processes as long as there is room."""
        while (caller := self._first_for_room()) is not None and self._has_room():
            self._for_room.popleft()
            self._counts[caller.key] += 1
            self._starting += 1
            _answer(caller, None)

    def _has_room(self) -> bool:
        if self._starting >= _STARTING:
            return False
        if self._counts.total() < self._limit:
            return True
        longest = min(self.idle(), key=lambda process: process.idle_since, default=None)
        if longest is None:
            return False
        self._surplus.append(longest)
        self._remove(longest)
        return True

    def _is_urgent(self, caller: WaitingCaller) -> bool:
        """Tell whether somebody needs room more than this caller needs a process."""
        first = self._first_for_room()
        return (
            first is not None
            and first.key != caller.key
            and first.since < caller.since
            and first.since + _LONG_S < time.monotonic()
            and self._counts.total() >= self._limit
        )

    def _first_for_room(self) -> WaitingCaller | None:
        while self._for_room and self._for_room[0].is_answered:
            self._for_room.popleft()
        return self._for_room[0] if self._for_room else None

    def _next_caller(self, key: FunctionKey) -> WaitingCaller | None:
        """Take the caller of a function that has waited longest."""
        waiting = self._waiting.get(key, ())
        while waiting:
            caller = waiting.popleft()
            if not caller.is_answered:
                return caller
        self._waiting.pop(key, None)
        return None


def _answer(caller: WaitingCaller, process: FunctionProcess | None) -> None:
    caller.is_answered, caller.process = True, process
    caller.answered.release()
