"""A pure interpreter makes the very same history of the same messages.

Which message came next is told by the event that it led to; the interpreter has no store, no
snapshots, no caches and no other worker, and gives way as often as it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console.features.doctor.walk import OUTCOMES, Walk
from console.models import Execution, HistoryEvent
from console.store.executions.start import prepare_start
from console.store.machines.machines import compiled_machines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.features.doctor.stored_executions import HistoryLine, StoredExecution

    Line = tuple[int, int, int, str, str, Any]

_LATE = engine.event_names(engine.event_types.WORK_FAMILIES, engine.Stage.TIMED_OUT)
_ABANDONED = "The engine could not go on"


class Player:
    """An execution without a database."""

    def __init__(self, execution: Execution) -> None:
        """Start it as it was started."""
        self.machine = compiled_machines.get(execution.definition_id)
        self.values = engine.DictValues()
        self.events: list[engine.Event] = []
        self.dues: dict[str, int] = {}
        self.end: engine.Finish | None = None
        name = execution.state_machine_arn.rpartition(":")[2]
        self.take(prepare_start(execution, name).step)

    def take(self, step: engine.Step) -> None:
        """Go on from a step."""
        self.run = step.run.reading(self.values)
        self.events.extend(step.events)
        for prefix in step.dropped:
            for key in [name for name in self.values if name.startswith(prefix)]:
                del self.values[key]
        self.values.update(step.values)
        for command in step.commands:
            if isinstance(command, engine.SetTimer):
                # after a redrive a Wait begins anew without a word, nobody can tell when
                self.dues[command.timer] = command.due_ms if step.events else 0
            elif isinstance(command, engine.Finish):
                self.end = command

    def send(self, message: engine.Message, at_ms: int) -> None:
        """Take a message, and as little more as can be."""
        moment = engine.Moment(at_ms, 0, settings.STATEYARD_TOKEN_KEY)
        budget = 0 if isinstance(message, engine.Redrive) else 1
        self.take(engine.advance(self.machine, self.run, message, moment, budget=budget))

    def abandon(self, cause: str, at_ms: int) -> None:
        """End as the engine ends what it cannot take further."""
        self.take(engine.abandon(self.machine, self.run, cause, engine.Moment(at_ms)))


def difference(record: StoredExecution) -> str:
    """Return where the interpreter's history differs from the stored one, "" if nowhere.

    Parents of Map Runs are left out: their result is that of their children, which I9 compares.
    """
    if any(line.type == "MapRunStarted" for line in record.events):
        return ""
    execution = Execution.objects.get(pk=record.execution.pk)
    rows = list(HistoryEvent.objects.filter(execution=execution).order_by("event_id"))
    player, walk = Player(execution), Walk(record.events)
    while len(player.events) < len(rows):
        before, run = len(player.events), player.run
        _next(player, rows[before], walk, record)
        if player.run == run:
            return f"event {before + 1} ({rows[before].type}) has no reason"
    for row, event in zip(rows, player.events, strict=False):
        stored = (row.event_id, row.previous, row.at_ms, row.type, row.state, row.details)
        if stored != _line(event):
            return f"stored {stored}, wanted {_line(event)}"
    ending = player.end
    if ending is None or (ending.status, ending.output) != (execution.status, execution.output):
        return f"ended {execution.status} {execution.output}, wanted {ending}"
    return ""


def _line(event: engine.Event) -> Line:
    details = "" if event.details is None else engine.dumps(event.details)
    return (event.id, event.previous, event.at_ms, event.type, event.state, details)


def _next(player: Player, row: HistoryEvent, walk: Walk, record: StoredExecution) -> None:
    """Send the message that must have led to an event."""
    details: dict[str, Any] = engine.loads(row.details) if row.details else {}
    cause = details.get("cause", "")
    if row.type == "ExecutionFailed" and cause.startswith(_ABANDONED):
        player.abandon(cause, row.at_ms)
    else:
        message = _of_world(row, details, walk, record) or _of_itself(player, row)
        if message is not None:
            player.send(message, row.at_ms)


def _of_world(
    row: HistoryEvent, details: dict[str, Any], walk: Walk, record: StoredExecution
) -> engine.Message | None:
    """Return the message from outside that leads to such an event."""
    error, cause = details.get("error"), details.get("cause")
    if row.type == "ExecutionAborted":
        return engine.Stop(error, cause)
    if row.type == "ExecutionRedriven":
        return engine.Redrive()
    if row.type == "ExecutionTimedOut":
        return engine.TimerFired("execution")
    if row.type == "ActivityStarted":
        return engine.TaskStarted(row.previous, details.get("workerName"))
    if row.type == "TaskSubmitted":
        return engine.TaskSubmitted(walk.by_id[row.previous].previous, details["output"])
    if row.type not in OUTCOMES:
        return None
    task = next(number for number, ended in walk.outcomes.items() if row.event_id in ended)
    if row.type.endswith("Succeeded"):
        return engine.TaskSucceeded(task, details["output"])
    if row.type.endswith("TimedOut"):
        (first, heartbeat), *also = _late_together(row, walk, record)
        return engine.TaskTimedOut(first, heartbeat, tuple(also))
    return engine.TaskFailed(task, error, cause)


def _late_together(
    row: HistoryEvent, walk: Walk, record: StoredExecution
) -> Iterator[tuple[int, bool]]:
    """Yield the tasks of the timeouts that begin at an event, and whether heartbeats are missed."""
    event: HistoryLine | None = walk.by_id[row.event_id]
    while event is not None and event.type in _LATE and event.at_ms == row.at_ms:
        task = next(task for task, ended in walk.outcomes.items() if event.id in ended)
        yield task, _silent(record, task, row)
        event = walk.by_id.get(event.id + 1)


def _silent(record: StoredExecution, task: int, row: HistoryEvent) -> bool:
    """Return whether a timeout can only have been a missed heartbeat."""
    attempt = record.tasks[task]
    begun = attempt.started_ms if attempt.kind == "activity" else attempt.scheduled_ms
    return begun is None or row.at_ms < begun + (attempt.timeout_s or 0) * 1000


def _of_itself(player: Player, row: HistoryEvent) -> engine.Message | None:
    """Return what makes an execution go on alone: what it left to do, or a timer that is due."""
    if player.run.ready:
        return engine.Continue()
    for frame in player.run.frames.values():
        due = player.dues.get(frame.timer, row.at_ms + 1)
        if frame.timer and frame.cursor == row.previous and due <= row.at_ms:
            return engine.TimerFired(frame.timer)
    return None
