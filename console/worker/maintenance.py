"""Background work of a worker on its own threads: Map Runs, deletions, deadlines, feature jobs.

Hanging calls of Tasks never block these threads.
"""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import structlog
from django.utils.module_loading import import_string

import engine
from console.db import clock
from console.db.audit import Actor
from console.db.postgres import patient_statements
from console.db.writer import drop_broken_connection, is_outage
from console.feature import Hook, chosen_features, hooked
from console.models import Project
from console.store.executions import children, max_duration, retention
from console.store.machines import machines
from console.store.map_runs import map_runs, map_tasks
from console.store.tasks import expiry
from console.worker import fair_shares, map_data
from console.worker.call_pool import CallPool
from console.worker.fair_pool import FairPool
from console.worker.retrying import log_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from console.feature import Background, PeriodicJob
    from console.store.state.open_work import OpenWork
    from console.store.tasks.workers import Share

log = structlog.get_logger(__name__)
THREADS = 4
DATA_THREADS = 24
"""Map Runs that read items from buckets or write results there at once: 12 of one project."""
RETENTION_EVERY_S = 3600.0
RETENTION_ASKED_EVERY_S = 60.0  # an owner may set a retention any time
YEARS_EVERY_S = 3600.0
RETENTION_BATCH = 100
RETENTION_PAUSE_S = 0.05  # between two batches: steps go first
_LATE_AT_ONCE = 100  # in one transaction: ten thousand that are due together are a hundred commits


class Maintenance:
    """Runs background jobs; several requests for the same job are merged into one."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool = CallPool(THREADS, "maintenance")
        self._data = FairPool(DATA_THREADS, "map data")
        self._expiry = CallPool(1, "expiry")
        self._backgrounds = _make_backgrounds()
        self._due_at = dict.fromkeys(_find_jobs(), 0.0)
        self._lock = threading.Lock()
        self._asked: set[Hashable] = set()
        self._late: set[tuple[int, int]] = set()
        self._moving: set[int] = set()
        self._pruning = threading.Lock()
        self._retention_at = 0.0
        self._years_at = 0.0
        self._stopped = threading.Event()

    def list_conditions(self) -> list[str]:
        """Return the SQL conditions of the jobs that are due."""
        now = time.monotonic()
        return [
            job.pending for job, due_at in self._due_at.items() if job.pending and now >= due_at
        ]

    def sweep(self, share: Share, work: OpenWork, pending: Mapping[str, bool]) -> None:
        """Sweep this worker's share; the leader also runs global jobs.

        ``work``: the kinds of work that may have rows. ``pending``: which conditions of
        ``list_conditions`` hold.
        """
        for execution_id, task in map_tasks.scheduled_maps() if work.tasks else ():
            if share.has(execution_id):
                self.map_scheduled(execution_id, task)
        for number in filter(share.has, map_runs.running_map_runs() if work.map_runs else ()):
            self.map_run_changed(number)
        for number in filter(share.has, children.to_end() if work.children else ()):
            self._once(("children", number), partial(children.end_child, number))
        if share.leads:
            self._lead(work, pending)

    def _lead(self, work: OpenWork, pending: Mapping[str, bool]) -> None:
        """Run the leader's jobs."""
        if work.deletions:
            self._once("deletions", machines.finish_deletions)
        for job, due_at in self._due_at.items():
            if time.monotonic() >= due_at and (not job.pending or job.pending in pending):
                self._due_at[job] = time.monotonic() + job.every_s
                if not job.pending or pending[job.pending]:
                    self._once(job.name, job.run if due_at or job.first is None else job.first)
        if time.monotonic() >= self._years_at:
            self._years_at = time.monotonic() + YEARS_EVERY_S
            self._once("years", self._arm_ends)
        if time.monotonic() >= self._retention_at:
            self._retention_at = time.monotonic() + RETENTION_EVERY_S
            self._once("retention", self._prune)
        for background in self._backgrounds:
            background.sweep(work)

    def stop(self, seconds: float) -> None:
        """Accept no more jobs and wait briefly for the running jobs."""
        self._stopped.set()
        self._expiry.stop(seconds)
        self._data.stop(seconds)
        for background in self._backgrounds:
            background.stop(seconds)
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
        """Run the feature jobs that handle new events."""
        for background in self._backgrounds:
            background.wake()

    # -- Map Runs ----------------------------------------------------------------------------------

    def map_scheduled(self, execution_id: int, task: int) -> None:
        """Start the Map Run of a task."""
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
        """Advance a Map Run."""
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
        """Read or write the Map Run's S3 data, on threads shared fairly among projects."""
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

    def _prune(self) -> None:
        """Delete executions past their retention, except those that a feature still needs."""
        if not retention.is_anything_removed():
            self._retention_at = time.monotonic() + RETENTION_ASKED_EVERY_S
            return
        if not self._pruning.acquire(blocking=False):
            return
        try:
            needed_ms = [needed_since() for needed_since in hooked(Hook.NEEDED_SINCE)]
            removed = 0
            for project in Project.objects.order_by("pk").values_list("name", flat=True):
                days = retention.retention_days(project)
                if days is None or self._stopped.is_set():
                    continue
                kept_ms = int(days * retention.DAY_MS)
                before_ms = min([clock.now_ms() - kept_ms, *needed_ms])
                pruned = retention.prune(
                    retention.RetentionScope(before_ms, project),
                    batch=RETENTION_BATCH,
                    actor=Actor("retention"),
                    go_on=lambda _: not self._stopped.wait(RETENTION_PAUSE_S),
                )
                removed += pruned.executions
            if removed:
                log.info("old executions were removed", executions=removed)
        finally:
            self._pruning.release()

    # -- deadlines ---------------------------------------------------------------------------------

    def late(self, execution_id: int, task: int) -> None:
        """Time out a task in the background; returns at once, for the timer thread."""
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


def _find_jobs() -> list[PeriodicJob]:
    modules = [feature.jobs for feature in chosen_features() if feature.jobs]
    return [job for module in modules for job in import_module(module).JOBS]


def _make_backgrounds() -> list[Background]:
    classes = [feature.background for feature in chosen_features() if feature.background]
    return [import_string(name)() for name in classes]


def _move_items(number: int) -> None:
    try:
        map_data.move_items(number)
    except Exception as error:
        _note(error, *map_runs.task_of(number))
        raise


def _note(error: Exception, execution_id: int, task: int) -> None:
    """Count a failure of a Map Run, unless the database caused it."""
    drop_broken_connection()
    if not is_outage(error) and not isinstance(error, engine.NewerFormat):
        map_runs.note_error(execution_id, task, error)
