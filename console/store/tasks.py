"""What work is open, who has it, and who may end it?

A task is a row from the commit that scheduled it; its side effect starts only after that. The first
committed outcome closes the row and puts its message into the inbox in the same transaction.

(Above 300 lines: scheduling, taking and ending share the row and its rules.)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.db.models import F, Q, QuerySet

import engine
from console import clock
from console.errors import (
    InvalidOutput,
    InvalidToken,
    TaskDoesNotExist,
    TaskTimedOut,
    ValidationException,
)
from console.models import RunRow, TaskRow
from console.store import clocks, hints, inbox, rows, switches
from console.store.pending import Pending, immediate
from console.store.texts import storable
from console.store.writer import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from console.models import Project

BUILTIN_WORKER = "stepyard-builtin"
"""Name of the worker that works activities by registered callables, as its history has it."""
OWN = "\x01"
"""Starts the name in the rows of this server's own work; no caller's name has it there."""
_CALLED = ("lambda", "service")  # kinds that this server calls itself
_me = BUILTIN_WORKER  # in whose name this process works; several may work on one database
NESTED = ("states", "aws-sdk:sfn")
"""Services whose startExecution starts a child."""
_TOKEN_LENGTH = 44

_OLDEST = (
    "SELECT execution_id, task FROM console_taskrow"
    " WHERE resource = %s AND status = 'scheduled' AND kind = 'activity'"
    " ORDER BY scheduled_ms, execution_id, task LIMIT 1"
)
_TAKE = (
    "UPDATE console_taskrow SET status = 'started', started_ms = %s, dispatches = dispatches + 1,"
    " worker = %s, timeout_due_ms = %s, clock = %s, heartbeat_due_ms = %s"
    " WHERE execution_id = %s AND task = %s AND status = 'scheduled'"
)
_TAKEN = (
    "SELECT e.arn, t.entered_event, t.attempt, t.kind, t.resource, t.service, t.action, t.pattern,"
    " t.input, t.timeout_s, t.heartbeat_s, t.dispatches, t.losses, t.state, e.test_case,"
    " t.scheduled_ms, t.close_due_ms, t.started_ms, t.timeout_due_ms, t.clock, t.heartbeat_due_ms"
    " FROM console_taskrow t JOIN console_execution e ON e.id = t.execution_id"
    " WHERE t.execution_id = %s AND t.task = %s"
)


_DISPATCHES = 8  # its place among what a row tells of a task, behind entry and attempt


@dataclass(frozen=True, slots=True)
class Work:
    """A task somebody took.

    ``idempotency_key``: the same for every dispatch of the same attempt; ``losses``: how many
    processes have died while it ran in them.
    """

    execution_id: int
    execution_arn: str
    task: int
    token: str
    idempotency_key: str
    kind: str
    resource: str
    service: str
    action: str
    pattern: str
    input: str
    timeout_s: int | None
    heartbeat_s: int | None
    dispatches: int
    losses: int
    state: str
    test_case: str
    scheduled_ms: int
    close_due_ms: int | None
    started_ms: int | None


# -- scheduling, inside the commit of a step -------------------------------------------------------


def schedule(execution_id: int, arn: str, wanted: Sequence[engine.RunTask], now_ms: int) -> None:
    """Write the rows of tasks."""
    if not wanted:
        return
    activities = [one.resource for one in wanted if one.kind == "activity"]
    limits = clocks.of(activities) if activities else {}
    made = [
        _row(execution_id, arn, one, now_ms, limits.get(one.resource, clocks.NONE))
        for one in wanted
    ]
    rows.add(TaskRow, made)
    if any(one.service in NESTED and one.action == "startExecution" for one in wanted):
        _mark_parent(execution_id)
    for one, row in zip(wanted, made, strict=True):
        _offer(execution_id, one)
        _announce(execution_id, one.task, row["timeout_due_ms"], row["heartbeat_due_ms"])


def _mark_parent(execution_id: int) -> None:
    """Note that the children of an execution end with it, if its machine has it so."""
    policy = switches.of_execution(execution_id, switches.CHILD_POLICY)
    if policy == switches.TERMINATE:
        RunRow.objects.filter(pk=execution_id).update(children_end=True)


def _row(
    execution_id: int, arn: str, wanted: engine.RunTask, now_ms: int, limits: clocks.Limits
) -> dict[str, Any]:
    """Return the row of a task. Most clocks of an activity start when a worker has it."""
    called = wanted.kind in _CALLED
    timeout_s = wanted.timeout_seconds or limits.start_to_close
    heartbeat_s = wanted.heartbeat_seconds or limits.heartbeat
    due_ms, which = _first_clock(wanted, timeout_s, now_ms, limits)
    return {
        "execution_id": execution_id,
        "task": wanted.task,
        "kind": wanted.kind,
        "resource": wanted.resource,
        "service": wanted.service,
        "action": wanted.action,
        "pattern": str(wanted.pattern),
        "state": storable(wanted.state),
        "input": wanted.input,
        "credentials": wanted.credentials or "",
        "attempt": wanted.attempt,
        "entered_event": wanted.entered_event,
        "token_hash": _hash(_token(arn, wanted.task)),
        "timeout_s": timeout_s,
        "heartbeat_s": heartbeat_s,
        "timeout_due_ms": due_ms,
        "clock": which,
        "close_due_ms": clocks.close_due(now_ms, limits) if wanted.kind == "activity" else None,
        "heartbeat_due_ms": clocks.due(now_ms, heartbeat_s) if called else None,
        "scheduled_ms": now_ms,
    }


def _first_clock(
    wanted: engine.RunTask, timeout_s: int | None, now_ms: int, limits: clocks.Limits
) -> tuple[int | None, str]:
    """Return when the first clock of a new task runs out, and which it is.

    None for what cannot last: a Map Run's children and plain calls have limits of their own.
    """
    lasting = wanted.kind == "activity" or bool(wanted.pattern)
    if wanted.kind == "map" or (timeout_s is None and not lasting):
        return None, ""
    last_ms = clocks.close_due(now_ms, limits)
    if wanted.kind in _CALLED:
        begun = clocks.START_TO_CLOSE, clocks.due(now_ms, timeout_s)
    else:
        begun = clocks.SCHEDULE_TO_START, clocks.due(now_ms, limits.schedule_to_start)
    return clocks.first(*begun, now_ms, last_ms)


def _offer(execution_id: int, wanted: engine.RunTask) -> None:
    """Tell whoever does this kind of work that there is some."""
    if wanted.kind in _CALLED:
        hints.tell(("task",), execution_id, wanted.task)
    elif wanted.kind == "map":
        hints.tell(("map",), execution_id, wanted.task)
    else:
        hints.tell(("offered",), execution_id, wanted.task, wanted.resource)
        hints.tell(("activity", wanted.resource))


def _announce(
    execution_id: int, task: int, timeout_ms: int | None, heartbeat_ms: int | None
) -> None:
    """Let the clockwork know when the task will be late."""
    for what, due_ms in (("timeout", timeout_ms), ("heartbeat", heartbeat_ms)):
        if due_ms is not None:
            hints.due(due_ms, what, execution_id, task)


def close(execution_id: int, task: int, now_ms: int) -> bool:
    """Close a task; return whether it was open."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE console_taskrow SET status = 'closed', closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL, look_due_ms = NULL"
            " WHERE execution_id = %s AND task = %s AND status <> 'closed'",
            [now_ms, execution_id, task],
        )
        return bool(cursor.rowcount == 1)


