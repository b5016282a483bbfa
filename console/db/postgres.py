"""Connections to PostgreSQL that detect a silent server and close.

A connection can die silently: a failover, a NAT or a frozen pooler drops its packets. A thread that
waits for a reply then waits for a quarter of an hour, the kernel's limit, or for ever behind a
proxy that still acknowledges packets. So every wait on a ``WatchedConnection`` is checked by the
waiting thread itself, which wakes up ten times a second anyway:

1. After ``QUIET_S`` without a byte, the thread asks the server on a new connection whether it is
   executing the statement. If so, the thread waits on: a slow statement is no dead connection.
2. If the server is not executing it, or does not answer either, the thread waits for ``GRACE_S``
   more, because the reply may have left the server just before the question arrived. Then it
   closes the connection and raises ``Silent``, which callers treat as an outage.
3. The server may not notice that its client is gone, and would keep the locks of an open
   transaction for hours. So the thread also makes the server end the session.
4. The cause has probably silenced other connections, too. The pool's idle connections are replaced.
   A wait on a connection that has received nothing since asks the server after ``SUSPECT_S``.

A connection ended by the server (a restart, a failover, a reset of all sessions) fails at once, and
then the pool's idle connections are replaced, too. The pool alone would try its dead connections in
turn, with pauses of 1, 2, 4, ... seconds: with two of them a thread got a working connection after
3 seconds, with four after 7.

**Connections from the pool.** Before the pool lends a connection, it sends an empty query: one
round trip. Inside ``unchecked`` it does not, if the server answered within ``RECENT_S`` and nothing
is unread. (A session that ends sends a last message.) Use it only where a failed first statement
is repeated.

A server that has become read-only still answers, and its connections stay open after a failover. A
thread that is refused a write closes its connection (``TakesNoWrites``), because only a new
connection reaches the new primary.

A ``web`` or ``worker`` process also limits the time of each statement (``limit_statements``),
because the server reports a frozen session as executing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import select
import socket
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from django.apps import apps
from django.db import NotSupportedError, OperationalError, connection
from psycopg.pq import Conninfo, ConnStatus
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from console.db.pipeline import read_by_kept_plan

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from psycopg.abc import PQGen

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
QUIET_S = 4.0
"""A wait without a byte for this long makes the thread ask the server about its statement."""
SUSPECT_S = 0.5
"""The same if another connection has fallen silent since the last byte on this one."""
GRACE_S = 0.5
"""The time for a late reply after the server said that it is not executing the statement."""
RECENT_S = 1.0
"""A pooled connection that received a byte within this time is not checked."""
STATEMENT_S = 20.0
"""The time limit of a statement, except in threads with ``patient_statements``."""
CONNECT_S = 5
TIMEOUTS: dict[str, int] = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""libpq's parameters against silent servers, in seconds; the last one in milliseconds."""
SERVER_TIMEOUTS = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "idle_in_transaction_session_timeout": "300000",
}
"""The server's settings against silent clients, set in each session."""
SESSION = {**SERVER_TIMEOUTS, "plan_cache_mode": "force_custom_plan"}
"""The settings of each session.

``force_custom_plan``: a prepared statement is parsed once, but planned on each execution, for its
values and the current size of the tables. (``db.merged`` overrides this for its statements.)
"""
_SET = "SELECT pg_backend_pid(), " + ", ".join("set_config(%s, %s, false)" for _ in SESSION)
READ_ONLY = "SELECT current_setting('transaction_read_only')"
_WORKS = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND state = 'active'"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
_SENT = re.compile(r": \w[\w ]*:  \S")
"""Matches a server's message in libpq's text: ``FATAL:  sorry, ...``, in the server's language."""
_STARTS_OR_ENDS = "the database system is"
_NO_SERVICE = "57P"
"""The class of SQLSTATE for a server that is starting, stopping or ending sessions."""
_ASK_AGAIN_S = 2.0  # after no answer, other threads do not ask again within this time
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
"""libpq's messages for a host that is not the primary."""
_READ_ONLY_S = 5.0
_read_only_until = float("-inf")
_limit_s: float | None = None
FEW = 6
"""A pool up to this size is small: more threads than connections would each keep one."""
_REFUSED_S = 30.0
_refused_until = float("-inf")
_has_few = False
_TOO_MANY = re.compile(
    "too many (clients|connections)|connection slots are reserved|no more connections allowed"
)
_returns = 0


class Silent(psycopg.OperationalError):
    """The server no longer answers on a connection, which has been closed."""


