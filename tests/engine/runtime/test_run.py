"""A run is resumable at every step, keeps its order and costs little."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine.runtime.turn import Turn
from tests.engine.runtime.harness import Sim, activity, machine, task

if TYPE_CHECKING:
    from collections.abc import Sequence


@st.composite
def definitions(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    """Small machines of every state type; names are unique in the whole machine."""
    counter = draw(st.shared(st.builds(lambda: iter(range(10_000))), key="names"))
    names = [f"S{next(counter)}" for _ in range(draw(st.integers(1, 3)))]
    states = {name: draw(one_state(depth)) for name in names}
    for name, after in zip(names, [*names[1:], None], strict=True):
        if states[name]["Type"] in ("Succeed", "Fail"):
            continue
        states[name] |= {"Next": after} if after else {"End": True}
    return {"StartAt": names[0], "States": states}


@st.composite
def one_state(draw: st.DrawFn, depth: int) -> dict[str, Any]:
    """One state without its transition."""
    kinds = ["pass", "task", "activity", "wait"] + (["parallel", "map"] if depth < 2 else [])
    kind = draw(st.sampled_from(kinds))
    retry = {"Retry": [{"ErrorEquals": ["Boom"], "MaxAttempts": draw(st.integers(0, 2))}]}
    inner = definitions(depth + 1)
    match kind:
        case "pass":
            return {"Type": "Pass"}
        case "wait":
            return {"Type": "Wait", "Seconds": draw(st.integers(0, 5))}
        case "task":
            return task(**retry)
        case "activity":
            return activity()
        case "parallel":
            branches = draw(st.lists(inner, min_size=1, max_size=3))
            return {"Type": "Parallel", "Branches": branches, **retry}
        case _:
            return {
                "Type": "Map",
                "ItemsPath": "$$.Execution.Input",
                "MaxConcurrency": draw(st.integers(0, 2)),
                "ItemProcessor": draw(inner),
            }


def drive(sim: Sim, seed: int) -> None:
    """Answer tasks and fire timers in an order drawn from the seed until the execution ends."""
    order = random.Random(seed)
    for _ in range(2_000):
        if sim.finish is not None:
            return
        choices: list[Any] = sorted(sim.tasks) + (["timer"] if sim.timers else [])
        pick = order.choice(choices)
        if pick == "timer":
            sim.fire()
            continue
        message: engine.Message = engine.TaskSucceeded(pick, "{}")
        if order.random() < 0.15:
            message = engine.TaskFailed(pick, "Boom", "c")
        del sim.tasks[pick]
        sim.send(message)
        assert sim.send(message).events == (), "a duplicate changed something"
        for late in sim.cancelled[-3:]:
            message = engine.TaskSucceeded(late, "{}")
            assert sim.send(message).events == (), "an answer after the cancellation did something"
    raise AssertionError("did not end")


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(definition=definitions(), items=st.integers(0, 4), seed=st.integers(0, 1_000_000))
def test_any_machine_under_any_schedule(definition: dict[str, Any], items: int, seed: int) -> None:
    """Ids run 1..n, chains lead back, one event ends it, and a reloaded run ends the same."""
    plain = Sim(definition, list(range(items)))
    reloaded = Sim(definition, list(range(items)), reload=True)
    for sim in (plain, reloaded):
        drive(sim, seed)
    assert plain.events == reloaded.events
    assert plain.finish == reloaded.finish
    assert [event.id for event in plain.events] == list(range(1, len(plain.events) + 1))
    assert all(event.previous < event.id for event in plain.events)
    ends = [event.id for event in plain.events if event.type in _TERMINAL]
    assert ends == [len(plain.events)]
    if plain.finish.status == "SUCCEEDED":
        assert not plain.run.frames
        assert not plain.run.groups
        assert not plain.values
    entered = sum(event.type.endswith("StateEntered") for event in plain.events)
    exited = sum(event.type.endswith("StateExited") for event in plain.events)
    assert exited <= entered
    assert plain.finish.status != "SUCCEEDED" or "Parallel" in str(definition) or exited == entered
    if plain.finish.status != "SUCCEEDED":
        _redriven_ends_well(plain, reloaded)


def _redriven_ends_well(*sims: Sim) -> None:
    """Redrive until it succeeds, every task answering; ids go on, and nothing is left."""
    if any(event.type == "FailStateEntered" for event in sims[0].events):
        return  # fails again and again
    for sim in sims:
        count = len(sim.events)
        sim.redrive()
        for _ in range(2_000):
            if sim.finish is not None:
                break
            if sim.tasks:
                sim.succeed(sim.tasks[min(sim.tasks)].state, {})
            else:
                sim.fire()
        assert sim.finish.status == "SUCCEEDED", sim.story
        assert sim.events[count].type == "ExecutionRedriven"
        assert not sim.run.frames
        assert not sim.values
    assert sims[0].events == sims[1].events
    ids = [event.id for event in sims[0].events]
    assert ids == list(range(1, len(ids) + 1))


_TERMINAL = {"ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut"}


@pytest.mark.parametrize("kind", ["Parallel", "Map"])
def test_outputs_come_in_order_whatever_finishes_first(kind: str) -> None:
    """Results are ordered by branch or item, not by time."""
    if kind == "Map":
        state = {"Type": "Map", "ItemProcessor": machine("X", X=task())}
    else:
        branches = [machine(f"X{n}", **{f"X{n}": task()}) for n in range(4)]
        state = {"Type": "Parallel", "Branches": branches}
    sim = Sim(machine("A", A=state), [0, 1, 2, 3], reload=True)
    numbers = sorted(sim.tasks)
    for number in reversed(numbers):
        sim.tasks.pop(number)
        sim.send(engine.TaskSucceeded(number, str(numbers.index(number))))
    assert sim.output == [0, 1, 2, 3]


def test_map_at_its_concurrency() -> None:
    """Never more iterations than MaxConcurrency are open, and the next starts when one ends."""
    state = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": machine("X", X=task())}
    sim = Sim(machine("A", A=state), list(range(5)), reload=True)
    for done in range(5):
        assert len(sim.tasks) == min(2, 5 - done)
        sim.succeed("X", done)
    assert sim.output == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "field",
    [
        {
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "Parameters": {"Bucket": "b", "Key": "k"},
            }
        },
        {"ItemBatcher": {"MaxItemsPerBatch": 2}},
        {"ResultWriter": {"WriterConfig": {"OutputType": "JSON"}}},
    ],
)
def test_an_inline_map_fails_with_a_field_of_a_distributed_one(field: dict[str, Any]) -> None:
    """As on the service: the definition is accepted, and no Catch takes the error."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "After"}]
    inner = machine("P", P={"Type": "Pass"})
    states = {
        "M": {"Type": "Map", "ItemProcessor": inner, "Catch": catch, **field},
        "After": {"Type": "Pass"},
    }
    sim = Sim(machine("M", **states), [1])
    assert sim.types == ["ExecutionStarted", "MapStateEntered", "ExecutionFailed"]
    assert sim.finish is not None
    assert sim.finish.error == "States.Runtime"
    assert str(sim.finish.cause).endswith(
        "The ItemReader, ItemBatcher and ResultWriter fields are not supported for INLINE maps"
    )