def close_all(execution_id: int, now_ms: int) -> None:
    """Close every open task of an execution."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE console_taskrow SET status = 'closed', closed_ms = %s, timeout_due_ms = NULL,"
            " heartbeat_due_ms = NULL, look_due_ms = NULL"
            " WHERE execution_id = %s AND status <> 'closed'",
            [now_ms, execution_id],
        )


# -- taking work -----------------------------------------------------------------------------------


def claim(execution_id: int, task: int) -> Work | None:
    """Take a scheduled task that this server works itself; None if it is not to be had."""
    return write(lambda: _take(execution_id, task, BUILTIN_WORKER, OWN + _me))


def claim_map(execution_id: int, task: int) -> Work | None:
    """Take the scheduled task of a distributed Map (inside a transaction)."""
    return _take(execution_id, task, "")


def claim_by_hand(execution_id: int, task: int, person: str) -> Work | None:
    """Take a scheduled activity task for a person (inside a transaction), if nobody has it."""
    return _take(execution_id, task, person)


def closed_among(wanted: Iterable[Any]) -> list[tuple[int, int]]:
    """Return those of the tasks (execution, task) that have ended."""
    asked = set(wanted)
    if not asked:
        return []
    found = TaskRow.objects.filter(
        status="closed",
        execution_id__in={execution for execution, _ in asked},
        task__in={task for _, task in asked},
    )
    return [one for one in found.values_list("execution_id", "task") if one in asked]


def taking_activity_task(
    activity_arn: str,
    worker: str = "",
    asked: list[Work] | None = None,
    rescue: Callable[[Exception], Work | None] | None = None,
) -> Pending[Work | None] | None:
    """Take the oldest open task of an activity for a worker; None if there is none.

    ``asked``: gets the task before the commit, which may never be heard of; ``rescue``: as
    ``Pending`` has it.
    """
    if _oldest(activity_arn) is None:
        return None

    def take() -> Work | None:
        found = _oldest(activity_arn, lock=connection.features.has_select_for_update_skip_locked)
        work = None if found is None else _take(*found, worker)
        if work is not None and asked is not None:
            asked.append(work)
        return work

    return Pending(take, _same, rescue)


def take_activity_task(activity_arn: str, worker: str = "") -> Work | None:
    """Take a task as ``taking_activity_task`` does; it is theirs when this returns."""
    taking = taking_activity_task(activity_arn, worker)
    return None if taking is None else taking.now()


def _same(work: Work | None) -> Work | None:
    return work


def _oldest(activity_arn: str, *, lock: bool = False) -> tuple[int, int] | None:
    """Return (execution, task) of the oldest task that nobody has, or is just taking (``lock``)."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST + (" FOR UPDATE SKIP LOCKED" if lock else ""), [activity_arn])
        found: tuple[int, int] | None = cursor.fetchone()
    return found


