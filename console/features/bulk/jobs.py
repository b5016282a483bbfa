"""Run bulk jobs in turn, on a background thread of the worker."""

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
    """The bulk jobs of all projects, each run by one thread at a time."""

    def __init__(self) -> None:
        """Create it without running jobs."""
        self._pool = CallPool(1, "bulk")
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def sweep(self, work: OpenWork) -> None:
        """Run the jobs with work to do, unless already running."""
        for number in store.running_jobs() if work.bulk_jobs else ():
            with self._lock:
                if number in self._taken:
                    continue
                self._taken.add(number)
            self._pool.submit(partial(self._work, number))

    def wake(self) -> None:
        """Do nothing: jobs are not started by events."""

    def stop(self, seconds: float) -> None:
        """Accept no more work, and wait briefly for work in progress."""
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