def test_iterations_cost_the_same_in_a_large_map() -> None:
    """What is written for one iteration does not grow with the number of items."""

    def written(items: int) -> float:
        state = {"Type": "Map", "MaxConcurrency": 4, "ItemProcessor": machine("X", X=task())}
        sim = Sim(machine("A", A=state), list(range(items)))
        while sim.finish is None:
            sim.succeed("X", 1)
        return sim.written / items

    assert written(800) < 1.2 * written(100)


class CountedValues(engine.DictValues):
    """Values that note how many were read at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts under these keys, in that order."""
        self.reads.append(len(keys))
        return super().many(keys)


def test_a_step_of_many_iterations_reads_their_items_together() -> None:
    """In a few reads, and each item once."""
    step = _a_map_begun(items=1000, budget=10)
    counted = CountedValues()
    counted.update(step.values)
    parsed = engine.parse(_PASSING_MAP)
    step = engine.advance(parsed, step.run.reading(counted), engine.Continue(), engine.Moment(0))
    assert step.run.status == "SUCCEEDED"
    *items, outputs = counted.reads
    assert len(items) < 14
    assert sum(items) + outputs == 1000


def test_a_step_of_one_iteration_reads_its_item_alone() -> None:
    """The items behind it belong to steps to come."""
    state = {"Type": "Map", "ItemProcessor": machine("X", X=task())}
    sim = Sim(machine("A", A=state), [*range(60)])
    counted = CountedValues()
    counted.update(sim.values)
    sim.run = sim.run.reading(counted)
    sim.succeed("X", 0)
    assert counted.reads == [1, 1]  # the harness takes each step twice


