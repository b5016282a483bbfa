"""A redrive continues what did not succeed and runs nothing else again."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from tests.engine.runtime.harness import Sim, machine, task

DISTRIBUTED = {
    "Type": "Map",
    "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "P",
        "States": {"P": {"Type": "Pass", "End": True}},
    },
}


def after(sim: Sim) -> list[str]:
    """Return the types of the events after the last ExecutionRedriven."""
    at = max(at for at, kind in enumerate(sim.types) if kind == "ExecutionRedriven")
    return sim.types[at + 1 :]


def test_a_failed_task_is_scheduled_again_without_being_entered() -> None:
    """The states before it are not run again; its input is what it was."""
    sim = Sim(machine("A", A=task(Next="B"), B=task()), {"n": 1})
    sim.succeed("A", {"from": "A"})
    sim.fail("B")
    sim.redrive()
    redriven = next(event for event in sim.events if event.type == "ExecutionRedriven")
    assert redriven.details == {"redriveCount": 1}
    assert redriven.previous == redriven.id - 1
    assert sim.tasks[sim.task("B")].input == '{"from": "A"}'
    sim.succeed("B", 2)
    assert sim.output == 2
    assert after(sim) == [
        "LambdaFunctionScheduled",
        "LambdaFunctionStarted",
        "LambdaFunctionSucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]


def test_retries_begin_anew() -> None:
    """A Retrier that was used up counts from nothing after a redrive."""
    retry = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    sim = Sim(machine("A", A=task(Retry=retry)))
    for _ in range(2):
        sim.fail("A")
        sim.fire()
        sim.fail("A")
        assert sim.finish.status == "FAILED"
        sim.redrive()
    sim.succeed("A", 1)
    assert sim.output == 1


@pytest.mark.parametrize("reload", [False, True])
def test_only_branches_that_did_not_succeed_run_again(reload: bool) -> None:
    """One branch is done, one failed, one was stopped: two run again, results in order."""
    branches = [machine(name, **{name: task()}) for name in "ABC"]
    sim = Sim(machine("P", P={"Type": "Parallel", "Branches": branches}), reload=reload)
    sim.succeed("A", "a")
    sim.fail("B")
    assert sim.finish.status == "FAILED"
    sim.redrive()
    assert sorted(task.state for task in sim.tasks.values()) == ["B", "C"]
    sim.succeed("C", "c")
    sim.succeed("B", "b")
    assert sim.output == ["a", "b", "c"]
    assert not sim.values


@pytest.mark.parametrize("reload", [False, True])
def test_only_iterations_that_did_not_succeed_run_again(reload: bool) -> None:
    """Done ones keep their output; those that had not begun begin."""
    inner = {"ItemProcessor": machine("T", T=task()), "MaxConcurrency": 2}
    sim = Sim(machine("M", M={"Type": "Map", **inner}), [0, 1, 2, 3], reload=reload)
    first = min(sim.tasks)
    del sim.tasks[first]
    sim.send(engine.TaskSucceeded(first, '"zero"'))
    sim.fail("T")
    assert sim.finish.status == "FAILED"
    sim.redrive()
    seen = []
    while sim.finish is None:
        number = min(sim.tasks)
        seen.append(sim.tasks.pop(number).input)
        sim.send(engine.TaskSucceeded(number, seen[-1]))
    assert sorted(seen) == ["1", "2", "3"]
    assert sim.output == ["zero", 1, 2, 3]


def test_a_fail_state_is_entered_again() -> None:
    """And fails again: the count rises."""
    sim = Sim(machine("F", F={"Type": "Fail", "Error": "E"}))
    for count in (1, 2):
        sim.redrive()
        assert sim.finish.error == "E"
        assert after(sim) == ["FailStateEntered", "ExecutionFailed"]
        assert sim.run.about["redrive_count"] == count


@pytest.mark.parametrize("end", ["stop", "timeout"])
def test_what_was_stopped_or_timed_out_goes_on(end: str) -> None:
    """Both branches were open: both run again, and the machine's timeout begins anew."""
    branches = [machine(name, **{name: task()}) for name in "AB"]
    definition = {
        **machine("P", P={"Type": "Parallel", "Branches": branches}),
        "TimeoutSeconds": 60,
    }
    sim = Sim(definition)
    if end == "stop":
        sim.send(engine.Stop())
    else:
        sim.fire()
    assert sim.finish.status == ("ABORTED" if end == "stop" else "TIMED_OUT")
    sim.now_ms += 500_000
    sim.redrive()
    assert sim.timers == {"execution": sim.now_ms + 60_000}
    sim.succeed("A", 1)
    sim.succeed("B", 2)
    assert sim.output == [1, 2]


def test_an_error_that_was_caught_leaves_nothing_to_redrive() -> None:
    """What a Catcher took is over; the redrive begins at the state that failed later."""
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "B"}]
    inner = {"ItemProcessor": machine("T", T=task()), "Catch": caught, "Next": "B"}
    sim = Sim(machine("M", M={"Type": "Map", **inner}, B=task()), [1, 2])
    sim.fail("T")
    assert not sim.values
    sim.fail("B")
    sim.redrive()
    assert [task.state for task in sim.tasks.values()] == ["B"]


def test_a_distributed_map_takes_its_run_up_again() -> None:
    """The same Map Run, named in MapRunRedriven; after too large a result there is a new one."""
    sim = Sim(machine("M", M=DISTRIBUTED), [1, 2])
    number = sim.task("M")
    sim.send(engine.TaskFailed(number, "States.ExceedToleratedFailureThreshold", "c"))
    sim.redrive()
    assert sim.map_runs == [number]
    started = next(event for event in sim.events if event.type == "MapRunStarted")
    redriven = next(event for event in sim.events if event.type == "MapRunRedriven")
    assert redriven.details == {**started.details, "redriveCount": 1}
    sim.send(engine.TaskFailed(number, "States.DataLimitExceeded", "c"))
    sim.redrive()
    assert sim.map_runs == [number]
    assert sim.types.count("MapRunStarted") == 2


def test_a_success_cannot_be_redriven() -> None:
    """The message does nothing, as it does nothing to what still runs."""
    done = Sim(machine("P", P={"Type": "Pass"}))
    assert done.send(engine.Redrive()).events == ()
    running = Sim(machine("A", A=task()))
    assert running.send(engine.Redrive()).events == ()


def test_the_context_tells_of_the_redrive() -> None:
    """RedriveCount and RedriveTime are in the context object."""
    parameters = {"count.$": "$$.Execution.RedriveCount", "x.$": "$$.Execution"}
    sim = Sim(machine("A", A=task(Parameters=parameters)))
    sim.fail("A")
    sim.redrive()
    value: Any = engine.loads(sim.tasks[sim.task("A")].input)
    assert value["count"] == 1
    assert value["x"]["RedriveTime"].endswith("Z")
