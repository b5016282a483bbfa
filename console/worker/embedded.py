"""The embedded worker: the only worker of a database, as in ``stateyard up``.

Signals wake its threads. Correctness never depends on a signal: a sweep finds all runnable work in
the rows, so after a crash the next process continues from them.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import structlog
from django.db import connections
from django.db.models import Q

from console.config import quotas
from console.db import clock, epoch, identity, postgres, signals
from console.db.rows import keep_connection
from console.feature import Hook, hooked
from console.integrations import mocks
from console.models import Activity, InboxMessage, RunRow, TaskRow, Timer
from console.samples import samples_condition
from console.statuses import DueKind, ExecutionStatus, TaskKind, TaskStatus, Topic
from console.store.executions.waiting_starts import WAITING_STARTS
from console.store.state import crash_watch, health, inbox, pause, transition_rate, wait_scale
from console.store.state.open_work import OpenWork, find_work_and_values
from console.store.tasks import claim, lost_calls, schedule, workers
from console.store.tasks.call_targets import find_call_targets
from console.worker import task_delivery
from console.worker.call_waits import Waits
from console.worker.crash_journal import JOURNAL
from console.worker.fair_pool import FairPool
from console.worker.fair_shares import FairShare
from console.worker.maintenance import Maintenance
from console.worker.retrying import log_errors
from console.worker.stepping import Stepping
from console.worker.timer_queue import HORIZON_MS, TimerQueue
from console.worker.worker_lock import WorkerLock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.worker.own_calls import Waiting

    Deliver = Callable[[int, int], Waiting | task_delivery.UnrecordedOutcome | None]

log = structlog.get_logger(__name__)
ENGINE_THREADS = 2
TASK_THREADS = 192
"""Calls at once: 64 of one target, 96 of one project, and the rest for others (``fair_shares``)."""
SWEEP_EVERY_S = 1.0
HUNG_AFTER_S = 5.0  # a call that lasts longer than this and longer than its task hangs
SLOW_S = 1.0
_SOON_MS = 50
_ALL = workers.Share()
AT_ONCE = 10_000  # a sweep takes at most so many of a kind; the next one takes more


class Embedded:
    """The worker of a single process: ``start``, then ``stop``."""

    _counting = True  # all executions runnable at the start are suspects
    _team_sql = "NULL"

    def __init__(self) -> None:
        """Start nothing yet."""
        self._ended = threading.Event()
        self._steps = Stepping(self._ended, self._end_outdated, counting=self._counting)
        self._lock = threading.Lock()
        self._calls = FairPool(TASK_THREADS, "task", _find_shares)
        self._maintenance = Maintenance()
        self._worker_lock = WorkerLock()
        self._offered: set[tuple[int, int]] = set()
        self._waits = Waits(self._calls.submit, self._forget)
        self._looking: dict[tuple[str, int, int], bool] = {}  # and whether to look once more
        self._timers = TimerQueue(self._due)
        self._threads: list[threading.Thread] = []
        self._listeners: list[Callable[[], None]] = []
        self._work: OpenWork | None = None  # as the last sweep found it

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover work from the rows, then subscribe to signals.

        Raises ``WrongSecret`` or ``WorkerLockHeld`` if this process must not work on the database.
        """
        identity.claim_database()
        wait_scale.note_scale()
        epoch.forget_epoch()
        task_delivery.warn_of_broken_functions()
        JOURNAL.begin()
        crash_watch.set_crash_watch(JOURNAL.of)
        self._take_over()
        WAITING_STARTS.work(self._is_held_up)
        self._listeners = [
            signals.subscribe((Topic.RUNNABLE,), self.wake),
            signals.subscribe((Topic.CREATED,), self.wake),
            signals.subscribe((Topic.TASK,), self._offer),
            signals.subscribe((Topic.OFFERED,), self._activity_offered),
            signals.subscribe((Topic.DUE,), self._near),
            signals.subscribe((Topic.SOON,), self._wake_soon),
            signals.subscribe((Topic.CANCEL,), self._cancel),
            signals.subscribe((Topic.MAP,), self._maintenance.map_scheduled),
            signals.subscribe((Topic.MAP_RUN,), self._maintenance.map_run_changed),
            signals.subscribe((Topic.EVENT,), self._events),
        ]
        self._threads = [
            threading.Thread(target=closing_connections(target), name=name, daemon=True)
            for name, target in [
                *[(f"engine-{n}", self._steps.loop) for n in range(ENGINE_THREADS)],
                ("clock", self._timers.run),
                ("sweeper", self._sweep_loop),
            ]
        ]
        for thread in self._threads:
            thread.start()

    def _take_over(self) -> None:
        """Take the worker lock, and recover the work of a process that died."""
        self._worker_lock.acquire()
        self._steps.poison_guard.watch(runnable_executions(_ALL))
        for execution_id, task in JOURNAL.dead():
            claim.count_loss(execution_id, task)
        failed, released = lost_calls.recover_all()
        if failed or released:
            log.info("tasks of an earlier process", called_again=released, failed=failed)

    def wake(self, execution_id: int) -> None:
        """Queue a runnable execution."""
        self._steps.wake(execution_id)

    def _end_outdated(self) -> None:
        """End the process: the database was restored, so its memory is of another history."""
        if self._ended.is_set():
            return  # another thread has seen it, too
        self._ended.set()
        log.error("the database has begun a new epoch; this worker ends")
        threading.Thread(target=self.stop, name="end", daemon=True).start()

    def _is_held_up(self) -> bool:
        """Whether slow calls hold more than a sixth of the call threads."""
        return len(self._calls.lasting(SLOW_S)) > TASK_THREADS // 6

    def stop(self, seconds: float = 5.0) -> None:
        """Finish the steps in progress; running calls are repeated at the next start."""
        self._ended.set()
        WAITING_STARTS.work(None)
        for end in self._listeners:
            end()
        self._timers.stop()
        self._steps.stop(ENGINE_THREADS)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(seconds)
        self._steps.return_outcomes()
        self._waits.stop()
        self._calls.stop(0.2)
        for write_down in hooked(Hook.WORKER_STOPPED):
            write_down(0.5)
        self._maintenance.stop(0.2)
        JOURNAL.end()
        self._worker_lock.release()

    # -- tasks -------------------------------------------------------------------------------------

    def _offer(
        self, execution_id: int, task: int, deliver: Deliver = task_delivery.call_task
    ) -> None:
        with self._lock:
            if (execution_id, task) in self._offered or self._ended.is_set():
                return
            self._offered.add((execution_id, task))
        job = partial(self._deliver, execution_id, task, deliver)
        self._calls.submit(job, key=(execution_id, task), about=(execution_id, task))

    def _deliver(self, execution_id: int, task: int, deliver: Deliver) -> None:
        WAITING_STARTS.begin(execution_id)
        key = (execution_id, task)
        job = partial(deliver, execution_id, task)
        result = log_errors("delivering a task failed", job, None)  # the sweeper offers it again
        if isinstance(result, task_delivery.UnrecordedOutcome):
            done = partial(self._outcome_settled, key, result)
            self._steps.take_outcome(execution_id, result.message, done)
        elif result is None:
            self._forget(key)
        else:
            self._waits.add(key, result)

    def _outcome_settled(
        self, key: tuple[int, int], outcome: task_delivery.UnrecordedOutcome, committed: bool
    ) -> None:
        """Record an outcome on its own if no step was committed with it."""
        if committed:
            outcome.committed()
            self._forget(key)
        elif self._ended.is_set():  # the pool takes no more jobs
            self._record(key, outcome)
        else:
            self._calls.submit(partial(self._record, key, outcome))

    def _record(self, key: tuple[int, int], outcome: task_delivery.UnrecordedOutcome) -> None:
        log_errors("recording an outcome failed", outcome.record, None)
        self._forget(key)

    def _forget(self, key: tuple[int, int]) -> None:
        """Forget a task whose call has ended here."""
        with self._lock:
            self._offered.discard(key)

    def _activity_offered(self, execution_id: int, task: int, arn: str) -> None:
        """Offer an activity's task; reading rows is a job, since this may be an event loop."""
        name = task_delivery.activity_name(arn)
        if name in task_delivery.registered_activities():
            job = partial(self._offer_if_worked_here, execution_id, task, arn)
            self._calls.submit(partial(log_errors, "offering a task failed", job, None))
        elif name in task_delivery.sample_activities():
            self._offer(execution_id, task, task_delivery.deliver_sample_activity)
        elif mocks.are_in_use():
            job = partial(self._offer_if_mocked, execution_id, task)
            self._calls.submit(partial(log_errors, "offering a mocked task failed", job, None))

    def _offer_if_mocked(self, execution_id: int, task: int) -> None:
        if task_delivery.is_mocked(execution_id, task):
            self._offer(execution_id, task)

    def _offer_if_worked_here(self, execution_id: int, task: int, arn: str) -> None:
        if task_delivery.works_activity(arn):
            self._offer(execution_id, task)

    # -- jobs that go on elsewhere -----------------------------------------------------------------

    def _look(self, execution_id: int, task: int) -> None:
        key = ("look", execution_id, task)
        with self._lock:
            again = self._looking[key] = key in self._looking
        if not again:
            self._submit_look(key)

    def _submit_look(self, key: tuple[str, int, int]) -> None:
        self._calls.submit(partial(self._look_now, key), key=key, about=key[1:])

    def _look_now(self, key: tuple[str, int, int]) -> None:
        """Check a waiting job, again if a signal arrived during the check.

        1. We ask for the child, which runs.  2. It ends, and its signal comes.  3. We have the
        answer, that it runs: without another look the next one is up to ten seconds away.
        """
        with self._lock:
            self._looking[key] = False
        log_errors("looking at a job failed", partial(task_delivery.look_at_job, *key[1:]), None)
        with self._lock:
            again = self._looking.pop(key)
            if again:
                self._looking[key] = False
        if again:
            self._submit_look(key)

    def _cancel(self, execution_id: int, task: int) -> None:
        """Try to cancel the job of a finished task; the result is ignored."""
        job = partial(task_delivery.cancel_job, execution_id, task)
        about = (execution_id, task)
        self._calls.submit(partial(log_errors, "cancelling a job failed", job, None), about=about)

    # -- time and repair ---------------------------------------------------------------------------

    def _events(self) -> None:
        """Handle the signal that events are ready for delivery."""
        self._maintenance.events()

    def _near(self, due_ms: int, kind: str, execution_id: int, task: int = 0) -> None:
        """Add the due time of an execution or task to the timer queue."""
        self._timers.add(due_ms, kind, execution_id, task)

    def _wake_soon(self, execution_id: int) -> None:
        """Queue an execution after a short delay, to step several messages together."""
        self._timers.add(clock.now_ms() + _SOON_MS, DueKind.TIMER, execution_id)

    def _due(self, kind: str, execution_id: int, task: int) -> None:
        due_kind = DueKind(kind)
        match due_kind:
            case DueKind.TIMER:
                self.wake(execution_id)
            case DueKind.LOOK:
                self._look(execution_id, task)
            case DueKind.TIMEOUT | DueKind.HEARTBEAT:
                self._maintenance.late(execution_id, task)
            case _:
                assert_never(due_kind)

    def _sweep_loop(self) -> None:
        while True:
            if not log_errors("the worker's lease is out of reach", self._keep, otherwise=True):
                log.error("another worker has taken this database over; this one ends")
                threading.Thread(target=self.stop, name="end", daemon=True).start()
                return
            JOURNAL.retry()
            health.note_worker_problem(JOURNAL.problem)
            log_errors("a sweep failed", self.sweep, None)
            postgres.spare_connection()  # else it is kept: the pool would check it each second
            if self._ended.wait(SWEEP_EVERY_S):
                return

    def _keep(self) -> bool:
        """Renew the worker lock; return whether this process still holds it."""
        return self._worker_lock.renew()

    def sweep(self) -> None:
        """Find all runnable work in the rows."""
        conditions = self._maintenance.list_conditions() if self._leads() else []
        work, (team, *holds) = find_work_and_values(HORIZON_MS, [self._team_sql, *conditions])
        self._work = work
        share = self._share(team)
        if work.messages and share.leads:
            inbox.drop_stale()
        if work.messages or work.runs or work.timers:
            self._sweep_runs(share)
        if work.timers or work.deadlines:
            self._timers.refill(share)
        if work.tasks:
            self._sweep_tasks(share)
        self._maintenance.sweep(share, work, dict(zip(conditions, map(bool, holds), strict=True)))
        self._waits.look()
        self._replace_hung()

    def _leads(self) -> bool:
        """Whether this worker runs the global jobs, as far as it knows."""
        return True

    def _share(self, team: str | None) -> workers.Share:
        """Return this worker's share of the sweep; ``team``: the value of ``_team_sql``."""
        del team
        return _ALL

    def _sweep_runs(self, share: workers.Share) -> None:
        for number in runnable_executions(share):
            self.wake(number)

    def _sweep_tasks(self, share: workers.Share) -> None:
        """Offer unclaimed tasks, and recover tasks that an earlier process started and lost."""
        for execution_id, task in claim.claimed_tasks():
            with self._lock:  # asked after the rows were read: who had it then may have ended it
                held = (execution_id, task) in self._offered
            if not held:
                again = lost_calls.recover_call(execution_id, task)
                if again is not None:  # else it ended after the rows were read
                    log.warning("a task was lost", execution_id=execution_id, called_again=again)
        named = Activity.objects.filter(name__in=task_delivery.registered_activities())
        arns = list(filter(task_delivery.works_activity, named.values_list("arn", flat=True)))
        worked = Q(kind__in=schedule.CALLED) | Q(kind=TaskKind.ACTIVITY, resource__in=arns)
        for condition in (worked, self._of_samples()):
            scheduled = share.part(TaskRow.objects.filter(condition, status=TaskStatus.SCHEDULED))
            for execution_id, task in scheduled.values_list("execution_id", "task")[:AT_ONCE]:
                self._offer(execution_id, task)
        for key in task_delivery.mocked_activities(share.part(claim.open_test_activities())):
            self._offer(*key)

    def _of_samples(self) -> Q:
        """Return the activities that callables work for sample state machines only."""
        named = Activity.objects.filter(name__in=task_delivery.sample_activities())
        arns = list(named.values_list("arn", flat=True))
        tasks = Q(kind=TaskKind.ACTIVITY, resource__in=arns)
        return tasks & samples_condition("execution__role_arn")

    def _replace_hung(self) -> None:
        """Replace threads whose call still runs long after its task ended.

        A look at a job is named ("look", execution, task): it hangs as a call does.
        """
        lasting = {key: _task_of(key) for key in self._calls.lasting(HUNG_AFTER_S)}
        ended = set(schedule.closed_among(lasting.values()))
        for key in [key for key, task in lasting.items() if task in ended]:
            self._calls.replace(key)


