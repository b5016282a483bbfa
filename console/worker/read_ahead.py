"""Read the rows of the next executions to step, together with the current one's.

Theory of operation
===================

A thread that begins a step reads the rows of its execution, and those of the next ones in the queue
by the same statement. Whoever takes one of these finds its rows here. What was read may be out of
date by then:

    1. Execution 7 is in the queue, and its rows are read with those of execution 3.
    2. A message for 7 is committed. ``wake`` finds 7 in the queue already.
    3. 7 is stepped without the message, and nothing wakes it again.

So ``wake`` forgets what was read, also if it is being read just then: ``reserve`` leaves a mark,
and ``fill`` keeps only rows whose mark is still there. A step that another process commits
meanwhile is found by the version in the step's own commit.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from console.store.executions.read_steps import StepRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOGETHER = 32
"""The rows of so many executions are read by one statement."""


class ReadAhead:
    """Rows of executions that are in the queue; the owner of the queue guards it by its lock."""

    def __init__(self) -> None:
        """Nothing is read."""
        self._rows: dict[int, StepRows | object] = {}

    def forget(self, number: int) -> None:
        """Drop what was read of an execution: something has changed."""
        self._rows.pop(number, None)

    def take(self, number: int) -> StepRows | None:
        """Return the rows of an execution that leaves the queue, None if they are not read."""
        rows = self._rows.pop(number, None)
        return rows if isinstance(rows, StepRows) else None

    def reserve(self, queued: Iterable[int]) -> dict[int, object]:
        """Return executions of the queue, in its order, whose rows shall be read now."""
        mark = object()
        unread = (number for number in queued if number not in self._rows)
        reserved = dict.fromkeys(islice(unread, TOGETHER - 1), mark)
        self._rows.update(reserved)
        return reserved

    def fill(self, reserved: Mapping[int, object], read: Mapping[int, StepRows]) -> None:
        """Keep the rows read, except rows forgotten or taken during the read."""
        for number, mark in reserved.items():
            if self._rows.get(number) is mark:
                if number in read:
                    self._rows[number] = read[number]
                else:
                    del self._rows[number]
