"""Worker lock: a database has either one embedded worker or a team of workers, never both.

On PostgreSQL it is an advisory lock on its own connection: exclusive for an embedded worker, shared
for team workers. On SQLite the lock of the data folder does the same.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import connection

from console.db import outages, postgres

_LOCK = 0x5354455059415244  # "STATEYARD"
_PATIENCE_S = 5.0  # a process that was just killed leaves its lock in a moment

_HANGS_S = 1.0
_TRY = {False: "SELECT pg_try_advisory_lock(%s)", True: "SELECT pg_try_advisory_lock_shared(%s)"}


class WorkerLockHeld(CommandError):
    """Another worker uses this database; shown without a traceback."""


class WorkerLock:
    """Advisory lock of this worker: ``acquire``, ``renew`` from time to time, ``release``."""

    def __init__(self, *, shared: bool = False) -> None:
        """Hold nothing yet. ``shared``: workers of the same kind may hold it, too."""
        self._shared = shared
        self._connection: psycopg.Connection[Any] | None = None
        self._use = threading.RLock()  # of the connection: one thread at a time

    def acquire(self) -> None:
        """Take the lock; raise ``WorkerLockHeld`` if another worker has it."""
        if connection.vendor != "postgresql":
            return
        deadline = time.monotonic() + _PATIENCE_S
        while not self._try_lock():
            if time.monotonic() > deadline:
                self.release()
                raise WorkerLockHeld(_message())
            time.sleep(0.1)

    def renew(self) -> bool:
        """Take the lock again after a lost connection; return whether it is held."""
        if connection.vendor != "postgresql":
            return True
        with self._use:
            try:
                if self._connection is not None:
                    postgres.require_writes(self._connection)
                    return True
            except psycopg.Error as error:
                outages.note_outage("the worker's lock, which is taken again", error)
                self.release()
            return self._try_lock()

    def release(self) -> None:
        """Release the lock."""
        if not self._use.acquire(timeout=_HANGS_S):
            return  # the database does not answer; the end of the process closes it
        try:
            held, self._connection = self._connection, None
            if held is not None:
                held.close()
        finally:
            self._use.release()

    def _try_lock(self) -> bool:
        """Try to lock on a new connection; raise Django's errors, not psycopg's."""
        with self._use, connection.wrap_database_errors:
            self._connection = postgres.WatchedConnection.connect(
                **server_parameters(), autocommit=True
            )
            ((is_locked,),) = self._connection.execute(_TRY[self._shared], [_LOCK]).fetchall()
            if not is_locked:
                self.release()
        return bool(is_locked)


def server_parameters() -> dict[str, Any]:
    """Return libpq's parameters for a separate connection to the database."""
    return postgres.libpq_parameters(connection.get_connection_params())


def _message() -> str:
    where = connection.settings_dict
    return (
        f"STATEYARD_DATABASE_URL: another worker is running on database {where['NAME']!r} at "
        f"{where['HOST'] or 'localhost'}; stop that process first, or use another database"
    )
