"""Send wake-up signals between the processes of a team, on PostgreSQL.

A signal for one worker (a runnable execution, a scheduled task, a near timer) becomes a PgQueuer
job, written in the same transaction as the change. A signal for many waiting processes (an activity
has a task, a synchronous execution ended) becomes a NOTIFY. A lost signal only costs time: the
sweep finds the same work in the rows.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from django.db import connection, transaction
from pgqueuer.queries import SyncQueries
from psycopg.rows import dict_row

from console.db import clock, outages, postgres, signals
from console.statuses import Topic
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.db.signals import Channel

CHANNEL = "stepyard"
STEP, SIGNAL, SIGNALS = "stepyard-step", "stepyard-hint", "stepyard-signals"
"""Entry points of PgQueuer. Two releases share a queue during an upgrade: keep the names.

(A release that does not know ``SIGNALS`` leaves its jobs to others, and sweeps.)
"""
_IN_ONE_JOB = 8
"""So many signals of a transaction share a job: it costs more than what it says."""
_RUNNABLE = b'[["' + Topic.RUNNABLE.encode() + b'"], [%s]]'
NEAR_MS = 1_500
"""What is due later than this is found in the rows in time by the worker whose share it is."""
_MOMENT_MS = 100
"""What is due earlier than this goes to a worker at once, with others, and waits in its memory."""
_RETRY_S = 0.5
_QUIET_S = 2.0  # a line that says nothing for so long may be dead: it is asked

_notified_at: dict[int, float] = {}
"""When sessions of this process notified something last, by their numbers in the server.

What comes back from them has been delivered here after the commit.
"""
_MANY_SESSIONS = 200
_QueueJob = tuple[str, bytes, "timedelta | None"]


def _note_own(session: int) -> None:
    """Remember that a session of this process sends a NOTIFY now; drop old entries."""
    now = time.monotonic()
    _notified_at[session] = now
    if len(_notified_at) > _MANY_SESSIONS:
        for other, moment in list(_notified_at.items()):
            if now - moment >= _QUIET_S:
                _notified_at.pop(other, None)


class _DjangoDriver:
    """PgQueuer driver that uses this thread's Django connection and its transaction."""

    def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """Run a statement of PgQueuer's and return its rows."""
        connection.ensure_connection()
        with connection.wrap_database_errors:
            # PgQueuer's statements take longer to plan than to execute
            cursor = postgres.execute_prepared(connection.connection, query, args, dict_row)
            rows: list[dict[str, object]] = cursor.fetchall()
        return rows


