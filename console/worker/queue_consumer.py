"""Consume the team's PgQueuer jobs (wake-up signals) on a thread with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import asyncpg
import structlog
from django.db import OperationalError
from pgqueuer.db import AsyncpgDriver
from pgqueuer.errors import FailingListenerError
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from console.config.database_address import asyncpg_addresses
from console.db import outages, postgres, signals
from console.worker.pg_signals import CHANNEL, SIGNAL, SIGNALS, STEP
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pgqueuer.models import Job
    from pgqueuer.ports.driver import NotifyCallback

log = structlog.get_logger(__name__)
T = TypeVar("T")
_BATCH = 10
_BACKLOG = 128
"""With so many executions in the queue of this process it takes no more jobs."""
_PAUSE_S = 0.01
_SOCKET = {
    "TCP_KEEPIDLE": "keepalives_idle",
    "TCP_KEEPINTVL": "keepalives_interval",
    "TCP_KEEPCNT": "keepalives_count",
    "TCP_USER_TIMEOUT": "tcp_user_timeout",
}
"""Options of a socket -> libpq's parameters."""
_PLANS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
"""To plan the queue's statements anew takes longer than to execute them.

A plan that is kept must find jobs by an index: it is made when there are none.
"""
_SET = "; ".join(
    f"SET {name} = '{value}'" for name, value in {**postgres.SERVER_TIMEOUTS, **_PLANS}.items()
)
_LOST_AFTER = timedelta(seconds=6)
"""A job whose worker has not been heard of for so long is given to another."""
_RETRY_S = 0.5
_STATEMENT_S = 5.0
"""The longest statement of the queue: asyncpg by itself waits for a dead connection for ever."""


