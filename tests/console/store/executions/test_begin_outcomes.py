"""The outcome of a call is one commit with what follows from it, or it is recorded by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import engine
from console.db import project_settings
from console.models import Execution, InboxMessage, RunRow, StateMachine, TaskRow
from console.store.executions import step
from console.store.executions.stop import stop_execution
from console.store.state.caches import kept_runs
from console.store.tasks import claim, complete
from tests.console.store.helpers import (
    assert_nothing_wrong,
    create,
    drain,
    function,
    one,
    start,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_django import DjangoAssertNumQueries

    from console.models import Project

CALL = one("T", **function("f"))
EACH = one("M", Type="Map", ItemProcessor=CALL)


@pytest.fixture
def called(project: Project) -> Execution:
    """An execution whose one task is being called."""
    execution = start(create(project, CALL), 1)
    drain(execution)
    assert claim.claim_call(execution.pk, TaskRow.objects.get().task) is not None
    return execution


def outcome() -> engine.TaskSucceeded:
    """Return what came of the call."""
    return engine.TaskSucceeded(TaskRow.objects.get().task, "7")


@pytest.mark.parametrize("in_memory", [True, False], ids=["kept", "read-anew"])
def test_the_outcome_ends_the_task_and_moves_the_execution(
    called: Execution, in_memory: bool
) -> None:
    """In one commit, without a message; whether the run is still in memory or not."""
    if not in_memory:
        kept_runs.forget(called.pk)
    change = step.begin_outcomes(called.pk, [outcome()])
    assert change is not None
    assert not change.result()
    called.refresh_from_db()
    assert (called.status, called.output) == ("SUCCEEDED", "7")
    assert not InboxMessage.objects.exists()
    assert TaskRow.objects.get().status == "closed"
    assert_nothing_wrong()


@pytest.mark.postgres_only
def test_the_claim_reads_the_run_that_its_outcome_steps(
    project: Project,
    django_assert_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that gets a call of an execution it never saw reads nothing more for its outcome."""
    monkeypatch.setattr(project_settings, "_KEPT_S", 60.0)  # a loaded machine takes longer than 1 s
    execution = start(create(project, CALL), 1)
    drain(execution)
    kept_runs.forget(execution.pk)
    message = outcome()
    assert claim.claim_call(execution.pk, message.task) is not None
    with django_assert_num_queries(0):
        change = step.begin_outcomes(execution.pk, [message])
    assert change is not None
    change.result()
    assert Execution.objects.get().output == "7"
    assert_nothing_wrong()


@pytest.mark.postgres_only
def test_a_run_that_went_on_since_the_claim_is_not_stepped(project: Project) -> None:
    """What the claim read is out of date: nothing is written, and it is read anew."""
    execution = start(create(project, CALL), 1)
    drain(execution)
    kept_runs.forget(execution.pk)
    message = outcome()
    assert claim.claim_call(execution.pk, message.task) is not None
    stepped_elsewhere(execution)
    change = step.begin_outcomes(execution.pk, [message])
    assert change is not None
    with pytest.raises(step.Fenced):
        change.result()
    again = step.begin_outcomes(execution.pk, [message])
    assert again is not None
    again.result()
    assert Execution.objects.get().output == "7"


def test_outcomes_of_several_tasks_are_one_step(project: Project) -> None:
    """Those of a Map's calls that come together."""
    execution = start(create(project, EACH), [1, 2, 3])
    drain(execution)
    tasks = list(TaskRow.objects.order_by("task").values_list("task", flat=True))
    for task in tasks:
        assert claim.claim_call(execution.pk, task) is not None
    version = RunRow.objects.get().version
    messages = [engine.TaskSucceeded(task, str(task)) for task in tasks]
    change = step.begin_outcomes(execution.pk, messages)
    assert change is not None
    change.result()
    execution.refresh_from_db()
    assert execution.output == "[" + ",".join(map(str, tasks)) + "]"
    assert RunRow.objects.get().version == version + 1
    assert_nothing_wrong()


def closed_elsewhere(execution: Execution) -> None:
    """Somebody else ends the task."""
    complete.complete_call(execution.pk, engine.TaskFailed(TaskRow.objects.get().task, "other"))


def stepped_elsewhere(execution: Execution) -> None:
    """Another process commits a step."""
    RunRow.objects.filter(pk=execution.pk).update(version=9)


def parked(execution: Execution) -> None:
    """The engine refuses to go on."""
    RunRow.objects.filter(pk=execution.pk).update(parked="why")


def being_deleted(execution: Execution) -> None:
    """The state machine is being deleted, and no state may be entered any more."""
    StateMachine.objects.filter(pk=execution.state_machine_id).update(status="DELETING")


@pytest.mark.parametrize("act", [closed_elsewhere, stepped_elsewhere, parked, being_deleted])
def test_it_is_recorded_by_itself_where_it_still_counts(
    called: Execution, act: Callable[[Execution], None]
) -> None:
    """The change comes between the run that is in memory and the commit."""
    message, before = outcome(), types(called)
    act(called)
    change = step.begin_outcomes(called.pk, [message])
    assert change is not None
    with pytest.raises(step.Fenced):
        change.result()
    assert types(called) == before
    assert complete.complete_call(called.pk, message) is (act is not closed_elsewhere)


def test_a_stop_comes_first(called: Execution) -> None:
    """Its task is closed with it, so the outcome counts no more."""
    message = outcome()
    stop_execution(called)
    assert step.begin_outcomes(called.pk, [message]) is None
    assert not complete.complete_call(called.pk, message)
    called.refresh_from_db()
    assert called.status == "ABORTED"
    assert_nothing_wrong()
