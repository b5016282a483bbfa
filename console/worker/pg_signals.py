"""Send wake-up signals between the processes of a team, by NOTIFY of PostgreSQL.

A signal is sent by the transaction of the change, if and only if that commits. A signal for many
waiting processes (an activity has a task, a synchronous execution ended) goes to all of them. A
signal for one worker (a runnable execution, a scheduled task, a near timer) goes to one of them. A
lost signal only costs time: the sweep finds the same work in the rows.

**Which worker.** The statement that sends a signal also chooses the worker: among those that have
renewed their lease lately, by the number of the execution. So all signals of an execution reach the
process that has it in memory. Eight neighbours go to the same worker, because executions that are
started together are stepped together, in one commit.

    1. Worker A is killed; its lease is valid for some more seconds.    2. A process sends A a
       signal, which nobody receives.    3. The sweep of worker B finds the execution in the rows.
       Once the other workers have renewed their leases twice, A gets no more signals, and B sweeps
       A's share of the executions, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from django.db import connection, transaction

from console.db import clock, outages, postgres, signals
from console.db.pipeline import array_text
from console.models import Worker
from console.statuses import Topic
from console.store.tasks.workers import host_name, missed_ms
from console.worker.retrying import log_errors
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.db.signals import Channel

    Signal = tuple[Channel, tuple[Any, ...]]

CHANNEL = "stepyard"
"""The channel of signals for all processes. Two releases share it during an upgrade."""
_NEIGHBOURS = 8
"""Executions with neighbouring numbers whose signals go to the same worker."""
_IN_ONE_NOTICE = 100
"""Signals that share a notice. A signal takes up to 70 bytes, a notice may have 8,000."""
NEAR_MS = 1_500
"""The delay above which no signal is sent: the worker whose share it is finds the row in time."""
_RETRY_S = 0.5
_QUIET_S = 2.0  # a line that says nothing for so long may be dead: it is asked
_TELL_ALL = "SELECT pg_notify($1, notice) FROM unnest($2::text[]) AS notice"
_TELL_WORKERS = f"""
WITH worker AS (
    SELECT left(encode(sha256(convert_to(host || ' ' || pid, 'UTF8')), 'hex'), 32) AS address,
        row_number() OVER (ORDER BY name) - 1 AS place, count(*) OVER () AS size
    FROM console_worker
    WHERE problem <> '{Worker.STOPS}'
        AND lease_until_ms > (SELECT max(lease_until_ms) FROM console_worker) - $1::bigint
)
SELECT pg_notify('{CHANNEL}-' || address, notice)
FROM unnest($2::bigint[], $3::text[]) AS sent(number, notice)
JOIN worker ON place = number % size
"""

_notified_at: dict[int, float] = {}
"""When sessions of this process notified something last, by their numbers in the server.

