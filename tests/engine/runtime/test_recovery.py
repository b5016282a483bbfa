"""Retry and Catch do what the language says, on each state type that has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from tests.engine.runtime.harness import Sim, activity, machine, task

FAILING = {
    "Task": task,
    "Parallel": lambda **more: {"Type": "Parallel", "Branches": [machine("X", X=task())], **more},
    "Map": lambda **more: {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": machine("X", X=task()),
        **more,
    },
}
INPUT = {"items": [1], "keep": True}


def build(kind: str, **more: Any) -> Sim:
    """Return an execution whose first state fails when its task fails."""
    state = FAILING[kind](**more, Next="Done")
    saved = {"Saved": {"Type": "Pass"}} if "Catch" in more else {}
    return Sim(machine("A", A=state, Done={"Type": "Pass"}, **saved), INPUT)


def fail(sim: Sim, error: str = "Boom", cause: str | None = "it broke") -> None:
    """Fail whatever task is open."""
    sim.fail(next(iter(sim.tasks.values())).state, error, cause)


@pytest.mark.parametrize("kind", FAILING)
def test_catch_merges_the_error_into_the_raw_input(kind: str) -> None:
    """ResultPath of a Catcher puts Error and Cause beside what came in."""
    catch = [{"ErrorEquals": ["Boom"], "Next": "Saved", "ResultPath": "$.error"}]
    sim = build(kind, Catch=catch)
    fail(sim)
    assert sim.output == {**INPUT, "error": {"Error": "Boom", "Cause": "it broke"}}


@pytest.mark.parametrize("kind", FAILING)
def test_retries_come_with_growing_pauses_and_then_the_catch(kind: str) -> None:
    """Interval 3 and rate 2 give pauses of 3, 6, 12 s; when attempts are used up Catch is tried."""
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 3, "BackoffRate": 2.0}]
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Saved"}]
    sim = build(kind, Retry=retry, Catch=catch)
    pauses = []
    for _ in range(3):
        fail(sim)
        pauses.append((next(iter(sim.timers.values())) - sim.now_ms) // 1000)
        sim.fire()
    fail(sim)
    assert pauses == [3, 6, 12]
    assert sim.output == {"Error": "Boom", "Cause": "it broke"}


@pytest.mark.parametrize("kind", FAILING)
def test_success_after_a_retry_ends_well(kind: str) -> None:
    """The second attempt's result is the state's result."""
    sim = build(kind, Retry=[{"ErrorEquals": ["Boom"]}])
    fail(sim)
    sim.fire()
    sim.succeed(next(iter(sim.tasks.values())).state, 7)
    assert sim.output == (7 if kind == "Task" else [7])


def test_each_retrier_counts_for_itself() -> None:
    """Attempts of one Retrier do not use up those of another."""
    retry = [
        {"ErrorEquals": ["A"], "MaxAttempts": 1, "IntervalSeconds": 1},
        {"ErrorEquals": ["B"], "MaxAttempts": 1, "IntervalSeconds": 1},
    ]
    sim = build("Task", Retry=retry)
    for error in ("A", "B"):
        fail(sim, error)
        sim.fire()
    fail(sim, "A")
    assert sim.finish.status == "FAILED"
    assert sim.types.count("LambdaFunctionScheduled") == 3


@pytest.mark.parametrize(
    ("name", "error_equals", "taken"),
    [
        ("Boom", ["States.TaskFailed"], True),
        ("States.Timeout", ["States.TaskFailed"], False),
        ("States.HeartbeatTimeout", ["States.Timeout"], True),
        ("States.Runtime", ["States.Runtime"], False),
        ("States.Runtime", ["States.ALL"], False),
        ("States.DataLimitExceeded", ["States.ALL"], False),
        ("States.DataLimitExceeded", ["States.DataLimitExceeded"], True),
        (None, ["States.ALL"], True),
        ("boom", ["Boom"], False),
    ],
)
def test_error_names_match_as_documented(
    name: str | None, error_equals: list[str], taken: bool
) -> None:
    """Which error is taken by which ErrorEquals."""
    assert engine.errors.matches(error_equals, name) is taken


def test_max_delay_and_jitter_bound_the_pause() -> None:
    """MaxDelaySeconds caps the pause and FULL jitter draws below it."""
    retry = [
        {
            "ErrorEquals": ["Boom"],
            "IntervalSeconds": 10,
            "BackoffRate": 10,
            "MaxDelaySeconds": 20,
            "JitterStrategy": "FULL",
        }
    ]
    sim = build("Task", Retry=retry)
    for ceiling in (10, 20, 20):
        fail(sim)
        assert 0 <= next(iter(sim.timers.values())) - sim.now_ms <= ceiling * 1000
        sim.fire()


@pytest.mark.parametrize("heartbeat", [True, False])
def test_timeouts_are_told_alike_but_matched_by_name(heartbeat: bool) -> None:
    """Both are shown as States.Timeout without a cause; only the heartbeat has its own name."""
    catch = [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Saved"}]
    sim = build("Task", Catch=catch)
    sim.send(engine.TaskTimedOut(sim.task("A"), heartbeat=heartbeat))
    timed_out = next(e for e in sim.events if e.type == "LambdaFunctionTimedOut")
    assert timed_out.details == {"error": "States.Timeout"}
    assert sim.finish.status == ("SUCCEEDED" if heartbeat else "FAILED")


def test_result_over_the_limit_fails_the_task() -> None:
    """262,144 bytes pass, one more fails with States.DataLimitExceeded naming the function."""
    for size, status in ((262_142, "SUCCEEDED"), (262_143, "FAILED")):
        sim = build("Task")
        sim.succeed("A", "x" * size)
        assert sim.finish.status == status
    assert sim.finish.error == "States.DataLimitExceeded"
    assert "function:work'" in sim.finish.cause


def test_a_catcher_of_all_errors_takes_a_result_over_the_limit() -> None:
    """As recorded: it is the task's failure then; its Parameters over the limit are not."""
    sim = build("Task", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Saved"}])
    sim.succeed("A", "x" * 262_143)
    assert sim.finish.status == "SUCCEEDED"


def test_a_caught_timeout_has_an_empty_cause() -> None:
    """As recorded; an error without a cause has null there."""
    sim = build("Task", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Saved"}])
    sim.send(engine.TaskTimedOut(sim.task("A"), heartbeat=False))
    assert json.loads(str(sim.finish.output)) == {"Error": "States.Timeout", "Cause": ""}


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("States.IntrinsicFailure", {"Parameters": {"x.$": "States.ArrayGetItem($.items, 9)"}}),
        ("States.ResultPathMatchFailure", {"ResultPath": "$.keep.here"}),
    ],
)
@pytest.mark.parametrize("caught_by", ["", "States.ALL"])
def test_failures_of_the_data_flow_are_caught(name: str, state: Any, caught_by: str) -> None:
    """By their own names and by States.ALL, with the place in the cause [documented]."""
    sim = build("Task", **state, Catch=[{"ErrorEquals": [caught_by or name], "Next": "Saved"}])
    if name == "States.ResultPathMatchFailure":
        sim.succeed("A", 1)
    assert sim.types[-1] == "ExecutionSucceeded"
    assert sim.output["Error"] == name
    assert sim.output["Cause"].startswith("An error occurred while executing the state 'A'")


