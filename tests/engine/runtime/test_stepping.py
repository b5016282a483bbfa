"""Lines of control step into groups, and run to states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import engine
from engine import Breakpoint, BreakTime
from tests.engine.runtime.harness import Sim, machine, task
from tests.engine.runtime.stopped_sim import (
    AFTER,
    BEFORE,
    StoppedSim,
    each,
    go_on,
    passes,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def step_into(line: engine.HaltedLine) -> engine.Release:
    """Continue to the first state of each inner line."""
    assert line.is_enterable
    return line.go_on(into=True)


def run_to(state: str) -> Callable[[engine.HaltedLine], engine.Release]:
    """Continue to a state."""
    return lambda line: line.go_on(run_to=state)


def test_a_step_into_a_parallel_stops_each_branch_at_its_first_state() -> None:
    """Once: the branches go on to their ends, and the history is that of one that never stopped."""
    inner = machine("P", P=passes(Next="Q"), Q=passes())
    both = {"Type": "Parallel", "Branches": [inner, machine("T", T=task())], "Next": "Z"}
    definition = machine("Both", Both=both, Z=passes())
    sim = StoppedSim(definition, 1, "Both")
    sim.release(step_into)
    assert sim.stands == [("P", "before", "Both[0]"), ("T", "before", "Both[1]")]
    assert all(line.halt.stepped for line in sim.lines)
    sim.release(go_on)
    assert sim.stands == [("T", "before", "Both[1]")]
    sim.release(go_on)
    sim.succeed("T", 2)
    assert sim.output == [1, 2]
    plain = Sim(definition, 1)
    plain.succeed("T", 2)
    assert sorted(sim.types) == sorted(plain.types)


def test_a_step_into_a_map_stops_iterations_that_begin_later() -> None:
    """Each stops when its turn comes, those of a second visit do not."""
    rule = {"Variable": "$[0]", "NumericLessThan": 5, "Next": "More"}
    states = {
        **each(MaxConcurrency=1, Next="Again")["States"],
        "Again": {"Type": "Choice", "Choices": [rule], "Default": "Z"},
        "More": passes(Result=[5], Next="Each"),
        "Z": passes(),
    }
    sim = StoppedSim(machine("Each", **states), [1, 2], "Each")
    sim.release(step_into)
    stood = []
    for number in (1, 2):
        stood += sim.stands
        sim.release(go_on)
        sim.succeed("T", number)
    assert stood == [("P", "before", "Each[0]"), ("P", "before", "Each[1]")]
    sim.release(go_on)
    assert sim.stands == []
    sim.succeed("T", 5)
    assert sim.output == [5]


def test_a_step_into_a_map_without_items_is_a_step_over() -> None:
    """There is no inner state to stop at, so that the line stops at its next one."""
    sim = StoppedSim(machine("Each", **each(Next="Z")["States"], Z=passes()), [], "Each")
    sim.release(step_into)
    assert sim.stands == [("Z", "before", "")]


def test_a_step_into_ends_with_the_attempt() -> None:
    """A retry opens another group, whose lines go on."""
    retry = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1}]
    both = {"Type": "Parallel", "Branches": [machine("T", T=task())], "Retry": retry}
    sim = StoppedSim(machine("Both", Both=both), 1, "Both")
    sim.release(step_into)
    sim.release(go_on)
    sim.fail("T")
    sim.send(engine.SetBreakpoints("[]"))
    sim.fire()
    assert sim.stands == []
    sim.succeed("T", 2)
    assert sim.output == [2]


_NESTED = {"Resource": "arn:aws:states:::states:startExecution.sync:2"}
_CHILDREN = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}


@pytest.mark.parametrize(
    ("state", "when", "words"),
    [
        (task(), BEFORE, "Only a Parallel or Map can be stepped into, not a Task."),
        (
            {"Type": "Task", **_NESTED, "Parameters": {"StateMachineArn": "a"}},
            BEFORE,
            "A nested execution cannot be stepped into: set breakpoints in it once it runs.",
        ),
        (
            {"Type": "Map", "ItemProcessor": {**machine("P", P=passes()), **_CHILDREN}},
            BEFORE,
            "A distributed Map cannot be stepped into",
        ),
        (
            {"Type": "Parallel", "Branches": [machine("P", P=passes())]},
            AFTER,
            "The Parallel has run",
        ),
    ],
    ids=["task", "nested", "distributed", "after"],
)
def test_a_step_into_that_leads_nowhere_is_refused(
    state: dict[str, Any], when: BreakTime, words: str
) -> None:
    """The sentence says why, and the line stays where it is."""
    sim = StoppedSim(machine("A", A=state), [1], Breakpoint("A", when))
    assert not sim.lines[0].is_enterable
    message = sim.lines[0].go_on(into=True)
    assert words in sim.lines[0].problem_of(message)
    assert sim.send(message).events == ()
    assert len(sim.lines) == 1


def test_a_run_to_a_state_stops_there_once() -> None:
    """Past the states between; when the line comes there again it goes on."""
    rule = {"Variable": "$.n", "NumericLessThan": 2, "Next": "C"}
    states = {
        "A": passes(Next="B"),
        "B": passes(Next="C"),
        "C": passes(Parameters={"n.$": "States.MathAdd($.n, 1)"}, Next="D"),
        "D": {"Type": "Choice", "Choices": [rule], "Default": "Z"},
        "Z": passes(),
    }
    sim = StoppedSim(machine("A", **states), {"n": 0}, "A")
    sim.release(run_to("C"))
    assert sim.stands == [("C", "before", "")]
    assert sim.lines[0].halt.stepped
    sim.release(go_on)
    assert sim.output == {"n": 2}


def test_a_run_to_the_same_state_stops_at_its_next_visit_and_not_at_a_retry() -> None:
    """A retry does the work of the visit again."""
    rule = {"Variable": "$.more", "IsPresent": True, "Next": "T"}
    states = {
        "T": task(Retry=[{"ErrorEquals": ["Boom"]}], Next="C"),
        "C": {"Type": "Choice", "Choices": [rule], "Default": "Z"},
        "Z": passes(),
    }
    sim = StoppedSim(machine("T", **states), {}, "T")
    sim.send(engine.SetBreakpoints("[]"))
    sim.release(run_to("T"))
    sim.fail("T")
    sim.fire()
    assert sim.stands == []
    sim.succeed("T", {"more": 1})
    assert sim.stands == [("T", "before", "")]


def test_a_run_to_a_state_inside_a_group_stops_the_first_line_that_comes_there() -> None:
    """The others go on: the run has ended."""
    states = {"A": passes(Next="Each"), **each()["States"]}
    sim = StoppedSim(machine("A", **states), [1, 2, 3], "A")
    sim.release(run_to("T"))
    assert sim.stands == [("T", "before", "Each[0]")]
    assert len(sim.tasks) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_to_a_state_outside_a_group_goes_on_with_its_owner(*, fails: bool) -> None:
    """Whether the group succeeds, or a Catcher of the state around it leads there."""
    both = {
        "Type": "Parallel",
        "Branches": [machine("P", P=passes(Next="T"), T=task()), machine("Q", Q=passes())],
        "Catch": [{"ErrorEquals": ["Boom"], "Next": "Z"}],
        "Next": "Y",
    }
    sim = StoppedSim(machine("A", A=both, Y=passes(Next="Z"), Z=passes()), 1, "P")
    sim.release(run_to("Z"))
    if fails:
        sim.fail("T")
    else:
        sim.succeed("T", 2)
    assert sim.stands == [("Z", "before", "")]


def test_a_run_to_a_state_ends_with_the_line_that_could_have_come_there() -> None:
    """The next iteration is another line, and does not stop for it."""
    rule = {"Variable": "$", "NumericEquals": 1, "Next": "Z"}
    choose = {"Type": "Choice", "Choices": [rule], "Default": "P"}
    processor = machine("C", C=choose, P=passes(Next="Z"), Z=passes())
    definition = machine(
        "Each", Each={"Type": "Map", "MaxConcurrency": 1, "ItemProcessor": processor}
    )
    sim = StoppedSim(definition, [1, 2], Breakpoint("C", condition="$states.input = 1"))
    sim.release(run_to("P"))
    assert sim.output == [1, 2]


def test_a_run_to_a_state_of_another_branch_is_refused() -> None:
    """Its own line enters it, this one never does; nor is there a state of another name."""
    branches = [machine("P", P=passes()), machine("Q", Q=passes())]
    inner = {"Type": "Parallel", "Branches": branches, "Next": "Z"}
    sim = StoppedSim(machine("A", A=inner, Z=passes()), 1, "P")
    line = sim.lines[0]
    assert line.states_ahead == ("Z",)
    for state in ("Q", "Nope"):
        problem = line.problem_of(line.go_on(run_to=state))
        assert problem == (
            f"Run to: got the state {state!r}, wanted one that this line can come to: Z"
        )
        assert sim.send(line.go_on(run_to=state)).events == ()
    assert "one of step, into and run_to" in line.problem_of(line.go_on(step=True, run_to="Z"))


_ALL_ERRORS = ["States.ALL"]


def _passages() -> dict[str, Any]:
    """Return a Parallel in the middle of a machine; its first branch ends in two ways."""
    rule = {"Variable": "$.n", "IsPresent": True, "Next": "Bad"}
    choose = {
        "C": {"Type": "Choice", "Choices": [rule], "Default": "P"},
        "P": passes(),
        "Bad": {"Type": "Fail"},
    }
    both = {
        "Type": "Parallel",
        "Branches": [machine("C", **choose), machine("Q", Q=passes())],
        "Catch": [{"ErrorEquals": _ALL_ERRORS, "Next": "Caught"}],
        "Next": "T",
    }
    catches = [
        {"ErrorEquals": ["Other"], "Next": "Y"},
        {"ErrorEquals": _ALL_ERRORS, "Next": "Caught"},
    ]
    states = {
        "A": passes(Next="Both"),
        "Both": both,
        "T": task(Catch=catches, Next="Z"),
        "Caught": passes(Next="Z"),
        "Y": passes(Next="Z"),
        "Z": passes(),
    }
    return machine("A", **states)


@pytest.mark.parametrize(
    ("place", "ahead"),
    [
        (Breakpoint("A"), "Bad Both C Caught P Q T Y Z"),
        (Breakpoint("Both"), "Bad C Caught P Q T Y Z"),
        (Breakpoint("C"), "Bad Caught P T Y Z"),
        (Breakpoint("C", AFTER), "Bad Caught Z"),
        (Breakpoint("P"), "Caught T Y Z"),
        (Breakpoint("Bad"), "Caught Z"),
        (Breakpoint("Both", BreakTime.ERROR), "Caught Z"),
        (Breakpoint("Z"), ""),
    ],
    ids=lambda value: f"{value.state}-{value.when}" if isinstance(value, Breakpoint) else "",
)
def test_a_line_is_offered_the_states_that_can_follow(place: Breakpoint, ahead: str) -> None:
    """By its transitions, inside the groups ahead, and after the groups that it is in."""
    data = {"P": {}, "Z": {}}.get(place.state, {"n": 1})
    sim = StoppedSim(_passages(), data, place)
    if place.state == "Z":
        sim.succeed("T")
    assert sim.lines[0].states_ahead == tuple(ahead.split())


@pytest.mark.parametrize(("error", "ahead"), [("Other", "Y Z"), ("Boom", "Caught Z")])
def test_a_line_with_an_error_goes_where_its_catcher_leads(error: str, ahead: str) -> None:
    """Its own error decides, as the first Catcher that takes it would."""
    sim = StoppedSim(_passages(), {}, Breakpoint("T", BreakTime.ERROR))
    sim.fail("T", error)
    assert sim.lines[0].states_ahead == tuple(ahead.split())


@pytest.mark.parametrize("again", ["retry", "loop"])
def test_a_line_may_come_to_its_group_again(again: str) -> None:
    """A Retrier of the group, or a loop around it, begins its states again: there it stops."""
    rule = {"Variable": "$[0]", "NumericEquals": 1, "Next": "Two"}
    both = {"Type": "Parallel", "Branches": [machine("P", P=passes(Next="T"), T=task())]}
    if again == "retry":
        both["Retry"] = [{"ErrorEquals": ["Boom"], "MaxAttempts": 1}]
        definition = machine("Both", Both=both)
    else:
        choose = {"Type": "Choice", "Choices": [rule], "Default": "Z"}
        both["Next"] = "C"
        states = {"Both": both, "C": choose, "Two": passes(Next="Both"), "Z": passes()}
        definition = machine("Both", **states)
    sim = StoppedSim(definition, 1, "T")
    assert "P" in sim.lines[0].states_ahead
    sim.release(run_to("P"))
    if again == "retry":
        sim.fail("T")
        sim.fire()
    else:
        sim.succeed("T", 1)
    assert sim.stands == [("P", "before", "Both[0]")]


def test_a_stop_ends_steps_and_runs() -> None:
    """A redrive stops at the breakpoints, and nowhere else."""
    sim = StoppedSim(machine("A", A=passes(Next="T"), T=task(Next="Z"), Z=passes()), 1, "A")
    sim.release(run_to("Z"))
    sim.send(engine.Stop())
    sim.redrive()
    sim.succeed("T", 2)
    assert sim.output == 2
