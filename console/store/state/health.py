"""Check the health of the server: database, workers, clock, disk, and overdue work."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.db import Error, connection, connections
from django.db.models import Min, Q, QuerySet

import engine
from console.config import quotas
from console.db import clock, postgres, signals, writer
from console.models import Delivery, InboxMessage, TaskRow, Timer, Worker
from console.statuses import DeliveryStatus, TaskStatus
from console.store.state import late_schedules, pause, transition_rate

ANSWER_S = 3.0
_NO_WRITES = "the database takes no writes: the server is read-only"
LATE_MS = 30_000
"""Work that has been due for this long counts as held up."""
MIN_DISK = 100 * 1024 * 1024
_JUMP_MS = 60_000
_worker_problem = ""
PROCESS_STARTED_MS = time.time_ns() // 1_000_000
"""The start of this process, by its own clock."""


@dataclass(frozen=True, slots=True)
class Health:
    """The result of a health check.

    ``oldest_runnable_ms``: for how long the oldest message or timer has waited for a step.
    ``expired_leases``: the number of dead workers whose work no other worker has taken over yet.
    ``workers``: the number of living workers, None if one process does all. ``clock_offset_ms``:
    how far the database's clock is ahead of this machine's. ``disk_free_bytes``: the free space on
    the data folder's disk. ``warnings``: problems that do not stop a worker. ``schedule_delay_ms``:
    the delay of the most overdue start by a schedule; 0 if none is late, or if other schedules of
    its project do start. ``answered``: whether the database gave the facts.
    """

    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    oldest_runnable_ms: int = 0
    expired_leases: int = 0
    workers: int | None = None
    clock_offset_ms: int = 0
    disk_free_bytes: int = 0
    schedule_delay_ms: int = 0
    answered: bool = False

    @property
    def ready(self) -> bool:
        """Return whether the server can take requests."""
        return not self.reasons

    def facts(self) -> dict[str, Any]:
        """Return all facts as JSON values."""
        facts = asdict(self)
        del facts["answered"]
        return {"ready": self.ready, **facts}


MOST_COUNTED = 1_000
"""Maximum count of waiting work of a kind."""


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """A kind of due work: its count, and the age of the oldest (0 if there is none).

    ``count``: at most one more than ``MOST_COUNTED``.
    """

    kind: str
    age_ms: int
    count: int

    @property
    def amount(self) -> str:
        """Return the amount of waiting work as text; "" for none."""
        many = self.count > MOST_COUNTED
        return f"more than {MOST_COUNTED:,}" if many else f"{self.count:,}" if self.count else ""


def list_waiting_work(now_ms: int) -> list[WaitingWork]:
    """Return the steps, calls and events that wait for this server, not for people."""
    try:
        calls = TaskRow.objects.filter(
            status=TaskStatus.SCHEDULED, kind__in=[engine.TaskKind.LAMBDA, engine.TaskKind.SERVICE]
        )
        events = Delivery.objects.filter(status=DeliveryStatus.WAITING)
        oldest = (
            ("Steps", now_ms - oldest_step_age_ms(now_ms), _count_due_steps(now_ms)),
            ("Calls", calls.aggregate(at=Min("scheduled_ms"))["at"], _count(calls)),
            (
                "Deliveries",
                events.aggregate(at=Min("next_ms"))["at"],
                _count(events.filter(next_ms__lte=now_ms)),
            ),
        )
    except Error:
        return []
    return [
        WaitingWork(kind, 0 if at is None else max(now_ms - at, 0), count)
        for kind, at, count in oldest
    ]


MOST_TIMERS = 100_000
"""Maximum count of timers."""
_TIMER_LATE_MS = 1_000


def count_timers(now_ms: int) -> tuple[int, int]:
    """Return the number of timers, and of timers overdue by more than a second.

    Each is at most ``MOST_TIMERS``.
    """
    _, timers = _due_work()
    late = timers.filter(due_ms__lt=now_ms - _TIMER_LATE_MS)
    counts = [rows.order_by()[:MOST_TIMERS].count() for rows in (Timer.objects.all(), late)]
    return counts[0], counts[1]


def _count(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: MOST_COUNTED + 1].count()


def _count_due_steps(now_ms: int) -> int:
    """Return the number of executions with a message or a due timer."""
    messages, timers = _due_work()
    due: set[int] = set()
    for rows in (messages, timers.filter(due_ms__lte=now_ms)):
        numbers = rows.order_by().values_list("execution_id", flat=True).distinct()
        due.update(numbers[: MOST_COUNTED + 1])
    return min(len(due), MOST_COUNTED + 1)


def check_health() -> Health:
    """Check database, workers, clock and disk; report a slow database."""
    if writer.is_embedded():
        return _look()
    health = _LOOKS.take_part(ANSWER_S)
    if health is not None:
        return health
    reason = f"the database does not answer within {ANSWER_S:g} s"
    if postgres.is_read_only():
        reason = _NO_WRITES
    return Health((reason,), disk_free_bytes=_free_bytes())


def note_worker_problem(problem: str) -> None:
    """Record a problem of this process's worker, "" for none (a team's workers have rows)."""
    global _worker_problem  # noqa: PLW0603 - of the one worker that shares this process
    _worker_problem = problem


def _look() -> Health:
    free = _free_bytes()
    try:
        return _with_database(free)
    except Error as error:
        return Health((_why_out(error),), disk_free_bytes=free)


def _why_out(error: Error) -> str:
    if isinstance(error.__cause__, postgres.TakesNoWrites) or postgres.is_read_only():
        return _NO_WRITES
    if postgres.lacks_connections(error):
        return "the database has no connection left for this process: too many connections"
    return f"the database does not answer: {type(error).__name__}"


def _free_bytes() -> int:
    return shutil.disk_usage(settings.DATA_DIR if settings.DATA_DIR.exists() else "/").free


class _Looks:
    """Runs the checks on a thread of its own, one at a time, for any number of callers.

    A caller must not wait for a silent database, and must not add load to it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: tuple[Future[Health], float] | None = None

    def take_part(self, seconds: float) -> Health | None:
        """Return the result of the check in progress; None if it takes over ``seconds``."""
        with self._lock:
            if self._current is None or self._current[0].done():
                self._current = (Future(), time.monotonic())
                threading.Thread(target=self._run, args=self._current[:1], daemon=True).start()
            current, begun = self._current
        try:
            return current.result(max(0.0, begun + seconds - time.monotonic()))
        except FutureTimeout:
            return None

    @staticmethod
    def _run(current: Future[Health]) -> None:
        try:
            current.set_result(_look())
        except BaseException as error:  # noqa: BLE001 - it goes to those who asked
            current.set_exception(error)
        finally:
            connections.close_all()