What comes back from them has been delivered here after the commit.
"""
_MANY_SESSIONS = 200


def own_channel() -> str:
    """Return the channel of signals for this process alone, as ``_TELL_WORKERS`` computes it."""
    address = hashlib.sha256(f"{host_name()} {os.getpid()}".encode())
    return f"{CHANNEL}-{address.hexdigest()[:32]}"


def _note_own(session: int) -> None:
    """Remember that a session of this process sends a NOTIFY now; drop old entries."""
    now = time.monotonic()
    _notified_at[session] = now
    if len(_notified_at) > _MANY_SESSIONS:
        for other, moment in list(_notified_at.items()):
            if now - moment >= _QUIET_S:
                _notified_at.pop(other, None)


class PgTransport:
    """Sends signals to other processes (``signals.Transport``)."""

    _NOTIFIED: ClassVar = frozenset({Topic.ACTIVITY, Topic.ANSWERED, Topic.RIGHTS})

    def __init__(self, *topics: str) -> None:
        """``topics``: the topics whose signals go to a worker."""
        self._topics = frozenset(topics)
        self._local = threading.local()

    def takes(self, channel: Channel) -> bool:
        """Return whether other processes get the signals of a channel."""
        return channel[0] in self._topics or channel[0] in self._NOTIFIED

    def keeps(self, channel: Channel) -> bool:
        """Whether this process also gets the signals of a channel."""
        return channel[0] in self._NOTIFIED

    def send(self, channel: Channel, values: tuple[object, ...]) -> None:
        """Add a signal to the current transaction; outside of a transaction write it at once."""
        added = self._added()
        added.append((channel, values))
        if not connection.in_atomic_block:
            self.flush()
        elif len(added) == 1:  # for transactions that the store did not begin
            transaction.on_commit(self.flush, robust=True)

    def statements(self, batch: Sequence[Signal]) -> list[tuple[str, list[str]]]:
        """Return the SQL that notifies the receivers of signals, with the texts of its values."""
        before_ms = clock.now_ms() + NEAR_MS
        notices = _notices([each for each in batch if each[0][0] in self._topics], before_ms)
        # PostgreSQL sends what a transaction notifies twice only once
        for_all = list(
            dict.fromkeys(json.dumps(channel) for channel, _ in batch if self.keeps(channel))
        )
        statements = []
        if notices:
            arrays = [array_text(column) for column in zip(*notices, strict=True)]
            statements.append((_TELL_WORKERS, [str(missed_ms()), *arrays]))
        if for_all:
            connection.ensure_connection()
            own = connection.connection
            _note_own(getattr(own, "session", 0) or own.info.backend_pid)
            statements.append((_TELL_ALL, [CHANNEL, array_text(for_all)]))
        return statements

    def drop(self) -> None:
        """Discard the added signals."""
        self._added().clear()

    def flush(self) -> None:
        """Notify the receivers of the added signals."""
        added = self._added()
        if not added:
            return
        statements = self.statements(added)
        added.clear()
        if statements:
            connection.ensure_connection()
            with connection.wrap_database_errors:
                for text, values in statements:
                    postgres.execute_prepared(connection.connection, text, values)

    def _added(self) -> list[Signal]:
        if not hasattr(self._local, "added"):
            self._local.added = []
        added: list[Signal] = self._local.added
        return added


def _notices(added: Sequence[Signal], before_ms: int) -> list[tuple[int, str]]:
    """Return signals as notices, each with the number that chooses its worker.

    Timers that are due after ``before_ms`` are left out.
    """
    texts: dict[int, dict[str, None]] = {}
    for channel, values in added:
        is_due = channel[0] == Topic.DUE
        if not is_due or values[0] <= before_ms:
            number = values[2 if is_due else 0] // _NEIGHBOURS
            texts.setdefault(number, {})[json.dumps([channel, values])] = None
    notices = []
    for number, together in texts.items():
        each = list(together)
        notices += [
            (number, f"[{','.join(each[start : start + _IN_ONE_NOTICE])}]")
            for start in range(0, len(each), _IN_ONE_NOTICE)
        ]
    return notices


class NotifyListener:
    """Passes signals of other processes to subscribers, on its own thread."""

    def __init__(
        self, notified: Callable[[Channel], None] = signals.deliver, *, works: bool = False
    ) -> None:
        """Receive nothing before ``start``.

        ``notified``: called with the signals for all processes. ``works``: this process is a
        worker, and gets signals for it alone, too.
        """
        self._notified = notified
        self._channels = [CHANNEL, *([own_channel()] if works else [])]
        self._ended = threading.Event()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="notify-listener", daemon=True)

    def start(self, seconds: float = 0.0) -> None:
        """Begin to listen. ``seconds``: how long to wait until PostgreSQL delivers signals."""
        self._thread.start()
        self._listens.wait(seconds)

    def stop(self) -> None:
        """Stop listening; the thread ends within two seconds."""
        self._ended.set()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                with postgres.WatchedConnection.connect(
                    **server_parameters(), autocommit=True
                ) as own_connection:
                    own_connection.execute("; ".join(f'LISTEN "{each}"' for each in self._channels))
                    self._listens.set()
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
                if self._ended.is_set():
                    return
                log_errors("a signal could not be passed on", partial(self._hear, notice), None)
            if not received:
                postgres.require_writes(own_connection)

    def _hear(self, notice: psycopg.Notify) -> None:
        if notice.channel != CHANNEL:
            for channel, values in json.loads(notice.payload):
                signals.deliver(tuple(channel), *values)
        elif time.monotonic() - _notified_at.get(notice.pid, -_QUIET_S) >= _QUIET_S:
            self._notified(tuple(json.loads(notice.payload)))
