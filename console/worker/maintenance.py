"""Work beside steps and calls: Map Runs, bulk jobs, deletions, deadlines, events.

On threads of their own: no call, however long it hangs, keeps them waiting.
"""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

import engine
from console.db import clock
from console.db.audit import Actor
from console.db.postgres import patient_statements
from console.db.writer import drop_broken_connection, is_outage
from console.features.alarms.jobs import evaluate_alarms
from console.features.bulk import store as bulk
from console.features.logs import function_log_store as function_logs
from console.features.metrics import rollups
from console.features.notifications.relay import OutboxRelay
from console.features.notifications.store import deliveries
from console.store.executions import children, max_duration, retention
from console.store.machines import machines
from console.store.map_runs import map_runs, map_tasks
from console.store.tasks import expiry
from console.worker import fair_shares, map_data, readiness_probe
from console.worker.call_pool import CallPool
from console.worker.fair_pool import FairPool
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from console.store.state.open_work import OpenWork
    from console.store.tasks.workers import Share

log = structlog.get_logger(__name__)
THREADS = 4
DATA_THREADS = 24
"""Map Runs that read items from buckets or write results there at once: 12 of one project."""
CLEANING_EVERY_S = 60.0
METRICS_EVERY_S = 60.0
ALARMS_EVERY_S = 60.0
RETENTION_EVERY_S = 3600.0
YEARS_EVERY_S = 3600.0
RETENTION_BATCH = 100
RETENTION_PAUSE_S = 0.05  # between two batches: steps go first
_LATE_AT_ONCE = 100  # in one transaction: ten thousand that are due together are a hundred commits


