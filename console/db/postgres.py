"""Connections to PostgreSQL that end when nobody answers any more.

A connection can die without a word: a failover, a NAT or a frozen pooler drops its packets. Who
waits for a reply then waits for the kernel's quarter of an hour, or for ever where a proxy on the
way still acknowledges. So every wait of a ``Connection`` is watched by the thread that waits, which
wakes up ten times a second anyway:

1. After ``QUIET_S`` without a byte it asks the server on a new connection whether that works on the
   statement. If so, the wait goes on: a slow statement is no dead connection.
2. If the server does not, or does not answer either, the wait goes on for ``GRACE_S``, because the
   reply may have left the server just before the question came. Then the connection is cut and
   ``Silent`` is raised, an outage as any other.
3. The server may not know that its client is gone, and would keep the locks of an open transaction
   for hours. So whoever cuts a connection tells the server to end its session.
4. Whatever made one connection silent has done the same to others. Those that are idle in the pool
   are replaced, and who waits on one of which nothing was heard since then asks at once.

A connection that the server ended (a restart, a failover, a reset of all sessions) says so at once,
and the idle ones of the pool are replaced then, too. The pool by itself finds one dead connection
after the other, and pauses for 1, 2, 4, ... seconds between them: with two idle ones a thread got a
connection after 3 seconds, with four after 7.

A server that has become read-only answers, and its connections stay open after a failover: whoever
meets that closes its connection (``TakesNoWrites``), because only a new one finds the new primary.

A process that serves also bounds each statement (``limit_statements``), because a session that is
frozen in the server looks as if it worked.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import socket
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from django.apps import apps
from django.db import NotSupportedError, connection
from psycopg.pq import Conninfo, ConnStatus
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from psycopg.abc import PQGen

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
QUIET_S = 4.0
SUSPECT_S = 0.5
"""As ``QUIET_S``, where another connection has fallen silent since something was heard on this."""
GRACE_S = 0.5
STATEMENT_S = 20.0
"""The longest statement of a process that serves, but for those of ``patient`` threads."""
CONNECT_S = 5
TIMEOUTS: dict[str, int] = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""What libpq does against silence, in seconds; the last one in milliseconds."""
SERVER_TIMEOUTS = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "idle_in_transaction_session_timeout": "300000",
}
"""What the server does in a session against a client that is gone."""
SESSION = {**SERVER_TIMEOUTS, "plan_cache_mode": "force_custom_plan"}
"""What a session begins with.

A prepared statement is parsed once, but planned for its values and for tables as large as they are,
each time. (``db.merged`` says otherwise for its own.)
"""
_SET = "SELECT pg_backend_pid(), " + ", ".join("set_config(%s, %s, false)" for _ in SESSION)
READ_ONLY = "SELECT current_setting('transaction_read_only')"
_WORKS = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND state = 'active'"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
_SENT = re.compile(r": \w[\w ]*:  \S")
"""How libpq shows what a server sent: ``FATAL:  sorry, ...``, the first word in its language."""
_STARTS_OR_ENDS = "the database system is"
_NO_SERVICE = "57P"
"""The class of SQLSTATE of a server that starts, ends or ends sessions."""
_ASK_AGAIN_S = 2.0  # a server that did not answer is not asked by every thread at once
_RANDOM = secrets.token_hex(4)
_KEYWORDS = frozenset(option.keyword.decode() for option in Conninfo.get_defaults())
_names = itertools.count()
_own = threading.local()
_asking = threading.Lock()
_unreachable_at = float("-inf")
_cut_at = float("-inf")
_drained_at = float("-inf")
_left_at = float("-inf")
_NO_PRIMARY = ("session is read-only", "server is in hot standby mode")
"""What libpq says of a host that is not the one that takes writes."""
_READ_ONLY_S = 5.0
_read_only_until = float("-inf")
_limit_s: float | None = None
FEW = 6
"""With so many connections in its pool, a process has fewer than threads that would keep one."""
_REFUSED_S = 30.0
_refused_until = float("-inf")
_has_few = False
_TOO_MANY = re.compile(
    "too many (clients|connections)|connection slots are reserved|no more connections allowed"
)
_returns = 0


class Silent(psycopg.OperationalError):
    """Nobody answers on a connection, which is closed."""


