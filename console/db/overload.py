"""Refuse calls that have waited too long: an early refusal is better than a late answer.

A call waits in at most two queues: for a thread, and for the thread that commits. In both it is
refused after 0.4 seconds since its arrival, if many others wait there:

1. A thousand calls arrive at once at an idle server: none of them is refused.
2. The server handles 300 a second. The last ones would be answered after three seconds.
3. After 0.4 seconds the remaining ones are refused; nothing of them has been done.

A burst that is handled within that time is accepted as a whole; a few calls wait for a slow
database as long as it takes.

A start is refused on arrival while the commit thread is behind:

1. The thread takes a hundred changes. Many are left, and one of the hundred is a quarter of a
   second old.
2. Starts are refused until few are left, or for a quarter of a second. They would wait longer than
   the others, and a refused start that was prepared costs as much as an accepted one. Outcomes of
   tasks are let in.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

J = TypeVar("J", bound="tuple[Any, Future[Any]]")

MANY_WAITING = 64
LONG_WAIT_S = 0.4
BEHIND_S, CLOSED_S = 0.25, 0.25
closed_until = 0.0
"""Until when starts are refused, by the monotonic clock; 0: they are accepted."""


class WaitedTooLong(Exception):
    """A call was refused before anything was written; its caller may try again."""


def is_too_late(since: float | None, waiting: int) -> bool:
    """Return whether to refuse a call.

    ``since``: its arrival by the monotonic clock, None if it is never refused; ``waiting``: the
    number of calls in the same queue.
    """
    return since is not None and waiting >= MANY_WAITING and time.monotonic() - since > LONG_WAIT_S


def refuse_late(jobs: Sequence[tuple[J, float | None]], behind: int) -> list[J]:
    """Refuse the late jobs; return the others. A job has the time of its call.

    Also begin or end the refusal of starts. The last part of a job is the future of its outcome;
    ``behind``: the number of jobs after these. Not needed while few wait and starts are accepted.
    """
    global closed_until  # noqa: PLW0603 - one thread that commits a process
    waiting = len(jobs) + behind
    if waiting < MANY_WAITING:
        closed_until = 0.0
        return [job for job, _ in jobs]
    in_time = []
    earliest = now = time.monotonic()
    for job, since in jobs:
        if is_too_late(since, waiting):
            job[-1].set_exception(WaitedTooLong())
        else:
            in_time.append(job)
        if since is not None:
            earliest = min(earliest, since)
    is_far_behind = behind >= MANY_WAITING and now - earliest > BEHIND_S
    closed_until = now + CLOSED_S if is_far_behind else 0.0
    return in_time


def is_behind() -> bool:
    """Return whether a new start would wait long for the commit thread."""
    return time.monotonic() < closed_until
