"""The call of a dead worker is made again or fails its attempt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.models import Execution, HistoryEvent, TaskRow, Timer
from console.store.machines import machine_options, tags
from console.store.tasks import activities, claim, complete, lost_calls
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    crowd,
    drain,
    function,
    one,
    start,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

RETRY = [{"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 1, "MaxAttempts": 1}]


@pytest.fixture(autouse=True)
def own_name() -> Iterator[None]:
    """Give the process its usual name back."""
    yield
    claim.set_worker_name("")


def called(project: Project, policy: str, **more: Any) -> Execution:
    """Return an execution whose one call is under way."""
    machine = project.statemachine_set.filter(name=f"m-{policy}").first()
    machine = machine or create(project, one("T", **function("pay", **more)), f"m-{policy}")
    if policy:
        tags.put_tags(machine.arn, {machine_options.ON_WORKER_LOSS: policy})
    execution = start(machine)
    drain(execution)
    assert claim.claim_call(execution.pk, TaskRow.objects.get(execution=execution).task) is not None
    return execution


@pytest.mark.parametrize("policy", ["", "redispatch"])
def test_a_lost_call_is_made_again(project: Project, policy: str) -> None:
    """Without the switch nothing is lost, and the row counts how often it was sent."""
    execution = called(project, policy)
    assert lost_calls.recover_all() == (0, 1)
    row = TaskRow.objects.get()
    assert (row.status, claim.claim_call(execution.pk, row.task) is not None) == ("scheduled", True)
    assert TaskRow.objects.get().dispatches == 2


def test_a_call_that_must_not_be_made_twice_has_failed(project: Project) -> None:
    """States.TaskFailed with a cause that says what is not known; the history has it once."""
    execution = called(project, "fail")
    assert lost_calls.recover_all() == (1, 0)
    assert lost_calls.recover_all() == (0, 0)
    task = TaskRow.objects.get().task
    assert not complete.complete_call(
        execution.pk, engine.TaskSucceeded(task, "1")
    )  # it comes too late
    execution = drain(execution)
    assert (execution.status, execution.error) == ("FAILED", "States.TaskFailed")
    assert execution.cause == lost_calls.UNKNOWN
    assert execution.cause.startswith("outcome unknown")
    ended = HistoryEvent.objects.get(execution=execution, type="LambdaFunctionFailed")
    assert json.loads(ended.details) == {"error": "States.TaskFailed", "cause": lost_calls.UNKNOWN}
    assert_nothing_wrong()


def test_retry_may_still_make_it_again(project: Project) -> None:
    """Whoever asks for another attempt gets one, with another idempotency key."""
    execution = called(project, "fail", Retry=RETRY)
    lost_calls.recover_all()
    drain(execution)
    Timer.objects.update(due_ms=1)
    drain(execution)
    old, new = TaskRow.objects.order_by("task")
    assert (old.dispatches, new.status, new.attempt) == (1, "scheduled", 1)
    keys = {claim.get_work(execution.pk, row.task).idempotency_key for row in (old, new)}
    assert len(keys) == 2
    assert types(execution).count("LambdaFunctionScheduled") == 2


def test_only_what_was_under_way_fails(project: Project) -> None:
    """A call that had not begun, one that waits for its job, and others' activities go on."""
    activities.create_activity(project, REGION, "work")
    machine = create(project, WORK, "activity")
    tags.put_tags(machine.arn, {machine_options.ON_WORKER_LOSS: "fail"})
    theirs = start(machine)
    drain(theirs)
    assert claim.take_activity_task(ACTIVITY, "w") is not None
    execution = called(project, "fail")
    TaskRow.objects.filter(execution=execution).update(status="scheduled")
    assert lost_calls.recover_all() == (0, 0)
    TaskRow.objects.filter(execution=execution).update(status="waiting")
    assert lost_calls.recover_all() == (0, 0)
    assert set(TaskRow.objects.values_list("status", flat=True)) == {"waiting", "started"}


def test_a_task_lost_within_the_process_is_treated_alike(project: Project) -> None:
    """One at a time, as the sweeper finds them."""
    again, never = called(project, "redispatch"), called(project, "fail")
    numbers = dict(TaskRow.objects.values_list("execution_id", "task"))
    assert lost_calls.recover_call(again.pk, numbers[again.pk])
    assert lost_calls.recover_call(never.pk, numbers[never.pk]) is False
    assert lost_calls.recover_call(never.pk, numbers[never.pk]) is None  # it is over: not lost
    assert drain(never).status == "FAILED"
    assert drain(again).status == "RUNNING"


def test_the_children_of_a_map_are_of_their_machine(project: Project) -> None:
    """The switch of the machine counts for its distributed Map's children, too."""
    execution = called(project, "fail")
    arn = f"{execution.state_machine_arn}/Label"
    Execution.objects.filter(pk=execution.pk).update(state_machine=None, state_machine_arn=arn)
    assert lost_calls.recover_all() == (1, 0)


def test_an_outcome_that_comes_in_at_the_same_time(project: Project) -> None:
    """Either it counts or the loss does, whoever is first."""
    execution = called(project, "fail")
    task = TaskRow.objects.get().task

    def act(number: int) -> Any:
        if number == 0:
            return lost_calls.recover_all()[0] == 1
        return complete.complete_call(execution.pk, engine.TaskSucceeded(task, "1"))

    assert sum(crowd(4, act)) == 1
    drain(execution)
    ends = [kind for kind in types(execution) if kind in ENDS]
    assert len(ends) == 1
    assert_nothing_wrong()


ENDS = ("LambdaFunctionSucceeded", "LambdaFunctionFailed")


def test_the_calls_of_a_dead_process_among_living_ones(project: Project) -> None:
    """Who is buried loses its calls, by each machine's switch; the living keep theirs."""
    held = {}
    for name in ("dead", "living"):
        claim.set_worker_name(name)
        held[name] = [called(project, policy) for policy in ("redispatch", "fail")]
    claim.set_worker_name("")
    assert lost_calls.recover_from(["living"]) == 2
    assert lost_calls.recover_from(["living"]) == 0
    again, never = held["dead"]
    assert TaskRow.objects.get(execution=again).status == "scheduled"
    assert drain(never).cause == lost_calls.UNKNOWN
    assert {TaskRow.objects.get(execution=execution).status for execution in held["living"]} == {
        "started"
    }


def test_two_who_bury_the_same_process_fail_its_call_once(project: Project) -> None:
    """The second finds it ended, and a history has one failure."""
    claim.set_worker_name("dead")
    execution = called(project, "fail")
    claim.set_worker_name("")
    results = crowd(4, lambda _: lost_calls.recover_from([]))
    assert sorted(results) == [0, 0, 0, 1]
    drain(execution)
    assert types(execution).count("LambdaFunctionFailed") == 1
    assert_nothing_wrong()