_LOOKS = _Looks()


def _with_database(free: int) -> Health:
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        with connection.wrap_database_errors:
            postgres.require_writes(connection.connection)
    now_ms = clock.now_ms()
    team = signals.get_transport() is not None
    leases = list(Worker.objects.values_list("lease_until_ms", "host", "problem")) if team else []
    living = [lease for lease in leases if lease[0] > now_ms]
    problems = {
        f"a worker on {host}: {problem}"
        for _, host, problem in living
        if problem not in ("", Worker.STOPS)
    }
    if _worker_problem:
        problems.add(_worker_problem)
    if team and free < MIN_DISK:  # a team's executions are in PostgreSQL, not on this disk
        problems.add(_disk_full(free))
    facts: dict[str, Any] = {
        "oldest_runnable_ms": oldest_step_age_ms(now_ms),
        "expired_leases": len(leases) - len(living),
        "workers": len(living) if team else None,
        "clock_offset_ms": _clock_offset(),
        "disk_free_bytes": free,
        "schedule_delay_ms": late_schedules.stuck_delay(now_ms),
    }
    return Health(tuple(_reasons(facts)), tuple(sorted(problems)), **facts, answered=True)


def _reasons(facts: dict[str, Any]) -> list[str]:
    reasons = []
    if why := writer.refusal():
        reasons.append(f"the database takes no writes: {why}")
    if facts["workers"] == 0:
        reasons.append("no worker is alive: executions are accepted and wait")
    if facts["oldest_runnable_ms"] > LATE_MS:
        reasons.append(f"work has been waiting for {facts['oldest_runnable_ms']} ms")
    if facts["schedule_delay_ms"]:
        reasons.append(f"a schedule is late: {facts['schedule_delay_ms']} ms")
    if facts["workers"] is None and facts["disk_free_bytes"] < MIN_DISK:
        reasons.append(_disk_full(facts["disk_free_bytes"]))
    if abs(facts["clock_offset_ms"]) > _JUMP_MS:
        reasons.append(f"this machine's clock is {facts['clock_offset_ms']} ms off the database's")
    return reasons


def _disk_full(free: int) -> str:
    return f"only {free} bytes are free on the disk of the data folder"


def oldest_step_age_ms(now_ms: int) -> int:
    """Return how long the oldest due step has waited, 0 if none is due."""
    messages, timers = _due_work()
    came = messages.aggregate(at=Min("created_ms"))["at"]
    due = timers.aggregate(at=Min("due_ms"))["at"]
    ages: list[int] = [now_ms - at for at in (came, due) if at is not None]
    return max([0, *ages])


def _due_work() -> tuple[QuerySet[InboxMessage], QuerySet[Timer]]:
    """Return the queries of due messages and timers, without paused or throttled ones."""
    messages = InboxMessage.objects.exclude(execution__in=pause.paused_executions())
    timers = Timer.objects.all()
    if quotas.limit_transitions():
        held = Q(execution_id__in=transition_rate.held_back())
        messages, timers = messages.exclude(held), timers.exclude(held)
    return messages, timers


def _clock_offset() -> int:
    if connection.vendor != "postgresql":
        return 0
    offset: int = clock.now_ms() - time.time_ns() // 1_000_000
    return offset