class Maintenance:
    """What the worker asks for here is done soon, once, however often it is asked for."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._pool = CallPool(THREADS, "maintenance")
        self._data = FairPool(DATA_THREADS, "map data")
        self._expiry = CallPool(1, "expiry")
        self._relay = OutboxRelay()
        self._bulk = CallPool(1, "bulk")
        self._lock = threading.Lock()
        self._asked: set[Hashable] = set()
        self._late: set[tuple[int, int]] = set()
        self._moving: set[int] = set()
        self._jobs: set[int] = set()
        self._cleaning_at = 0.0
        self._metrics_at = 0.0
        # a server that is starting has not opened its port yet
        self._readiness_at = time.monotonic() + readiness_probe.EVERY_S
        self._start_noted = False
        self._alarms_at = 0.0
        self._pruning = threading.Lock()
        self._retention_at = 0.0
        self._years_at = 0.0
        self._stopped = threading.Event()

    def sweep(self, share: Share, work: OpenWork) -> None:
        """Find in the rows of a share what there is to do; who leads does what one does for all.

        ``work``: the kinds of work that there may be.
        """
        for execution_id, task in map_tasks.scheduled_maps() if work.tasks else ():
            if share.has(execution_id):
                self.map_scheduled(execution_id, task)
        for number in filter(share.has, map_runs.running_map_runs() if work.map_runs else ()):
            self.map_run_changed(number)
        for number in filter(share.has, children.to_end() if work.children else ()):
            self._once(("children", number), partial(children.end_child, number))
        if share.leads:
            self._lead(work)

    def _lead(self, work: OpenWork) -> None:
        """Do what one does for all."""
        for number in bulk.running_jobs() if work.bulk_jobs else ():
            self._bulk_job(number)
        if work.deletions:
            self._once("deletions", machines.finish_deletions)
        if time.monotonic() >= self._cleaning_at:
            self._cleaning_at = time.monotonic() + CLEANING_EVERY_S
            self._once("events", deliveries.remove_old_events)
            self._once("pauses", deliveries.end_pauses)
            self._once("function logs", function_logs.remove_old_logs)
        if time.monotonic() >= self._metrics_at:
            self._metrics_at = time.monotonic() + METRICS_EVERY_S
            self._once("metrics", rollups.sum_up)
        self._measure_readiness()
        if time.monotonic() >= self._alarms_at:
            self._alarms_at = time.monotonic() + ALARMS_EVERY_S
            self._once("alarms", evaluate_alarms)
        if time.monotonic() >= self._years_at:
            self._years_at = time.monotonic() + YEARS_EVERY_S
            self._once("years", self._arm_ends)
        days = settings.STATEYARD_RETENTION_DAYS
        if days is not None and time.monotonic() >= self._retention_at:
            self._retention_at = time.monotonic() + RETENTION_EVERY_S
            self._once("retention", partial(self._prune, days))
        if work.events:
            self.events()

    def _measure_readiness(self) -> None:
        if not self._start_noted:
            self._start_noted = True
            self._once("start", readiness_probe.note_start)
        if time.monotonic() >= self._readiness_at:
            self._readiness_at = time.monotonic() + readiness_probe.EVERY_S
            self._once("readiness", readiness_probe.measure)

    def stop(self, seconds: float) -> None:
        """Take no more and wait a little for what is under way."""
        self._stopped.set()
        self._expiry.stop(seconds)
        self._data.stop(seconds)
        self._relay.stop(seconds)
        self._bulk.stop(seconds)
        self._pool.stop(seconds)

    def _once(self, key: Hashable, job: Callable[[], object]) -> None:
        with self._lock:
            if key in self._asked:
                return
            self._asked.add(key)
        self._pool.submit(partial(self._do, key, job))

    def _do(self, key: Hashable, job: Callable[[], object]) -> None:
        with self._lock:
            self._asked.discard(key)  # what changes from here on asks again
        with patient_statements():  # what one does for all may take its time
            # what fails here the sweeper comes back to
            log_errors("a background job failed", job, None)

    def events(self) -> None:
        """Take events to their targets."""
        self._relay.look()

    # -- bulk jobs ---------------------------------------------------------------------------------

    def _bulk_job(self, number: int) -> None:
        """Take a bulk job further, unless that is under way; Map Runs do not wait for it."""
        with self._lock:
            if number in self._jobs:
                return
            self._jobs.add(number)
        self._bulk.submit(partial(self._work, number))

    def _work(self, number: int) -> None:
        with patient_statements():
            # what fails here the sweeper comes back to
            goes_on = log_errors("a bulk job failed", partial(bulk.work_on_job, number), False)
        if goes_on:
            self._bulk.submit(partial(self._work, number))
            return
        with self._lock:
            self._jobs.discard(number)

    # -- Map Runs ----------------------------------------------------------------------------------

    def map_scheduled(self, execution_id: int, task: int) -> None:
        """Begin the Map Run of a task."""
        self._once((execution_id, task), partial(self._begin, execution_id, task))

    def _begin(self, execution_id: int, task: int) -> None:
        try:
            number = map_runs.begin_map_run(execution_id, task)
        except Exception as error:
            _note(error, execution_id, task)
            raise
        if number is not None:
            self.map_run_changed(number)

    def map_run_changed(self, number: int) -> None:
        """Take a Map Run further."""
        self._once(number, partial(self._progress, number))

    def _progress(self, number: int) -> None:
        try:
            while map_runs.advance_map_run(number):
                pass
            self._move_soon(number)
        except Exception as error:
            _note(error, *map_runs.task_of(number))
            raise

    def _move_soon(self, number: int) -> None:
        """Read or write what the Map Run has outside, on threads that projects share fairly."""
        if not map_data.waits_outside(number):
            return
        with self._lock:
            if number in self._moving:
                return
            self._moving.add(number)
        share = fair_shares.FairShare(map_runs.project_of(number), "")
        self._data.submit_for(share, partial(self._move, number))

    def _move(self, number: int) -> None:
        try:
            with patient_statements():
                # what fails here the sweeper comes back to
                log_errors("the data of a Map Run failed", partial(_move_items, number), None)
        finally:
            with self._lock:
                self._moving.discard(number)

    @staticmethod
    def _arm_ends() -> None:
        armed = max_duration.arm_ends()
        if armed:
            log.info("executions have run for a year and will time out", executions=armed)

    # -- retention ---------------------------------------------------------------------------------

    def _prune(self, days: float) -> None:
        """Remove what ended longer ago than it is kept; not what the metrics have not seen."""
        if not self._pruning.acquire(blocking=False):
            return
        try:
            kept_ms = int(days * 24 * 3600 * 1000)
            before_ms = min(clock.now_ms() - kept_ms, rollups.summed_until())
            pruned = retention.prune(
                retention.RetentionScope(before_ms),
                batch=RETENTION_BATCH,
                actor=Actor("retention"),
                go_on=lambda _: not self._stopped.wait(RETENTION_PAUSE_S),
            )
            if pruned.executions:
                log.info("old executions were removed", executions=pruned.executions)
        finally:
            self._pruning.release()

    # -- deadlines ---------------------------------------------------------------------------------

    def late(self, execution_id: int, task: int) -> None:
        """Time a task out; returns at once, for the clock must go on."""
        with self._lock:
            first = not self._late
            self._late.add((execution_id, task))
        if first:
            self._expiry.submit(self._expire)

    def _expire(self) -> None:
        while batch := self._some_late():
            # what fails here is still in its rows, which the clock reads again
            log_errors("a deadline failed", partial(expiry.expire_tasks, batch), 0)

    def _some_late(self) -> list[tuple[int, int]]:
        with self._lock:
            batch = list(itertools.islice(self._late, _LATE_AT_ONCE))
            self._late.difference_update(batch)
        return batch


def _move_items(number: int) -> None:
    try:
        map_data.move_items(number)
    except Exception as error:
        _note(error, *map_runs.task_of(number))
        raise


def _note(error: Exception, execution_id: int, task: int) -> None:
    """Count a failure of a Map Run, unless it is the database's."""
    drop_broken_connection()
    if not is_outage(error) and not isinstance(error, engine.NewerFormat):
        map_runs.note_error(execution_id, task, error)