def test_an_ended_iteration_keeps_no_item() -> None:
    """What is kept of an iteration is one text: its item, or its output."""
    step = _a_map_begun(items=100, budget=51)
    keys = [key.split("/") for key in step.values]
    assert sorted(int(index) for _, _, index in keys) == [*range(100)]
    assert {kind for _, kind, _ in keys} == {"i", "o"}


_PASSING_MAP = json.dumps(
    machine("A", A={"Type": "Map", "ItemProcessor": machine("P", P={"Type": "Pass"})})
)


def _a_map_begun(items: int, budget: int) -> engine.Step:
    """Return the first step of a Map that does not end in it."""
    start = engine.runtime.memory.start_message([*range(items)])
    return engine.advance(
        engine.parse(_PASSING_MAP), engine.NEW_RUN, start, engine.Moment(0), budget=budget
    )


def test_endless_loop_gives_way() -> None:
    """A step enters a bounded number of states and asks to be continued."""
    never = {"Variable": "$", "IsNull": True, "Next": "End"}
    loop = {"Type": "Choice", "Choices": [never], "Default": "A"}
    definition = machine("A", A={"Type": "Pass", "Next": "B"}, B=loop, End={"Type": "Succeed"})
    parsed = engine.parse(json.dumps(definition))
    moment = engine.Moment(0)
    start = engine.runtime.memory.start_message({})
    step = engine.advance(parsed, engine.NEW_RUN, start, moment, budget=100)
    assert step.commands == (engine.Proceed(),)
    assert len(step.events) == 1 + 100 + 99
    more = engine.advance(parsed, step.run, engine.Continue(), moment, budget=100)
    assert len(more.events) == 200


def test_long_texts_end_a_step_early() -> None:
    """A commit carries about 4 MB of details at most, however long the inputs are."""
    never = {"Variable": "$", "IsNull": True, "Next": "End"}
    again = {"Type": "Choice", "Choices": [never], "Default": "A"}
    definition = machine("A", A={"Type": "Pass", "Next": "B"}, B=again, End={"Type": "Succeed"})
    parsed = engine.parse(json.dumps(definition))
    start = engine.runtime.memory.start_message({"long": "x" * 250_000})
    step = engine.advance(parsed, engine.NEW_RUN, start, engine.Moment(0))
    carried = sum(len(str(event.details)) for event in step.events)
    assert step.commands == (engine.Proceed(),)
    assert 2_000_000 < carried < 5_000_000


def test_a_step_gives_way_when_it_takes_too_long() -> None:
    """After one state, if the shell says so; what follows is the same."""
    parsed = engine.parse(
        json.dumps(machine("A", A={"Type": "Pass", "Next": "B"}, B={"Type": "Pass"}))
    )
    start = engine.runtime.memory.start_message({})
    first = engine.advance(parsed, engine.NEW_RUN, start, engine.Moment(0), enough=lambda: True)
    rest = engine.advance(parsed, first.run, engine.Continue(), engine.Moment(0))
    whole = engine.advance(parsed, engine.NEW_RUN, start, engine.Moment(0))
    assert first.commands == (engine.Proceed(),)
    assert first.events + rest.events == whole.events


