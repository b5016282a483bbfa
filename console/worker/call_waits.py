"""Keep calls of Tasks that wait for an answer (a child execution, an activity) without threads.

A signal on the call's topic makes the worker check for the answer; a regular check covers lost
signals. Each check is a short job on the call threads, so there is always a thread for it.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from console.db import signals
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from console.worker.own_calls import Waiting

    Key = tuple[int, int]

_FIRST_S, _LONGEST_S = 1.0, 5.0
_SLOWER = 0.1  # of the time it has waited for, until the next look


class _Kept:
    """A waiting call and its progress; the lock of ``Waits`` guards its changes."""

    def __init__(self, key: Key, waiting: Waiting) -> None:
        self.key = key
        self.waiting = waiting
        self.since = time.monotonic()
        self.due = self.since
        self.busy = False  # a look is queued or under way
        self.signalled = False  # since the last look began
        self.over = False
        self.end: Callable[[], None] = _do_nothing


def _do_nothing() -> None:
    """Do nothing: placeholder for the unsubscribe function before the subscription exists."""


class Waits:
    """The calls of a worker that wait: ``add`` a call, ``look`` each second, ``stop``."""

    def __init__(
        self,
        submit: Callable[[Callable[[], None], Hashable], None],
        over: Callable[[Key], None],
    ) -> None:
        """``submit``: queues a named job; ``over``: called with each task whose wait has ended."""
        self._submit = submit
        self._over = over
        self._lock = threading.Lock()
        self._kept: dict[Key, _Kept] = {}

    def __len__(self) -> int:
        """Return the number of waiting calls."""
        return len(self._kept)

    def add(self, key: Key, waiting: Waiting) -> None:
        """Keep the call of a task (execution, task) until its end; then call ``over``."""
        call = _Kept(key, waiting)
        with self._lock:
            self._kept[key] = call
        on_signal = partial(self._on_signal, call)
        call.end = signals.subscribe(
            waiting.topic, lambda *_: on_signal(), in_turn=waiting.one_each
        )
        self._ask(call)  # the answer may have come before we listened

    def _on_signal(self, call: _Kept) -> None:
        """Handle a signal; pass it to another listener if the wait has already ended."""
        with self._lock:
            call.signalled = True
            over = call.over
        if not over:
            self._ask(call)
        elif call.waiting.one_each:
            signals.deliver(call.waiting.topic)

    def _ask(self, call: _Kept) -> None:
        with self._lock:
            if call.busy or call.over:
                return  # the look under way finds that it was signalled, and looks again
            call.busy = True
        self._submit(partial(self._look_at, call), ("wait", *call.key))

    def _look_at(self, call: _Kept) -> None:
        with self._lock:
            call.signalled = False
        over = log_errors("looking for an answer failed", call.waiting.look, otherwise=False)
        with self._lock:
            now = time.monotonic()
            call.due = now + min(max(_FIRST_S, (now - call.since) * _SLOWER), _LONGEST_S)
            call.busy, call.over = False, over
            again = call.signalled
        if over:
            self._drop(call, signalled=again)
        elif again:
            self._ask(call)

    def _drop(self, call: _Kept, *, signalled: bool) -> None:
        call.end()
        with self._lock:
            self._kept.pop(call.key, None)
        self._over(call.key)
        if signalled and call.waiting.one_each:  # the signal is for another listener
            signals.deliver(call.waiting.topic)

    def look(self) -> None:
        """Check every call that was not checked recently, in case its signal was lost."""
        now = time.monotonic()
        with self._lock:
            due = [call for call in self._kept.values() if call.due <= now]
        for call in due:
            self._ask(call)

    def stop(self) -> None:
        """End all waits; the next start of the server calls their tasks again."""
        with self._lock:
            waits = list(self._kept.values())
            self._kept.clear()
            for wait in waits:
                wait.over = True
        for wait in waits:
            wait.end()
