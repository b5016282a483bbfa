"""Prefetch the rows of the next queued executions in the statement that reads the current one.

Theory of operation
===================

A thread that begins a step reads the rows of its execution and of the next queued executions in one
statement. The thread that steps one of these finds its rows here. They may be outdated by then:

    1. Execution 7 is in the queue, and its rows are read with those of execution 3.
    2. A message for 7 is committed. ``wake`` finds 7 in the queue already.
    3. 7 is stepped without the message, and nothing wakes it again.

So ``wake`` drops prefetched rows, also during their read: ``reserve`` leaves a mark, and ``fill``
keeps only rows whose mark is still there. A step that another process commits meanwhile is detected
by the version in the step's own commit.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from console.store.executions.read_steps import StepRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOGETHER = 32
"""The maximum number of executions whose rows one statement reads."""


class ReadAhead:
    """Prefetched rows of queued executions; guarded by the lock of the queue's owner."""

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[int, StepRows | object] = {}

    def forget(self, number: int) -> None:
        """Drop the prefetched rows of an execution that has changed."""
        self._rows.pop(number, None)

    def take(self, number: int) -> StepRows | None:
        """Return the rows of an execution that leaves the queue; None if they were not read."""
        rows = self._rows.pop(number, None)
        return rows if isinstance(rows, StepRows) else None

    def reserve(self, queued: Iterable[int]) -> dict[int, object]:
        """Return the next executions of the queue whose rows are to be read now."""
        mark = object()
        unread = (number for number in queued if number not in self._rows)
        reserved = dict.fromkeys(islice(unread, TOGETHER - 1), mark)
        self._rows.update(reserved)
        return reserved

    def fill(self, reserved: Mapping[int, object], read: Mapping[int, StepRows]) -> None:
        """Keep the rows read, except rows dropped or taken during the read."""
        for number, mark in reserved.items():
            if self._rows.get(number) is mark:
                if number in read:
                    self._rows[number] = read[number]
                else:
                    del self._rows[number]
