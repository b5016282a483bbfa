"""The history has the events that AWS writes."""

from __future__ import annotations

import itertools

import pytest
from botocore.loaders import Loader

import engine
from tests.engine.runtime.harness import Sim, activity, machine, task


def test_event_types_are_those_of_the_service_model() -> None:
    """Every event type and details member exists in botocore's model, and none is missing."""
    model = Loader().load_service_model("stepfunctions", "service-2")["shapes"]
    assert set(engine.DETAILS) == set(model["HistoryEventType"]["enum"])
    members = set(model["HistoryEvent"]["members"]) - {"timestamp", "type", "id", "previousEventId"}
    assert {name for name in engine.DETAILS.values() if name} == members


def test_first_state_points_at_zero() -> None:
    """ExecutionStarted does not move the cursor; later events point at the one before."""
    sim = Sim(machine("A", A={"Type": "Pass", "Next": "B"}, B={"Type": "Succeed"}))
    assert sim.story == [
        "1<0 ExecutionStarted",
        "2<0 PassStateEntered A",
        "3<2 PassStateExited A",
        "4<3 SucceedStateEntered B",
        "5<4 SucceedStateExited B",
        "6<5 ExecutionSucceeded",
    ]


def test_function_task_events() -> None:
    """A function is scheduled and started in one step, and its result closes the state."""
    sim = Sim(machine("A", A=task()))
    sim.succeed("A", {"x": 1})
    assert sim.story[2:] == [
        "3<2 LambdaFunctionScheduled A",
        "4<3 LambdaFunctionStarted A",
        "5<4 LambdaFunctionSucceeded A",
        "6<5 TaskStateExited A",
        "7<6 ExecutionSucceeded",
    ]
    assert sim.output == {"x": 1}


@pytest.mark.parametrize(
    ("pattern", "ending"),
    [("", "Failed"), (".sync", "SubmitFailed"), (".waitForTaskToken", "SubmitFailed")],
)
def test_a_call_that_is_refused(pattern: str, ending: str) -> None:
    """What should go on elsewhere was never submitted; an attempt more is one more Scheduled."""
    retry = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    resource = f"arn:aws:states:::ecs:runTask{pattern}"
    parameters = {"TaskDefinition": "d", "Group.$": "$$.State.Name"}
    if pattern == ".waitForTaskToken":
        parameters["Group.$"] = "$$.Task.Token"
    state = {"Type": "Task", "Resource": resource, "Parameters": parameters, "Retry": retry}
    sim = Sim(machine("A", A=state))
    sim.send(engine.TaskFailed(sim.task("A"), "Boom", "no", refused=bool(pattern)))
    sim.fire()
    assert sim.story[2:] == [
        "3<2 TaskScheduled A",
        "4<3 TaskStarted A",
        f"5<4 Task{ending} A",
        "6<5 TaskScheduled A",
        "7<6 TaskStarted A",
    ]
    named = {"resourceType": "ecs", "resource": f"runTask{pattern}"}
    assert sim.events[4].details == {**named, "error": "Boom", "cause": "no"}


@pytest.mark.parametrize("pattern", [".sync", ".waitForTaskToken"])
def test_a_token_that_comes_back_before_the_call_does(pattern: str) -> None:
    """Whoever got the token may fail the task at once: it had been handed out."""
    parameters = {"TaskDefinition": "d", "Group": "g"}
    if pattern == ".waitForTaskToken":
        parameters = {"TaskDefinition": "d", "Group.$": "$$.Task.Token"}
    resource = f"arn:aws:states:::ecs:runTask{pattern}"
    sim = Sim(machine("A", A={"Type": "Task", "Resource": resource, "Parameters": parameters}))
    sim.fail("A")
    assert sim.types[3:] == ["TaskStarted", "TaskFailed", "ExecutionFailed"]


def test_activity_starts_when_a_worker_takes_it() -> None:
    """ActivityStarted appears with the worker's name, once."""
    sim = Sim(machine("A", A=activity()))
    number = sim.task("A")
    assert sim.types[-1] == "ActivityScheduled"
    sim.send(engine.TaskStarted(number, "w1"))
    sim.send(engine.TaskStarted(number, "w2"))
    assert [e.details for e in sim.events if e.type == "ActivityStarted"] == [{"workerName": "w1"}]