class TakesNoWrites(psycopg.OperationalError):
    """The server is read-only: a standby, or a demoted primary. The caller must connect again.

    psycopg's own ``ReadOnlySqlTransaction`` is an ``InternalError``, which callers would not treat
    as an outage.
    """

    sqlstate = "25006"

    def __init__(self, told: object = "the server is read-only") -> None:
        super().__init__(f"the database takes no writes: {told}")


def limit_statements(seconds: float | None = STATEMENT_S) -> None:
    """Set the time limit of statements in this process; None removes the limit.

    A connection whose statement exceeds the limit is closed, with ``Silent``.
    """
    global _limit_s  # noqa: PLW0603 - one a process
    _limit_s = seconds


@contextlib.contextmanager
def patient_statements() -> Iterator[None]:
    """Exempt this thread from the time limit of statements, for maintenance."""
    before = getattr(_own, "patient", False)
    _own.patient = True
    try:
        yield
    finally:
        _own.patient = before


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Take connections that the server used a moment ago from the pool without a check.

    Only if the first statement on the connection is repeated on another one when it fails.
    """
    _own.unchecked = True
    try:
        yield
    finally:
        _own.unchecked = False


def was_lent_in_vain(database: Any) -> bool:
    """Whether a connection that was not checked has turned out to be closed."""
    own = database.connection
    is_unchecked = isinstance(own, WatchedConnection) and own.is_unchecked
    return is_unchecked and own.closed and not database.in_atomic_block


def _note_read_only() -> None:
    global _read_only_until  # noqa: PLW0603 - one server a process
    _read_only_until = monotonic() + _READ_ONLY_S


def is_read_only() -> bool:
    """Return whether this process met a read-only server within the last few seconds."""
    return monotonic() < _read_only_until


def use_few() -> None:
    """Note that this process has a small connection pool; ``is_scarce`` is True from now on."""
    global _has_few  # noqa: PLW0603 - one pool a process
    _has_few = True


def is_scarce() -> bool:
    """Return whether connections are scarce, so that threads must not keep one between uses.

    True for a small pool, and for a while after PostgreSQL refused a connection.
    """
    return _has_few or monotonic() < _refused_until


def spare_connection() -> None:
    """Return this thread's connection to the pool if connections are scarce.

    Call it before waiting for another thread, which may need the connection.
    """
    if is_scarce() and not connection.in_atomic_block:
        connection.close()


def lacks_connections(error: BaseException) -> bool:
    """Return whether an error, or its cause in the pool, means that no connection is left.

    The text is compared because psycopg has no SQLSTATE (53300) for errors before a session begins.
    """
    if getattr(error, "sqlstate", None) == "53300" or _TOO_MANY.search(str(error)):
        return True
    cause = error if isinstance(error, PoolTimeout) else error.__cause__
    return isinstance(cause, PoolTimeout) and monotonic() < _refused_until


def given_back() -> int:
    """Return a counter that increases whenever a thread returns a connection to the pool."""
    return _returns


def new_name(prefix: object = None) -> str:
    """Return a unique ``application_name`` for a new connection.

    ``prefix``: the operator's name, see ``database_address.NAME_LENGTH``. PostgreSQL truncates
    names at 63 characters. Process id, random part and number are all needed: hosts may share a
    name, and forked processes share the random part.
    """
    begin, end = str(prefix or "stateyard"), f" {os.getpid()} {_RANDOM}-{next(_names)}"
    return f"{begin} {socket.gethostname()[: min(20, 62 - len(begin) - len(end))]}{end}"


def libpq_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Django connection's parameters that libpq understands."""
    return {key: value for key, value in parameters.items() if key in _KEYWORDS}


def execute_prepared(
    own: psycopg.Connection[Any],
    text: str,
    values: Sequence[object] = (),
    row_factory: Any = tuple_row,
) -> psycopg.Cursor[Any]:
    """Execute a prepared statement, with ``$1``, ``$2``, ... for its values.

    The server parses it once per connection. (Django's cursors write the values into the text.)
    """
    cursor = psycopg.RawCursor(own, row_factory=row_factory)
    return cursor.execute(text, values or None, prepare=True)


def fetch_prepared(database: Any, sql: str, values: Sequence[object]) -> Any:
    """Return the first row of ``fetch_all_prepared``, None without rows."""
    fetched = fetch_all_prepared(database, sql, values)
    return fetched[0] if fetched else None