def test_variables_of_all_lines_together_are_limited() -> None:
    """10 MiB for the whole execution, not for each branch."""
    wait = {"Type": "Wait", "Seconds": 1, "End": True}
    branches = [
        {
            "StartAt": f"V{number}",
            "States": {
                f"V{number}": {"Type": "Pass", "Assign": {"v.$": "$.v"}, "Next": f"W{number}"},
                f"W{number}": wait,
            },
        }
        for number in range(60)
    ]
    sim = Sim(machine("P", P={"Type": "Parallel", "Branches": branches}), {"v": "x" * 200_000})
    assert sim.finish is not None
    assert sim.finish.error == "States.DataLimitExceeded"


@pytest.mark.slow
def test_a_refused_assign_is_seen_by_nobody() -> None:
    """Not by the state that catches it in the same step; and the limit counts bytes."""
    states: dict[str, Any] = {
        f"V{number}": {"Type": "Pass", "Assign": {f"v{number}.$": "$"}, "Next": f"V{number + 1}"}
        for number in range(42)
    }
    caught = {"ErrorEquals": ["States.DataLimitExceeded"], "Next": "C"}
    empty = {"StartAt": "E", "States": {"E": {"Type": "Pass", "End": True}}}
    states["V42"] = {
        "Type": "Parallel",
        "Branches": [empty],
        "ResultSelector": {},
        "Assign": {"last.$": "$[0]"},
        "Catch": [caught],
        "End": True,
    }
    seen = "{% [$exists($v41), $exists($last)] %}"
    states["C"] = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": seen, "End": True}
    sim = Sim(machine("V0", **states), "é" * 124_500)
    assert sim.finish is not None
    assert sim.finish.output == "[true,false]"


def test_outputs_too_large_to_join_fail_without_being_read() -> None:
    """The sizes are counted as the iterations end."""
    selected = {"Type": "Pass", "End": True}
    processor = {"StartAt": "X", "States": {"X": selected}}
    long = {"long.$": "$.long"}
    few = {"few.$": "$[0]"}
    state = {"Type": "Map", "ItemsPath": "$.n", "ItemSelector": long, "ItemProcessor": processor}
    state["ResultSelector"] = few
    sim = Sim(machine("M", M=state), {"n": list(range(25)), "long": "x" * 200_000})
    assert sim.finish is not None
    assert sim.finish.error == "States.DataLimitExceeded"


@pytest.mark.parametrize(
    ("profile", "length", "ends"),
    [
        ("aws", 262_142, "SUCCEEDED"),
        ("aws", 262_143, "FAILED"),
        ("2019", 32_766, "SUCCEEDED"),
        ("2019", 32_767, "FAILED"),
    ],
)
def test_the_largest_payload(profile: str, length: int, ends: str) -> None:
    """The limit itself passes, one more fails; a profile may have the older one, in characters."""
    text = ("é" if profile == "2019" else "x") * length
    engine.use_limits(profile)
    try:
        sim = Sim(machine("X", X=task()))
        sim.send(engine.TaskSucceeded(sim.task("X"), f'"{text}"'))
    finally:
        engine.use_limits("aws")
    assert sim.finish is not None
    assert sim.finish.status == ends


def test_an_endless_cause_is_cut() -> None:
    """To what SendTaskFailure takes: 256 and 32,768 characters."""
    sim = Sim(machine("X", X=task()))
    sim.fail("X", "E" * 1000, "c" * 1_000_000)
    assert sim.finish is not None
    assert (len(sim.finish.error or ""), len(sim.finish.cause or "")) == (256, 32_768)


def test_no_error_is_longer_than_the_answers_of_the_service() -> None:
    """256 and 32,768 characters, also of a Fail state and of a cause that quotes the input."""
    data = {"e": "e" * 300, "c": "c" * 40_000}
    fail = {"Type": "Fail", "ErrorPath": "$.e", "CausePath": "$.c"}
    missing = {"Type": "Pass", "Parameters": {"x.$": "$.none"}, "End": True}
    wrong = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $parse($states.input.c) %}"}
    for state in (fail, missing, {**wrong, "End": True}):
        sim = Sim(machine("X", X=state), data)
        assert sim.finish is not None
        assert len(sim.finish.error or "") <= 256
        assert 100 < len(sim.finish.cause or "") <= 32_768
        for event in sim.events:
            assert len((event.details or {}).get("cause", "")) <= 32_768
    assert len(Sim(machine("X", X=fail), data).finish.error) == 256  # type: ignore[arg-type]


