"""An outcome that is sent moves its execution in its own commit, or is recorded by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import epoch
from console.errors import ErrorCode
from console.models import Execution, InboxMessage, Project, RunRow, StateMachine, TaskRow
from console.store.executions import step
from console.store.executions.outcome_steps import step_ahead
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
    types,
)
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.db.writer import Change

TWICE: dict[str, object] = {
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Resource": ACTIVITY, "Next": "B"},
        "B": {"Type": "Task", "Resource": ACTIVITY, "End": True},
    },
}


@pytest.fixture
def project_with_activity(project: Project) -> Project:
    """A project that has the activity."""
    activities.create_activity(project, REGION, "work")
    return project


@pytest.fixture
def execution(project_with_activity: Project) -> Execution:
    """An execution whose activity task a worker has."""
    return waiting(project_with_activity, WORK)


def waiting(project: Project, definition: dict[str, object]) -> Execution:
    """Return an execution that waits for an activity."""
    execution = start(create(project, definition))
    drain(execution)
    return execution


def sent(output: str = "7") -> Change[None]:
    """Take the oldest task, and send its outcome; it is not committed yet."""
    work = claim.take_activity_task(ACTIVITY, "w1")
    assert work is not None
    return complete.pending_success(work.token, output, None, step_ahead)


def test_an_outcome_is_one_commit_with_what_follows(execution: Execution) -> None:
    """The event of the task's start, which waits in the inbox, comes along."""
    version = RunRow.objects.get().version
    sent().result()
    execution.refresh_from_db()
    assert (execution.status, execution.output) == ("SUCCEEDED", "7")
    assert types(execution)[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]
    assert RunRow.objects.get().version == version + 1
    assert not InboxMessage.objects.exists()
    assert_nothing_wrong()


def test_the_next_task_is_there_when_the_call_is_answered(project_with_activity: Project) -> None:
    """So the worker that asks next gets it at once."""
    execution = waiting(project_with_activity, TWICE)
    sent("1").result()
    sent("2").result()
    execution.refresh_from_db()
    assert (execution.status, execution.output) == ("SUCCEEDED", "2")
    assert_nothing_wrong()


def test_a_failure_moves_it_too(execution: Execution) -> None:
    """SendTaskFailure, without a worker."""
    work = claim.take_activity_task(ACTIVITY)
    assert work is not None
    complete.pending_failure(work.token, "Broken", "why", None, step_ahead).result()
    execution.refresh_from_db()
    assert (execution.status, execution.error, execution.cause) == ("FAILED", "Broken", "why")
    assert_nothing_wrong()


def stepped_elsewhere(execution: Execution) -> None:
    """Another process commits a step."""
    RunRow.objects.filter(pk=execution.pk).update(version=9)


def being_deleted(execution: Execution) -> None:
    """The state machine is being deleted, and no state may be entered any more."""
    StateMachine.objects.filter(pk=execution.state_machine_id).update(status="DELETING")


def restored(execution: Execution) -> None:
    """The database begins a new epoch."""
    del execution
    epoch.begin_epoch()


@pytest.mark.parametrize("act", [stepped_elsewhere, restored])
def test_it_is_recorded_by_itself_if_something_came_between(
    execution: Execution, act: Callable[[Execution], None]
) -> None:
    """Between the rows that were read and the commit; a worker goes on then."""
    pending, before = sent(), types(execution)
    act(execution)
    pending.result()
    assert types(execution) == before
    assert list(InboxMessage.objects.order_by("pk").values_list("kind", flat=True)) == [
        "TaskStarted",
        "TaskSucceeded",
    ]
    assert TaskRow.objects.get().status == "closed"


def test_an_outcome_that_comes_after_the_end_is_too_late(execution: Execution) -> None:
    """Somebody stops the execution between the rows that were read and the commit."""
    pending = sent()
    stop_execution(execution)
    drain(execution)
    with raises_code(ErrorCode.TaskTimedOut):
        pending.result()
    execution.refresh_from_db()
    assert execution.status == "ABORTED"
    assert_nothing_wrong()


def test_two_outcomes_of_one_task_have_one_winner(execution: Execution) -> None:
    """Both were computed from the same version."""
    work = claim.take_activity_task(ACTIVITY)
    assert work is not None
    first, second = (
        complete.pending_success(work.token, output, None, step_ahead) for output in ("1", "2")
    )
    second.result()
    with raises_code(ErrorCode.TaskTimedOut):
        first.result()
    assert drain(execution).output == "2"
    assert_nothing_wrong()


def test_a_call_that_is_part_of_another_transaction_is_recorded(execution: Execution) -> None:
    """Or two would commit the same step, where a task sends the outcome of another one."""

    def both(send: Callable[[], None]) -> None:
        stepped_elsewhere(execution)
        send()

    sent().inside(both).result()
    assert TaskRow.objects.get().status == "closed"
    assert InboxMessage.objects.count() == 2


@pytest.mark.parametrize(
    "definition",
    [
        one("P", Type="Parallel", Branches=[WORK]),
        one("A", Type="Task", Resource=ACTIVITY, QueryLanguage="JSONata"),
    ],
    ids=["branches", "expressions"],
)
def test_what_others_step_too_or_what_may_last_is_left_to_a_worker(
    project_with_activity: Project, definition: dict[str, object]
) -> None:
    """Then the outcome is a message."""
    execution = waiting(project_with_activity, definition)
    sent().result()
    assert "ActivitySucceeded" not in types(execution)
    assert drain(execution).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_a_machine_that_is_being_deleted_is_left_to_a_worker(execution: Execution) -> None:
    """Which ends the execution; so is a run that goes on by itself."""
    being_deleted(execution)
    sent().result()
    assert "ActivitySucceeded" not in types(execution)


def test_what_fails_is_left_to_a_worker(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There failures are counted."""

    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(step, "advance_run", fail)
    sent().result()
    monkeypatch.undo()
    assert drain(execution).status == "SUCCEEDED"