def test_retry_schedules_again_without_entering_again() -> None:
    """The new Scheduled event points at the failure; there is one StateEntered."""
    retry = [{"ErrorEquals": ["Boom"], "IntervalSeconds": 2, "MaxAttempts": 1}]
    sim = Sim(machine("A", A=task(Retry=retry)))
    sim.fail("A")
    assert list(sim.timers.values()) == [sim.now_ms + 2000]
    sim.fire()
    sim.fail("A")
    assert sim.story[2:] == [
        "3<2 LambdaFunctionScheduled A",
        "4<3 LambdaFunctionStarted A",
        "5<4 LambdaFunctionFailed A",
        "6<5 LambdaFunctionScheduled A",
        "7<6 LambdaFunctionStarted A",
        "8<7 LambdaFunctionFailed A",
        "9<8 ExecutionFailed",
    ]


def test_iterations_chain_as_recorded() -> None:
    """A freed slot's iteration points at the last event of the one before, not at its Succeeded."""
    processor = machine("P", P={"Type": "Pass"})
    state = {"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor}
    sim = Sim(machine("M", M=state), [1, 2])
    assert sim.story[1:] == [
        "2<0 MapStateEntered M",
        "3<2 MapStateStarted M",
        "4<3 MapIterationStarted M",
        "5<4 PassStateEntered P",
        "6<5 PassStateExited P",
        "7<6 MapIterationSucceeded M",
        "8<6 MapIterationStarted M",
        "9<8 PassStateEntered P",
        "10<9 PassStateExited P",
        "11<10 MapIterationSucceeded M",
        "12<11 MapStateSucceeded M",
        "13<11 MapStateExited M",
        "14<13 ExecutionSucceeded",
    ]


def test_concurrent_iterations_start_together() -> None:
    """All that may run at once are started before the first of them enters its state."""
    state = {"Type": "Map", "ItemProcessor": machine("P", P=task())}
    sim = Sim(machine("M", M=state), [1, 2, 3])
    assert sim.types[2:6] == ["MapStateStarted", *["MapIterationStarted"] * 3]
    assert [e.previous for e in sim.events if e.type == "MapIterationStarted"] == [3, 3, 3]


def test_parallel_ends_where_its_last_branch_ended() -> None:
    """Succeeded and Exited both point at the last event of the branch that finished last."""
    branches = [machine("A", A=task()), machine("B", B={"Type": "Pass"})]
    sim = Sim(machine("P", P={"Type": "Parallel", "Branches": branches}))
    sim.succeed("A", "late")
    by_type = {e.type: e for e in sim.events}
    last = by_type["TaskStateExited"].id
    assert by_type["ParallelStateSucceeded"].previous == last
    assert by_type["ParallelStateExited"].previous == last
    assert sim.output == ["late", {}]


def test_failing_branch_stops_its_siblings() -> None:
    """The siblings' tasks and timers are cancelled at once, and a late answer changes nothing."""
    branches = [
        machine("A", A=task()),
        machine("B", B=activity()),
        machine("W", W={"Type": "Wait", "Seconds": 60}),
    ]
    sim = Sim(machine("P", P={"Type": "Parallel", "Branches": branches}))
    late = sim.task("B")
    sim.fail("A")
    assert sim.cancelled == [late]
    assert sim.timers == {}
    failing = next(e.id for e in sim.events if e.type == "LambdaFunctionFailed")
    ending = [f"{e.type}<{e.previous - failing}" for e in sim.events if e.id > failing]
    assert ending == [
        "TaskStateAborted<0",
        "TaskStateAborted<0",
        "WaitStateAborted<0",
        "ParallelStateFailed<0",
        "ExecutionFailed<4",
    ]
    assert sim.send(engine.TaskSucceeded(late, "1")).events == ()


def test_a_runtime_error_inside_of_a_group_ends_the_execution_at_once() -> None:
    """Nothing takes it, so neither the Parallel fails nor are its branches aborted [measured]."""
    wrong = {"Type": "Pass", "Parameters": {"m.$": "$.nope"}, "End": True}
    branches = [
        {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 9, "End": True}}},
        {"StartAt": "Wrong", "States": {"Wrong": wrong}},
    ]
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "Rescue"}]
    parallel = {"Type": "Parallel", "Branches": branches, "Catch": caught, "Next": "Rescue"}
    sim = Sim(machine("P", P=parallel, Rescue={"Type": "Pass", "End": True}))
    assert sim.story[3:] == [
        "4<3 WaitStateEntered Nap",
        "5<3 PassStateEntered Wrong",
        "6<5 ExecutionFailed",
    ]
    assert sim.finish is not None
    assert (sim.finish.error, sim.timers) == ("States.Runtime", {})


