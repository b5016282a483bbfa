"""Harm done to the rows of a mixed run, and the invariants that must tell it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from django.db.models import F

from console.models import (
    Definition,
    Execution,
    HaltedExecution,
    HistoryEvent,
    InboxMessage,
    MapRun,
    RunRow,
    RunValue,
    TaskRow,
    Timer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    Made = dict[str, Execution]
    Act = Callable[[Made], object]

IN_ROWS = {"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I11", "I15", "I17", "I18"}
"""What rows alone can show; the others need a client's log, or a page of the API."""


def events(execution: Execution, kind: str = "", state: str = "") -> QuerySet[HistoryEvent]:
    """Return the events of an execution, of a type and a state where given."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    rows = rows.filter(type__endswith=kind) if kind else rows
    return rows.filter(state=state) if state else rows


def change(name: str, kind: str, at: str = "", /, **to: Any) -> Act:
    """Change the first event of a type."""

    def act(executions: Made) -> None:
        event = events(executions[name], kind, at).first()
        assert event is not None
        HistoryEvent.objects.filter(
            execution_id=event.execution_id, event_id=event.event_id
        ).update(**to)

    return act


def row(name: str, /, **to: Any) -> Act:
    """Change the row of an execution."""
    return lambda executions: Execution.objects.filter(pk=executions[name].pk).update(**to)


def run(name: str, /, **to: Any) -> Act:
    """Change the run of an execution."""
    return lambda executions: RunRow.objects.filter(pk=executions[name].pk).update(**to)


def task(name: str, /, **to: Any) -> Act:
    """Change the tasks of an execution."""
    return lambda executions: TaskRow.objects.filter(execution=executions[name]).update(**to)


def map_run(name: str, /, **to: Any) -> Act:
    """Change the Map Run of an execution."""
    return lambda executions: MapRun.objects.filter(parent=executions[name]).update(**to)


def halted(name: str, /, **to: Any) -> Act:
    """Change the row of the lines at breakpoints of an execution."""
    return lambda executions: HaltedExecution.objects.filter(pk=executions[name].pk).update(**to)


def gone(model: Any, name: str) -> Act:
    """Delete the rows of an execution in a table."""
    return lambda executions: model.objects.filter(execution=executions[name]).delete()


def new(model: Any, name: str, /, **values: Any) -> Act:
    """Add a row to an execution."""
    return lambda executions: model.objects.create(execution=executions[name], **values)


def definition(name: str, old: str, new: str) -> Act:
    """Let an execution have run something else."""

    def act(executions: Made) -> None:
        text = Definition.objects.get(pk=executions[name].definition_id).text
        assert old in text
        text = text.replace(old, new)
        digest = hashlib.sha256(text.encode()).hexdigest()
        Definition.objects.create(sha256=digest, text=text)
        row(name, definition_id=digest)(executions)

    return act


def append(name: str, *added: tuple[str, str, str]) -> Act:
    """Add events (type, state, type of the event they follow) as if the engine had written them."""

    def act(executions: Made) -> None:
        for kind, state, before in added:
            last, previous = (
                events(executions[name]).last(),
                events(executions[name], before).first(),
            )
            assert last is not None
            assert previous is not None
            HistoryEvent.objects.create(
                execution_id=last.execution_id,
                event_id=last.event_id + 1,
                previous=previous.event_id,
                at_ms=last.at_ms,
                type=kind,
                state=state,
                details=last.details if kind == last.type else "{}",
            )
            run_row = RunRow.objects.get(pk=executions[name].pk)
            snapshot = run_row.snapshot  # "": it has succeeded
            if snapshot:
                later = json.loads(snapshot) | {"next_event": last.event_id + 2}
                snapshot = json.dumps(later)
            run(name, next_event=last.event_id + 2, snapshot=snapshot)(executions)

    return act


def reversed_result(name: str, kind: str) -> Act:
    """Turn the result of a state round."""

    def act(executions: Made) -> None:
        event = events(executions[name], kind).last()
        assert event is not None
        details = json.loads(event.details)
        details["output"] = json.dumps(json.loads(details["output"])[::-1])
        change(name, kind, details=json.dumps(details))(executions)

    return act


def shift(name: str, kind: str, ms: int) -> Act:
    """Let everything from the second event of a type on have happened so much earlier."""

    def act(executions: Made) -> None:
        number = events(executions[name], kind)[1].event_id
        events(executions[name]).filter(event_id__gte=number).update(at_ms=F("at_ms") - ms)
        row(name, stop_ms=F("stop_ms") - ms)(executions)

    return act


def swap_children(executions: Made) -> None:
    """Let the first child of a Map Run have been the last."""
    for index, to in ((0, 9), (2, 0), (9, 2)):
        children = Execution.objects.filter(
            map_run__parent=executions["children"], item_index=index
        )
        children.update(item_index=to)


def old_run(executions: Made) -> None:
    """Leave a Map Run open whose parent ended long ago."""
    row("children", stop_ms=F("stop_ms") - 100_000)(executions)
    map_run("children", status="RUNNING")(executions)


def first_event_lost(executions: Made) -> None:
    """Delete event 1."""
    events(executions["chain"]).filter(event_id=1).delete()


def event_lost(executions: Made) -> None:
    """Delete an event that nothing but its number tells of."""
    events(executions["caught"], "WaitStateAborted")[:1].get().delete()


def other_snapshot(executions: Made) -> None:
    """Let the snapshot be that of a step before."""
    run_row = RunRow.objects.get(pk=executions["sleeps"].pk)
    snapshot = json.loads(run_row.snapshot)
    snapshot["next_event"] -= 1
    run("sleeps", snapshot=json.dumps(snapshot))(executions)


def reopened(executions: Made) -> None:
    """Open a task again whose sibling has failed."""
    rows = TaskRow.objects.filter(execution=executions["patient"], kind="activity")
    assert rows.update(status="started") == 1


def lost_message(executions: Made) -> None:
    """Post a message to an execution that there never was."""
    InboxMessage.objects.create(
        execution_id=-executions["chain"].pk,
        kind="TaskSucceeded",
        created_ms=executions["chain"].start_ms,
    )


def definition_lost(executions: Made) -> None:
    """Let an execution of one Wait state be of a definition that is not there."""
    row("chain", definition_id="0" * 64)(executions)


_LISTED = {"since_ms": 1, "count": 1, "newest": 1, "lines": '[[1,"W","before",1]]'}
HARMS: dict[str, tuple[set[str], Act]] = {
    "a timer is lost": ({"I1"}, gone(Timer, "sleeps")),
    "one of two waits is lost": ({"I1"}, gone(Timer, "forks")),
    "a task ended without a word": ({"I1", "I6"}, task("waits", status="closed")),
    "a Map Run ended without a word": ({"I1"}, map_run("open-children", status="FAILED")),
    "a child is not counted": ({"I1"}, map_run("children", succeeded=F("succeeded") - 1)),
    "a child is counted as failed": ({"I1"}, map_run("children", failed=1)),
    "a child is missing": ({"I1"}, map_run("children", started=F("started") + 1)),
    "a message is to nobody": ({"I17"}, lost_message),
    "a definition is not there": ({"I17"}, definition_lost),
    "a name is another's": ({"I2"}, row("chain", name="other")),
    "the first event is lost": ({"I3"}, first_event_lost),
    "an event is lost": ({"I3"}, event_lost),
    "an event follows itself": (
        {"I3"},
        change("chain", "StateEntered", "P1", previous=F("event_id")),
    ),
    "an event follows nothing": ({"I3"}, change("chain", "StateEntered", "P1", previous=0)),
    "an event is before its time": ({"I3"}, change("chain", "StateEntered", "P1", at_ms=0)),
    "it fails after its success": ({"I4"}, row("chain", status="FAILED")),
    "it ends twice": ({"I4"}, append("chain", ("ExecutionSucceeded", "", "StateExited"))),
    "something follows its end": ({"I4"}, append("chain", ("MapStateAborted", "", "Succeeded"))),
    "it runs again without a redrive": ({"I4"}, row("sleeps", redrive_count=1)),
    "its output changes": ({"I4"}, row("chain", output="2")),
    "its cause changes": ({"I4"}, row("failed", cause="another")),
    "it has an output before its end": ({"I4"}, row("sleeps", output="1")),
    "its end has no date": ({"I4"}, row("chain", stop_ms=None)),
    "its end is after its last event": ({"I4"}, row("chain", stop_ms=F("stop_ms") + 1)),
    "a state is left twice": (
        {"I5"},
        change("chain", "StateEntered", "P3", type="PassStateExited", state="P2"),
    ),
    "a state is never left": (
        {"I5"},
        change("chain", "StateExited", "P3", type="WaitStateAborted"),
    ),
    "a task has two outcomes": (
        {"I6"},
        append(
            "waits",
            ("ActivitySucceeded", "Await", "ActivityScheduled"),
            ("ActivityFailed", "Await", "ActivityScheduled"),
        ),
    ),
    "an ended task has no outcome": (
        {"I6"},
        change("tried", "LambdaFunctionSucceeded", type="WaitStateAborted"),
    ),
    "an outcome is that of nothing": (
        {"I6"},
        append("waits", ("ActivitySucceeded", "Await", "StateEntered")),
    ),
    "the row of a task is lost": ({"I6"}, gone(TaskRow, "tried")),
    "more attempts than allowed": (
        {"I7"},
        definition("tried", '"MaxAttempts": 2', '"MaxAttempts": 0'),
    ),
    "an attempt before its time": ({"I7"}, shift("tried", "Scheduled", 900)),
    "attempts that came too fast": (
        {"I7"},
        definition("caught", '"IntervalSeconds": 1', '"IntervalSeconds": 9'),
    ),
    "a wait that was too short": ({"I8"}, definition("mixed", '"Seconds": 1', '"Seconds": 9')),
    "a heartbeat missed too early": ({"I8"}, task("silent", heartbeat_s=9)),
    "a timeout of a task without": ({"I8"}, task("silent", heartbeat_s=None)),
    "an execution's early timeout": (
        {"I8"},
        definition("late", '"TimeoutSeconds": 1', '"TimeoutSeconds": 9'),
    ),
    "results of items out of order": ({"I9"}, reversed_result("items", "MapStateExited")),
    "results of branches out of order": (
        {"I9"},
        reversed_result("branches", "ParallelStateExited"),
    ),
    "results of children out of order": ({"I9"}, swap_children),
    "two writers": ({"I11"}, run("chain", next_event=F("next_event") + 1)),
    "a snapshot of another time": ({"I11"}, other_snapshot),
    "no run": (
        {"I11"},
        lambda executions: RunRow.objects.filter(pk=executions["chain"].pk).delete(),
    ),
    "a timer after the end": ({"I15"}, new(Timer, "chain", name="timer-1-2", due_ms=1)),
    "a task that is open after the end": ({"I15"}, task("halted", status="started")),
    "a task that nobody waits for": ({"I15"}, reopened),
    "a message after the end": (
        {"I15"},
        new(InboxMessage, "chain", kind="Stop", created_ms=0),
    ),
    "a step after the end": ({"I15"}, run("chain", ready=True)),
    "a value after the end": ({"I15"}, new(RunValue, "chain", key="1/i/0", text="1")),
    "a Map Run after the end": ({"I15"}, old_run),
    "a line at a breakpoint is not listed": ({"I18"}, gone(HaltedExecution, "stands")),
    "a line is listed that has continued": ({"I18"}, halted("stands", newest=2)),
    "a line is listed of one without any": ({"I18"}, new(HaltedExecution, "sleeps", **_LISTED)),
    "a line is listed after the end": ({"I18"}, new(HaltedExecution, "chain", **_LISTED)),
}
"""What is done -> the invariants that must tell it, and nothing else."""
