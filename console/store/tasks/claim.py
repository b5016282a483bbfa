"""Claim scheduled tasks for a worker, and release the claims of workers that died.

A claim sets a task's row to *started* with the worker's name, so only one of many workers gets it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import F, Q, QuerySet

import engine
from console.db import clock, rows, signals
from console.db.rows import Statement, storable
from console.db.writer import Change, is_embedded, write
from console.models import Execution, TaskRow
from console.statuses import TaskClock, TaskKind, TaskStatus, Topic
from console.store.state import claimed_runs, inbox
from console.store.state.caches import find_facts, kept_runs
from console.store.tasks import schedule, timeouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


BUILTIN_WORKER = "stepyard-builtin"
"""The worker name in histories for activities worked by registered callables."""
OWN = "\x01"
"""Prefix of worker names of this server's own work; callers' names do not have it."""
_me = BUILTIN_WORKER  # the name this process works under; several may work on one database
_OLDEST = (
    "SELECT execution_id, task FROM console_taskrow"
    f" WHERE resource = %s AND status = '{TaskStatus.SCHEDULED}' AND kind = '{TaskKind.ACTIVITY}'"
    " ORDER BY scheduled_ms, execution_id, task LIMIT 1"
)
_TAKE = (
    f"UPDATE console_taskrow SET status = '{TaskStatus.STARTED}', started_ms = %s,"
    " dispatches = dispatches + 1,"
    " worker = %s, timeout_due_ms = %s, clock = %s, heartbeat_due_ms = %s"
    f" WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.SCHEDULED}'"
)
_STILL = (
    "SELECT 1 FROM console_taskrow"
    f" WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.STARTED}'"
    " AND dispatches = %s"
)
_COLUMNS = (
    "e.arn, t.entered_event, t.attempt,"
    " e.redrive_ms IS NOT NULL AND t.scheduled_ms >= e.redrive_ms,"
    " t.kind, t.resource, t.service, t.action, t.pattern,"
    " t.input, t.timeout_s, t.heartbeat_s, t.dispatches, t.losses, t.state, e.test_case,"
    " e.role_arn, t.scheduled_ms, t.close_due_ms, t.started_ms, t.timeout_due_ms, t.clock,"
    " t.heartbeat_due_ms"
)
_TAKEN = (
    f"SELECT {_COLUMNS} FROM console_taskrow t JOIN console_execution e ON e.id = t.execution_id"
    " WHERE t.execution_id = %s AND t.task = %s"
)
_CLAIM = Statement(
    30,
    "",
    ("bigint", "text", "bigint", "integer", "boolean"),
    key=(2, 3),
    merged=f"UPDATE console_taskrow t SET status = '{TaskStatus.STARTED}', started_ms = g.c0,"
    " dispatches = t.dispatches + 1, worker = g.c1"
    " FROM {given} JOIN console_execution e ON e.id = g.c2"
    " LEFT JOIN console_runrow r ON r.execution_id = g.c2 AND g.c4"
    " WHERE t.execution_id = g.c2 AND t.task = g.c3"
    f" AND t.status = '{TaskStatus.SCHEDULED}' AND t.kind <> '{TaskKind.ACTIVITY}'"
    f" RETURNING t.execution_id, t.task, {claimed_runs.COLUMNS}, {_COLUMNS}",
    joins=True,
)
"""What ``_take`` does with tasks whose clocks run since they were scheduled.

It returns the run, too, if this process does not have it: the call's outcome takes a step from it.
"""
_CLAIM_OLDEST = Statement(
    45,
    "",
    ("bigint", "text", "text", "bigint"),
    key=(3,),
    merged="WITH asked AS MATERIALIZED (SELECT c0 AS now_ms, c1 AS worker, c2 AS resource,"
    " c3 AS number, row_number() OVER (PARTITION BY c2 ORDER BY c3) AS place FROM {given}),"
    " open AS MATERIALIZED (SELECT o.*, row_number() OVER (PARTITION BY o.resource"
    " ORDER BY o.scheduled_ms, o.execution_id, o.task) AS place"
    " FROM (SELECT resource, count(*) AS pollers FROM asked GROUP BY resource) a"
    " CROSS JOIN LATERAL (SELECT execution_id, task, resource, scheduled_ms FROM console_taskrow"
    f" WHERE resource = a.resource AND status = '{TaskStatus.SCHEDULED}'"
    f" AND kind = '{TaskKind.ACTIVITY}' ORDER BY scheduled_ms, execution_id, task"
    " LIMIT a.pollers FOR UPDATE SKIP LOCKED) o)"
    f" UPDATE console_taskrow t SET status = '{TaskStatus.STARTED}', started_ms = asked.now_ms,"
    " dispatches = t.dispatches + 1, worker = asked.worker"
    " FROM asked JOIN open USING (resource, place) JOIN console_execution e"
    " ON e.id = open.execution_id"
    " WHERE t.execution_id = open.execution_id AND t.task = open.task"
    f" RETURNING asked.number, t.execution_id, t.task, {_COLUMNS}",
    may_miss=True,
)
"""Assign the oldest tasks of activities to pollers, one each.

