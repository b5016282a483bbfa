"""Step queued executions on several threads; each execution on one thread at a time."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog
from structlog.contextvars import bound_contextvars

import engine
from console.db import epoch, instruments, outages, postgres
from console.db.writer import (
    Change,
    drop_broken_connection,
    is_outage,
    release_connection,
)
from console.store.executions import engine_failures, step
from console.store.executions.read_steps import StepRows, read_step_rows
from console.store.executions.waiting_starts import WAITING_STARTS
from console.worker.poison_guard import PoisonGuard
from console.worker.read_ahead import ReadAhead
from console.worker.retrying import log_errors

log = structlog.get_logger(__name__)
T = TypeVar("T")
TaskOutcome = engine.TaskSucceeded | engine.TaskFailed
_Outcome = tuple[TaskOutcome, "Callable[[bool], None]"]
_End = Callable[[], "_End | None"]
"""Wait for a commit; return the same function of the next commit, if already requested."""
_STOP = -1
_REST_S = 0.5  # a thread without a step for this long returns its connection to the pool
_TOGETHER = 32
"""The number of steps whose commits a thread may begin before it waits for the first. With many
queued executions, so many steps share a commit. Measured with many simultaneous timers on SQLite:
with 16, commits take more processor time; with 64, the threads wait for each other, and the last
timers are later.
"""


class Stepping:
    """Steps executions on the threads that run ``loop`` or call ``work``."""

    def __init__(
        self,
        ended: threading.Event,
        outdated: Callable[[], None],
        *,
        counting: bool = True,
    ) -> None:
        """``ended``: no more steps. ``outdated``: called when the database began a new epoch.

        ``counting``: count the deaths of the process here, because no crash journal does.
        """
        self.poison_guard = PoisonGuard(counting=counting)
        self._counting = counting
        self.steps = 0
        self.fenced = 0
        self._ended = ended
        self._outdated = outdated
        self._ready: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._queued: dict[int, None] = {}  # in their order
        self._read_ahead = ReadAhead()
        self._stepping: dict[int, float] = {}  # since when, by time.perf_counter
        self._again: set[int] = set()
        self._left: set[int] = set()  # what a later version of this program has worked on
        self._outcomes: dict[int, list[_Outcome]] = {}
        self._lock = threading.Lock()

    def take_outcome(
        self, execution_id: int, message: TaskOutcome, done: Callable[[bool], None]
    ) -> None:
        """Step an execution with the outcome of a task, in the commit that ends the task.

        ``done``: called with whether that was committed; if not, nothing was.
        """
        with self._lock:
            ended = self._ended.is_set()
            if not ended:
                self._outcomes.setdefault(execution_id, []).append((message, done))
        if ended:
            done(False)
        else:
            self.wake(execution_id)

    def return_outcomes(self) -> None:
        """Report the outcomes that are still queued after the loops have ended as not committed."""
        with self._lock:
            outcomes = [outcome for each in self._outcomes.values() for outcome in each]
            self._outcomes.clear()
        _tell(outcomes, committed=False)

    def wake(self, execution_id: int) -> None:
        """Queue an execution once; during its step, queue it for afterwards."""
        with self._lock:
            self._read_ahead.forget(execution_id)
            if execution_id in self._stepping:
                self._again.add(execution_id)
            elif execution_id not in self._queued:
                self._queued[execution_id] = None
                self._ready.put(execution_id)

    def backlog(self) -> int:
        """Return the number of queued executions."""
        return len(self._queued)

    def stop(self, threads: int) -> None:
        """End this many loops."""
        for _ in range(threads):
            self._ready.put(_STOP)

    def loop(self) -> None:
        """Step queued executions until the end; one commit holds the steps of several."""
        under_way: deque[_End] = deque()
        while (number := self._next(wait=not under_way)) != _STOP and not self._ended.is_set():
            end = None if number is None else self._begin(number)
            if end is not None:
                under_way.append(end)
            if under_way and (number is None or len(under_way) >= _TOGETHER):
                postgres.spare_connection()  # the thread that commits may need it
                follow = under_way.popleft()()
                if follow is not None:
                    under_way.append(follow)
        for end in under_way:
            end()

    def _next(self, *, wait: bool) -> int | None:
        """Return the next execution to step, None if the queue is empty."""
        if wait:
            postgres.spare_connection()
            with contextlib.suppress(queue.Empty):
                return self._ready.get(timeout=_REST_S)
            release_connection()
            return self._ready.get()
        try:
            return self._ready.get_nowait()
        except queue.Empty:
            return None

    def work(self, number: int) -> None:
        """Step an execution once; queue it again if it has more to do."""
        end: _End | None = self._begin(number)
        while end is not None:
            end = end()

    def _begin(self, number: int) -> _End | None:
        """Compute a step; return its pending commit, None if there is nothing to commit.

        An error of one execution must not stop the thread.
        """
        WAITING_STARTS.begin(number)
        with self._lock:
            self._queued.pop(number, None)
            stored = self._read_ahead.take(number)
            if number in self._stepping:
                self._again.add(number)
                return None
            self._stepping[number] = time.perf_counter()
            outcomes = self._outcomes.pop(number, [])
        suspected = self.poison_guard.take(number)
        self.steps += 1
        if outcomes and not suspected:
            end = self._begin_outcomes(number, outcomes)
            if end is not None:
                return end
        else:
            _tell(outcomes, committed=False)
        if suspected:
            again = self._try(number, lambda: self.poison_guard.step(number), suspected=True)
            self._stepped(number, again=again)
            return None
        outcome = self._try(number, lambda: step.begin_step(number, stored or self._read(number)))
        if isinstance(outcome, step.StepChange):
            return partial(self._settle, number, outcome)
        self._stepped(number, again=outcome)
        return None

    def _read(self, number: int) -> StepRows | None:
        """Read the rows of an execution with those of the next queued ones.

        None if its step must read them itself, so that an error concerns only this execution.
        """
        with self._lock:
            reserved = self._read_ahead.reserve(self._queued)
        if not reserved:
            return None
        read: dict[int, StepRows] = {}
        try:
            read = read_step_rows([number, *reserved])
        except Exception as error:  # noqa: BLE001 - the step meets it again
            log.debug("rows could not be read together", why=str(error))
            drop_broken_connection()
        with self._lock:
            self._read_ahead.fill(reserved, read)
        return read.get(number)

    def _begin_outcomes(self, number: int, outcomes: list[_Outcome]) -> _End | None:
        """Compute a step of task outcomes; None if they are recorded on their own."""
        messages = [message for message, _ in outcomes]
        change = self._try(number, lambda: step.begin_outcomes(number, messages))
        if isinstance(change, Change):
            return partial(self._settle_outcomes, number, change, outcomes)
        _tell(outcomes, committed=False)
        return None

    def _settle_outcomes(self, number: int, change: Change[bool], outcomes: list[_Outcome]) -> None:
        """Wait for the commit of outcomes, and report the result to their callbacks."""
        committed: list[bool] = []

        def wait() -> bool:
            more = change.result()
            committed.append(True)
            return more

        again = self._try(number, wait)
        _tell(outcomes, committed=bool(committed))
        self._stepped(number, again=bool(again))

    def _settle(self, number: int, change: step.StepChange) -> _End | None:
        """Wait for the commit of a step; queue the execution again if it has more to do.

        If no other execution waits for a thread, the next step of this execution is computed
        meanwhile. Its commit begins after this commit; if this commit fails, the next step is
        dropped. Return the function that waits for the commit of the next step.
        """
        begin_next = self._compute_next(change)
        again = self._try(number, change.result)
        if begin_next is not None and change.is_committed:
            self.steps += 1
            self._time(number)
            outcome = self._try(number, begin_next)
            if isinstance(outcome, step.StepChange):
                return partial(self._settle, number, outcome)
            again = outcome
        self._stepped(number, again=again)
        return None

    def _compute_next(self, change: step.StepChange) -> Callable[[], step.StepChange] | None:
        """Compute the step after one still committing; None if rows must be read first."""
        if self._queued or self._ended.is_set():
            return None
        try:
            return change.compute_next()
        except Exception as error:  # noqa: BLE001 - it fails again where failures are counted
            log.debug("a step could not be computed ahead", why=str(error))
            drop_broken_connection()
            return None

    def _time(self, number: int) -> None:
        """Measure a finished step; the next one of its execution begins meanwhile."""
        now = time.perf_counter()
        instruments.STEPS.add(now - self._stepping[number])
        self._stepping[number] = now

    def _stepped(self, number: int, *, again: bool) -> None:
        instruments.STEPS.add(time.perf_counter() - self._stepping[number])
        with self._lock:
            del self._stepping[number]
            again = again or number in self._again
            self._again.discard(number)
        if again and not self._ended.is_set():
            self.wake(number)

    def _try(self, number: int, job: Callable[[], T], *, suspected: bool = False) -> T | bool:
        """Run a part of a step; return its result, or after an error whether to continue."""
        with bound_contextvars(execution_id=number):
            return self._tried(number, job, suspected=suspected)

    def _tried(self, number: int, job: Callable[[], T], *, suspected: bool) -> T | bool:
        try:
            return job()
        except step.Fenced:
            return self._too_late()
        except engine.NewerFormat as error:
            return self._leave(number, error, counted=suspected and self._counting)
        except Exception as error:
            drop_broken_connection()
            if is_outage(error):
                outages.note_outage("a step", error)
                return False  # the sweeper comes back to it
            log.exception("a step failed", execution=self._arn(number))
            note = partial(
                engine_failures.record_failure, number, error, counted=suspected and self._counting
            )
            return log_errors("noting the failure failed", note, otherwise=False)

    def _leave(self, number: int, error: Exception, *, counted: bool) -> bool:
        """Skip an execution written by another version of the server, and log that once."""
        note = partial(engine_failures.record_failure, number, error, counted=counted)
        log_errors("noting the failure failed", note, otherwise=False)
        if number not in self._left:
            self._left.add(number)
            arn = self._arn(number)
            log.warning("left to a worker of a later version", execution=arn, why=str(error))
        return False

    @staticmethod
    def _arn(number: int) -> str:
        return log_errors("an ARN is out of reach", partial(step.arn_of, number), "")

    def _too_late(self) -> bool:
        """Handle a lost version check: read again, or end if this process is outdated."""
        self.fenced += 1
        log.debug("a step came too late and wrote nothing")
        if log_errors("the epoch is out of reach", epoch.is_over, otherwise=False):
            self._outdated()
            return False
        return True


def _tell(outcomes: list[_Outcome], *, committed: bool) -> None:
    """Report to the callbacks of outcomes whether they are committed."""
    for _, done in outcomes:
        log_errors("an outcome could not be given back", partial(done, committed), None)
