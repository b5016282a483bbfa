"""Check I1 and I15: running executions will go on, and ended executions are at rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Count

from console import clock
from console.invariants.holders import alive
from console.models import Execution, MapRun, RunValue
from console.store.executions import retention
from console.store.state import transition_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import engine
    from console.invariants.found import FoundExecution
    from console.invariants.walk import Walk
    from console.models import TaskRow

_GRACE_MS = 20_000  # what is swept away a moment later may be there for that moment
_ENDINGS = ("TaskSucceeded", "TaskFailed", "TaskTimedOut")
_BAD = ("FAILED", "TIMED_OUT", "ABORTED")


def check_progress(found: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I1: whatever runs has something that will move it, and so has each line of control in it."""
    del walk
    if not found.running or found.run is None or found.run.parked:
        return
    if not _something(found):
        yield "I1", "RUNNING, and nothing will move it"
    elif not (found.has_message("Stop") or found.has_message("Redrive")):
        yield from _lines(found)


def _lines(found: FoundExecution) -> Iterator[tuple[str, str]]:
    run = found.snapshot()
    if run is None:
        return  # a later version's
    for frame in run.frames.values():
        missing = _missing(found, run, frame)
        if missing:
            yield "I1", f"state {frame.state!r} (event {frame.entered_event}): {missing}"


def _something(found: FoundExecution) -> bool:
    ready = found.run is not None and found.run.ready
    waiting = any(_moves(found, one) for one in found.tasks.values())
    return bool(ready or found.inbox or found.timers or waiting)


def _moves(found: FoundExecution, task: TaskRow) -> bool:
    """Tell whether a task is open and somebody is there to end it."""
    if task.status == "closed":
        return False
    if task.kind == "map" and task.status == "started":
        run = found.map_runs.get(task.task)
        return run is not None and run.status == "RUNNING"
    return task.status != "started" or alive(task.worker)


def _missing(found: FoundExecution, run: engine.Run, frame: Any) -> str:
    """Return what a line of control waits for in vain, "" if it does not."""
    match frame.phase:
        case "task":
            task = found.tasks.get(frame.waits_for)
            coming = found.messages_of().get(frame.waits_for, ())
            open_ = task is not None and _moves(found, task)
            ended = any(one.kind in _ENDINGS for one in coming)
            return "" if open_ or ended else f"task {frame.waits_for} is not open"
        case "timer" | "backoff":
            armed = any(one.name == frame.timer for one in found.timers)
            return "" if armed else f"timer {frame.timer} is not armed"
        case "group":
            return "" if frame.waits_for in run.groups else f"group {frame.waits_for} is gone"
        case "scheduled":
            held = _is_stepped(found) and run.ready and frame.id in run.held
            return "" if held else f"task {frame.waits_for} is not held"
        case _:
            queued = _is_stepped(found) and frame.id in run.ready
            return "" if queued else "it is not in the queue"


def _is_stepped(found: FoundExecution) -> bool:
    """Tell whether a worker steps the execution without a message, now or when it has tokens."""
    tokens = any(transition_rate.is_token_timer(one.name) for one in found.timers)
    return tokens or (found.run is not None and found.run.ready)


def counts(found: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I1 of Map Runs: their counts, which tell when they end, are those of their children.

    Not of one that is being removed: its children go first.
    """
    del walk
    for run in found.map_runs.values():
        rows = Execution.objects.filter(map_run=run).order_by().values_list("status")
        number = dict(rows.annotate(Count("pk")))
        bad = sum(number.get(status, 0) for status in _BAD)
        told = run.failed + run.timed_out + run.aborted + run.pending_redrive
        for what, is_told, is_there in (
            ("started", run.started, sum(number.values())),
            ("succeeded", run.succeeded, number.get("SUCCEEDED", 0)),
            ("failed", told, bad),
        ):
            if is_told != is_there and not retention.is_begun(found.execution.pk):
                yield "I1", f"Map Run {run.arn}: {is_told} {what}, but there are {is_there}"


def rest(found: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I15: nothing is open that belongs to an execution that ended, or that nobody waits for."""
    del walk
    opened = [one.task for one in found.tasks.values() if one.status != "closed"]
    if found.running:
        yield from _unwanted(found, opened)
        return
    for task in opened:
        yield "I15", f"task {task} is open"
    for timer in found.timers:
        yield "I15", f"timer {timer.name} is armed"
    before = clock.now_ms() - _GRACE_MS
    for message in found.inbox:
        if message.created_ms < before:
            yield "I15", f"a message {message.kind} waits"
    if found.run is not None and found.run.ready:
        yield "I15", "it is still to be stepped"
    values = RunValue.objects.filter(execution_id=found.execution.pk)
    if found.execution.status == "SUCCEEDED" and values.exists():
        yield "I15", "values are kept"
    if (found.execution.stop_ms or 0) < before:
        yield from _left_running(found)


def _unwanted(found: FoundExecution, opened: list[int]) -> Iterator[tuple[str, str]]:
    if not opened or found.has_message("Redrive"):
        return
    frames = found.frames()
    wanted = {one.waits_for for one in frames if one.phase == "task"}
    for task in opened:
        if task not in wanted:
            yield "I15", f"task {task} is open, and nobody waits for it"


def _left_running(found: FoundExecution) -> Iterator[tuple[str, str]]:
    """Look for Map Runs of an ended execution that nothing keeps from being closed."""
    for run in found.map_runs.values():
        busy = MapRun.objects.filter(pk=run.pk, children__status="RUNNING")
        if run.status == "RUNNING" and not busy.exists():
            yield "I15", f"Map Run {run.arn} is RUNNING"