Tasks locked by other transactions are skipped. The statement follows those that close tasks, so a
task closed in the same transaction is not assigned.
"""
_SET_CLOCKS = Statement(
    55,
    "UPDATE console_taskrow SET timeout_due_ms = %s, clock = %s, heartbeat_due_ms = %s"
    f" WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.STARTED}'",
    ("bigint", "text", "bigint", "bigint", "integer"),
)
_askers = count()
_DISPATCHES = 8
"""Index of ``dispatches`` in the columns of ``_TAKEN`` behind the first four."""


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """A task that a worker, a person or this server has claimed.

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
    role_arn: str
    scheduled_ms: int
    close_due_ms: int | None
    started_ms: int | None


def claim_call(execution_id: int, task: int) -> ClaimedTask | None:
    """Claim a scheduled task for a call by this server; None if it is claimed or closed."""

    def take() -> ClaimedTask | None:
        wants_run = kept_runs.latest(execution_id) is None or find_facts(execution_id) is None
        return rows.returning(
            _CLAIM,
            (clock.now_ms(), OWN + _me, execution_id, task, wants_run),
            lambda row: None if row is None else _with_run(execution_id, task, row),
            lambda: _take(execution_id, task, BUILTIN_WORKER, OWN + _me),
        )

    return write(take, mergeable=True)


def _with_run(execution_id: int, task: int, row: Sequence[Any]) -> ClaimedTask:
    """Return a claimed task, and cache the run that was read with it."""
    run, columns = row[: claimed_runs.COUNT], row[claimed_runs.COUNT :]
    if run[0] is not None:
        claimed_runs.keep(execution_id, run)
    return _as_claimed(execution_id, task, columns)[0]


def claim_map(execution_id: int, task: int) -> ClaimedTask | None:
    """Claim the scheduled task of a distributed Map (inside a transaction)."""
    return _take(execution_id, task, "")


def claim_by_hand(execution_id: int, task: int, person: str) -> ClaimedTask | None:
    """Claim a scheduled activity task for a person (inside a transaction), if it is free."""
    return _take(execution_id, task, person)


def pending_activity_task(
    activity_arn: str,
    worker: str = "",
    claimed: list[ClaimedTask] | None = None,
    rescue: Callable[[Exception], ClaimedTask | None] | None = None,
) -> Change[ClaimedTask | None] | None:
    """Claim the oldest open task of an activity for a worker; None without one.

    ``claimed``: a list that gets the task before the commit, whose answer may be lost; ``rescue``:
    see ``Change``.
    """
    if is_embedded() and _oldest(activity_arn) is None:
        return None

    def take() -> ClaimedTask | None:
        oldest = _oldest(activity_arn, lock=connection.features.has_select_for_update_skip_locked)
        return None if oldest is None else _take(*oldest, worker)

    def note(work: ClaimedTask | None) -> ClaimedTask | None:
        if claimed is not None and work is not None:
            claimed.append(work)
        return work

    def claim() -> ClaimedTask | None:
        if claimed is not None:
            claimed.clear()  # of a run that was rolled back
        return _claim_oldest(activity_arn, worker, lambda: note(take()), note)

    return Change(claim, rescue=rescue, mergeable=True)


def _claim_oldest(
    activity_arn: str,
    worker: str,
    alone: Callable[[], ClaimedTask | None],
    note: Callable[[ClaimedTask], object],
) -> ClaimedTask | None:
    """Request the oldest task; a merged commit selects it.

    So many pollers have one statement, which gives each of them a task of its own. ``alone``: takes
    it without merging; ``note``: called with the task before the commit.
    """
    now_ms = clock.now_ms()

    def task_of(row: Sequence[Any] | None) -> ClaimedTask | None:
        return None if row is None else _as_claimed(row[0], row[1], row[2:])[0]

    def begin_task(row: Sequence[Any] | None) -> None:
        work = task_of(row)
        if work is None:
            return
        if work.dispatches == 1:
            clocks = _clocks_of_claim(work, now_ms)
            rows.change(_SET_CLOCKS, [(*clocks, work.execution_id, work.task)])
            _note_start(work, worker, clocks, now_ms)
        note(work)

    values = (now_ms, _mark_of(worker), activity_arn, next(_askers))
    return rows.returning(_CLAIM_OLDEST, values, task_of, alone, begin_task)