class TakesNoWrites(psycopg.OperationalError):
    """The server is read-only: a standby, or a primary that has been demoted. Connect anew.

    psycopg has ``ReadOnlySqlTransaction``, an ``InternalError`` and so no outage to its callers.
    """

    sqlstate = "25006"

    def __init__(self, told: object = "the server is read-only") -> None:
        super().__init__(f"the database takes no writes: {told}")


def limit_statements(seconds: float | None = STATEMENT_S) -> None:
    """Cut every connection of this process whose statement lasts longer; None: no limit."""
    global _limit_s  # noqa: PLW0603 - one a process
    _limit_s = seconds


@contextlib.contextmanager
def patient_statements() -> Iterator[None]:
    """Let the statements of this thread last as long as the server says that it works on them."""
    before = getattr(_own, "patient", False)
    _own.patient = True
    try:
        yield
    finally:
        _own.patient = before


def _note_read_only() -> None:
    global _read_only_until  # noqa: PLW0603 - one server a process
    _read_only_until = monotonic() + _READ_ONLY_S


def is_read_only() -> bool:
    """Tell whether this process has found no server that takes writes, a moment ago."""
    return monotonic() < _read_only_until


def use_few() -> None:
    """Note that the pool of this process is small: ``is_scarce`` from now on."""
    global _has_few  # noqa: PLW0603 - one pool a process
    _has_few = True


def is_scarce() -> bool:
    """Tell whether threads have to give connections back that they would use again soon."""
    return _has_few or monotonic() < _refused_until


def spare_connection() -> None:
    """Release this thread's connection where there are few: who waits for a thread needs none."""
    if is_scarce() and not connection.in_atomic_block:
        connection.close()


def lacks_connections(error: BaseException) -> bool:
    """Tell whether an error says that no connection is left, by itself or as the pool's cause.

    psycopg has no SQLSTATE (53300) of what the server says before a session begins.
    """
    if getattr(error, "sqlstate", None) == "53300" or _TOO_MANY.search(str(error)):
        return True
    cause = error if isinstance(error, PoolTimeout) else error.__cause__
    return isinstance(cause, PoolTimeout) and monotonic() < _refused_until


def given_back() -> int:
    """Return a number that changes whenever a thread of this process gives a connection back."""
    return _returns


def new_name(prefix: object = None) -> str:
    """Return the name of a new connection: by it the server knows it among all others.

    ``prefix``: the name that operators chose, see ``database_address.NAME_LENGTH``. PostgreSQL cuts
    names at 63 characters. Hosts may have the same name, and processes that were forked the same
    random part.
    """
    begin, end = str(prefix or "stateyard"), f" {os.getpid()} {_RANDOM}-{next(_names)}"
    return f"{begin} {socket.gethostname()[: min(20, 62 - len(begin) - len(end))]}{end}"


