"""Prepare the database for a process of a team: check the PostgreSQL, and migrate."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from django.core.management.base import CommandError
from django.db import connection

from console.command_line import program
from console.db import identity, postgres, ready_tables
from console.management import capacity
from console.store.state import wait_scale
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_LOCK = 0x5354455059415245  # advisory lock of the migrating process, apart from the workers' lock
_LOCK_TICK_S = 0.1
_SESSION = "SELECT pg_backend_pid()"
_MARK = "SELECT set_config('stateyard.mark', %s, false)"
_MARKED = "SELECT current_setting('stateyard.mark', true)"
_ROUNDS = 5
_RESET_S = 0.05  # a pooler resets a session once its client is gone
NO_SESSIONS = (
    "the pooler before it shares sessions between connections, wanted one for each: set "
    "PgBouncer's pool_mode = session"
)
NOT_RESET = (
    "the pooler before it hands a session on as the last client left it, wanted PgBouncer's "
    "server_reset_query = DISCARD ALL"
)
TOO_FEW = (
    "the pooler before it gives no second session, wanted as many as all processes take: raise "
    "PgBouncer's default_pool_size, or lower STATEYARD_DATABASE_CONNECTIONS"
)


def prepare(processes: int = 1) -> None:
    """Check the requirements and migrate; raise CommandError otherwise.

    ``processes``: as which this one will work.
    """
    if connection.vendor != "postgresql":
        raise CommandError(
            "STATEYARD_DATABASE_URL: got none, wanted postgres://user:password@host/name: the "
            f"processes of a team share a PostgreSQL. `{program()} up` runs all in one process."
        )
    reach_database()
    capacity.fit_pool(processes - 1)
    with one_at_a_time():
        ready_tables.bring_up_to_date()
    identity.claim_database()
    wait_scale.note_scale()


def reach_database() -> None:
    """Raise a one-line CommandError if the configured PostgreSQL cannot be used."""
    if connection.vendor != "postgresql":
        return
    try:
        address = server_parameters()
        if postgres.answer(address, postgres.READ_ONLY) == [("on",)]:
            raise postgres.TakesNoWrites
        line = unfit_pooler(address)
    except psycopg.Error as error:
        line = str(error).strip().partition("\n")[0].removeprefix("connection failed: ")
    if line:
        where = connection.settings_dict
        place = where["HOST"] or "localhost"
        place += f":{where['PORT']}" if where["PORT"] else ""
        raise CommandError(
            f"STATEYARD_DATABASE_URL: cannot use database {where['NAME']!r} at {place}: {line}"
        )


def _has_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let processes that start together migrate one by one.

    A waiting process polls for the lock. A statement that waits for it would hold a snapshot, and
    CREATE INDEX CONCURRENTLY in the process with the lock waits for the end of all snapshots: a
    deadlock.
    """
    while not _has_lock():
        time.sleep(_LOCK_TICK_S)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


# -- poolers ---------------------------------------------------------------------------------------

# Processes of a team need PostgreSQL sessions: advisory locks that live as long as the process,
# LISTEN, prepared statements and settings. PgBouncer keeps a session per connection only with
# ``pool_mode = session``. With ``transaction`` or ``statement`` a lock is taken in one session and
# released in another one, so that the first process would wait for it for ever.


def unfit_pooler(address: dict[str, Any]) -> str:
    """Return why the pooler of a database is unusable, "" if it is usable or there is none.

    ``address``: parameters of psycopg. Raise ``psycopg.Error`` if the database cannot be asked.
    """
    with ExitStack() as opened:

        def connect() -> psycopg.Connection[Any]:
            return opened.enter_context(closing(postgres.connect_briefly(address)))

        first = connect()
        if _fetch_value(first, _SESSION) == first.info.backend_pid:
            return ""  # a pooler gives clients numbers of its own
        second = connect()
        try:
            _fetch_value(second, _SESSION)
        except psycopg.OperationalError as error:
            if error.sqlstate is not None:
                raise
            return TOO_FEW  # no answer: the pooler lets it wait for the first one's session
        if _shares_sessions(first, second):
            return NO_SESSIONS
        return NOT_RESET if _hands_on(first, connect) else ""


def _fetch_value(own: psycopg.Connection[Any], question: str, *values: object) -> Any:
    return own.execute(question, values or None).fetchall()[0][0]


def _shares_sessions(first: psycopg.Connection[Any], second: psycopg.Connection[Any]) -> bool:
    """Whether two connections share a session, or one connection has two sessions.

    A pooler that shares them takes the one that was used last, or the next one in turn.
    """
    seen: tuple[set[int], set[int]] = set(), set()
    for _ in range(_ROUNDS):
        for own, sessions in ((first, seen[0]), (first, seen[0]), (second, seen[1])):
            sessions.add(_fetch_value(own, _SESSION))
    return len(seen[0]) > 1 or len(seen[1]) > 1 or seen[0] == seen[1]


def _hands_on(
    first: psycopg.Connection[Any], connect: Callable[[], psycopg.Connection[Any]]
) -> bool:
    """Whether a session's next client sees a setting of the previous one."""
    mark = secrets.token_hex(8)
    _fetch_value(first, _MARK, mark)
    first.close()
    time.sleep(_RESET_S)
    return bool(_fetch_value(connect(), _MARKED) == mark)