def test_an_item_selector_without_its_path_ends_the_execution_at_once() -> None:
    """The iterations beside it have no event, either."""
    selector = {"v.$": "$$.Map.Item.Value.v"}
    processor = machine("X", X=activity())
    state = {"Type": "Map", "ItemSelector": selector, "ItemProcessor": processor}
    sim = Sim(machine("M", M=state), [{"v": 1}, {}])
    assert sim.story[-1].endswith("ExecutionFailed")
    assert not [line for line in sim.story if "Abort" in line or "StateFailed" in line]


def test_failing_iteration_aborts_the_others() -> None:
    """One iteration fails, the open ones are aborted, the Map fails with that error."""
    state = {"Type": "Map", "ItemProcessor": machine("P", P=task())}
    sim = Sim(machine("M", M=state), [1, 2])
    sim.fail("P", "Bad", None)
    failing = next(e.id for e in sim.events if e.type == "LambdaFunctionFailed")
    assert [e.type for e in sim.events if e.id > failing] == [
        "MapIterationFailed",
        "TaskStateAborted",
        "MapIterationAborted",
        "TaskStateAborted",
        "MapStateFailed",
        "ExecutionFailed",
    ]
    assert (sim.finish.error, sim.finish.cause) == ("Bad", None)


def test_map_retry_runs_every_iteration_again() -> None:
    """A Map's Retry points its new MapStateStarted at the failing event, without MapStateFailed."""
    fail = machine("F", F={"Type": "Fail", "Error": "E"})
    state = {
        "Type": "Map",
        "ItemProcessor": fail,
        "Retry": [{"ErrorEquals": ["E"], "MaxAttempts": 1}],
    }
    sim = Sim(machine("M", M=state), [1])
    sim.fire()
    starts = [e for e in sim.events if e.type == "MapStateStarted"]
    failing = [e.id for e in sim.events if e.type == "FailStateEntered"]
    assert [e.previous for e in starts] == [2, failing[0]]
    assert sim.types.count("MapStateFailed") == 1


def test_empty_map_ends_at_its_start() -> None:
    """No items: Succeeded and Exited point at MapStateStarted, the output is an empty array."""
    state = {"Type": "Map", "ItemProcessor": machine("P", P={"Type": "Pass"})}
    sim = Sim(machine("M", M=state), [])
    assert sim.story[2:] == [
        "3<2 MapStateStarted M",
        "4<3 MapStateSucceeded M",
        "5<3 MapStateExited M",
        "6<5 ExecutionSucceeded",
    ]
    assert sim.output == []


def test_stop_points_at_zero_and_cancels_all() -> None:
    """ExecutionAborted carries what was given and nothing is awaited afterwards."""
    sim = Sim(machine("A", A=activity()))
    number = sim.task("A")
    sim.send(engine.Stop("Why", None))
    assert sim.story[-1] == f"{len(sim.events)}<0 ExecutionAborted"
    assert sim.events[-1].details == {"error": "Why"}
    assert sim.cancelled == [number]
    assert sim.send(engine.Stop()).events == ()


def test_execution_timeout_ends_exactly_on_time() -> None:
    """StopDate is startDate plus TimeoutSeconds, however late the timer was noticed."""
    definition = machine("W", W={"Type": "Wait", "Seconds": 100}) | {"TimeoutSeconds": 5}
    sim = Sim(definition)
    start = sim.now_ms
    sim.now_ms += 9_000
    sim.send(engine.TimerFired("execution"))
    assert sim.finish == engine.Finish(engine.ExecutionStatus.TIMED_OUT, stop_ms=start + 5000)
    assert sim.events[-1].details == {"error": "States.Timeout"}


@pytest.mark.slow
@pytest.mark.parametrize(("extra", "ending"), [(0, "ExecutionSucceeded"), (1, "ExecutionFailed")])
def test_event_25000_is_the_end(extra: int, ending: str) -> None:
    """Event 25,000 is the success if that is what comes, else ExecutionFailed."""
    # ExecutionStarted + 12,499 Pass states x 2 = 24,999; the end is number 25,000
    names = [f"S{number}" for number in range(12_499 + extra)]
    states = {name: {"Type": "Pass", "Next": after} for name, after in itertools.pairwise(names)}
    states[names[-1]] = {"Type": "Pass", "End": True}
    sim = Sim({"StartAt": "S0", "States": states})
    assert (len(sim.events), sim.events[-1].type) == (25_000, ending)
    assert sim.events[-1].previous == 24_999