def fetch_all_prepared(
    database: Any, sql: str, values: Sequence[object], *, keep_plan: bool = False
) -> Rows:
    """Return the rows of a prepared statement.

    ``keep_plan``: it is also planned once per connection. Its plan must find each row by an index.

    ``database``: Django's connection; its checks and its exceptions are those of a Django cursor.
    If a migration has changed the types of the result since the statement was prepared, or the
    server has just ended the session, the connection is replaced and the statement repeated.
    """
    try:
        return _fetch(database, sql, values, keep_plan=keep_plan)
    except NotSupportedError:
        if database.in_atomic_block:
            raise  # psycopg forgets its statements when the transaction is rolled back
    except OperationalError as error:
        if isinstance(error.__cause__, (Silent, TakesNoWrites)) or not was_lent_in_vain(database):
            raise
    database.connection.close()
    database.close()
    return _fetch(database, sql, values, is_checked=True, keep_plan=keep_plan)


def _fetch(
    database: Any,
    sql: str,
    values: Sequence[object],
    *,
    is_checked: bool = False,
    keep_plan: bool = False,
) -> Rows:
    database.validate_thread_sharing()
    database.close_if_health_check_failed()
    if database.connection is None:
        with contextlib.nullcontext() if is_checked else unchecked():
            database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    own = database.connection
    with database.wrap_database_errors:
        if keep_plan and not database.in_atomic_block:
            fetched = read_by_kept_plan(own, sql, values)
        else:
            fetched = psycopg.Cursor(own).execute(sql, values, prepare=True).fetchall()
    own.is_unchecked = False
    return fetched


def column_types(database: Any, table: str) -> dict[str, str]:
    """Return column -> type, without lengths, because a cast to a length truncates the text."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)  # noqa: SLF001
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented API
    return {
        str(field.column): str(field.db_type(database)).partition("(")[0]
        for field in fields
        if field.column
    }


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that detects a silent server while it waits (see the module)."""

    name = ""
    session = 0
    """The server's process id for the session; behind a pooler, libpq has another number."""
    begun = 0.0
    heard_at = 0.0
    is_unchecked = False
    """Whether the pool lent it last without a check."""
    address: dict[str, Any]

    def execute(self, query: Any, params: Any = None, **options: Any) -> psycopg.Cursor[Any]:
        """Execute a statement; skip the pool's check, an empty query, of a recent connection."""
        if query == "":
            self.is_unchecked = getattr(_own, "unchecked", False) and self._is_recent()
            if self.is_unchecked:
                return self.cursor()
        return super().execute(query, params, **options)

    def _is_recent(self) -> bool:
        """Whether the server answered a moment ago and has sent nothing since."""
        if not hasattr(select, "poll"):  # Windows
            return False
        oldest = max(_cut_at, _left_at, monotonic() - RECENT_S)
        if self.begun < _left_at or self.heard_at <= oldest:
            return False
        if self.pgconn.status != ConnStatus.OK:
            return False
        waiting = select.poll()
        waiting.register(self.pgconn.socket, select.POLLIN)
        return not waiting.poll(0)

    @property
    def _pool(self) -> Any:
        """Return the pool that lent the connection to a thread. psycopg sets this attribute."""
        return self._lent_by  # raises AttributeError if no pool was set, as in psycopg

    @_pool.setter
    def _pool(self, pool: Any) -> None:
        """Count returns to the pool.

        The pool's ``reset`` callback would do, but it wakes another thread for each return.
        """
        global _returns  # noqa: PLW0603 - one pool a process
        if pool is None and getattr(self, "_lent_by", None) is not None:
            _returns += 1
        self._lent_by = pool

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> WatchedConnection:
        """Connect within ``CONNECT_S``; see ``psycopg.Connection.connect``."""
        name = new_name(parameters.get("application_name"))
        options = {**TIMEOUTS, **parameters, "application_name": name}
        # Taken before connecting: if another thread calls ``leave`` meanwhile, this connection
        # counts as older and is closed.
        begun = monotonic()
        try:
            watched = super().connect(conninfo, **options)
        except psycopg.Error as error:
            if any(words in str(error) for words in _NO_PRIMARY):
                _note_read_only()
            if lacks_connections(error):
                global _refused_until  # noqa: PLW0603 - one server a process
                _refused_until = monotonic() + _REFUSED_S
            raise
        watched.name, watched.begun, watched.heard_at = name, begun, monotonic()
        watched.address = libpq_parameters(options) | _place_of(watched)
        if options.get("autocommit"):  # else it would begin a transaction
            answer = watched.execute(_SET, [text for pair in SESSION.items() for text in pair])
            watched.session = answer.fetchall()[0][0]
        return watched

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server; raise ``Silent`` if it no longer answers.

        A wait with a ``timeout`` is not checked: it ends anyway, and a wait for notifications is
        usually silent.
        """
        if self.begun < _left_at:
            self.pgconn.finish()
            raise TakesNoWrites("another connection was refused to write")
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(self._watch_silence(gen), interval)
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
        """Close this connection and all older ones: another host may be the primary now.

        A thread that only reads is never refused, and would keep reading outdated rows.
        """
        global _left_at  # noqa: PLW0603 - one server a process
        _left_at = monotonic()
        _note_read_only()
        self.pgconn.finish()
        self._replace_idle()

    def _watch_silence(self, gen: PQGen[T]) -> Generator[Any, Any, T]:
        """Run psycopg's wait generator, and check for silence at each wake-up."""
        silence = _Silence(self)
        try:
            wait = next(gen)
            while True:
                ready = yield wait
                silence.note(heard=bool(ready))
                wait = gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value

    def _end_session(self) -> None:
        """Tell the server to end the session, which may hold locks."""
        with contextlib.suppress(psycopg.Error):
            _ask_server(self, _END)

    def _suspect_others(self) -> None:
        """Check sooner every connection that has received nothing since now.

        Also replace the idle connections of the pool.
        """
        global _cut_at  # noqa: PLW0603 - one server a process
        _cut_at = monotonic()
        self._replace_idle()

    def _replace_idle(self) -> None:
        """Replace the idle connections of the pool.

        Do nothing if that was done after this connection began.
        """
        global _drained_at  # noqa: PLW0603 - one server a process
        pool = getattr(self, "_pool", None)
        if isinstance(pool, ConnectionPool) and self.begun > _drained_at:
            _drained_at = monotonic()
            pool.drain()


