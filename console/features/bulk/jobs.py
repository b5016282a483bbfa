"""Take bulk jobs further, one after the other, on a thread that nothing else waits for."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from console.db.postgres import patient_statements
from console.features.bulk import store
from console.worker.call_pool import CallPool
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from console.store.state.open_work import OpenWork


class BulkWork:
    """The bulk jobs of all projects. Each is taken once, however often a sweep finds it."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._pool = CallPool(1, "bulk")
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def sweep(self, work: OpenWork) -> None:
        """Take the jobs that have something to do, unless that is under way."""
        for number in store.running_jobs() if work.bulk_jobs else ():
            with self._lock:
                if number in self._taken:
                    continue
                self._taken.add(number)
            self._pool.submit(partial(self._work, number))

    def wake(self) -> None:
        """Do nothing: no event begins a job."""

    def stop(self, seconds: float) -> None:
        """Take no more and wait a little for what is under way."""
        self._pool.stop(seconds)

    def _work(self, number: int) -> None:
        with patient_statements():
            # what fails here the sweeper comes back to
            goes_on = log_errors("a bulk job failed", partial(store.work_on_job, number), False)
        if goes_on:
            self._pool.submit(partial(self._work, number))
            return
        with self._lock:
            self._taken.discard(number)
