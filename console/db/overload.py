"""Tell when a call has waited for too long to be begun: a refusal in time is better than an answer.

A call waits in at most two places: for a thread, and for the thread that commits. At both it is
refused once it has waited for 0.4 seconds since it came, if many others wait there:

1. A thousand calls come at once, when nobody waits: none of them is refused.
2. The server does 300 a second. The last ones would be answered after three seconds.
3. After 0.4 seconds those that are left are refused, and nothing of them has been done.

A burst that is done in that time is taken whole; and a few calls wait for a slow database as long
as it takes.

A start is refused at once, at the door, while the thread that commits is behind:

1. It takes a hundred changes. Many are left, and one of the hundred came a quarter of a second ago.
2. Starts are refused until it leaves few, or for a quarter of a second. They would wait longer
   than those, and a start that is prepared and then refused costs as much as one that is done.
   Outcomes of tasks are let in.
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
"""Until when the door is shut, by the monotonic clock; 0: it is open."""


class WaitedTooLong(Exception):
    """A call was not begun, or nothing of it was written; its caller may try it again."""


def is_too_late(since: float | None, waiting: int) -> bool:
    """Tell whether to refuse a call.

    ``since``: when it came, by the monotonic clock, None for what is never refused; ``waiting``:
    how many wait in the same place.
    """
    return since is not None and waiting >= MANY_WAITING and time.monotonic() - since > LONG_WAIT_S


def refuse_late(jobs: Sequence[tuple[J, float | None]], behind: int) -> list[J]:
    """Return the jobs that are still in time, and refuse the others: each has the time of its call.

    Shut the door, or open it. The last part of a job is the future of its outcome; ``behind``:
    how many wait behind these. Not needed while few wait and the door is open.
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
    """Tell whether a new start would wait long for the commit thread."""
    return time.monotonic() < closed_until
