"""Compute the deadline of a task, and the clock that it belongs to.

An activity task has four clocks, as in SWF: from its scheduling until a worker takes it, from then
until it ends, from its scheduling until it ends, and from one heartbeat to the next
(``activity_limits`` has their lengths). TimeoutSeconds and HeartbeatSeconds of a state come before
the tags of the activity. No task of any kind is open for longer than a year.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.statuses import TaskClock

if TYPE_CHECKING:
    from console.store.machines.activity_limits import Limits

YEAR_S = 365 * 24 * 3600


def due_ms(from_ms: int, seconds: int | None) -> int | None:
    """Return the end of a clock that begins at ``from_ms``; a clock lasts at most a year."""
    return None if seconds is None else from_ms + min(seconds, YEAR_S) * 1000


def close_due(scheduled_ms: int, limits: Limits) -> int:
    """Return the latest end of a task."""
    return scheduled_ms + min(limits.schedule_to_close or YEAR_S, YEAR_S) * 1000


def first_due(
    clock: str, due_ms: int | None, scheduled_ms: int, close_due_ms: int | None
) -> tuple[int, str]:
    """Return the first deadline and its clock: this time limit's, or the task's own."""
    last_ms = close_due_ms or scheduled_ms + YEAR_S * 1000
    if due_ms is not None and due_ms < last_ms:
        return due_ms, clock
    return (
        last_ms,
        TaskClock.YEAR if last_ms - scheduled_ms >= YEAR_S * 1000 else TaskClock.SCHEDULE_TO_CLOSE,
    )
