"""Lend function processes to calls: queue the callers, and decide which processes start or end.

Theory of operation. A returned process goes directly to the longest-waiting caller of its function,
so only the caller that gets the process wakes up. A caller starts a process at once if its function
has none, and after ``_PATIENCE_S`` if all of them are busy. Short calls therefore share the running
processes, because a start takes longer than many short calls, and each long call gets a process of
its own. When the limit of processes is reached, the process that has been idle longest is ended to
make room for another function. If none is idle, and a caller has waited ``_LONG_S`` for room, the
next returned process is ended:

1. The limit is 1, and function A is called without a pause.
2. A call of B waits. Each time the process is returned, another call of A is waiting, too.
3. After a second the process of A is ended when it is returned, and B starts its own.
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
"""The maximum number of processes starting at the same time: more would slow each other down."""


@dataclass(eq=False, slots=True)
class WaitingCaller:
    """A call that waits for a process.

    ``answered``: a lock, released when the call may continue: with ``process``, or with None if the
    call shall start a process itself.
    """

    key: FunctionKey
    since: float
    answered: threading.Lock = field(default_factory=threading.Lock)
    is_answered: bool = False
    process: FunctionProcess | None = None


class ProcessLender:
    """The pool of processes.

    Every method except ``take`` must be called with the lock held. The property ``has_surplus`` may
    be read without it.
    """

    def __init__(self, limit: int, lock: threading.Lock) -> None:
        self._limit = limit
        self._lock = lock
        self._idle: dict[FunctionKey, list[FunctionProcess]] = {}
        self._counts: Counter[FunctionKey] = Counter()  # including processes being started
        self._starting = 0
        self._waiting: dict[FunctionKey, deque[WaitingCaller]] = {}
        self._for_room: deque[WaitingCaller] = deque()
        self._surplus: list[FunctionProcess] = []

    def take(self, key: FunctionKey) -> FunctionProcess | None:
        """Wait for a process of a function; return it, or None if the caller shall start one.

        A process to be started is counted at once. The caller then calls ``started``, and if the
        start failed, ``forget``.
        """
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
        """Note that a process start has ended, successfully or not."""
        self._starting -= 1
        self._grant_room()

    def give_back(self, process: FunctionProcess) -> None:
        """Lend a returned process to the next caller, end it to make room, or keep it idle."""
        caller = self._next_caller(process.key)
        if caller is not None and self._must_make_room(caller):
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
        """Note that a lent process has ended, or could not be started."""
        self._counts[key] -= 1
        if not self._counts[key]:
            caller = self._next_caller(key)  # no other call starts a process for this function
            if caller is not None:
                self._waiting[key].appendleft(caller)
                self._for_room.append(caller)
        self._grant_room()

    def idle(self) -> Iterator[FunctionProcess]:
        """Yield the idle processes."""
        for processes in self._idle.values():
            yield from processes

    def remove(self, process: FunctionProcess) -> None:
        """Take an idle process out of the pool."""
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
        """Whether ``take_surplus`` has processes to end."""
        return bool(self._surplus)

    def take_surplus(self) -> list[FunctionProcess]:
        """Return the processes that made room for others; the caller ends them."""
        surplus, self._surplus = self._surplus, []
        return surplus

    # -- room --------------------------------------------------------------------------------------

    def _wait_for_room(self, caller: WaitingCaller) -> None:
        if not caller.is_answered:
            self._for_room.append(caller)
            self._grant_room()

    def _grant_room(self) -> None:
        """Let waiting callers start processes while the limit allows it."""
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

    def _must_make_room(self, caller: WaitingCaller) -> bool:
        """Return whether a call must make room, as a caller of another function waited too long.

        ``caller``: the call that would get the returned process.
        """
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
        """Remove and return the longest-waiting caller of a function."""
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
