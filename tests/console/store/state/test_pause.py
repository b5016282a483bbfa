"""A paused execution takes no step, loses nothing, and goes on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import engine
from console.db import audit
from console.db.writer import write
from console.errors import ConflictException
from console.models import AuditEntry, Execution, InboxMessage, Pause, Timer
from console.store.executions import step
from console.store.executions.step_rows import Fenced
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from console.store.state import health, pause
from console.store.tasks import activities, claim, complete, workers
from console.worker.embedded import runnable_executions
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    REGION,
    WAIT,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    start,
    types,
)

if TYPE_CHECKING:
    from console.models import Project
    from tests.console.transition_rates import Clock

ANA = audit.Actor("ana")
HOUR_S = 3600


def pause_it(execution: Execution, *, stops_clock: bool = False) -> Pause:
    """Pause an execution."""
    return pause.pause_execution(execution, ANA, stops_clock=stops_clock, note="look first")


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution whose only state is a task of an activity."""
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK))
    drain(execution)
    return execution


def take_token() -> str:
    """Return the token of the open task, as a worker that has taken it."""
    task = claim.take_activity_task(ACTIVITY, "w1")
    assert task is not None
    return task.token


def test_an_outcome_waits_for_the_resume(execution: Execution) -> None:
    """The answer is taken, no step follows; a resume goes on from it."""
    token = take_token()
    pause_it(execution)
    complete.succeed(token, "1")
    before = types(execution)
    assert drain(execution).status == "RUNNING"
    assert types(execution) == before
    assert InboxMessage.objects.filter(execution=execution).exists()
    assert runnable_executions(workers.Share()) == []
    assert_nothing_wrong()
    pause.resume_execution(execution, ANA)
    assert runnable_executions(workers.Share()) == [execution.pk]
    assert (drain(execution).status, drain(execution).output) == ("SUCCEEDED", "1")
    assert not Pause.objects.exists()
    assert_nothing_wrong()
    actions = AuditEntry.objects.filter(target=execution.arn).order_by("id")
    assert list(actions.values_list("action", "actor", "reason")) == [
        ("PauseExecution", "ana", "look first"),
        ("ResumeExecution", "ana", ""),
    ]


@pytest.mark.parametrize("stops_clock", [False, True])
def test_timers_run_on_or_stand_still(project: Project, now: Clock, *, stops_clock: bool) -> None:
    """Nobody looks for a timer of a paused execution; a clock that stood still goes on."""
    execution = start(create(project, WAIT))
    drain(execution)
    now.later(10)
    pause_it(execution, stops_clock=stops_clock)
    now.later(HOUR_S)
    assert drain(execution).status == "RUNNING"
    assert not Timer.objects.filter(due_ms__lte=now.now_ms).exists()
    pause.resume_execution(execution, ANA)
    if stops_clock:
        assert drain(execution).status == "RUNNING"
        now.later(HOUR_S - 11)
        assert drain(execution).status == "RUNNING"
        now.later(1)
    assert drain(execution).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_a_step_under_way_is_fenced(project: Project) -> None:
    """It was computed before the pause and is to be committed after it."""
    execution = start(create(project, PASS))
    loaded = step.load_step(execution.pk)
    assert loaded is not None
    steps = step.advance_run(loaded)
    pause_it(execution)
    with pytest.raises(Fenced):
        write(lambda: step.commit_step(loaded, steps))
    assert types(execution) == ["ExecutionStarted"]
    pause.resume_execution(execution, ANA)
    assert drain(execution).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_an_outcome_that_is_in_no_row_yet_is_recorded(execution: Execution) -> None:
    """The run that this process remembers is from before the pause: its step is fenced."""
    token = take_token()
    drain(execution)
    task = engine.TaskSucceeded(int(Execution.objects.get().taskrow_set.get().task), "1")
    pause_it(execution)
    change = step.begin_outcomes(execution.pk, [task])
    if change is not None:
        with pytest.raises(Fenced):
            change.result()
    complete.succeed(token, "1")
    assert drain(execution).status == "RUNNING"
    pause.resume_execution(execution, ANA)
    assert drain(execution).status == "SUCCEEDED"


def test_a_stop_ends_a_paused_execution(execution: Execution) -> None:
    """It is not paused any more then."""
    pause_it(execution)
    stop_execution(execution, error="E", cause="C", actor=ANA)
    assert Execution.objects.get(pk=execution.pk).status == "ABORTED"
    assert not Pause.objects.exists()
    assert_nothing_wrong()


def test_the_deletion_of_a_machine_ends_its_paused_executions(execution: Execution) -> None:
    """Else the name would never be free again."""
    machine = execution.state_machine
    assert machine is not None
    pause_it(execution)
    complete.succeed(take_token(), "1")
    machines.delete_machine(machine.project, machine.arn, ANA)
    assert drain(execution).status == "SUCCEEDED", "its last state was answered"
    machines.finish_deletions()
    assert not Pause.objects.exists()


def test_what_cannot_be_paused_is_refused(project: Project, execution: Execution) -> None:
    """An execution that has ended or is paused already; a resume of one that is not paused."""
    over = drain(start(create(project, PASS, "passes")))
    with pytest.raises(ConflictException, match="has ended"):
        pause_it(over)
    pause_it(execution)
    with pytest.raises(ConflictException, match="already paused by ana"):
        pause_it(execution)
    pause.resume_execution(execution, ANA)
    with pytest.raises(ConflictException, match="not paused"):
        pause.resume_execution(execution, ANA)


def test_a_paused_execution_is_not_late(execution: Execution, now: Clock) -> None:
    """What waits for a resume is no fault of the server."""
    token = take_token()
    pause_it(execution)
    complete.succeed(token, "1")
    now.later(HOUR_S)
    assert health.oldest_step_age_ms(now.now_ms) == 0