def runnable_executions(share: workers.Share, age_ms: int = 0) -> list[int]:
    """Return executions that have been runnable for at least ``age_ms``."""
    before = clock.now_ms() - age_ms
    ready = RunRow.objects.filter(ready=True, parked="", execution__status=ExecutionStatus.RUNNING)
    messages = InboxMessage.objects.filter(created_ms__lte=before)
    messages = messages.exclude(execution__in=pause.paused_executions())
    if quotas.limit_transitions():  # their timer comes; asking earlier is in vain
        held = Q(execution_id__in=transition_rate.held_back())
        messages = messages.exclude(held & ~Q(kind__in=(*transition_rate.URGENT, "Stop")))
    execution_ids: list[int] = []
    for rows in (
        messages.distinct(),
        ready.filter(execution__start_ms__lte=before) if age_ms else ready,
        Timer.objects.filter(due_ms__lte=before),
    ):
        execution_ids += share.part(rows).values_list("execution_id", flat=True)[:AT_ONCE]
    return execution_ids


def _find_shares(tasks: Sequence[tuple[int, int]]) -> dict[tuple[int, int], FairShare]:
    """Return the fair share (project and target) of each (execution, task)."""
    return {task: FairShare(*target) for task, target in find_call_targets(tasks).items()}


def _task_of(key: Any) -> tuple[int, int]:
    """Return (execution, task) from the name of a call or of a job check."""
    *_, execution_id, task = key
    return execution_id, task


def closing_connections(target: Callable[[], None]) -> Callable[[], None]:
    """Return a thread target that closes the thread's database connection at its end."""

    def run() -> None:
        keep_connection()
        try:
            target()
        finally:
            connections.close_all()

    return run
