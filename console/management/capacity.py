"""Fit the connection pools of the server's processes into PostgreSQL's connection limit.

Connections are counted by process name (``postgres.new_name``). A process that would leave too few
for the others takes only its share: with a few connections it works more slowly, without any it
does not work.
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
"""Connections of a process beside its pool: for its lock and for signals."""
_SPARE = 2  # for questions about a silent connection, and for commands
LEAST = 2
_EXPECTED = (
    3  # processes: a web process and two workers, which do not run yet when the first starts
)
_OURS = " [0-9]+ [0-9a-f]{8}-"
# Of the sessions of other roles a role sees neither what kind they are nor, perhaps, their names.
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
    """``allowed``: connections of the role; ``others``: taken by other programs.

    ``processes``: of this server, the one that asks among them.
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

    If it cannot be found out, the pool keeps its size. To be called before the pool is used.
    ``more``: processes that this one is about to fork.
    """
    options: MutableMapping[str, Any] | None = connection.settings_dict["OPTIONS"].get("pool")
    if not options:
        return
    most = options["max_size"]
    try:
        capacity = count_capacity()
    except psycopg.Error as error:  # the database was reached before: what it lacks comes and goes
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