class PgTransport:
    """Sends signals to other processes (``signals.Transport``)."""

    _NOTIFIED: ClassVar = frozenset({Topic.ACTIVITY, Topic.ANSWERED, Topic.RIGHTS})

    def __init__(self, *topics: str) -> None:
        """``topics``: the topics whose signals become jobs."""
        self._jobs = frozenset(topics)
        self._queries = SyncQueries(_DjangoDriver())
        self._local = threading.local()

    def takes(self, channel: Channel) -> bool:
        """Whether other processes get the signals of a channel."""
        return channel[0] in self._jobs or channel[0] in self._NOTIFIED

    def keeps(self, channel: Channel) -> bool:
        """Whether this process also gets the signals of a channel."""
        return channel[0] in self._NOTIFIED

    def send(self, channel: Channel, values: tuple[object, ...]) -> None:
        """Add a signal to the current transaction; outside of a transaction write it at once."""
        added: list[tuple[Channel, tuple[object, ...]]] = self._added()
        added.append((channel, values))
        if not connection.in_atomic_block:
            self.flush()
        elif len(added) == 1:  # for transactions that the store did not begin
            transaction.on_commit(self.flush, robust=True)

    def send_all(self, batch: Sequence[tuple[Channel, tuple[object, ...]]]) -> None:
        """Write signals into a transaction that Django does not manage."""
        self._local.added = list(batch)
        self.flush()

    def drop(self) -> None:
        """Discard the added signals."""
        self._added().clear()

    def flush(self) -> None:
        """Write the added signals as jobs and notifications."""
        added = self._added()
        if not added:
            return
        now_ms = clock.now_ms()
        jobs = _together([job for signal in added if (job := self._job(*signal, now_ms))])
        # PostgreSQL sends what a transaction notifies twice only once
        notices = list(
            dict.fromkeys(json.dumps(channel) for channel, _ in added if self.keeps(channel))
        )
        added.clear()
        if jobs:
            entrypoints, payloads, after = map(list, zip(*jobs, strict=True))
            self._queries.enqueue(entrypoints, payloads, [0] * len(jobs), after)
        if notices:
            own = connection.connection
            _note_own(getattr(own, "session", 0) or own.info.backend_pid)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_notify(%s, notice) FROM unnest(%s::text[]) AS notice",
                    [CHANNEL, notices],
                )

    def _added(self) -> list[tuple[Channel, tuple[object, ...]]]:
        if not hasattr(self._local, "added"):
            self._local.added = []
        added: list[tuple[Channel, tuple[object, ...]]] = self._local.added
        return added

    def _job(self, channel: Channel, values: tuple[Any, ...], now_ms: int) -> _QueueJob | None:
        """Return entry point, payload and delay of a signal; None if it needs no job."""
        if channel[0] in (Topic.RUNNABLE, Topic.CREATED):
            return STEP, str(values[0]).encode(), None
        if channel[0] not in self._jobs:
            return None
        after = None
        if channel[0] == Topic.DUE:
            if values[0] > now_ms + NEAR_MS:
                return None
            if values[0] > now_ms + _MOMENT_MS:
                after = timedelta(milliseconds=values[0] - now_ms)
        return SIGNAL, json.dumps([channel, values]).encode(), after


def _together(jobs: Sequence[_QueueJob]) -> Sequence[_QueueJob]:
    """Return the jobs with immediate signals merged into one job, and steps likewise."""
    for_now = [job for job in jobs if job[2] is None]
    signals_now = [payload for name, payload, _ in for_now if name == SIGNAL]
    steps = [payload for name, payload, _ in for_now if name == STEP]
    shared = {name for name, alike in ((SIGNAL, signals_now), (STEP, steps)) if len(alike) > 1}
    rest = [job for job in jobs if job[0] not in shared or job[2] is not None]
    payloads = signals_now if SIGNAL in shared else []
    if STEP in shared:
        payloads += [_RUNNABLE % number for number in steps]
    shares = (
        payloads[start : start + _IN_ONE_JOB] for start in range(0, len(payloads), _IN_ONE_JOB)
    )
    return [*rest, *((SIGNALS, b"[" + b",".join(share) + b"]", None) for share in shares)]


class NotifyListener:
    """Passes NOTIFY messages of other processes to subscribers, on its own thread."""

    def __init__(self) -> None:
        """Receive nothing before ``start``."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="notify-listener", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; the thread ends within two seconds."""
        self._ended.set()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                with postgres.WatchedConnection.connect(
                    **server_parameters(), autocommit=True
                ) as own_connection:
                    own_connection.execute(f"LISTEN {CHANNEL}")
                    self._pass_on(own_connection)
            except psycopg.Error as error:
                outages.note_outage("notifications", error)
                self._ended.wait(_RETRY_S)

    def _pass_on(self, own_connection: psycopg.Connection[Any]) -> None:
        """Deliver notifications; when idle, check that the server is still the primary."""
        while not self._ended.is_set():
            received = False
            for notice in own_connection.notifies(timeout=_QUIET_S):
                received = True
                if time.monotonic() - _notified_at.get(notice.pid, -_QUIET_S) >= _QUIET_S:
                    signals.deliver(tuple(json.loads(notice.payload)))
            if not received:
                postgres.require_writes(own_connection)
