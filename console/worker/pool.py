"""Who carries out calls that take their time?  Threads started as needed, up to a limit."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Callable


class Pool:
    """Runs jobs on up to ``size`` daemon threads; each closes its database connection at its end.

    (The standard pool's threads live until the process ends and would keep connections open.)
    """

    def __init__(self, size: int) -> None:
        """No thread runs before there is a job."""
        self._size = size
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()
        self._stopping = False

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job; it must not raise."""
        with self._lock:
            if self._stopping:
                return
            self._jobs.put(job)
            if self._idle < self._jobs.qsize() and len(self._threads) < self._size:
                name = f"task-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None and not self._stopping:
                job()
        finally:
            connections.close_all()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            self._idle += 1
        job = self._jobs.get()
        with self._lock:
            self._idle -= 1
        return job

    def stop(self, seconds: float) -> None:
        """Take no more jobs and wait a little for those under way.

        What lasts longer is left alone.
        """
        with self._lock:
            self._stopping = True
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                return
