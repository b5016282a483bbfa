"""Poison guard: end executions that crash or hang their process again and again.

A suspected execution is counted in its row before its first step in this process; a successful step
clears the count. At the third count the execution is ended with an error.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from console.db.writer import is_outage
from console.store.executions import engine_failures, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PATIENCE_S = 1.0


class PoisonGuard:
    """The suspected executions of this process."""

    def __init__(self, *, counting: bool = True) -> None:
        """Suspect none yet. ``counting``: only this process counts the suspects."""
        self._counting = counting
        self._numbers: set[int] = set()
        self._counted: set[int] = set()  # noted, and not stepped since: the database was out
        self._turn = threading.Lock()
        self._one_by_one = True

    def watch(self, numbers: Iterable[int]) -> None:
        """Suspect these executions."""
        self._numbers = set(numbers)

    def add(self, numbers: Iterable[int]) -> None:
        """Add suspected executions."""
        self._numbers |= set(numbers)

    def take(self, number: int) -> bool:
        """Return, once, whether an execution is suspected."""
        suspected = number in self._numbers
        self._numbers.discard(number)
        return suspected

    def step(self, number: int) -> bool:
        """Step a suspect, or end its execution if it has killed the process too often."""
        with self._one_at_a_time():
            if step.is_idle(number):  # another thread or process has stepped it meanwhile
                return False
            if self._counting and number not in self._counted:  # this process can end only once
                self._counted.add(number)
                if not engine_failures.may_try(number):
                    return False
            return self._step(number)

    def _step(self, number: int) -> bool:
        try:
            more = step.step_execution(number)
        except Exception as error:
            if not is_outage(error):  # it counts as a failure of its own
                self._counted.discard(number)
            raise
        self._counted.discard(number)
        return more

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Step suspects one by one; continue past a suspect that hangs."""
        mine = self._one_by_one and self._turn.acquire(timeout=_PATIENCE_S)
        self._one_by_one = mine
        try:
            yield
        finally:
            if mine:
                self._turn.release()