def take_activity_task(activity_arn: str, worker: str = "") -> ClaimedTask | None:
    """Claim a task like ``pending_activity_task``, committed when this returns."""
    taking = pending_activity_task(activity_arn, worker)
    return None if taking is None else taking.result()


def _oldest(activity_arn: str, *, lock: bool = False) -> tuple[int, int] | None:
    """Return (execution, task) of the oldest free task; ``lock``: skip locked rows."""
    with rows.open_cursor() as cursor:
        cursor.execute(_OLDEST + (" FOR UPDATE SKIP LOCKED" if lock else ""), [activity_arn])
        row: tuple[int, int] | None = cursor.fetchone()
    return row


def _take(execution_id: int, task: int, worker: str, mark: str = "") -> ClaimedTask | None:
    """Claim a still scheduled task (inside a transaction). ``mark``: the worker in its row."""
    now_ms = clock.now_ms()
    mark = mark or _mark_of(worker)
    task_and_clocks = _read(execution_id, task, taken_ms=now_ms)
    if task_and_clocks is None:
        return None
    work, clocks = task_and_clocks
    first = work.kind == TaskKind.ACTIVITY and work.dispatches == 1
    if first:
        clocks = _clocks_of_claim(work, now_ms)
    with rows.open_cursor() as cursor:
        cursor.execute(_TAKE, [now_ms, mark, *clocks, execution_id, task])
        if cursor.rowcount != 1:
            return None
    if first:
        _note_start(work, worker, clocks, now_ms)
    return work


def _mark_of(worker: str) -> str:
    """Return the name of a caller's worker for the rows."""
    return storable(worker).replace(OWN, "\ufffd")


def _note_start(work: ClaimedTask, worker: str, clocks: Sequence[Any], now_ms: int) -> None:
    """Post the first start of a task to its execution, with its deadlines."""
    schedule.publish_deadlines(work.execution_id, work.task, clocks[0], clocks[2])
    begun = engine.TaskStarted(work.task, worker or None)
    # its clocks start at that moment
    inbox.post_message(work.execution_id, begun, soon=True, at_ms=now_ms)


def still_started(work: ClaimedTask, *, lock: bool = True) -> bool:
    """Return whether a task is still held by the worker that claimed it.

    ``lock``: it stays so until our transaction ends.
    """
    locking = " FOR UPDATE" if lock and connection.features.has_select_for_update else ""
    with rows.open_cursor() as cursor:
        cursor.execute(_STILL + locking, [work.execution_id, work.task, work.dispatches])
        return cursor.fetchone() is not None


def get_work(execution_id: int, task: int) -> ClaimedTask:
    """Return a task in the form for its worker."""
    task_and_clocks = _read(execution_id, task)
    if task_and_clocks is None:
        raise LookupError(f"execution {execution_id} has no task {task}")
    return task_and_clocks[0]


def _read(
    execution_id: int, task: int, taken_ms: int | None = None
) -> tuple[ClaimedTask, list[Any]] | None:
    """Return a task and its running clocks. ``taken_ms``: assume a claim at that time."""
    with rows.open_cursor() as cursor:
        cursor.execute(_TAKEN, [execution_id, task])
        row = cursor.fetchone()
    return None if row is None else _as_claimed(execution_id, task, row, taken_ms)


def _as_claimed(
    execution_id: int, task: int, row: Sequence[Any], taken_ms: int | None = None
) -> tuple[ClaimedTask, list[Any]]:
    """Build a task and its running clocks from a row of ``_COLUMNS``."""
    arn, entered_event, attempt, redriven, *columns = row
    *columns, started_ms, timeout_ms, clock_name, heartbeat_ms = columns
    if taken_ms is not None:
        started_ms = taken_ms
        columns[_DISPATCHES] += 1
    key = f"{arn}/{entered_event}/{attempt}"
    if redriven:  # the state is not entered again, but needs a key of its own after a redrive
        key += f"/{task}"
    idempotency_key = hashlib.sha256(key.encode()).hexdigest()[:32]
    token = schedule.token_of(arn, task)
    columns.append(started_ms)
    work = ClaimedTask(execution_id, arn, task, token, idempotency_key, *columns)
    return work, [timeout_ms, clock_name, heartbeat_ms]


def _clocks_of_claim(work: ClaimedTask, now_ms: int) -> list[Any]:
    """Return the clocks that the first claim of an activity task starts."""
    own_ms, heartbeat_ms = (
        timeouts.due_ms(now_ms, work.timeout_s),
        timeouts.due_ms(now_ms, work.heartbeat_s),
    )
    begun = TaskClock.START_TO_CLOSE, own_ms, work.scheduled_ms, work.close_due_ms
    return [*timeouts.first_due(*begun), heartbeat_ms]


