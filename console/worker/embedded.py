"""How does one process do all the work?  Threads, woken by hints and kept honest by a sweeper.

Correctness never rests on a hint: everything that can go on is found again in the rows by the
sweeper, so a process that is killed at any moment continues where the rows stand.
"""

from __future__ import annotations

import queue
import threading
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.db import connections
from django.db.models import Q

from console import clock
from console.models import Activity, RunRow, TaskRow, Timer
from console.store import failures, hints, identity, inbox, losses, runs, tasks
from console.store.writer import drop_broken_connection, is_outage
from console.worker import delivery
from console.worker.alone import Alone
from console.worker.clockwork import Clockwork
from console.worker.guard import survive
from console.worker.pool import Pool
from console.worker.suspects import Suspects
from console.worker.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
ENGINE_THREADS = 2
TASK_THREADS = 64
SWEEP_EVERY_S = 1.0
HUNG_AFTER_S = 5.0  # a call that lasts longer than this and longer than its task hangs
_STOP = -1
_AT_ONCE = 10_000  # a sweep takes at most so many of a kind; the next one takes more


class Embedded:
    """The worker of a single process: ``start``, then ``stop``."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._ready: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._queued: set[int] = set()
        self._stepping: set[int] = set()
        self._again: set[int] = set()
        self._lock = threading.Lock()
        self._calls = Pool(TASK_THREADS, "task")
        self._upkeep = Upkeep()
        self._alone = Alone()
        self._suspects = Suspects()
        self._offered: set[tuple[int, int]] = set()
        self._looking: set[tuple[str, int, int]] = set()
        self._activities = delivery.builtin_activities()
        self._clockwork = Clockwork(self._due)
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listeners: list[Callable[[], None]] = []

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up what the rows say, and listen for more.

        Raises ``WrongSecret`` or ``NotAlone`` if this process must not work on the database.
        """
        identity.claim()
        self._alone.take()
        self._suspects.watch(_runnable())
        failed, released = losses.take_up_all()
        if failed or released:
            log.info("tasks of an earlier process", called_again=released, failed=failed)
        self._listeners = [
            hints.listen(("wake",), self.wake),
            hints.listen(("task",), self._offer),
            hints.listen(("offered",), self._activity_offered),
            hints.listen(("due",), self._clockwork.add),
            hints.listen(("cancel",), self._cancel),
            hints.listen(("map",), self._upkeep.map_scheduled),
            hints.listen(("map-run",), self._upkeep.map_run_changed),
        ]
        self._threads = [
            threading.Thread(target=_closing(target), name=name, daemon=True)
            for name, target in [
                *[(f"engine-{n}", self._step_loop) for n in range(ENGINE_THREADS)],
                ("clock", self._clockwork.run),
                ("sweeper", self._sweep_loop),
            ]
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Finish the steps under way and end; calls under way are left to the next start."""
        self._ended.set()
        for end in self._listeners:
            end()
        self._clockwork.stop()
        for _ in range(ENGINE_THREADS):
            self._ready.put(_STOP)
        for thread in self._threads:
            thread.join(seconds)
        self._calls.stop(0.2)
        self._upkeep.stop(0.2)
        self._alone.leave()

    # -- steps -------------------------------------------------------------------------------------

    def wake(self, execution_id: int) -> None:
        """Queue an execution once; one that is being stepped is queued again afterwards."""
        with self._lock:
            if execution_id in self._stepping:
                self._again.add(execution_id)
            elif execution_id not in self._queued:
                self._queued.add(execution_id)
                self._ready.put(execution_id)

    def _step_loop(self) -> None:
        while (number := self._ready.get()) != _STOP and not self._ended.is_set():
            with self._lock:
                self._queued.discard(number)
                self._stepping.add(number)
            again = self._step(number)
            with self._lock:
                self._stepping.discard(number)
                again = again or number in self._again
                self._again.discard(number)
            if again:
                self.wake(number)

    def _step(self, number: int) -> bool:
        """Step once; whatever happens to one execution must not stop the thread."""
        suspected = self._suspects.take(number)
        try:
            return self._suspects.step(number) if suspected else runs.step(number)
        except runs.Fenced:
            return True
        except Exception as error:
            drop_broken_connection()
            if is_outage(error):
                log.warning("a step found the database out", error=str(error).strip())
                return False  # the sweeper comes back to it
            log.exception("a step failed", execution_id=number)
            note = partial(failures.note, number, error, counted=suspected)
            return survive("noting the failure failed", note, otherwise=False)

    # -- tasks -------------------------------------------------------------------------------------

    def _offer(self, execution_id: int, task: int) -> None:
        with self._lock:
            if (execution_id, task) in self._offered or self._ended.is_set():
                return
            self._offered.add((execution_id, task))
        job = partial(self._deliver, execution_id, task)
        self._calls.submit(job, key=(execution_id, task))

    def _deliver(self, execution_id: int, task: int) -> None:
        job = partial(delivery.deliver, execution_id, task)
        survive("delivering a task failed", job, None)  # the sweeper offers it again
        with self._lock:
            self._offered.discard((execution_id, task))

    def _activity_offered(self, execution_id: int, task: int, arn: str) -> None:
        if delivery.activity_name(arn) in self._activities:
            self._offer(execution_id, task)

    # -- jobs that go on elsewhere -----------------------------------------------------------------

    def _look(self, execution_id: int, task: int) -> None:
        key = ("look", execution_id, task)
        with self._lock:
            if key in self._looking:
                return
            self._looking.add(key)
        self._calls.submit(partial(self._look_now, key), key=key)

    def _look_now(self, key: tuple[str, int, int]) -> None:
        survive("looking at a job failed", partial(delivery.look, *key[1:]), None)
        with self._lock:
            self._looking.discard(key)

    def _cancel(self, execution_id: int, task: int) -> None:
        """Try to stop the job of a task that is over; nobody waits for the outcome."""
        job = partial(delivery.cancel, execution_id, task)
        self._calls.submit(partial(survive, "cancelling a job failed", job, None))

    # -- time and repair ---------------------------------------------------------------------------

    def _due(self, what: str, execution_id: int, task: int) -> None:
        if what == "timer":
            self.wake(execution_id)
        elif what == "look":
            self._look(execution_id, task)
        else:
            self._upkeep.late(execution_id, task)

    def _sweep_loop(self) -> None:
        while True:
            if not survive("the worker's lock is out of reach", self._alone.keep, otherwise=True):
                log.error("another worker has taken this database over; this one ends")
                threading.Thread(target=self.stop, name="end", daemon=True).start()
                return
            survive("a sweep failed", self.sweep, None)
            if self._ended.wait(SWEEP_EVERY_S):
                return

    def sweep(self) -> None:
        """Find in the rows whatever can go on."""
        inbox.drop_stale()
        for number in _runnable():
            self.wake(number)
        self._clockwork.refill()
        self._sweep_tasks()
        self._upkeep.sweep()
        self._replace_hung()

    def _sweep_tasks(self) -> None:
        """Offer what nobody has taken, and again what was started here and is in nobody's hands."""
        for execution_id, task in tasks.held_here():
            with self._lock:  # asked after the rows were read: who had it then may have ended it
                held = (execution_id, task) in self._offered
            if not held:
                again = losses.take_up(execution_id, task)
                log.warning("a task was lost", execution_id=execution_id, called_again=again)
        arns = Activity.objects.filter(name__in=self._activities).values_list("arn", flat=True)
        worked = Q(kind__in=("lambda", "service")) | Q(kind="activity", resource__in=list(arns))
        scheduled = TaskRow.objects.filter(worked, status="scheduled")
        for execution_id, task in scheduled.values_list("execution_id", "task")[:_AT_ONCE]:
            self._offer(execution_id, task)

    def _replace_hung(self) -> None:
        """Replace the threads of calls that go on though their tasks ended a while ago."""
        for key in tasks.closed_among(self._calls.lasting(HUNG_AFTER_S)):
            self._calls.replace(key)


def _runnable() -> list[int]:
    """Return executions that have something to do."""
    found = inbox.waiting(_AT_ONCE)
    for rows in (
        RunRow.objects.filter(ready=True, parked="", execution__status="RUNNING"),
        Timer.objects.filter(due_ms__lte=clock.now_ms()),
    ):
        found += rows.values_list("execution_id", flat=True)[:_AT_ONCE]
    return found


def _closing(target: Callable[[], None]) -> Callable[[], None]:
    """Run a thread's target and close the thread's database connection afterwards."""

    def run() -> None:
        try:
            target()
        finally:
            connections.close_all()

    return run
