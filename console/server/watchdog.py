"""End a stalled process whose database answers; its supervisor starts another.

What stands still waits for something that will not come: no code in the process can help it. While
the database is out of reach nothing can move, and another process would do no better: then the
process stays.
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
    """Looks once a second, on a thread of its own: ``start``, ``stop``.

    The time is counted in looks: that in which the process was stopped or the machine slept is no
    fault of the process. After half a lease without a move each look asks the database, and only
    looks that it answers count. An outage begins the count anew: threads that waited for the
    database need a moment after its return, too.
    """

    def __init__(
        self, moved_at: Callable[[], float], what: str, on_move: Callable[[], None] | None = None
    ) -> None:
        """``moved_at``: a number that changes whenever the process moves. ``what``: for people.

        ``on_move``: called when it has.
        """
        self._moved_at = moved_at
        self._what = what
        self._on_move = on_move
        self._seen = moved_at()
        self._unmoved_s = 0.0
        self._stood_s = 0.0
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer: the process is about to end by itself."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_TICK_S):
            self._look()

    def _look(self) -> None:
        """End the process if it has not moved for twice its lease while the database answers."""
        lease_s = settings.STATEYARD_LEASE_S
        seen = self._moved_at()
        if seen != self._seen:
            self._seen, self._unmoved_s, self._stood_s = seen, 0.0, 0.0
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
            log.error("this process stands still and ends", what=self._what, for_s=self._unmoved_s)
            os._exit(EXIT_CODE)


class Pulse:
    """Uses the connections of a process that serves now and then, and watches that this works.

    A process whose threads give connections back moves, even if this thread finds
    none: it has much to do, and to end it would end all requests under way.
    """

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._moved_at = 0.0

    def start(self) -> None:
        """Begin to use them and to watch."""
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