def invocations_before(work: ClaimedTask) -> int:
    """Return the number of earlier tasks of the same state.

    The children of a distributed Map count together, because a mock sees them as one execution.
    """
    mine = {"execution_id": work.execution_id}
    rows = TaskRow.objects.filter(state=storable(work.state))
    root, way = work.execution_id, "execution"
    while (parent := _map_parent(root)) is not None:
        root, way = parent, f"{way}__map_run__parent"
    if root == work.execution_id:
        return rows.filter(**mine, task__lt=work.task).count()
    earlier = (
        Q(scheduled_ms__lt=work.scheduled_ms)
        | Q(scheduled_ms=work.scheduled_ms, execution__lt=work.execution_id)
        | Q(**mine, task__lt=work.task)
    )
    return rows.filter(earlier, **{way: root}).count()


def _map_parent(execution_id: int) -> int | None:
    """Return the parent execution of a Map Run's child, None for others."""
    parents = Execution.objects.filter(pk=execution_id, map_run__isnull=False)
    return parents.values_list("map_run__parent", flat=True).first()


def find_test_case(execution_id: int, task: int) -> tuple[str, str, str] | None:
    """Return the ARN and test case of a task's execution, and its state; None without one."""
    tasks = TaskRow.objects.filter(execution=execution_id, task=task)
    mocked = tasks.exclude(execution__test_case="")
    return mocked.values_list("execution__arn", "execution__test_case", "state").first()


def open_test_activities() -> QuerySet[TaskRow]:
    """Return the unclaimed activity tasks of executions with a test case."""
    rows = TaskRow.objects.filter(kind=TaskKind.ACTIVITY, status=TaskStatus.SCHEDULED)
    return rows.exclude(execution__test_case="")


def set_worker_name(name: str) -> None:
    """Set the worker name of this process for its claims."""
    global _me  # noqa: PLW0603 - one a process
    _me = name or BUILTIN_WORKER


def claimed_tasks() -> list[tuple[int, int]]:
    """Return (execution, task) of this process's claimed, open tasks."""
    return list(claimed_by_this_process().values_list("execution_id", "task"))


def claimed_by_this_process() -> QuerySet[TaskRow]:
    """Return the query of the tasks that this process calls or works itself."""
    return claimed_by_servers().filter(worker=OWN + _me)


def claimed_by_servers(alive: Iterable[str] | None = None) -> QuerySet[TaskRow]:
    """Return the query of tasks that servers work themselves, lost when the process dies.

    ``alive``: leave out the tasks of these processes.
    """
    own = Q(kind__in=schedule.CALLED) | Q(kind=TaskKind.ACTIVITY, worker__startswith=OWN)
    rows = TaskRow.objects.filter(own, status=TaskStatus.STARTED)
    return rows if alive is None else rows.exclude(worker__in=[OWN + name for name in alive])


def release_all_calls() -> int:
    """Release the tasks of all server processes; return how many."""
    return write(lambda: claimed_by_servers().update(status=TaskStatus.SCHEDULED))


def release_calls_except(alive: Iterable[str]) -> int:
    """Release the tasks of all processes but these; return how many."""
    rows = claimed_by_servers(alive)
    return write(lambda: rows.update(status=TaskStatus.SCHEDULED))


def release_call(execution_id: int, task: int) -> bool:
    """Release a lost task of this process; return whether it was open."""

    def again() -> bool:
        rows = claimed_by_this_process().filter(execution_id=execution_id, task=task)
        return rows.update(status=TaskStatus.SCHEDULED) == 1

    return write(again)


def return_task(work: ClaimedTask) -> bool:
    """Release an activity task that never reached its worker; return whether it was open.

    Its time limits continue, and its history keeps the event of its start.
    """

    def again() -> bool:
        rows = TaskRow.objects.filter(execution_id=work.execution_id, task=work.task)
        started = rows.filter(
            kind=TaskKind.ACTIVITY, status=TaskStatus.STARTED, dispatches=work.dispatches
        )
        if not started.update(status=TaskStatus.SCHEDULED):
            return False
        signals.publish((Topic.OFFERED,), work.execution_id, work.task, work.resource)
        signals.publish((Topic.ACTIVITY, work.resource))
        return True

    return write(again)


def count_loss(execution_id: int, task: int) -> None:
    """Count that a process died while a task ran in it."""
    rows = TaskRow.objects.filter(execution_id=execution_id, task=task).exclude(
        status=TaskStatus.CLOSED
    )
    write(lambda: rows.update(losses=F("losses") + 1))
