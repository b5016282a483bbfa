"""Fit the connection pools of the server's processes into PostgreSQL's connection limit.

Processes are counted by their connections' names (``postgres.new_name``). If all pools at full size
would exceed the limit, each process takes only its share. It then works more slowly, but no process
is left without connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import structlog
from django.db import connection

from console.db import postgres
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import MutableMapping

log = structlog.get_logger(__name__)
BESIDE = 2
"""Connections of a process in addition to its pool: for its lock and for signals."""
_SPARE = 2  # for queries that check whether a silent connection is alive, and for commands
LEAST = 2
_EXPECTED = (
    3  # processes: a web process and two workers, which do not run yet when the first starts
)
_OURS = " [0-9]+ [0-9a-f]{8}-"
# A role cannot see the backend type of other roles' sessions, and perhaps not their application
# names.
_COUNT = """
SELECT least(
    current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE
      current_setting('superuser_reserved_connections')::int
      + coalesce(current_setting('reserved_connections', true)::int, 0) END,
    nullif(rolconnlimit, -1), nullif(datconnlimit, -1)),
  (SELECT count(*) FROM pg_stat_activity
    WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND coalesce(application_name, '') !~ %s),
  (SELECT count(DISTINCT substring(application_name from %s)) FROM pg_stat_activity)
FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The connections of the database.

    ``allowed``: the maximum for the role; ``others``: connections of other programs;
    ``processes``: the number of this server's processes, including the current one.
    """

    allowed: int
    others: int
    processes: int

    def share(self, most: int, more: int = 0) -> int:
        """Return the largest pool of a process. ``more``: further processes expected."""
        processes = max(_EXPECTED, self.processes + more)
        return min(most, max(LEAST, (self.allowed - self.others - _SPARE) // processes - BESIDE))


def count_capacity() -> Capacity:
    """Query the limits; raise ``psycopg.Error`` if the server cannot be reached."""
    ((allowed, others, processes),) = postgres.answer(server_parameters(), _COUNT, [_OURS, _OURS])
    return Capacity(allowed, others, processes)


def fit_pool(more: int = 0) -> None:
    """Limit this process's pool to its share, and warn if that is below the setting.

    If the limits cannot be read, the pool keeps its size. Call this before the pool is used.
    ``more``: the number of processes that this process is about to fork.
    """
    options: MutableMapping[str, Any] | None = connection.settings_dict["OPTIONS"].get("pool")
    if not options:
        return
    most = options["max_size"]
    try:
        capacity = count_capacity()
    except psycopg.Error as error:  # the database was reached: the failure is probably temporary
        problem = " ".join(str(error).split())
        log.warning("the connections of PostgreSQL could not be counted", problem=problem)
        return
    options["max_size"] = capacity.share(most, more)
    if options["max_size"] < most:
        log.warning(
            "PostgreSQL allows too few connections: raise max_connections, or lower "
            "STATEYARD_DATABASE_CONNECTIONS",
            allowed=capacity.allowed,
            other_programs=capacity.others,
            wanted_of_each=most + BESIDE,
            taken_of_each=options["max_size"] + BESIDE,
        )
    if options["max_size"] <= postgres.FEW:
        postgres.use_few()
