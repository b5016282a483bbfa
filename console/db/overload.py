"""Refuse calls that have waited too long: an early refusal is better than a late answer.

**Late calls.** A call waits in at most two queues: for a thread, and for the commit thread. Each
queue refuses a call if 64 or more calls wait there and the call arrived more than 0.4 seconds ago.
For example, a thousand calls arrive at once at an idle server that handles 300 per second:

1. None is refused on arrival. The last one would be answered after three seconds.
2. After 0.4 seconds the remaining calls are refused. Nothing has been written for them.

So a burst that is handled within 0.4 seconds is accepted as a whole, and fewer than 64 calls wait
for a slow database as long as it takes.

**Starts.** While the commit thread is behind, starts are refused on arrival: they would wait longer
than other calls, and refusing a start that was already prepared saves nothing. Other calls, such as
outcomes of tasks, are accepted. The thread is behind if it has taken a group of changes whose
oldest call arrived more than 0.25 seconds ago, and 64 or more changes are queued after the group.
Starts are accepted again when fewer than 64 changes wait, or after 0.25 seconds.
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
BEHIND_S, REFUSED_S = 0.25, 0.25
starts_refused_until = 0.0
"""Starts are refused until this time of the monotonic clock; 0: they are accepted."""


class WaitedTooLong(Exception):
    """A call was refused before anything was written; its caller may try again."""


def is_too_late(since: float | None, waiting: int) -> bool:
    """Return whether to refuse a call.

    ``since``: its arrival by the monotonic clock, None if it is never refused; ``waiting``: the
    number of calls in the same queue.
    """
    return since is not None and waiting >= MANY_WAITING and time.monotonic() - since > LONG_WAIT_S


def refuse_late(jobs: Sequence[tuple[J, float | None]], behind: int) -> list[J]:
    """Refuse the late jobs of a group and return the others; begin or end the refusal of starts.

    ``jobs``: pairs of a job, whose last item is the future of its outcome, and the ``since`` of its
    call (``is_too_late``). ``behind``: the number of jobs queued after the group. No call is needed
    while fewer than ``MANY_WAITING`` jobs wait and starts are accepted.
    """
    global starts_refused_until  # noqa: PLW0603 - one thread that commits a process
    waiting = len(jobs) + behind
    if waiting < MANY_WAITING:
        starts_refused_until = 0.0
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
    starts_refused_until = now + REFUSED_S if is_far_behind else 0.0
    return in_time


def is_behind() -> bool:
    """Return whether a new start would wait long for the commit thread."""
    return time.monotonic() < starts_refused_until
