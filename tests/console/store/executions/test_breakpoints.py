"""Breakpoints of an execution in the database: durable, fenced, and noted beside the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db import audit
from console.errors import ConflictException, ValidationException
from console.models import AuditEntry, DebugEdit, Execution, TaskRow
from console.store.executions import breakpoints
from console.store.executions.stop import stop_execution
from console.store.state import caches, pause
from tests.console.store.helpers import (
    PASS,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
    types,
)
from tests.console.store.helpers import function as function_task

if TYPE_CHECKING:
    from console.models import Project

ANA = audit.Actor("ana")
CALLED = {
    "StartAt": "Call",
    "States": {
        "Call": {**function_task("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}


def lines_of(execution: Execution) -> list[str]:
    """Return the states of the lines that stand, as any process reads them."""
    caches.kept_runs.__init__(1_000, 32_000_000)  # forget, as a new process does
    shown = breakpoints.debugged(execution)
    return [line.state for line in shown.lines] if shown else []


def number_of(execution: Execution) -> int:
    """Return the number of the first halt."""
    shown = breakpoints.debugged(execution)
    assert shown is not None
    return shown.lines[0].number


def go_on(execution: Execution, **edits: Any) -> None:
    """Let the first line continue."""
    number = number_of(execution)
    breakpoints.release_line(
        execution, number, lambda by: engine.Release(number, by, **edits), "continue", ANA
    )


@pytest.fixture
def stopped(project: Project) -> Execution:
    """Return an execution that stands before its call."""
    execution = start(create(project, CALLED), breakpoints=(engine.Breakpoint("Call"),))
    drain(execution)
    return execution


def test_a_start_with_breakpoints_stops(stopped: Execution) -> None:
    """Nothing is called, nothing is to be done, and all invariants hold."""
    assert lines_of(stopped) == ["Call"]
    assert types(stopped) == ["ExecutionStarted", "TaskStateEntered"]
    assert not TaskRow.objects.filter(execution=stopped).exists()
    assert_nothing_wrong()


def test_a_line_continues_with_an_edit(stopped: Execution) -> None:
    """The task has the edited input; the edit, and who made it, stand beside the history."""
    go_on(stopped, input='{"n":2}')
    drain(stopped)
    assert TaskRow.objects.get(execution=stopped).input == '{"n":2}'
    edit = DebugEdit.objects.get(execution=stopped)
    assert (edit.state, edit.what, edit.by) == ("Call", "input", "ana")
    assert (edit.before, edit.after, edit.event_id) == (stopped.input, '{"n":2}', 2)
    actions = AuditEntry.objects.filter(action="DebugExecution")
    assert [(entry.actor, entry.reason) for entry in actions] == [("ana", "continue: Call")]
    assert_nothing_wrong()


def test_a_task_is_answered_in_place_of_a_call(stopped: Execution) -> None:
    """It has its events and a closed row, and nobody is offered it."""
    number = number_of(stopped)
    breakpoints.release_line(
        stopped, number, lambda by: engine.AnswerTask(number, by, '{"paid":true}'), "answer", ANA
    )
    assert drain(stopped).output == '{"paid":true}'
    assert "LambdaFunctionSucceeded" in types(stopped)
    assert TaskRow.objects.get(execution=stopped).status == "closed"
    assert_nothing_wrong()


def test_breakpoints_are_set_while_it_runs(project: Project) -> None:
    """They stop the states that follow; the others are removed."""
    execution = start(create(project, CALLED), breakpoints=(engine.Breakpoint("Call"),))
    drain(execution)
    done = engine.Breakpoint("Done", engine.BreakTime.AFTER)
    breakpoints.change_breakpoints(execution, lambda _: [done], ANA)
    number = number_of(execution)
    breakpoints.release_line(
        execution, number, lambda by: engine.Skip(number, '"by hand"', by), "skip", ANA
    )
    drain(execution)
    assert lines_of(execution) == ["Done"]
    go_on(execution)
    assert drain(execution).output == '"by hand"'
    assert_nothing_wrong()


def test_a_paused_execution_keeps_what_was_said(stopped: Execution) -> None:
    """The breakpoints that are to be taken are the ones that are shown."""
    pause.pause_execution(stopped, ANA, stops_clock=False)
    places = (engine.Breakpoint("Done"),)
    breakpoints.change_breakpoints(stopped, lambda _: places, ANA)
    shown = breakpoints.debugged(stopped)
    assert shown is not None
    assert shown.breakpoints == places
    go_on(stopped)
    assert lines_of(stopped) == ["Call"]
    with pytest.raises(ConflictException, match="already chosen"):
        go_on(stopped, input='{"n":3}')
    pause.resume_execution(stopped, ANA)
    drain(stopped)
    assert lines_of(stopped) == []
    assert TaskRow.objects.filter(execution=stopped).exists()
    assert_nothing_wrong()


def test_what_came_too_late_is_refused(stopped: Execution) -> None:
    """Two people continue the same line; one acts on what has ended."""
    number = number_of(stopped)
    go_on(stopped)
    with pytest.raises(ConflictException, match="continued in the meantime"):
        breakpoints.release_line(
            stopped, number, lambda by: engine.Release(number, by), "continue", ANA
        )
    stop_execution(stopped)
    with pytest.raises(ConflictException, match="has ended"):
        breakpoints.change_breakpoints(stopped, lambda _: [], ANA)
    assert_nothing_wrong()


def test_what_does_not_fit_is_refused(stopped: Execution) -> None:
    """Nothing reaches the execution, and nothing is noted."""
    number = number_of(stopped)
    with pytest.raises(ValidationException, match="Input: got no JSON"):
        breakpoints.release_line(
            stopped, number, lambda by: engine.Release(number, by, "{"), "continue", ANA
        )
    with pytest.raises(ValidationException, match="got the state 'Nope'"):
        breakpoints.change_breakpoints(stopped, lambda _: [engine.Breakpoint("Nope")], ANA)
    assert lines_of(stopped) == ["Call"]
    assert not AuditEntry.objects.filter(action="DebugExecution").exists()


def test_a_stop_ends_an_execution_that_stands(stopped: Execution) -> None:
    """As it ends any other."""
    stop_execution(stopped)
    assert Execution.objects.get(pk=stopped.pk).status == "ABORTED"
    assert_nothing_wrong()


def test_express_executions_have_no_breakpoints(project: Project) -> None:
    """They end within minutes, and nobody could look."""
    machine = create(project, WORK if project is None else one("W", Type="Wait", Seconds=60))
    machine.type = "EXPRESS"
    execution = Execution(
        arn="arn:aws:states:us-east-1:123456789012:express:machine:run:id", status="RUNNING"
    )
    assert "Express" in breakpoints.debug_refusal(execution)
    ended = start(create(project, PASS, "passes"))
    drain(ended)
    assert breakpoints.debugged(ended) is None
