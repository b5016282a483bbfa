"""Is there one embedded worker on a database, or a team of others?

On PostgreSQL a lock says so that lives and dies with a connection of its own: an embedded worker
takes it alone, the workers of a team share it. On SQLite the lock on the data folder has said so
before.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import structlog
from django.core.management.base import CommandError
from django.db import Error, connection, connections

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

log = structlog.get_logger(__name__)
_LOCK = 0x5354455059415244  # "STEPYARD"
_PATIENCE_S = 5.0  # a process that was just killed leaves its lock in a moment

_HANGS_S = 1.0


class NotAlone(CommandError):
    """Another worker lives on this database; said without a traceback."""


class Alone:
    """Holds the database for this worker: ``take``, now and then ``keep``, then ``leave``."""

    def __init__(self, *, shared: bool = False) -> None:
        """Nothing is held yet. ``shared``: others of the same kind may hold it, too."""
        self._take = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
        self._connection: BaseDatabaseWrapper | None = None
        self._use = threading.RLock()  # of the connection: one thread at a time

    def take(self) -> None:
        """Take the database; raise ``NotAlone`` if another worker has it."""
        if connection.vendor != "postgresql":
            return
        deadline = time.monotonic() + _PATIENCE_S
        while not self._locked():
            if time.monotonic() > deadline:
                self.leave()
                raise NotAlone(_message())
            time.sleep(0.1)

    def keep(self) -> bool:
        """Take the lock again if its connection was lost; return whether nobody else has it."""
        if connection.vendor != "postgresql":
            return True
        with self._use:
            try:
                if self._connection is not None:
                    self._connection.cursor().execute("SELECT 1")
                    return True
            except Error as error:
                log.warning("the worker's lock was lost; taking it again", error=str(error).strip())
                self.leave()
            return self._locked()

    def leave(self) -> None:
        """Let another worker have the database."""
        if not self._use.acquire(timeout=_HANGS_S):
            return  # the database does not answer; the end of the process closes it
        try:
            held, self._connection = self._connection, None
            if held is not None:
                held.close()
        finally:
            self._use.release()

    def _locked(self) -> bool:
        """Try to take the lock on a new connection."""
        with self._use:
            self._connection = connections.create_connection("default")
            self._connection.inc_thread_sharing()
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT {self._take}(%s)", [_LOCK])
                (got,) = cursor.fetchone()
            if not got:
                self.leave()
        return bool(got)


def _message() -> str:
    where = connection.settings_dict
    return (
        f"STEPYARD_DATABASE_URL: another worker is running on database {where['NAME']!r} at "
        f"{where['HOST'] or 'localhost'}; stop that process first, or use another database"
    )
