"""Thread pool for calls of Tasks that shares its threads fairly among projects and targets.

The share of a call (``fair_shares``) is in the rows, and is read only under load: while few calls
run, the next one begins at once. Beyond that a sorter thread reads the shares of all waiting calls
in one statement, with those of calls that began without one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from console.worker.call_pool import CallPool
from console.worker.fair_shares import NOBODY, FairQueue, FairShare, FairShares
from console.worker.retrying import log_errors

FindShares = Callable[[Sequence[Any]], Mapping[Any, FairShare]]
OWN_THREADS = 8
"""Threads beside the shared places, for work of this server that waits for the database only."""
_UNSORTED_PART = 8
"""While less than this part of the places is taken, a call begins before its share is known."""
_BATCH = 200


@dataclass(eq=False, slots=True)
class _Job:
    """A call. ``about``: the key to find its share. ``counted``: it still holds its place."""

    work: Callable[[], None]
    key: Hashable
    about: Any
    share: FairShare | None = None
    counted: bool = False


class FairPool:
    """Runs up to ``places`` calls at once; each closes its database connection at its end."""

    def __init__(self, places: int, name: str, find_shares: FindShares | None = None) -> None:
        """Start no thread yet. ``find_shares``: finds the shares for ``submit`` with ``about``."""
        self._threads = CallPool(places + OWN_THREADS, name)
        self._sorter = CallPool(1, f"{name}-sorter")
        self._find_shares = find_shares
        self._lock = threading.Lock()  # guards all below
        self.shares = FairShares(places)
        self._few = places // _UNSORTED_PART
        self._under_way = 0
        self._queue: FairQueue[_Job] = FairQueue(self.shares)
        self._unsorted: deque[_Job] = deque()  # they wait for the sorter
        self._unknown: set[_Job] = set()  # they began before they were sorted
        self._sorting = False
        self._running: dict[Hashable, _Job] = {}

    @property
    def lock(self) -> threading.Lock:
        """Return the lock that guards ``shares``."""
        return self._lock

    def submit(self, work: Callable[[], None], key: Hashable = None, about: Any = None) -> None:
        """Queue a call, under a name if it may have to be replaced; it must not raise.

        ``about``: its project and target, which determine its share; None for work that waits for
        no network, which needs no share.
        """
        if about is None:
            self._threads.submit(work, key)
            return
        job = _Job(work, key, about)
        with self._lock:
            if self._under_way < self._few and not self._queue and not self._unsorted:
                self._unknown.add(job)
                self._begin(job)
                return
            self._unsorted.append(job)
            if self._sorting:
                return
            self._sorting = True
        self._sorter.submit(self._sort)

    def submit_for(self, share: FairShare, work: Callable[[], None]) -> None:
        """Queue a call of a known share; the call must not raise."""
        with self._lock:
            self._queue.put(share, _Job(work, None, None, share))
            self._begin_waiting()

    # -- whose call it is --------------------------------------------------------------------------

    def _sort(self) -> None:
        while batch := self._next_batch():
            abouts = [job.about for job in batch]
            find = partial(self._find_shares or _nobody, abouts)
            shares: Mapping[Any, FairShare] = log_errors("calls could not be sorted", find, {})
            with self._lock:
                for job in batch:
                    self._place(job, shares.get(job.about, NOBODY))
                self._begin_waiting()

    def _next_batch(self) -> list[_Job]:
        with self._lock:
            batch = [self._unsorted.popleft() for _ in range(min(_BATCH, len(self._unsorted)))]
            batch += self._unknown
            self._unknown.clear()
            self._sorting = bool(batch)
        return batch

    def _place(self, job: _Job, share: FairShare) -> None:
        """Queue a call under its share, or count a call that has begun or ended already."""
        if job.counted:
            self.shares.assign(share)
        elif job.share is None:
            self._queue.put(share, job)
        job.share = job.share or share

    # -- calls under way ---------------------------------------------------------------------------

    def _begin_waiting(self) -> None:
        while (turn := self._queue.take()) is not None:
            turn[1].counted = True  # by the queue
            self._begin(turn[1])

    def _begin(self, job: _Job) -> None:
        if not job.counted:
            self.shares.begin(job.share)
            job.counted = True
        self._under_way += 1
        if job.key is not None:
            self._running[job.key] = job
        self._threads.submit(partial(self._run, job), job.key)

    def _run(self, job: _Job) -> None:
        try:
            job.work()
        finally:
            with self._lock:
                if job.key is not None and self._running.get(job.key) is job:
                    del self._running[job.key]
                self._give_back(job)

    def _give_back(self, job: _Job) -> None:
        """Free the place of a call, once, and start waiting calls."""
        if not job.counted:
            return
        job.counted = False
        self._under_way -= 1
        self.shares.end(job.share)
        self._unknown.discard(job)
        job.share = job.share or NOBODY  # the sorter has nothing to count any more
        self._begin_waiting()

    # -- calls that hang ---------------------------------------------------------------------------

    def lasting(self, seconds: float) -> list[Hashable]:
        """Return the names of calls that have run for at least this long."""
        return self._threads.lasting(seconds)

    def replace(self, key: Hashable) -> bool:
        """Replace a thread that hangs in a call (``CallPool``)."""
        if not self._threads.replace(key):
            return False
        with self._lock:
            job = self._running.pop(key, None)
            if job is not None:
                self._give_back(job)
        return True

    def stop(self, seconds: float) -> None:
        """Accept no more calls and wait briefly for the running calls."""
        with self._lock:
            self._queue.clear()
            self._unsorted.clear()
            self._unknown.clear()
        self._sorter.stop(seconds)
        self._threads.stop(seconds)


def _nobody(_abouts: Sequence[Any]) -> Mapping[Any, FairShare]:
    """Return no shares."""
    return {}