def libpq_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters of a connection of Django's that are libpq's."""
    return {key: value for key, value in parameters.items() if key in _KEYWORDS}


def execute_prepared(
    own: psycopg.Connection[Any],
    text: str,
    values: Sequence[object] = (),
    row_factory: Any = tuple_row,
) -> psycopg.Cursor[Any]:
    """Execute a statement, with ``$1``, ``$2``, ... for values, that the server parses once.

    (Django's cursors write the values into the text.)
    """
    cursor = psycopg.RawCursor(own, row_factory=row_factory)
    return cursor.execute(text, values or None, prepare=True)


def fetch_prepared(database: Any, sql: str, values: Sequence[object]) -> Any:
    """Return the first row of a statement that the server parses once; None if there is none.

    ``database``: Django's connection, which is minded and whose errors are raised as by its cursor.
    A connection is left whose statements a migration has outdated: the types of a row changed.
    """
    try:
        return _fetch(database, sql, values)
    except NotSupportedError:
        if database.in_atomic_block:
            raise  # psycopg forgets its statements when the transaction is rolled back
    database.connection.close()
    database.close()
    return _fetch(database, sql, values)


def _fetch(database: Any, sql: str, values: Sequence[object]) -> Any:
    database.validate_thread_sharing()
    database.close_if_health_check_failed()
    database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    with database.wrap_database_errors:
        return psycopg.Cursor(database.connection).execute(sql, values, prepare=True).fetchone()


def column_types(database: Any, table: str) -> dict[str, str]:
    """Return column -> type, without lengths: a cast to a length would cut a text off."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)  # noqa: SLF001
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
    return {
        str(field.column): str(field.db_type(database)).partition("(")[0]
        for field in fields
        if field.column
    }


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose every wait is watched."""

    name = ""
    session = 0
    """The number of the session in the server; what libpq has may be a pooler's invention."""
    begun = 0.0
    heard_at = 0.0
    address: dict[str, Any]

    @property
    def _pool(self) -> Any:
        """Return the pool that a thread has the connection from: psycopg's own note."""
        return self._lent_by  # without one: no such attribute, as psycopg has it

    @_pool.setter
    def _pool(self, pool: Any) -> None:
        """Count what is given back.

        A pool's ``reset`` would tell that, too, but another thread has to wake for it each time.
        """
        global _returns  # noqa: PLW0603 - one pool a process
        if pool is None and getattr(self, "_lent_by", None) is not None:
            _returns += 1
        self._lent_by = pool

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> WatchedConnection:
        """Connect within ``CONNECT_S``; see ``psycopg.Connection.connect``."""
        name = new_name(parameters.get("application_name"))
        given = {**TIMEOUTS, **parameters, "application_name": name}
        begun = monotonic()  # before: it may be connected to a server that is left meanwhile
        try:
            found = super().connect(conninfo, **given)
        except psycopg.Error as error:
            if any(words in str(error) for words in _NO_PRIMARY):
                _note_read_only()
            if lacks_connections(error):
                global _refused_until  # noqa: PLW0603 - one server a process
                _refused_until = monotonic() + _REFUSED_S
            raise
        found.name, found.begun, found.heard_at = name, begun, monotonic()
        found.address = libpq_parameters(given) | _place_of(found)
        if given.get("autocommit"):  # else it would begin a transaction
            told = found.execute(_SET, [text for pair in SESSION.items() for text in pair])
            found.session = told.fetchall()[0][0]
        return found

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server; raise ``Silent`` when it is clear that it will not answer.

        A wait with a ``timeout`` of its own ends anyway: that for notifications is quiet by nature.
        """
        if self.begun < _left_at:
            self.pgconn.finish()
            raise TakesNoWrites("another connection was refused to write")
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(self._watched(gen), interval)
        except Silent:
            self.pgconn.finish()
            self._suspect_others()
            self._end_session()
            raise
        except psycopg.errors.ReadOnlySqlTransaction as error:
            self.leave()
            raise TakesNoWrites(error) from error
        except psycopg.OperationalError:
            if self.pgconn.status == ConnStatus.BAD:
                self._replace_idle()
            raise

    def leave(self) -> None:
        """Close it and all that began before: another host may be the primary by now.

        A thread that only reads would never meet a refusal, and go on with rows of the past.
        """
        global _left_at  # noqa: PLW0603 - one server a process
        _left_at = monotonic()
        _note_read_only()
        self.pgconn.finish()
        self._replace_idle()

    def _watched(self, gen: PQGen[T]) -> Generator[Any, Any, T]:
        """Pass on what the generator and the socket have for each other, and mind the silence."""
        silence = _Silence(self)
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                silence.note(heard=bool(ready))
                wanted = gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value

    def _end_session(self) -> None:
        """Tell the server to end its side, which may hold locks."""
        with contextlib.suppress(psycopg.Error):
            _ask_server(self, _END)

    def _suspect_others(self) -> None:
        """Doubt all that was not heard of since, and replace what is idle in the pool."""
        global _cut_at  # noqa: PLW0603 - one server a process
        _cut_at = monotonic()
        self._replace_idle()

    def _replace_idle(self) -> None:
        """Replace what is idle in the pool, once for all that began before."""
        global _drained_at  # noqa: PLW0603 - one server a process
        pool = getattr(self, "_pool", None)
        if isinstance(pool, ConnectionPool) and self.begun > _drained_at:
            _drained_at = monotonic()
            pool.drain()


def _place_of(own: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return which of several hosts a connection is to, whatever that server may do by now."""
    place = {"host": own.info.host, "port": own.info.port, "target_session_attrs": "any"}
    if own.info.hostaddr:
        place["hostaddr"] = own.info.hostaddr
    return place


class _Silence:
    """How long a wait has been quiet, and what the server says to that."""

    def __init__(self, on: WatchedConnection) -> None:
        self._on = on
        self._doubted = False
        self._since = monotonic()
        self._ask_at = self._since + (SUSPECT_S if on.heard_at < _cut_at else QUIET_S)

    def note(self, *, heard: bool) -> None:
        """Take note of a byte or of none; raise ``Silent`` when there will be none any more."""
        now = monotonic()
        if heard:
            self._since, self._ask_at, self._doubted = now, now + QUIET_S, False
            self._on.heard_at = now
        elif now >= self._ask_at:
            if self._doubted:
                raise Silent(f"the server has not answered for {now - self._since:.1f} s")
            self._doubted = not _works(self._on)
            self._ask_at = monotonic() + (GRACE_S if self._doubted else QUIET_S)
        elif _limit_s is not None and now - self._since > _limit_s and not _is_patient():
            raise Silent(f"a statement has lasted for {now - self._since:.1f} s")


def _is_patient() -> bool:
    return bool(getattr(_own, "patient", False))


def _works(on: WatchedConnection) -> bool:
    """Ask the server on a new connection whether it works on the statement of another one."""
    try:
        return bool(_ask_server(on, _WORKS))
    except psycopg.Error as error:
        return _refuses(error)


def _refuses(error: psycopg.Error) -> bool:
    """Tell whether a server that works sent an error, as one that has no connection left.

    It does not say then whether it works on a statement, but nothing is dead: the wait goes on.
    """
    if error.sqlstate is not None:
        return not error.sqlstate.startswith(_NO_SERVICE)
    told = str(error)  # psycopg has no code of what comes before a session begins
    return _SENT.search(told) is not None and _STARTS_OR_ENDS not in told


def _ask_server(about: WatchedConnection, question: str) -> Rows:
    """Ask the server about a connection; raise ``psycopg.Error`` if nobody answers."""
    global _unreachable_at  # noqa: PLW0603 - one server a process
    with _asking:
        if monotonic() - _unreachable_at < _ASK_AGAIN_S:
            raise psycopg.OperationalError("the server did not answer a moment ago")
        try:
            return answer(about.address, question, [about.name])
        except psycopg.Error as error:
            if not _refuses(error):
                _unreachable_at = monotonic()
            raise


class _Brief(psycopg.Connection[Any]):
    """A connection for one question: every wait ends after ``CONNECT_S``."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server, for no longer than that."""
        return super().wait(gen, interval, CONNECT_S if timeout is None else timeout)


def connect_briefly(address: dict[str, Any]) -> psycopg.Connection[Any]:
    """Return a connection for a few questions: the wait for each ends after ``CONNECT_S``."""
    about = {"application_name": new_name(address.get("application_name")), "autocommit": True}
    return _Brief.connect(**{**TIMEOUTS, **address, **about}, prepare_threshold=None)


def answer(address: dict[str, Any], question: str, values: list[Any] | None = None) -> Rows:
    """Return the rows of a statement, asked on a connection of its own.

    ``address``: parameters of psycopg. Raise ``psycopg.Error`` if the server cannot be reached or
    does not answer, after twice ``CONNECT_S`` at the latest.
    """
    own = connect_briefly(address)
    try:
        return own.execute(question, values).fetchall()
    finally:
        own.close()


def require_writes(own: psycopg.Connection[Any]) -> None:
    """Ask on a connection whether its server is read-only by now; if so, ``TakesNoWrites``."""
    if own.execute(READ_ONLY).fetchall() == [("on",)]:
        if isinstance(own, WatchedConnection):
            own.leave()
        else:
            own.close()
        raise TakesNoWrites
    global _read_only_until  # noqa: PLW0603 - one server a process
    _read_only_until = float("-inf")


_TAKE_KEYS = "SELECT nextval(pg_get_serial_sequence($1, $2)) FROM generate_series(1, $3::integer)"


def take_keys(table: str, key: str, count: int) -> list[int]:
    """Return so many keys of a table that nobody else gets."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        rows = execute_prepared(connection.connection, _TAKE_KEYS, [table, key, count]).fetchall()
    return [number for (number,) in rows]
