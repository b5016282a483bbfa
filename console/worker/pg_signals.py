"""How do the processes of a team wake each other?  By jobs of PgQueuer, and by NOTIFY.

A hint that is work for some worker - an execution can go on, a task is to be called, a timer is
near - is a job, written in the transaction it belongs to. One that many processes may wait for - an
activity has work, a synchronous execution ended - is a notification. Both only save time: the
sweepers find the same in the rows.
"""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg
from django.db import connection, transaction
from pgqueuer.queries import SyncQueries
from psycopg.rows import dict_row

from console import clock, postgres
from console.store.db import outages, signals
from console.worker.worker_lock import server

if TYPE_CHECKING:
    from console.store.db.signals import Topic

CHANNEL = "stepyard"
STEP, HINT = "stepyard-step", "stepyard-hint"
NEAR_MS = 1_500
"""What is due later than this is found in the rows in time by the worker whose share it is."""
_RETRY_S = 0.5
_QUIET_S = 1.0  # a line that says nothing for so long may be dead: it is asked


class _Here:
    """PgQueuer's way to this thread's connection of Django, and into its transaction."""

    def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        """Run a statement of PgQueuer's and return its rows."""
        connection.ensure_connection()
        own = connection.connection
        with (
            connection.wrap_database_errors,
            psycopg.RawCursor(own, row_factory=dict_row) as cursor,
        ):
            cursor.execute(query, args or None)
            found: list[dict[str, object]] = cursor.fetchall()
        return found


class PgTransport:
    """Carries hints to other processes (``hints.Carrier``)."""

    _SHOUTED: ClassVar = frozenset({"activity", "answered", "rights"})

    def __init__(self, *topics: str) -> None:
        """``topics``: those which become jobs."""
        self._jobs = frozenset(topics)
        self._queries = SyncQueries(_Here())
        self._local = threading.local()

    def takes(self, topic: Topic) -> bool:
        """Tell whether others want to hear of a topic."""
        return topic[0] in self._jobs or topic[0] in self._SHOUTED

    def keeps(self, topic: Topic) -> bool:
        """Tell whether this process wants to hear of it, too."""
        return topic[0] in self._SHOUTED

    def carry(self, topic: Topic, what: tuple[object, ...]) -> None:
        """Take a hint along with the current transaction, or write it at once without one."""
        taken: list[tuple[Topic, tuple[object, ...]]] = self._taken()
        taken.append((topic, what))
        if not connection.in_atomic_block:
            self.flush()
        elif len(taken) == 1:  # for transactions that the store did not begin
            transaction.on_commit(self.flush, robust=True)

    def drop(self) -> None:
        """Forget what was taken."""
        self._taken().clear()

    def flush(self) -> None:
        """Write what was taken as jobs and notifications."""
        taken = self._taken()
        if not taken:
            return
        now_ms = clock.now_ms()
        jobs = [job for one in taken if (job := self._job(*one, now_ms))]
        shouts = [json.dumps(topic) for topic, _ in taken if topic[0] in self._SHOUTED]
        taken.clear()
        if jobs:
            entrypoints, payloads, after = map(list, zip(*jobs, strict=True))
            self._queries.enqueue(entrypoints, payloads, [0] * len(jobs), after)
        for shout in shouts:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, shout])

    def _taken(self) -> list[tuple[Topic, tuple[object, ...]]]:
        if not hasattr(self._local, "taken"):
            self._local.taken = []
        found: list[tuple[Topic, tuple[object, ...]]] = self._local.taken
        return found

    def _job(
        self, topic: Topic, what: tuple[Any, ...], now_ms: int
    ) -> tuple[str, bytes, timedelta | None] | None:
        """Return entry point, payload and delay of a hint; None for one that needs no job."""
        if topic[0] in ("wake", "born"):
            return STEP, str(what[0]).encode(), None
        if topic[0] not in self._jobs:
            return None
        after = None
        if topic[0] == "due":
            if what[0] > now_ms + NEAR_MS:
                return None
            after = timedelta(milliseconds=max(what[0] - now_ms, 0))
        return HINT, json.dumps([topic, what]).encode(), after


class NotifyListener:
    """Hears notifications of other processes, on a thread of its own: ``start``, ``stop``."""

    def __init__(self) -> None:
        """Nothing is heard yet."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="ear", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End; the thread follows within a second."""
        self._ended.set()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                with postgres.Connection.connect(**server(), autocommit=True) as own:
                    own.execute(f"LISTEN {CHANNEL}")
                    self._hear(own)
            except psycopg.Error as error:
                outages.note("notifications", error)
                self._ended.wait(_RETRY_S)

    def _hear(self, own: psycopg.Connection[Any]) -> None:
        """Pass on what is notified; ask for a sign of life when nothing comes."""
        while not self._ended.is_set():
            heard = False
            for one in own.notifies(timeout=_QUIET_S):
                heard = True
                signals.deliver(tuple(json.loads(one.payload)))
            if not heard:
                own.execute("SELECT 1")
