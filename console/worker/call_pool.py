"""Thread pool for the calls of Tasks; a thread that hangs in a call can be replaced."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import structlog
from django.db import connections

from console.db.writer import release_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

log = structlog.get_logger(__name__)
MAX_HUNG = 16
"""The maximum number of hanging threads that are replaced: each has a database connection."""
_AGAIN_S = 0.2
"""The interval at which a pool without a thread tries to start one."""


class CallPool:
    """Runs jobs on up to ``size`` daemon threads; each closes its database connection at its end.

    (The standard pool's threads live until the process ends and would keep connections open.)
    """

    def __init__(self, size: int, name: str) -> None:
        """Start no thread yet."""
        self._size = size
        self._names = (f"{name}-{number}" for number in itertools.count())
        self._change = threading.Condition()  # guards all below
        self._jobs: deque[tuple[Hashable, Callable[[], None]]] = deque()
        self._idle = 0
        self._threads: set[threading.Thread] = set()
        self._hung: set[threading.Thread] = set()
        self._busy: dict[threading.Thread, tuple[Hashable, float]] = {}  # with what, since when
        self._full = False  # of hung threads; said already
        self._stopping = False

    def submit(self, job: Callable[[], None], key: Hashable = None) -> None:
        """Queue a job, under a name if it may have to be replaced; it must not raise.

        While the pool has no thread and the system starts none, the caller waits.
        """
        with self._change:
            if self._stopping:
                return
            self._jobs.append((key, job))
            while not self._help() and not self._stopping:
                self._change.wait(_AGAIN_S)
            self._change.notify()

    def _help(self) -> bool:
        """Start a thread if more jobs are queued than threads wait for one.

        Return whether a thread takes the queued jobs, now or after its current job.
        """
        if self._idle < len(self._jobs) and len(self._threads) < self._size:
            thread = threading.Thread(target=self._work, name=next(self._names), daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the limit of the system or of the container
                log.warning("a thread could not be started", name=thread.name, problem=str(error))
                return bool(self._threads)
            self._threads.add(thread)
        return True

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                job()
                release_connection()
        finally:
            connections.close_all()

    def _next(self) -> Callable[[], None] | None:
        """Wait for a job; return None to end this thread."""
        me = threading.current_thread()
        with self._change:
            self._busy.pop(me, None)
            if me in self._hung:
                self._hung.discard(me)
                return None
            self._idle += 1
            self._change.wait_for(lambda: self._jobs or self._stopping)
            self._idle -= 1
            if self._stopping:
                return None
            key, job = self._jobs.popleft()
            self._busy[me] = (key, time.monotonic())
        return job

    # -- jobs that hang ----------------------------------------------------------------------------

    def lasting(self, seconds: float) -> list[Hashable]:
        """Return the names of jobs that have run for at least this long and can be replaced."""
        since = time.monotonic() - seconds
        with self._change:
            keys = [
                key
                for thread, (key, begun) in self._busy.items()
                if begun <= since and thread not in self._hung
            ]
        return [key for key in keys if key is not None]

    def replace(self, key: Hashable) -> bool:
        """Start a thread in place of a hung thread, which ends with its job.

        (No thread can be stopped from outside.) Return whether there was one to replace.
        """
        with self._change:
            threads = [thread for thread, (name, _) in self._busy.items() if name == key]
            if not threads or threads[0] in self._hung or not self._room():
                return False
            self._hung.add(threads[0])
            self._threads.discard(threads[0])
            self._help()
            count = len(self._hung)
        log.warning("a call hangs though its task has ended; its thread is replaced", hung=count)
        return True

    def _room(self) -> bool:
        """Whether another hung thread may be abandoned; warn once at the limit."""
        room = len(self._hung) < MAX_HUNG
        if not room and not self._full:
            log.warning("too many calls hang; restart the server", hung=len(self._hung))
        self._full = not room
        return room

    def stop(self, seconds: float) -> None:
        """Accept no more jobs and wait briefly for the running jobs.

        Jobs that take longer continue.
        """
        with self._change:
            self._stopping = True
            self._jobs.clear()
            self._change.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(seconds)
            if thread.is_alive():
                return