def _take(execution_id: int, task: int, worker: str, mark: str = "") -> Work | None:
    """Take a task if it is still to be had (inside a transaction). ``mark``: for the row."""
    now_ms = clock.now_ms()
    mark = mark or storable(worker).replace(OWN, "\ufffd")
    found = _read(execution_id, task, taken_ms=now_ms)
    if found is None:
        return None
    work, due = found
    first = work.kind == "activity" and work.dispatches == 1
    if first:
        due = _started(work, now_ms)
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [now_ms, mark, *due, execution_id, task])
        if cursor.rowcount != 1:
            return None
    if first:
        _announce(execution_id, task, due[0], due[2])
        begun = engine.TaskStarted(task, worker or None)
        inbox.post(execution_id, begun, soon=True, at_ms=now_ms)  # its clocks count from then
    return work


def work_of(execution_id: int, task: int) -> Work:
    """Return a task as whoever took it has it."""
    found = _read(execution_id, task)
    if found is None:
        raise LookupError(f"execution {execution_id} has no task {task}")
    return found[0]


def _read(
    execution_id: int, task: int, taken_ms: int | None = None
) -> tuple[Work, list[Any]] | None:
    """Return a task and its running clocks. ``taken_ms``: as it is once taken at that moment."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKEN, [execution_id, task])
        row = cursor.fetchone()
    if row is None:
        return None
    arn, entered_event, attempt, *about = row
    *about, started_ms, timeout_ms, which, heartbeat_ms = about
    if taken_ms is not None:
        started_ms = taken_ms
        about[_DISPATCHES] += 1
    key = f"{arn}/{entered_event}/{attempt}"
    idempotency_key = hashlib.sha256(key.encode()).hexdigest()[:32]
    token = _token(arn, task)
    about.append(started_ms)
    work = Work(execution_id, arn, task, token, idempotency_key, *about)
    return work, [timeout_ms, which, heartbeat_ms]


def _started(work: Work, now_ms: int) -> list[Any]:
    """Return the clocks of an activity task that start when a worker has it, which is once."""
    own_ms, heartbeat_ms = clocks.due(now_ms, work.timeout_s), clocks.due(now_ms, work.heartbeat_s)
    begun = clocks.START_TO_CLOSE, own_ms, work.scheduled_ms, work.close_due_ms
    return [*clocks.first(*begun), heartbeat_ms]


def invocations_before(work: Work) -> int:
    """Return how often the state of a task has called out before, in the same execution."""
    rows = TaskRow.objects.filter(execution_id=work.execution_id, state=storable(work.state))
    return rows.filter(task__lt=work.task).count()


# -- work that was lost ----------------------------------------------------------------------------


def work_as(name: str) -> None:
    """Take what this process works from now on under a name of its own."""
    global _me  # noqa: PLW0603 - one a process
    _me = name or BUILTIN_WORKER


def held_here() -> list[tuple[int, int]]:
    """Return (execution, task) of what this process has started to work and not ended."""
    return list(started_here().values_list("execution_id", "task"))


def started_here() -> QuerySet[TaskRow]:
    """Return what this process calls or works itself."""
    return in_hand().filter(worker=OWN + _me)


def in_hand(alive: Iterable[str] | None = None) -> QuerySet[TaskRow]:
    """Return what servers call or work themselves: all of it dies with their processes.

    ``alive``: leave out what these processes have.
    """
    own = Q(kind__in=_CALLED) | Q(kind="activity", worker__startswith=OWN)
    rows = TaskRow.objects.filter(own, status="started")
    return rows if alive is None else rows.exclude(worker__in=[OWN + name for name in alive])


def release_called() -> int:
    """Offer again whatever any process had started to work; return how many tasks."""
    return write(lambda: in_hand().update(status="scheduled"))


def release_lost(alive: Iterable[str]) -> int:
    """Offer again what was started by processes other than these; return how many tasks."""
    rows = in_hand(alive)
    return write(lambda: rows.update(status="scheduled"))


def release(execution_id: int, task: int) -> bool:
    """Offer a task again that was started here and lost; return whether it was still open."""

    def again() -> bool:
        found = started_here().filter(execution_id=execution_id, task=task)
        return found.update(status="scheduled") == 1

    return write(again)


def put_back(work: Work) -> bool:
    """Offer an activity task again that its worker never heard of; return whether it was open.

    Its clocks go on, and its history has had its start.
    """

    def again() -> bool:
        found = TaskRow.objects.filter(execution_id=work.execution_id, task=work.task)
        taken = found.filter(kind="activity", status="started", dispatches=work.dispatches)
        if not taken.update(status="scheduled"):
            return False
        hints.tell(("offered",), work.execution_id, work.task, work.resource)
        hints.tell(("activity", work.resource))
        return True

    return write(again)


def count_loss(execution_id: int, task: int) -> None:
    """Note that a process died while a task ran in it."""
    found = TaskRow.objects.filter(execution_id=execution_id, task=task).exclude(status="closed")
    write(lambda: found.update(losses=F("losses") + 1))


# -- ending work -----------------------------------------------------------------------------------


def finish(execution_id: int, message: engine.TaskSucceeded | engine.TaskFailed) -> bool:
    """Record the outcome of a task that this server called.

    Return False if it was closed before.
    """

    def record() -> bool:
        if not close(execution_id, message.task, clock.now_ms()):
            return False
        inbox.post(execution_id, message)
        return True

    return write(record)


def succeeding(token: str, output: str, project: Project | None = None) -> Pending[None]:
    """SendTaskSuccess. Raises InvalidToken, InvalidOutput, TaskDoesNotExist or TaskTimedOut."""
    if engine.too_long(output):
        limit = engine.limit()
        raise ValidationException(
            "1 validation error detected: Value at 'output' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limit.most} ({limit.unit})"
        )
    try:
        engine.loads(output)
    except engine.JsonTextError as error:
        raise InvalidOutput(f"Invalid Output: '{error}'") from None
    return _ending(token, project, lambda row: engine.TaskSucceeded(row.task, output))


def failing(
    token: str,
    error: str | None = None,
    cause: str | None = None,
    project: Project | None = None,
) -> Pending[None]:
    """SendTaskFailure. Raises InvalidToken, TaskDoesNotExist or TaskTimedOut."""
    return _ending(token, project, lambda row: engine.TaskFailed(row.task, error, cause))


def beating(token: str, project: Project | None = None) -> Pending[None]:
    """SendTaskHeartbeat: starts the heartbeat clock anew; writes no event."""

    def beat() -> None:
        row = _open(token, project)
        now_ms = clock.now_ms()
        due_ms = clocks.due(now_ms, row.heartbeat_s) if row.heartbeat_due_ms else None
        found = TaskRow.objects.filter(execution_id=row.execution_id, task=row.task)
        if not found.exclude(status="closed").update(heartbeat_ms=now_ms, heartbeat_due_ms=due_ms):
            raise _too_late()
        if due_ms:
            hints.due(due_ms, "heartbeat", row.execution_id, row.task)

    return Pending(beat, _nothing)


def _ending(token: str, project: Project | None, message: Any) -> Pending[None]:
    def record() -> None:
        row = _open(token, project)
        if not close(row.execution_id, row.task, clock.now_ms()):
            raise _too_late()
        inbox.post(row.execution_id, message(row))

    return Pending(record, _nothing)


def _nothing(result: None) -> None:
    del result


succeed, fail, heartbeat = immediate(succeeding), immediate(failing), immediate(beating)
"""The same, written when these return."""


def _open(token: str, project: Project | None) -> TaskRow:
    """Return the row a token opens; a token works only in the project that owns the task."""
    if len(token) != _TOKEN_LENGTH or not token.isascii():
        raise InvalidToken("Invalid Token: 'Invalid token'")
    row = rows.one(TaskRow, "token_hash = %s", [_hash(token)])
    if row is None or (project is not None and _owner(row) != project.pk):
        raise TaskDoesNotExist("Task does not exist: 'Provided task does not exist anymore'")
    if row.status == "closed":
        raise _too_late()
    return row


def _owner(row: TaskRow) -> int:
    """Return the project of a task."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT project_id FROM console_execution WHERE id = %s", [row.execution_id])
        (project,) = cursor.fetchone()
    return int(project)


def _too_late() -> TaskTimedOut:
    return TaskTimedOut("Task Timed Out: 'Provided task does not exist anymore'")


# -- small things ----------------------------------------------------------------------------------


def _token(arn: str, task: int) -> str:
    return engine.task_token(settings.STEPYARD_TOKEN_KEY, arn, task)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