def _place_of(own: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the address of the host that a connection reached, primary or not."""
    place = {"host": own.info.host, "port": own.info.port, "target_session_attrs": "any"}
    if own.info.hostaddr:
        place["hostaddr"] = own.info.hostaddr
    return place


class _Silence:
    """The silence during a wait: its length, and the server's answer about the statement."""

    def __init__(self, on: WatchedConnection) -> None:
        self._on = on
        self._doubted = False
        self._since = monotonic()
        self._ask_at = self._since + (SUSPECT_S if on.heard_at < _cut_at else QUIET_S)

    def note(self, *, heard: bool) -> None:
        """Note a wake-up with or without data; raise ``Silent`` if no reply can be expected."""
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
    """Ask the server on a new connection whether it is executing the statement of another."""
    try:
        return bool(_ask_server(on, _WORKS))
    except psycopg.Error as error:
        return _refuses(error)


def _refuses(error: psycopg.Error) -> bool:
    """Return whether a live server sent the error, for instance for lack of free connections.

    Such an error does not say whether the statement is being executed, but the server is alive, so
    the thread waits on.
    """
    if error.sqlstate is not None:
        return not error.sqlstate.startswith(_NO_SERVICE)
    message = str(error)  # psycopg has no SQLSTATE for errors before a session begins
    return _SENT.search(message) is not None and _STARTS_OR_ENDS not in message


def _ask_server(about: WatchedConnection, question: str) -> Rows:
    """Ask the server about a connection; raise ``psycopg.Error`` without an answer."""
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
    """A connection whose every wait ends after ``CONNECT_S``."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for the server, for at most ``CONNECT_S``."""
        return super().wait(gen, interval, CONNECT_S if timeout is None else timeout)


def connect_briefly(address: dict[str, Any]) -> psycopg.Connection[Any]:
    """Return a connection for a few short queries; each wait ends after ``CONNECT_S``."""
    about = {"application_name": new_name(address.get("application_name")), "autocommit": True}
    return _Brief.connect(**{**TIMEOUTS, **address, **about}, prepare_threshold=None)


def answer(address: dict[str, Any], question: str, values: list[Any] | None = None) -> Rows:
    """Execute a statement on a new connection; return its rows.

    ``address``: parameters of psycopg. Raise ``psycopg.Error`` if the server cannot be reached or
    does not answer, after twice ``CONNECT_S`` at the latest.
    """
    own = connect_briefly(address)
    try:
        return own.execute(question, values).fetchall()
    finally:
        own.close()


def require_writes(own: psycopg.Connection[Any]) -> None:
    """Raise ``TakesNoWrites`` and close the connection if its server has become read-only."""
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
    """Reserve ``count`` primary keys of a table; return them."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        rows = execute_prepared(connection.connection, _TAKE_KEYS, [table, key, count]).fetchall()
    return [number for (number,) in rows]
