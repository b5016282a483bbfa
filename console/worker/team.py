"""A team worker: one of several worker processes on one PostgreSQL database.

It runs the same threads as the embedded worker. In addition, it receives signals of other
processes, each worker sweeps its share of the rows, and leases let the others recover a dead
worker's tasks.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from console.db import clock, epoch, signals
from console.integrations import mocks
from console.models import TaskRow
from console.statuses import TaskKind, TaskStatus, Topic
from console.store.executions import engine_failures
from console.store.executions.waiting_starts import WAITING_STARTS
from console.store.tasks import claim, workers
from console.worker import task_delivery
from console.worker.crash_journal import JOURNAL
from console.worker.embedded import (
    AT_ONCE,
    Embedded,
    closing_connections,
    runnable_executions,
)
from console.worker.pg_signals import NEAR_MS, NotifyListener, PgTransport
from console.worker.retrying import log_errors, retry_during_outage
from console.worker.worker_lock import WorkerLock

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
_LEAVE_S = 3.0  # a process manager waits for fifteen at most
_ANNOUNCE_S = 0.3
_LISTEN_S = 2.0
_FORGOTTEN_MS = 1_500  # runnable for this long: the signal was lost
FROM_OUTSIDE = (
    Topic.RUNNABLE,
    Topic.CREATED,
    Topic.TASK,
    Topic.MAP,
    Topic.MAP_RUN,
    Topic.CANCEL,
    Topic.DUE,
)
"""Topics that a process without a worker hands to the workers."""


class Team(Embedded):
    """One of several workers on a PostgreSQL: ``start``, then ``stop``."""

    _counting = False  # it is known what the dead were computing
    _team_sql = workers.TEAM_SQL

    def __init__(self, on_end: Callable[[], None] | None = None) -> None:
        """Start nothing yet. ``on_end``: called if the worker must stop working."""
        super().__init__()
        self._on_end = on_end
        self._worker_lock = WorkerLock(shared=True)
        self._name = ""
        self._holds_lease = False
        self._has_swept = False
        self._renewed_at = 0.0
        self._reported = (0, 0)  # steps and fenced ones that the row has heard of
        self._part = workers.Share()
        self._listener = NotifyListener(self._handle_signal, works=True)

    @property
    def name(self) -> str:
        """Return the name of the lease."""
        return self._name

    @property
    def renewed_at(self) -> float:
        """Return the monotonic time of the last lease renewal; 0.0 before the first."""
        return self._renewed_at

    def start(self) -> None:
        """Register a lease and work beside the others."""
        signals.use_transport(PgTransport(Topic.CREATED))
        self._listener.start(_LISTEN_S)  # before others see the lease, and send signals
        super().start()
        WAITING_STARTS.work(None)  # who starts them here is not the one who begins with them

    def stop(self, seconds: float = 0.5) -> None:
        """Finish the steps in progress and release the remaining work, within a second.

        If the database does not answer, the lease is given back within ``_LEAVE_S`` or not at all;
        then others take over when it has ended.
        """
        self._run_briefly(partial(workers.announce_stop, self._name), _ANNOUNCE_S)
        super().stop(seconds)
        self._listener.stop()
        self._run_briefly(self._leave, _LEAVE_S)
        if self._holds_lease:
            log.warning("the lease could not be given back; it ends by itself", worker=self._name)

    @staticmethod
    def _run_briefly(job: Callable[[], object], seconds: float) -> None:
        """Run a job on its own thread: a silent database must not block the other threads."""

        def run() -> None:
            log_errors("leaving the team failed", job, None)

        leaving = threading.Thread(target=closing_connections(run), name="leave", daemon=True)
        leaving.start()
        leaving.join(seconds)

    def _leave(self) -> None:
        def leave() -> None:
            workers.deregister(self._name)
            self._holds_lease = False

        log_errors("giving the lease back", partial(retry_during_outage, leave, _LEAVE_S), None)

    def _end_outdated(self) -> None:
        super()._end_outdated()
        if self._on_end is not None:
            self._on_end()

    def _take_over(self) -> None:
        self._worker_lock.acquire()
        self._enter()
        self._take_over_from([])

    def _take_over_from(self, dead: list[str]) -> None:
        """Recover the work of dead workers; suspect the executions they were stepping."""
        idle = self._work is not None and not self._work.tasks
        count = 0 if idle and not dead else workers.remove_dead(dead)
        accused = JOURNAL.dead()
        for number, task in accused:
            with JOURNAL.of(number):
                log_errors("blaming a step failed", partial(_blame, number, task), None)
        self._steps.poison_guard.add(number for number, task in accused if not task)
        if dead or count:
            log.warning("workers are gone", gone=dead, offered_again=count, were_computing=accused)

    def _enter(self) -> None:
        self._name = workers.register()
        self._holds_lease = True
        claim.set_worker_name(self._name)
        log.info("a worker begins", worker=self._name)

    def _keep(self) -> bool:
        """Renew the lease; after its expiry, register under a new name."""
        if time.monotonic() - self._renewed_at >= settings.STATEYARD_LEASE_S / 5:
            if not super()._keep():
                return False
            if self._work is not None and self._work.epoch != epoch.process_epoch():
                self._end_outdated()
                return True
            done = (self._steps.steps, self._steps.fenced)
            news = (done[0] - self._reported[0], done[1] - self._reported[1])
            if workers.renew_lease(self._name, *news, problem=JOURNAL.problem):
                self._reported = done
                if self._part.leads:
                    self._take_over_from([])
            else:
                log.warning("the lease was lost; others have taken over", worker=self._name)
                self._enter()
            self._renewed_at = time.monotonic()
        return True

    def _leads(self) -> bool:
        return self._part.leads

    def _share(self, team: str | None) -> workers.Share:
        self._part, dead = workers.team_share(self._name, team)
        if dead:
            self._take_over_from(dead)
        return self._part

    def _handle_signal(self, channel: signals.Channel) -> None:
        """Offer the tasks of an activity that this process can work; forget changed settings."""
        topic, *about = channel
        if topic == Topic.RIGHTS:
            signals.deliver(channel)
        if topic != Topic.ACTIVITY:
            return
        arn = str(about[0])
        worked = task_delivery.activity_name(arn) in task_delivery.all_activities()
        offer = self._offer_tasks_of if worked else self._offer_mocked_tasks_of
        self._calls.submit(partial(log_errors, "offering tasks failed", partial(offer, arn), None))

    def _offer_mocked_tasks_of(self, arn: str) -> None:
        """Offer an activity's tasks if test cases may mock them; queries the database."""
        if mocks.are_in_use():
            self._offer_tasks_of(arn)

    def _offer_tasks_of(self, arn: str) -> None:
        """Offer the tasks of an activity in this worker's share."""
        rows = TaskRow.objects.filter(
            kind=TaskKind.ACTIVITY, resource=arn, status=TaskStatus.SCHEDULED
        )
        for key in self._part.part(rows).values_list("execution_id", "task")[:AT_ONCE]:
            self._activity_offered(*key, arn)

    def _events(self) -> None:
        """Deliver events only as the leader: two workers would deliver them twice."""
        if self._part.leads:
            super()._events()

    def _near(self, due_ms: int, kind: str, execution_id: int, task: int = 0) -> None:
        """Add a due time, unless the sweep of another worker finds it in the rows soon enough."""
        if self._part.has(execution_id) or due_ms < clock.now_ms() + NEAR_MS:
            super()._near(due_ms, kind, execution_id, task)

    def _sweep_runs(self, share: workers.Share) -> None:
        """Queue executions that have been runnable for a while; signals have queued the others.

        The first sweep queues all: their signals may have been sent while there was no worker.
        """
        for number in runnable_executions(share, _FORGOTTEN_MS if self._has_swept else 0):
            self.wake(number)
        self._has_swept = True


def _blame(execution_id: int, task: int) -> None:
    if task:
        claim.count_loss(execution_id, task)
    else:
        engine_failures.record_crash(execution_id)