@pytest.mark.parametrize(("days", "waits"), [(24_855, True), (24_856, False)])
def test_the_longest_wait(days: int, waits: bool) -> None:
    """AWS counts the seconds of a wait in 32 bits."""
    data = {"s": days * 24 * 3600}
    sim = Sim(machine("A", A={"Type": "Wait", "SecondsPath": "$.s"}), data)
    assert bool(sim.timers) == waits
    assert sim.types[-1] == ("WaitStateEntered" if waits else "ExecutionFailed")


@pytest.mark.parametrize("pattern", [".sync", ".sync:2"])
def test_a_job_sees_its_task_token(pattern: str) -> None:
    """The context object of a ``.sync`` task has the token of its call."""
    resource = f"arn:aws:states:::states:startExecution{pattern}"
    parameters = {"StateMachineArn": "m", "Input": {"token.$": "$$.Task.Token"}}
    sim = Sim(machine("A", A={"Type": "Task", "Resource": resource, "Parameters": parameters}))
    sent = json.loads(sim.tasks[sim.task("A")].input)
    assert len(sent["Input"]["token"]) > 20


def late_together(sim: Sim) -> engine.Step:
    """Let all open tasks time out in one instant."""
    first, *others = sim.tasks
    return sim.send(engine.TaskTimedOut(first, also=tuple((number, False) for number in others)))


def test_tasks_that_time_out_together_all_say_so() -> None:
    """The first failure aborts the other iterations; their timeouts stand before it."""
    state = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": machine("Call", Call=task())}
    sim = Sim(machine("Each", Each=state), [1, 2, 3])
    late_together(sim)
    assert sim.story[15:] == [
        "16<13 LambdaFunctionTimedOut Call",
        "17<14 LambdaFunctionTimedOut Call",
        "18<15 LambdaFunctionTimedOut Call",
        "19<16 MapIterationFailed Each",
        "20<16 TaskStateAborted Call",
        "21<16 MapIterationAborted Each",
        "22<16 TaskStateAborted Call",
        "23<16 MapIterationAborted Each",
        "24<16 TaskStateAborted Call",
        "25<16 MapStateFailed Each",
        "26<25 ExecutionFailed",
    ]
    assert not sim.cancelled, "each has ended by itself"
    assert sim.redrive().run.frames


def test_each_of_the_tasks_that_time_out_together_has_its_own_retry() -> None:
    """One branch retries, one is caught; the message of the other comes late and moves nothing."""
    again = task(Retry=[{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 5}])
    caught = task(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}])
    branches = [machine("Again", Again=again), machine("Take", Take=caught, Caught=activity())]
    sim = Sim(machine("All", All={"Type": "Parallel", "Branches": branches}), reload=True)
    second = sim.task("Take")
    late_together(sim)
    assert sim.types.count("LambdaFunctionTimedOut") == 2
    assert len(sim.timers) == 1
    assert "Caught" in [command.state for command in sim.tasks.values()]
    assert not sim.send(engine.TaskTimedOut(second)).events
