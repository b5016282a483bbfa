"""Thread pool for calls of Tasks that shares its threads fairly among projects and targets.

While few calls run, a call begins at once, before its share (``fair_shares``) is known. Under load,
calls wait, and a sorter thread reads shares from the database: one statement for all waiting calls
and for the running calls whose share is still unknown.
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
"""Threads in addition to the shared places, for work that waits only for the database."""
_UNSORTED_PART = 8
"""A call begins before its share is known while less than 1/8 of the places are taken."""
_BATCH = 200


@dataclass(eq=False, slots=True)
class _Job:
    """A call. ``about``: its execution and task. ``counted``: whether it holds a place."""

    work: Callable[[], None]
    key: Hashable
    about: Any
    share: FairShare | None = None
    counted: bool = False


class FairPool:
    """Runs up to ``places`` calls at once; each closes its database connection at its end."""

    def __init__(self, places: int, name: str, find_shares: FindShares | None = None) -> None:
        """Start no thread yet. ``find_shares``: reads the shares of calls from their ``about``."""
        self._threads = CallPool(places + OWN_THREADS, name)
        self._sorter = CallPool(1, f"{name}-sorter")
        self._find_shares = find_shares
        self._lock = threading.Lock()  # guards all below
        self.shares = FairShares(places)
        self._few = places // _UNSORTED_PART
        self._under_way = 0
        self._queue: FairQueue[_Job] = FairQueue(self.shares)
        self._unsorted: deque[_Job] = deque()  # waiting for the sorter
        self._unknown: set[_Job] = set()  # running, with an unknown share
        self._sorting = False
        self._running: dict[Hashable, _Job] = {}

    @property
    def lock(self) -> threading.Lock:
        """Return the lock that guards ``shares``."""
        return self._lock

    def submit(self, work: Callable[[], None], key: Hashable = None, about: Any = None) -> None:
        """Queue a call, which must not raise. ``key``: its name, for ``lasting`` and ``replace``.

        ``about``: its execution and task, by which its share is found; None for work that does not
        wait for the network, and needs no share.
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

    # -- sorting -----------------------------------------------------------------------------------

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
        """Queue a waiting call under its share, or count a running call for it."""
        if job.counted:
            self.shares.assign(share)
        elif job.share is None:
            self._queue.put(share, job)
        job.share = job.share or share

    # -- running calls -----------------------------------------------------------------------------

    def _begin_waiting(self) -> None:
        while (turn := self._queue.take()) is not None:
            turn[1].counted = True  # the queue has taken its place
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
        job.share = job.share or NOBODY  # the sorter must not count it
        self._begin_waiting()

    # -- hanging calls -----------------------------------------------------------------------------

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
