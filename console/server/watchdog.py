"""End a stalled process while its database answers, so that its supervisor restarts it.

A stalled process waits for an event that will never come, such as a lock, and cannot recover by
itself. While the database does not answer, every process stalls and a restart would not help: then
the process is left running.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import psycopg
import structlog
from django.conf import settings
from django.db import Error, connection
from psycopg_pool import PoolTimeout

from console.db import outages, postgres
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
EXIT_CODE = 70
"""EX_SOFTWARE: the process ended itself; a process manager starts it again."""
_TICK_S = 1.0


class Watchdog:
    """Thread that checks the progress of the process once a second, and ends a stalled process.

    Progress is a change of the number that ``moved_at`` returns. The time without progress is
    counted in checks, not by the clock: a process that was stopped (SIGSTOP, a sleeping machine)
    made no checks either, and does not count as stalled. A lease lasts ``STATEYARD_LEASE_S``, after
    which other processes take over. After half a lease without progress each check also queries the
    database, and counts only if the database answers. An outage resets the count, because threads
    that waited for the database need a moment after its return.
    """

    def __init__(
        self, moved_at: Callable[[], float], subject: str, on_move: Callable[[], None] | None = None
    ) -> None:
        """Take the progress counter of the process.

        ``moved_at``: returns a number that changes whenever the process makes progress.
        ``subject``: the name of the watched thing in the log. ``on_move``: called after each
        progress.
        """
        self._moved_at = moved_at
        self._what = subject
        self._on_move = on_move
        self._seen = moved_at()
        self._unmoved_s = 0.0
        self._stood_s = 0.0
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop the checks, because the process is about to end by itself."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_TICK_S):
            self._look()

    def _look(self) -> None:
        """End the process after two leases without progress while the database answers."""
        lease_s = settings.STATEYARD_LEASE_S
        moved_at = self._moved_at()
        if moved_at != self._seen:
            self._seen, self._unmoved_s, self._stood_s = moved_at, 0.0, 0.0
            if self._on_move is not None:
                self._on_move()
            return
        self._unmoved_s += _TICK_S
        if self._unmoved_s <= lease_s / 2:
            return
        try:
            postgres.answer(server_parameters(), "SELECT 1")
        except psycopg.Error as error:
            outages.note_outage(self._what, error)
            self._stood_s = 0.0
            return
        self._stood_s += _TICK_S
        if self._stood_s >= 1.5 * lease_s and not self._ended.is_set():
            log.error(
                "this process made no progress and exits", what=self._what, for_s=self._unmoved_s
            )
            os._exit(EXIT_CODE)


class Pulse:
    """A thread of a web process that regularly takes a connection of the pool, with a watchdog.

    The watchdog ends the process when this stops working. A process whose other threads return
    connections makes progress even if this thread gets none: it is busy, and ending it would abort
    all its requests.
    """

    def __init__(self) -> None:
        """Create the pulse without starting its threads."""
        self._moved_at = 0.0

    def start(self) -> None:
        """Start the thread and its watchdog."""
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()
        Watchdog(self._moved, "the pool of connections").start()

    def _moved(self) -> float:
        return self._moved_at + postgres.given_back()

    def _beat(self) -> None:
        while True:
            before = postgres.given_back()
            pause_s = _TICK_S
            try:
                connection.ensure_connection()  # the pool asks the server whether it is alive
                with connection.wrap_database_errors:
                    postgres.require_writes(connection.connection)
                pause_s = max(_TICK_S, settings.STATEYARD_LEASE_S / 4)
                self._moved_at = time.monotonic()
                outages.note_success()
            except Error as error:
                busy = isinstance(error.__cause__, PoolTimeout)
                if not busy or postgres.given_back() == before:
                    outages.note_outage("the pool of connections", error)
            connection.close()
            time.sleep(pause_s)