class _Driver(AsyncpgDriver):
    """PgQueuer driver that drops a connection without an answer.

    (asyncpg's own ``command_timeout`` asks the server to cancel, and waits for that to be done.)
    """

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """Run a statement and return its rows."""
        return await self._soon(super().fetch(query, *args))

    async def execute(self, query: str, *args: object) -> str:
        """Run a statement."""
        return await self._soon(super().execute(query, *args))

    async def notify(self, channel: str, payload: str) -> None:
        """Send a notification."""
        await self._soon(super().notify(channel, payload))

    async def add_listener(self, channel: str, callback: NotifyCallback) -> None:
        """Listen to notifications."""
        await self._soon(super().add_listener(channel, callback))

    async def _soon(self, statement: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(statement, _STATEMENT_S)
        except (TimeoutError, asyncpg.ReadOnlySQLTransactionError):
            self._connection.terminate()
            raise


_IS_SILENT = "SELECT 1 FROM pg_trigger WHERE tgname = 'stepyard_keeps_no_log'"
_SILENCE = """
CREATE OR REPLACE FUNCTION stepyard_keeps_no_log() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER stepyard_keeps_no_log BEFORE INSERT ON pgqueuer_log
FOR EACH ROW EXECUTE FUNCTION stepyard_keeps_no_log();
TRUNCATE pgqueuer_log, pgqueuer_statistics;
"""
"""Switch PgQueuer's log of jobs off, which has no switch of its own.

It would get three rows a job, for ever, and nobody reads them: what happened to an execution is in
its history.
"""


_OUTAGES = (
    OSError,  # TimeoutError is one
    asyncpg.InterfaceError,  # also of a connection that is closed
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    FailingListenerError,
)


async def connect() -> asyncpg.Connection[Any]:
    """Connect PgQueuer to the first usable host, with libpq's keepalive settings."""
    parameters = server_parameters()
    failure: BaseException = OSError("the database's address has no host")
    for address in asyncpg_addresses(parameters):
        try:
            return await _connect_to(address, parameters)
        except (*_OUTAGES, asyncpg.PostgresError) as error:
            failure = error
    raise failure


async def _connect_to(
    address: dict[str, Any], parameters: dict[str, Any]
) -> asyncpg.Connection[Any]:
    """Connect to one host. Settings that a pooler may drop are set after the connect."""
    settings = {"application_name": postgres.new_name(parameters.get("application_name"))}
    if options := parameters.get("options"):
        settings["options"] = options
    seconds = int(parameters["connect_timeout"])
    own_connection = await asyncpg.connect(**address, timeout=seconds, server_settings=settings)
    try:
        _mind_silence(own_connection, parameters)
        await asyncio.wait_for(own_connection.execute(_SET), seconds)
    except BaseException:
        own_connection.terminate()
        raise
    return own_connection


def _mind_silence(own_connection: asyncpg.Connection[Any], parameters: dict[str, Any]) -> None:
    """Set libpq's keepalive parameters on the socket."""
    transport_socket = own_connection._transport.get_extra_info("socket")  # noqa: SLF001 - asyncpg has no setting for it
    if transport_socket is None or transport_socket.family == socket.AF_UNIX:
        return
    transport_socket.setsockopt(
        socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(parameters["keepalives"])
    )
    for name, parameter in _SOCKET.items():
        value = int(parameters[parameter])
        if value and hasattr(socket, name):  # 0: the system's default; not on every system
            transport_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def install_queue() -> None:
    """Create or upgrade PgQueuer's tables; safe to call concurrently.

    Raise Django's ``OperationalError`` if the database cannot be reached.
    """

    async def work() -> None:
        own_connection = await connect()
        try:
            await Queries(AsyncpgDriver(own_connection)).apply_upgrade()
            if not await own_connection.fetchval(_IS_SILENT):
                await own_connection.execute(_SILENCE)
        finally:
            await own_connection.close()

    try:
        asyncio.run(work())
    except _OUTAGES as error:
        raise OperationalError(str(error) or type(error).__name__) from error


def _is_outage(error: BaseException) -> bool:
    return isinstance(error, _OUTAGES)


class _Once(logging.Filter):
    """Log filter against PgQueuer's repeated tracebacks during an outage."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and _is_outage(error):
            outages.note_outage("the queue", error)
            return False
        return not record.getMessage().startswith("Shutdown flush failed")  # follows such a line


logging.getLogger("pgqueuer").addFilter(_Once())


async def _close(own_connection: asyncpg.Connection[Any]) -> None:
    """Close a connection; abort it if the server does not answer."""
    try:
        await own_connection.close(timeout=1)
    except Exception:  # noqa: BLE001 - why it cannot take its leave is no matter
        own_connection.terminate()


class Consumer:
    """Takes jobs while it runs: ``start``, then ``stop``."""

    def __init__(
        self,
        wake: Callable[[int], None],
        backlog: Callable[[], int],
        notified: Callable[[signals.Channel], None],
    ) -> None:
        """``wake``: queues an execution; ``backlog``: the number of executions queued here.

        ``notified``: called with what is notified to all processes; it must be quick.
        """
        self._wake = wake
        self._notified = notified
        self._backlog = backlog
        self._ended = threading.Event()
        self._manager: QueueManager | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="consumer", daemon=True)

    def start(self) -> None:
        """Start to consume jobs."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Accept no more jobs and wait briefly for running ones."""
        self._ended.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._shut)
        self._thread.join(seconds)

    def _shut(self) -> None:
        if self._manager is not None:
            self._manager.shutdown.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        """Consume jobs; after a database outage connect again."""
        while not self._ended.is_set():
            try:
                own_connection = await connect()
                try:
                    await self._take_jobs(own_connection)
                finally:
                    await _close(own_connection)
            except Exception as error:
                if self._ended.is_set():
                    return
                if _is_outage(error):
                    outages.note_outage("the queue", error)
                else:  # the sweeper works on
                    log.exception("the queue failed")
                await asyncio.sleep(_RETRY_S)

    async def _leave_to_others(self) -> None:
        """Keep the slot of a job busy while the backlog is long: others take the next jobs."""
        while self._backlog() > _BACKLOG and not self._ended.is_set():  # noqa: ASYNC110 - of threads
            await asyncio.sleep(_PAUSE_S)

    async def _take_jobs(self, own_connection: asyncpg.Connection[Any]) -> None:
        manager = QueueManager(Queries(_Driver(own_connection)))

        @manager.entrypoint(STEP)
        async def step(job: Job) -> None:
            self._wake(int((job.payload or b"0").decode()))
            await self._leave_to_others()

        @manager.entrypoint(SIGNAL)
        async def signal(job: Job) -> None:
            topic, arguments = json.loads((job.payload or b"[[],[]]").decode())
            signals.deliver(tuple(topic), *arguments)

        @manager.entrypoint(SIGNALS)
        async def signals_together(job: Job) -> None:
            for topic, values in json.loads((job.payload or b"[]").decode()):
                signals.deliver(tuple(topic), *values)
            await self._leave_to_others()

        def notice(*received: object) -> None:
            self._notified(tuple(json.loads(str(received[-1]))))

        await own_connection.add_listener(CHANNEL, notice)
        self._manager = manager
        if self._ended.is_set():
            return
        await manager.run(
            dequeue_timeout=timedelta(seconds=5),
            batch_size=_BATCH,
            max_concurrent_tasks=2 * _BATCH,
            heartbeat_timeout=_LOST_AFTER,
            shutdown_on_listener_failure=True,
            log_aggregation_interval=timedelta(0),  # there is no log
        )