def test_a_start_without_budget_writes_event_one_only() -> None:
    """What StartExecution commits: ExecutionStarted and the wish to proceed."""
    parsed = engine.parse(json.dumps(machine("A", A={"Type": "Pass"}) | {"TimeoutSeconds": 9}))
    start = engine.runtime.memory.start_message({})
    step = engine.advance(parsed, engine.NEW_RUN, start, engine.Moment(0), budget=0)
    assert [event.type for event in step.events] == ["ExecutionStarted"]
    timer = engine.SetTimer("execution", start.start_ms + 9000)
    assert step.commands == (timer, engine.Proceed())


def test_in_memory_runner_skips_time() -> None:
    """``engine.run`` runs a whole machine with plain callables and without waiting."""
    retry = [{"ErrorEquals": ["ValueError"], "IntervalSeconds": 60}]
    calls: list[Any] = []

    def flaky(value: Any) -> Any:
        calls.append(value)
        if len(calls) < 3:
            raise ValueError("not yet")
        return {"done": value}

    wait = {"Type": "Wait", "Seconds": 3600, "Next": "A"}
    result = engine.run(machine("W", W=wait, A=task(Retry=retry)), 5, {"A": flaky})
    assert (result.status, result.output) == ("SUCCEEDED", {"done": 5})
    assert result.slept == 3600 + 60 + 120


@pytest.mark.parametrize(
    ("kind", "state", "cause"),
    [
        (
            "Fail",
            {"Error": "{% 1 %}"},
            (
                "'1' specified for the field 'Error' returned an unexpected "
                "result type. Expected 'string', but was 'number' for value: 1"
            ),
        ),
        ("Wait", {"Seconds": "{% -1 %}"}, "Expected a non-negative integer, but was: -1"),
        ("Wait", {"Seconds": "{% 1.5 %}"}, "Expected a non-negative integer, but was: 1.5"),
        (
            "Choice",
            {"Choices": [{"Condition": "{% null %}", "Next": "S"}]},
            "Expected 'boolean', but was 'null' for value: null",
        ),
    ],
)
def test_an_expression_of_the_wrong_type(kind: str, state: dict[str, Any], cause: str) -> None:
    """Each field says what it wanted and got, as it is recorded of Items."""
    more = {} if kind in ("Fail", "Choice") else {"End": True}
    states = {"S": {"Type": kind, **state, **more}}
    if kind == "Choice":
        states["S"]["Default"] = "E"
        states["E"] = {"Type": "Succeed"}
    sim = Sim({"QueryLanguage": "JSONata", "StartAt": "S", "States": states})
    assert sim.finish is not None
    assert sim.finish.error == "States.QueryEvaluationError"
    assert cause in str(sim.finish.cause)
    assert "EvaluationFailed" in sim.types


def test_what_a_fail_path_leads_to_is_shown_as_json() -> None:
    """Where it is no text."""
    sim = Sim(machine("F", F={"Type": "Fail", "ErrorPath": "$.e"}), {"e": {"a": None}})
    assert sim.finish is not None
    assert str(sim.finish.cause).endswith('does not evaluate to a string: {"a":null}')


def test_literal_items_are_an_array() -> None:
    """A text that is no expression was accepted, and failed when it ran."""
    states = {"S": {"Type": "Map", "Items": "abc", "ItemProcessor": machine("P", P={"Type": "Pass"}), "End": True}}  # fmt: skip  # noqa: E501
    with pytest.raises(engine.DefinitionError, match="'Items' must be an array or an expression"):
        engine.parse(json.dumps({"QueryLanguage": "JSONata", "StartAt": "S", "States": states}))


def test_a_turn_is_quick_to_read() -> None:
    """Every attribute has a slot: in a dict of its own a state costs five per cent more."""
    turn = Turn(
        engine.parse(json.dumps(machine("A", A=task()))), engine.NEW_RUN, engine.Moment(0), 1
    )
    assert vars(turn) == {}
