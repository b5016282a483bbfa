"""Start executions at a constant rate, and measure latency and refusals.

The load is open-loop: start ``i`` is due at ``i / rate`` seconds. A slow answer delays no later
start, and each latency counts from the time at which the start was due, so that the stall of a
server shows in the latencies (no coordinated omission).
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_STARTS = 200_000
"""The maximum number of starts of a run: the client keeps two times of each."""
MOST_AT_ONCE = 256
"""The maximum number of concurrent calls; further starts are late, which is reported."""
THROTTLES = frozenset({"ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded"})
_OPEN = frozenset({"RUNNING", "PENDING_REDRIVE"})
_LATE_S = 0.5
_LOOK_S = 2.0
_PAGE = 1_000
_DESCRIBED = 20
_GRACE_S = 5.0
_CLOCK_S = 60.0  # more than the clock of the server may be misjudged


@dataclass(frozen=True)
class LoadPlan:
    """The load to generate.

    ``seconds``: its duration; ``inputs``: used in turn; ``name``: the run's name. ``express``: the
    type of the state machine. ``sync``: StartSyncExecution, of Express only. ``settle_s``: how long
    to wait for the ends of executions.
    """

    machine_arn: str
    rate: float
    seconds: float
    inputs: Sequence[str]
    name: str
    express: bool = False
    sync: bool = False
    settle_s: float = 60.0

    @property
    def total(self) -> int:
        """Return the number of starts."""
        return max(1, int(self.rate * self.seconds + 1e-9))


@dataclass
class Measurements:
    """Measurements of the client. Times in seconds from the beginning of the run.

    ``calls``: latency of each accepted start, from its due time to the answer; ``ends``: from its
    due time to the end of its execution. ``sent``: started calls. ``refusals``, ``failures``: code
    of a refused call, or error of an execution -> count. ``first``: when a kind of limit or error
    came first, and at which start. ``statuses``: of ended executions; ``running``: still open.
    ``look_error``: why ends could not be read. ``late``: starts that the client sent too late.
    """

    sent: int = 0
    took_s: float = 0.0
    calls: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[float, int]] = field(default_factory=dict)
    running: int = 0
    look_error: str = ""
    late: int = 0
    interrupted: bool = False

    @property
    def throttled(self) -> int:
        """Return the number of throttled calls."""
        return sum(self.refusals[code] for code in THROTTLES)

    def note_first(self, kind: str, at_s: float, number: int) -> None:
        """Keep the earliest time of a kind."""
        if kind not in self.first or at_s < self.first[kind][0]:
            self.first[kind] = (at_s, number)


class LoadRun:
    """A run of the load; ``run`` returns the measurements, also after Ctrl+C."""

    def __init__(self, states: Any, plan: LoadPlan, report: Callable[[str], None]) -> None:
        """``states``: a client that does not retry; ``report``: gets a line of progress."""
        self._states, self.plan, self._report = states, plan, report
        self.measured = Measurements()
        self._due: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self._accepted: dict[str, float] = {}
        """Name of an execution whose end is not known -> when it was due."""
        self._offset: tuple[float, float] | None = None
        """(length of the shortest call, clock of the server minus clock of this machine)."""
        self._began = self._began_epoch = 0.0
        self._over = threading.Event()

    def run(self) -> Measurements:
        """Send all starts, wait for the ends, and return the measurements."""
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(self.plan.total, MOST_AT_ONCE))
        ]
        for thread in self._threads:
            thread.start()
        self._began, self._began_epoch = time.monotonic(), time.time()
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            self._send_all()
            self._await_answers(None)
            self._await_ends()
        except KeyboardInterrupt:
            self.measured.interrupted = True
            self._stop_sending()
        self._over.set()
        with self._lock:
            self.measured.took_s = time.monotonic() - self._began
            self.measured.running = len(self._accepted) if self._lists_ends else 0
        return self.measured

    @property
    def _lists_ends(self) -> bool:
        """Return whether ends can be read from the list: AWS lists no Express executions."""
        return not self.plan.express

    # -- sending -----------------------------------------------------------------------------------

    def _send_all(self) -> None:
        for number in range(self.plan.total):
            self._wait_until(number / self.plan.rate)
            self._due.put(number)
        self._wait_until(self.plan.seconds)

    def _wait_until(self, at_s: float) -> None:
        """Sleep until a moment of the run."""
        rest_s = at_s - (time.monotonic() - self._began)
        if rest_s > 0:
            time.sleep(rest_s)

    def _stop_sending(self) -> None:
        """Drop the starts that were not sent, and wait a moment for open calls."""
        try:
            while True:
                self._due.get_nowait()
        except queue.Empty:
            pass
        try:
            self._await_answers(_GRACE_S)
            if self._lists_ends:
                self._look_for_ends()
        except KeyboardInterrupt:  # at once then
            return

    def _await_answers(self, seconds: float | None) -> None:
        """Let the threads end after the starts that are due; wait up to this time for them."""
        for _ in self._threads:
            self._due.put(None)
        deadline = None if seconds is None else time.monotonic() + seconds
        while any(thread.is_alive() for thread in self._threads):
            if deadline is not None and time.monotonic() > deadline:
                return
            time.sleep(0.02)

    def _work(self) -> None:
        while (number := self._due.get()) is not None:
            self._start(number)

    def _start(self, number: int) -> None:
        """Start one execution, and measure the call."""
        plan, due = self.plan, number / self.plan.rate
        name = f"{plan.name}-{number + 1:06d}"
        data = plan.inputs[number % len(plan.inputs)]
        request = {"stateMachineArn": plan.machine_arn, "name": name, "input": data}
        with self._lock:
            self.measured.sent += 1
        sent = time.monotonic() - self._began
        answer: dict[str, Any] = {}
        refusal = ""
        try:
            if plan.sync:
                answer = self._states.start_sync_execution(**request)
            else:
                answer = self._states.start_execution(**request)
        except ClientError as error:
            refusal = str(error.response.get("Error", {}).get("Code") or type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a thread that ends would lose later starts
            refusal = type(error).__name__
        answered = time.monotonic() - self._began
        with self._lock:
            if sent - due > _LATE_S:
                self.measured.late += 1
                self.measured.note_first("client", due, number + 1)
            if refusal:
                kind = "start-rate" if refusal in THROTTLES else refusal
                self.measured.refusals[refusal] += 1
                self.measured.note_first(kind, answered, number + 1)
            elif plan.sync:
                self._ended_sync(answer, due, answered, number)
            else:
                self.measured.calls.append(answered - due)
                self._accepted[name] = due
                self._note_clock(answer["startDate"].timestamp(), sent, answered)

    def _ended_sync(self, answer: dict[str, Any], due: float, answered: float, number: int) -> None:
        self.measured.ends.append(answered - due)
        self.measured.statuses[answer["status"]] += 1
        if answer["status"] != "SUCCEEDED":
            error = answer.get("error") or answer["status"]
            self.measured.failures[error] += 1
            self.measured.note_first(error, answered, number + 1)

    def _note_clock(self, server_s: float, sent: float, answered: float) -> None:
        """Learn how far the server's clock is off, from the shortest call."""
        length = answered - sent
        if self._offset is None or length < self._offset[0]:
            self._offset = length, server_s - (self._began_epoch + (sent + answered) / 2)

    # -- ends --------------------------------------------------------------------------------------

    def _await_ends(self) -> None:
        """Look for the ends of executions until all are known, or for ``settle_s``."""
        deadline = time.monotonic() + self.plan.settle_s
        while self._lists_ends and self._accepted and time.monotonic() < deadline:
            self._look_for_ends()
            time.sleep(min(0.5, self.plan.settle_s))

    def _look_for_ends(self) -> None:
        """Look for executions that have ended; the next poll may succeed."""
        with self._looking:
            try:
                self._read_list()
                self.measured.look_error = ""
            except ClientError as error:
                self.measured.look_error = str(error.response.get("Error", {}).get("Code", error))
            except BotoCoreError as error:
                self.measured.look_error = type(error).__name__

    def _read_list(self) -> None:
        """Read the executions of the run from the list, the newest first."""
        request = {"stateMachineArn": ":".join(self.plan.machine_arn.split(":")[:7])}
        with self._lock:
            waiting = dict(self._accepted)
        token: dict[str, str] = {}
        sought = set(waiting)
        while sought:
            page = self._states.list_executions(**request, **token, maxResults=_PAGE)
            for row in page["executions"]:
                if row["name"] in sought:
                    sought.discard(row["name"])
                    if row["status"] not in _OPEN:
                        self._note_end(row, waiting[row["name"]])
            if "nextToken" not in page or self._is_before_run(page["executions"]):
                break
            token = {"nextToken": page["nextToken"]}

    def _is_before_run(self, rows: list[dict[str, Any]]) -> bool:
        """Whether a page of the list ends with an execution that is older than the run.

        AWS lists an execution some time after its start; the whole list may have a million.
        """
        offset = self._offset[1] if self._offset else 0.0
        begin_s = self._began_epoch + offset - _CLOCK_S
        return bool(rows) and rows[-1]["startDate"].timestamp() < begin_s

    def _note_end(self, row: dict[str, Any], due: float) -> None:
        offset = self._offset[1] if self._offset else 0.0
        ended = row["stopDate"].timestamp() - offset - self._began_epoch
        number, status = int(row["name"].rpartition("-")[2]), row["status"]
        with self._lock:
            self._accepted.pop(row["name"])
            self.measured.ends.append(max(ended - due, 0.0))
            self.measured.statuses[status] += 1
        if status != "SUCCEEDED":
            error = self._error_of(row, status)
            with self._lock:
                self.measured.failures[error] += 1
                self.measured.note_first(error, ended, number)

    def _error_of(self, row: dict[str, Any], status: str) -> str:
        """Return the error of a failed execution; of further ones only the status."""
        if status != "FAILED" or sum(self.measured.failures.values()) >= _DESCRIBED:
            return str(status)
        try:
            described = self._states.describe_execution(executionArn=row["executionArn"])
        except (BotoCoreError, ClientError):
            return str(status)
        return str(described.get("error") or status)

    # -- progress ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Report the progress and look for ends, in at most a tenth of the time."""
        pause_s = _LOOK_S
        while not self._over.wait(pause_s):
            began = time.monotonic()
            if self._lists_ends and self._accepted:
                self._look_for_ends()
            now = time.monotonic()
            pause_s = max(_LOOK_S, 10 * (now - began))
            with self._lock:
                measured = self.measured
                self._report(
                    f"{now - self._began:.0f} s: {measured.sent:,} of {self.plan.total:,} sent, "
                    f"{measured.statuses.total():,} ended, {measured.refusals.total():,} refused, "
                    f"{measured.failures.total():,} failed"
                )


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p90, p99 and max of values, in milliseconds; {} without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    places = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    return {
        name: round(ordered[max(0, -(-len(ordered) * percent // 100) - 1)] * 1000, 1)
        for name, percent in places.items()
    }
