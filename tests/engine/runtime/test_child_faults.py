"""Faults in the child executions of a distributed Map: which child gets which, by the seed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from tests.engine.runtime.harness import Sim, machine
from tests.engine.runtime.test_faults import FaultySim, pays

ITEMS = 40
PATH = [("Each", 0)]
RATED = {"state": "Pay", "error": "Busy", "rate": 0.5}


def spread(**more: Any) -> dict[str, Any]:
    """Return a machine with a distributed Map, whose first state has a Retrier."""
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    processor = machine("Pay", Pay=pays(Retry=[{"ErrorEquals": ["States.ALL"]}]))
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": {**config, **processor}}
    return machine("Each", Each={**each, **more})


def map_faults(sim: FaultySim) -> engine.ChildFaults | None:
    """Return the faults that an open Map Run hands to its children."""
    settings = json.loads(sim.tasks[sim.task("Each")].input)
    if "faults" not in settings:
        return None
    return engine.load_child_faults(json.dumps(settings["faults"]))


def plans(sim: FaultySim) -> list[engine.FaultPlan | None]:
    """Return the faults of each child."""
    faults = map_faults(sim)
    return [faults and faults.plan_of(index, ITEMS) for index in range(ITEMS)]


class Child(Sim):
    """A child execution with its faults; each step goes through the text of its run."""

    def __init__(self, definition: dict[str, Any], plan: engine.FaultPlan | None) -> None:
        self.plan = plan
        self.notes: list[engine.NoteEdit] = []
        text = engine.processor_definition(json.dumps(definition), PATH)
        super().__init__(json.loads(text), reload=True)

    def send(self, message: engine.Message, *, budget: int = engine.BUDGET) -> engine.Step:
        """Inject the faults with the start."""
        if isinstance(message, engine.Start):
            self.run = self.run.with_faults(self.plan)
        return super().send(message, budget=budget)

    def _take(self, command: engine.Command) -> None:
        if isinstance(command, engine.NoteEdit):
            self.notes.append(command)
        else:
            super()._take(command)


def test_each_child_draws_by_itself() -> None:
    """A rate strikes some of them; another start with the seed strikes the same."""
    sim = FaultySim(spread(), RATED, seed=5)
    drawn = plans(sim)
    assert len({plan.seed for plan in drawn if plan}) == ITEMS
    struck = [bool(plan and plan.struck("Pay")[2]) for plan in drawn]
    assert 10 < sum(struck) < 30
    assert plans(FaultySim(spread(), RATED, seed=5)) == drawn
    assert plans(FaultySim(spread(), RATED, seed=6)) != drawn


def test_a_child_counts_its_own_attempts() -> None:
    """Attempt 1 is that of each child, so its retry succeeds."""
    (plan, *_) = plans(FaultySim(spread(), {"state": "Pay", "error": "Busy", "attempts": [1]}))
    child = Child(spread(), plan)
    assert child.types[-1] == "LambdaFunctionFailed"
    child.fire()
    child.succeed("Pay", "paid")
    assert child.output == "paid"


def test_children_fail_as_a_whole() -> None:
    """As many as asked for; no Retrier of the first state is asked, and the rest has no faults."""
    fault = {"state": "Each", "type": "fail-children", "children": 3, "error": "E", "cause": "why"}
    drawn = plans(FaultySim(spread(), fault, seed=1))
    failing = [plan for plan in drawn if plan]
    assert len(failing) == 3
    assert drawn != plans(FaultySim(spread(), fault, seed=2))
    child = Child(spread(), failing[0])
    assert child.types == ["ExecutionStarted", "TaskStateEntered", "ExecutionFailed"]
    assert child.finish is not None
    assert (child.finish.status, child.finish.error, child.finish.cause) == ("FAILED", "E", "why")
    (note,) = child.notes
    assert engine.describe_strike(note.state, note.after) == (
        1,
        "Pay fails with its iteration, one of 3",
    )


def test_a_map_that_is_retried_draws_anew() -> None:
    """Else a retry would meet the same failures again; attempts are those of the Map."""
    retry = [{"ErrorEquals": ["States.ALL"]}]
    once = {"state": "Each", "type": "fail-children", "children": 3, "attempts": [1]}
    sim = FaultySim(spread(Retry=retry), RATED, once, seed=5)
    first = plans(sim)
    sim.fail("Each")
    sim.fire()
    second = plans(sim)
    assert [len(plan.faults) for plan in second if plan] == [1] * ITEMS
    assert sorted(len(plan.faults) for plan in first if plan) == [1] * (ITEMS - 3) + [2] * 3
    assert {plan.seed for plan in first if plan}.isdisjoint(plan.seed for plan in second if plan)


def test_a_map_of_a_map_hands_them_on() -> None:
    """The child gets the faults of its own children, and draws for them by its own seed."""
    outer = spread()
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    inner = {**outer["States"]["Each"], "ItemsPath": "$$.Execution.Input.items"}
    outer["States"] = {
        "Out": {"Type": "Map", "ItemProcessor": {**config, **machine("Each", Each=inner)}}
    }
    outer["StartAt"] = "Out"
    outer["States"]["Out"] |= {"ItemsPath": "$.items", "End": True}
    sim = FaultySim(outer, RATED, seed=3)
    settings = json.loads(sim.tasks[sim.task("Out")].input)
    faults = engine.load_child_faults(json.dumps(settings["faults"]))
    plan = faults.plan_of(0, 5)
    assert plan is not None
    assert [fault.state for fault in plan.faults] == ["Pay"]
    assert plan.seed != faults.plan_of(1, 5).seed


def test_other_faults_stay_with_the_execution() -> None:
    """A Map without faults inside hands on none; one that fails as a whole starts no child."""
    definition = spread(Next="After")
    definition["States"]["After"] = {**pays(), "End": True}
    assert map_faults(FaultySim(definition, {"state": "After"})) is None
    whole = FaultySim(spread(), {"state": "Each", "error": "Broken"})
    assert whole.types == ["ExecutionStarted", "MapStateEntered", "ExecutionFailed"]
    assert whole.tasks == {}


def test_a_redrive_hands_on_no_faults() -> None:
    """The run has none by then: neither the failed children nor the rest get some."""
    sim = FaultySim(spread(), RATED)
    sim.fail("Each")
    sim.redrive()
    assert sim.run.faults is None


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ({"state": "Nope"}, "wanted one of the state machine's own: Each, Pay"),
        ({"state": "Pay", "type": "fail-children", "children": 1}, "got Pay, a Task, wanted a Map"),
    ],
)
def test_what_cannot_strike_in_a_child_is_refused(fault: Any, problem: str) -> None:
    """The rules are those of the execution's own states."""
    with pytest.raises(engine.FaultError) as caught:
        FaultySim(spread(), fault)
    assert problem in str(caught.value)
