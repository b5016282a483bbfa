"""Check I1, I15, I18: running executions can continue, ended executions have no open work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Count

from console.db import clock
from console.models import Execution, MapRun, RunValue, Worker
from console.store.executions import retention, step_rows
from console.store.state import transition_rate
from console.store.tasks.claim import BUILTIN_WORKER, OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import engine
    from console.features.doctor.stored_executions import StoredExecution
    from console.features.doctor.walk import Walk
    from console.models import TaskRow

_GRACE_MS = 20_000  # what is swept away a moment later may be there for that moment
_ENDINGS = ("TaskSucceeded", "TaskFailed", "TaskTimedOut")
_BAD = ("FAILED", "TIMED_OUT", "ABORTED")
GRACE = 2
"""The time, in lease lengths, within which other workers must take over after a lease ends."""


def alive(worker: str) -> bool:
    """Return whether a worker is alive.

    The worker of a single-process server always counts as alive: it continues its tasks when
    it starts. So does a worker of an activity: only the timeouts of its task apply to it.
    """
    if not worker.startswith(OWN) or worker == OWN + BUILTIN_WORKER:
        return True
    lease = Worker.objects.filter(name=worker.removeprefix(OWN)).first()
    if lease is None:
        return False
    grace_ms = GRACE * (lease.lease_until_ms - lease.started_ms)
    return lease.lease_until_ms + min(grace_ms, 20_000) > clock.now_ms()


def check_progress(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I1: every running execution, and each of its lines of control, can continue."""
    del walk
    if not record.running or record.run is None or record.run.parked:
        return
    if not (_something(record) or _stands(record)):
        yield "I1", "RUNNING, and nothing will move it"
    elif not (record.has_message("Stop") or record.has_message("Redrive")):
        yield from _lines(record)


def _lines(record: StoredExecution) -> Iterator[tuple[str, str]]:
    run = record.snapshot()
    if run is None:
        return  # a later version's
    for frame in run.frames.values():
        missing = _missing_wakeup(record, run, frame)
        if missing:
            yield "I1", f"state {frame.state!r} (event {frame.entered_event}): {missing}"


def _something(record: StoredExecution) -> bool:
    ready = record.run is not None and record.run.ready
    waiting = any(_moves(record, task) for task in record.tasks.values())
    return bool(ready or record.inbox or record.timers or waiting)


def _stands(record: StoredExecution) -> bool:
    """Whether a line of control is stopped at a breakpoint, where a person moves it."""
    run = record.snapshot()
    return run is not None and run.plan is not None and bool(run.plan.halts)


def _moves(record: StoredExecution, task: TaskRow) -> bool:
    """Whether a task is open and something can end it."""
    if task.status == "closed":
        return False
    if task.kind == "map" and task.status == "started":
        run = record.map_runs.get(task.task)
        return run is not None and run.status == "RUNNING"
    return task.status != "started" or alive(task.worker)


def _missing_wakeup(record: StoredExecution, run: engine.Run, frame: Any) -> str:
    """Return the missing event that a line of control waits for, "" if it can continue."""
    match frame.phase:
        case "task":
            task = record.tasks.get(frame.waits_for)
            coming = record.messages_of().get(frame.waits_for, ())
            open_ = task is not None and _moves(record, task)
            ended = any(message.kind in _ENDINGS for message in coming)
            return "" if open_ or ended else f"task {frame.waits_for} is not open"
        case "timer" | "backoff" | "delay":
            armed = any(timer.name == frame.timer for timer in record.timers)
            return "" if armed else f"timer {frame.timer} is not armed"
        case "break":
            halted = run.plan is not None and run.plan.halt_of(frame.id) is not None
            return "" if halted else "it stands at no breakpoint"
        case "group":
            return "" if frame.waits_for in run.groups else f"group {frame.waits_for} is gone"
        case "scheduled":
            held = _is_stepped(record) and run.ready and frame.id in run.held
            return "" if held else f"task {frame.waits_for} is not held"
        case _:
            queued = _is_stepped(record) and frame.id in run.ready
            return "" if queued else "it is not in the queue"


def _is_stepped(record: StoredExecution) -> bool:
    """Whether a worker steps the execution without a message, now or within its rate limit."""
    tokens = any(transition_rate.is_token_timer(timer.name) for timer in record.timers)
    return tokens or (record.run is not None and record.run.ready)


def counts(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I1 of Map Runs: the counts that decide their end agree with the children.

    A Map Run that is being removed is left out: its children are removed first.
    """
    del walk
    for run in record.map_runs.values():
        rows = Execution.objects.filter(map_run=run).order_by().values_list("status")
        number = dict(rows.annotate(Count("pk")))
        bad = sum(number.get(status, 0) for status in _BAD)
        unsuccessful = run.failed + run.timed_out + run.aborted + run.pending_redrive
        for label, is_told, is_there in (
            ("started", run.started, sum(number.values())),
            ("succeeded", run.succeeded, number.get("SUCCEEDED", 0)),
            ("failed", unsuccessful, bad),
        ):
            if is_told != is_there and not retention.is_begun(record.execution.pk):
                yield "I1", f"Map Run {run.arn}: {is_told} {label}, but there are {is_there}"


def halted_row(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I18: the row of halted lines of control agrees with the breakpoints in the snapshot."""
    del walk
    row = record.halted
    if row is None and not record.running:
        return  # an ended execution has no lines, and its snapshot need not be read
    run = record.snapshot() if record.run is not None else None
    if run is None and record.running:
        return  # a later version's, or I11 says so
    expected = None if run is None else step_rows.halted_row(run)
    actual = None if row is None else (row.since_ms, row.count, row.newest, row.lines)
    if actual != expected:
        yield "I18", f"its row of lines at breakpoints is {actual}, its plan says {expected}"


def rest(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I15: no task or timer is open unless a running execution waits for it."""
    del walk
    opened = [task.task for task in record.tasks.values() if task.status != "closed"]
    if record.running:
        yield from _unwanted(record, opened)
        return
    for task in opened:
        yield "I15", f"task {task} is open"
    for timer in record.timers:
        yield "I15", f"timer {timer.name} is armed"
    before = clock.now_ms() - _GRACE_MS
    for message in record.inbox:
        if message.created_ms < before:
            yield "I15", f"a message {message.kind} waits"
    if record.run is not None and record.run.ready:
        yield "I15", "it is still to be stepped"
    values = RunValue.objects.filter(execution_id=record.execution.pk)
    if record.execution.status == "SUCCEEDED" and values.exists():
        yield "I15", "values are kept"
    if (record.execution.stop_ms or 0) < before:
        yield from _left_running(record)


def _unwanted(record: StoredExecution, opened: list[int]) -> Iterator[tuple[str, str]]:
    if not opened or record.has_message("Redrive"):
        return
    frames = record.frames()
    awaited = {frame.waits_for for frame in frames if frame.phase == "task"}
    for task in opened:
        if task not in awaited:
            yield "I15", f"task {task} is open, and nobody waits for it"


def _left_running(record: StoredExecution) -> Iterator[tuple[str, str]]:
    """Find open Map Runs of an ended execution that should be closed."""
    for run in record.map_runs.values():
        busy = MapRun.objects.filter(pk=run.pk, children__status="RUNNING")
        if run.status == "RUNNING" and not busy.exists():
            yield "I15", f"Map Run {run.arn} is RUNNING"
