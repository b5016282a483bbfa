"""A task starts when no line of control is ready any more: what a sibling prevents never started.

AWS writes ...Started there, too: in the recorded history of a Map, those of all iterations follow
the last ...Scheduled.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from engine.runtime.memory import start_message
from tests.engine.runtime.harness import Sim, activity, machine, task


def passing(**more: Any) -> dict[str, Any]:
    """Return a Pass state."""
    return {"Type": "Pass", **more}


def failing(*, after: int = 0) -> dict[str, Any]:
    """Return a branch that fails after so many Pass states."""
    states = {f"P{n}": passing(Next=f"P{n + 1}") for n in range(after)}
    states[f"P{after}"] = {"Type": "Fail", "Error": "Bad"}
    return machine("P0", **states)


def chain(name: str = "A") -> dict[str, Any]:
    """Return a branch of three Pass states."""
    first, second, third = (f"{name}{number}" for number in range(3))
    states = {first: passing(Next=second), second: passing(Next=third), third: passing()}
    return machine(first, **states)


def parallel(*branches: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a machine of one Parallel."""
    return machine("All", All={"Type": "Parallel", "Branches": [*branches], **more})


def calls(*further: dict[str, Any]) -> dict[str, Any]:
    """Return a branch that calls a function, and beside it those given."""
    return parallel(machine("Call", Call=task()), *further)


def endless() -> dict[str, Any]:
    """Return a branch that loops for ever."""
    never = {"Variable": "$", "IsNull": True, "Next": "End"}
    choice = {"Type": "Choice", "Choices": [never], "Default": "Loop"}
    return machine("Loop", Loop={"Type": "Pass", "Next": "Choose"}, Choose=choice, End=passing())


def steps_of(definition: dict[str, Any], budget: int, most: int = 10_000) -> list[engine.Step]:
    """Return the steps until nothing is ready, each from the text of the snapshot before it."""
    parsed, moment, values = (
        engine.parse(json.dumps(definition)),
        engine.Moment(0),
        engine.DictValues(),
    )
    steps = [engine.advance(parsed, engine.NEW_RUN, start_message({}), moment, budget=budget)]
    while steps[-1].run.ready and sum(len(step.events) for step in steps) < most:
        values.update(steps[-1].values)
        run = engine.Run.loads(steps[-1].run.dumps(), values)
        steps.append(engine.advance(parsed, run, engine.Continue(), moment, budget=budget))
    return steps


def events_of(steps: list[engine.Step]) -> list[engine.Event]:
    """Return the history that the steps wrote."""
    return [event for step in steps for event in step.events]


@pytest.mark.parametrize("sibling", [failing(), failing(after=1), failing(after=300)])
def test_a_call_that_a_sibling_prevents_never_started(sibling: dict[str, Any]) -> None:
    """Neither a command nor an event speaks of a call: nothing was called."""
    sim = Sim(calls(sibling))
    assert "LambdaFunctionScheduled" in sim.types
    assert "LambdaFunctionStarted" not in sim.types
    assert "TaskStateAborted" in sim.types
    assert not sim.tasks
    assert not sim.cancelled
    assert sim.finish is not None


def test_a_call_that_a_caught_sibling_prevents_is_forgotten() -> None:
    """The Catcher's state is what runs; no held task goes on with it."""
    definition = calls(failing())
    definition["States"]["All"]["Catch"] = [{"ErrorEquals": ["Bad"], "Next": "After"}]
    definition["States"]["After"] = activity(End=True)
    sim = Sim(definition, reload=True)
    assert [command.state for command in sim.tasks.values()] == ["After"]
    assert not sim.run.held


def test_tasks_start_when_all_are_scheduled() -> None:
    """Each ...Started follows its own ...Scheduled, behind the last one."""
    state = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": machine("Call", Call=task())}
    sim = Sim(machine("Each", Each=state), [1, 2, 3])
    assert sim.story[6:] == [
        "7<4 TaskStateEntered Call",
        "8<7 LambdaFunctionScheduled Call",
        "9<5 TaskStateEntered Call",
        "10<9 LambdaFunctionScheduled Call",
        "11<6 TaskStateEntered Call",
        "12<11 LambdaFunctionScheduled Call",
        "13<8 LambdaFunctionStarted Call",
        "14<10 LambdaFunctionStarted Call",
        "15<12 LambdaFunctionStarted Call",
    ]
    assert [*sim.tasks] == [8, 10, 12]


@pytest.mark.parametrize("sibling", [failing(after=3), chain("B"), endless()])
def test_where_a_step_ends_changes_nothing(sibling: dict[str, Any]) -> None:
    """A held task waits in the snapshot: the history is the same with steps of one state."""
    definition = calls(chain(), sibling)
    whole = events_of(steps_of(definition, 500, 1_500))
    for budget in (1, 2, 7):
        short = events_of(steps_of(definition, budget, 1_500))
        common = min(len(whole), len(short))
        assert short[:common] == whole[:common]
        assert common == len(whole) or common >= 1_500


def test_a_held_task_waits_in_a_snapshot_that_earlier_versions_refuse() -> None:
    """They would lose it; a snapshot without one they can read."""
    steps = steps_of(calls(chain()), 1)
    texts = [json.loads(step.run.dumps()) for step in steps]
    held = [text for text in texts if "held" in text]
    assert held
    assert {text["format"] for text in held} == {2}
    assert {text["format"] for text in texts if text not in held} == {1}
    assert [step for step in steps if "RunTask" in str(step.commands)] == steps[-1:]


def test_a_loop_does_not_hold_a_task_for_ever() -> None:
    """After a thousand events the call is made, and its step ends so that nothing prevents it."""
    steps = steps_of(calls(endless()), 500, 1_500)
    at = [number for number, step in enumerate(steps) for c in step.commands if "RunTask" in str(c)]
    assert len(at) == 1
    started = next(e for e in events_of(steps) if e.type == "LambdaFunctionStarted")
    assert 1_000 < started.id < 1_010
    assert steps[at[0]].events[-1] == started
    assert isinstance(steps[at[0]].commands[-1], engine.Proceed)


def test_a_stop_ends_what_is_held() -> None:
    """There is no call to cancel; a redrive schedules it anew."""
    parsed, moment = engine.parse(json.dumps(calls(endless()))), engine.Moment(0)
    step = engine.advance(parsed, engine.NEW_RUN, start_message({}), moment, budget=5)
    (held,) = step.run.held.values()
    late = engine.advance(parsed, step.run, engine.TaskSucceeded(held.task, "1"), moment, budget=0)
    assert not late.events, "it has not started, so nothing can have come of it"
    stopped = engine.advance(parsed, late.run, engine.Stop(), moment)
    assert [type(command) for command in stopped.commands] == [engine.Finish]
    assert '"format":1' in stopped.run.dumps(), "earlier versions can redrive it"
    assert "scheduled" not in {frame.phase for frame in stopped.run.frames.values()}
    again = engine.advance(parsed, stopped.run, engine.Redrive(), moment, budget=3)
    assert "LambdaFunctionScheduled" in [event.type for event in again.events]
