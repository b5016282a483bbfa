"""Which points of a machine a history reached."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import engine
from engine.coverage.points import attempted_key, catcher_key, exhausted_key
from engine.errors import matches
from engine.runtime import memory, recovery
from engine.runtime.states import choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:any"
DEFINITIONS = Path(os.environ.get("STATEYARD_SHARED", "")) / "definitions"
HARD: dict[str, Any] = {
    "StartAt": "Sort",
    "TimeoutSeconds": 900,
    "States": {
        "Sort": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.k", "NumericEquals": 1, "Next": "Work"},
                {"Variable": "$.k", "NumericEquals": 2, "Next": "Work"},
                {"Variable": "$.k", "NumericEquals": 3, "Next": "Both"},
            ],
            "Default": "Work",
        },
        "Work": {
            "Type": "Task",
            "Resource": FUNCTION,
            "TimeoutSeconds": 60,
            "HeartbeatSeconds": 20,
            "ResultPath": None,
            "Retry": [
                {"ErrorEquals": ["A"], "MaxAttempts": 1},
                {"ErrorEquals": ["B", "States.Timeout"], "MaxAttempts": 0},
            ],
            "Catch": [
                {"ErrorEquals": ["A", "States.HeartbeatTimeout"], "Next": "End"},
                {"ErrorEquals": ["States.ALL"], "Next": "End"},
            ],
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "One",
                "States": {"One": {"Type": "Task", "Resource": FUNCTION, "End": True}},
            },
            "Retry": [
                {"ErrorEquals": ["A"], "MaxAttempts": 1},
                {"ErrorEquals": ["B"], "MaxAttempts": 1},
            ],
            "Next": "End",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "In",
                    "States": {
                        "In": {
                            "Type": "Parallel",
                            "Branches": [
                                {"StartAt": "L", "States": {"L": {
                                    "Type": "Task", "Resource": FUNCTION, "End": True}}}
                            ],
                            "Catch": [{"ErrorEquals": ["A"], "Next": "Fine"}],
                            "Next": "Fine",
                        },
                        "Fine": {"Type": "Pass", "End": True},
                    },
                },
                {"StartAt": "Later", "States": {
                    "Later": {"Type": "Wait", "Seconds": 9, "Next": "Wrong"},
                    "Wrong": {"Type": "Fail", "Error": "Wrong"}}},
                {"StartAt": "Slow", "States": {
                    "Slow": {"Type": "Wait", "Seconds": 1000, "End": True}}},
            ],
            "Retry": [
                {"ErrorEquals": ["Other"], "MaxAttempts": 1},
                {"ErrorEquals": ["Wrong"], "MaxAttempts": 1},
            ],
            "End": True,
        },
        "End": {"Type": "Succeed"},
    },
}  # fmt: skip


def read(definition: Mapping[str, Any], data: Any, **tasks: Callable[[Any], Any]) -> engine.Reached:
    """Return what a run reaches."""
    machine = engine.parse(json.dumps(definition))
    result = memory.run_some(machine, data, tasks, max_steps=500)
    return engine.CoverageReader(machine).read(result.events)


def failing(*errors: str) -> Callable[[Any], Any]:
    """Return a function that raises one error a call, and then succeeds; "" succeeds, too."""
    queue = list(errors)

    def call(_: Any) -> Any:
        error = queue.pop(0) if queue else ""
        if error == "silent":
            raise engine.NoAnswer
        if error:
            raise engine.StatesError(error)
        return {}

    return call


def test_every_point_has_a_key_of_its_own() -> None:
    """A Retrier without attempts has one point, a branch that cannot fail none."""
    points = engine.CoverageReader(engine.parse(json.dumps(HARD))).points
    keys = [point.key for point in points]
    assert len(set(keys)) == len(keys)
    assert {key for key in keys if key.startswith(("Work/", "Each", "Both", "/"))} == {
        *("Work/Next", "Work/TimeoutSeconds", "Work/HeartbeatSeconds", "/TimeoutSeconds"),
        *("Work/Retry[0] attempted", "Work/Retry[0] exhausted", "Work/Retry[1] exhausted"),
        *("Work/Catch[0]", "Work/Catch[1]"),
        *("Each", "Each/Next", "Each with 0 items", "Each with 1 items", "Each with many items"),
        *("Each/Retry[0] attempted", "Each/Retry[0] exhausted"),
        *("Each/Retry[1] attempted", "Each/Retry[1] exhausted"),
        *("Both", "Both/Branches[0] fails first", "Both/Branches[1] fails first"),
        *("Both/Retry[0] attempted", "Both/Retry[0] exhausted"),
        *("Both/Retry[1] attempted", "Both/Retry[1] exhausted"),
    }


@pytest.mark.parametrize(
    ("data", "tasks", "expected"),
    [
        ({"k": 2}, {"Work": failing("A")}, {"Work/Retry[0] attempted", "Sort/Choices[1]"}),
        ({"k": 9}, {"Work": failing("A", "A")}, {"Work/Retry[0] exhausted", "Work/Catch[0]"}),
        ({"k": 1}, {"Work": failing("B")}, {"Work/Retry[1] exhausted", "Work/Catch[1]"}),
        ({"k": 1}, {"Work": failing("C")}, {"Work/Catch[1]", "Sort/Choices[0]"}),
        ({"k": 1}, {"Work": failing("silent")}, {"Work/HeartbeatSeconds", "Work/Catch[0]"}),
        ({"k": 1, "items": []}, {}, {"Each with 0 items", "Work/Next", "Each/Next"}),
        ({"k": 1, "items": [1]}, {"One": failing("B")}, {"Each/Retry[1] attempted"}),
        ({"k": 1, "items": [1]}, {"One": failing("A", "A")}, {"Each/Retry[0] exhausted"}),
        ({"k": 3}, {"L": failing("A", "A")}, {"In/Catch[0]", "Both/Branches[1] fails first"}),
        ({"k": 3}, {}, {"Both/Retry[1] exhausted", "Both/Retry[1] attempted"}),
    ],
)  # fmt: skip
def test_a_history_tells_which_rule_and_which_retrier_it_was(
    data: Any, tasks: Any, expected: set[str]
) -> None:
    """By the recorded input and the recorded errors, where targets alone do not tell."""
    defaults = {"Work": failing(), "One": failing(), "L": failing()}
    reached = read(HARD, data, **(defaults | tasks))
    assert expected <= reached.keys
    assert not reached.uncertain
    assert ("Both/Branches[0] fails first" in reached.keys) is False


def test_without_input_and_error_such_points_are_uncertain() -> None:
    """A history without payloads: no rule is called reached, and none is called missing."""
    machine = engine.parse(json.dumps(HARD))
    tasks = {"Work": failing("A", "A")}
    events = [
        engine.Event(event.id, event.previous, event.at_ms, event.type, None, event.state)
        for event in memory.run_some(machine, {"k": 2}, tasks, max_steps=500).events
    ]
    reached = engine.CoverageReader(machine).read(events)
    assert {"Sort", "Work", "End"} == reached.keys
    assert reached.uncertain == {
        *("Sort/Choices[0]", "Sort/Choices[1]", "Sort/Default"),
        *("Work/Retry[0] attempted", "Work/Retry[1] attempted"),
        *("Work/Retry[0] exhausted", "Work/Retry[1] exhausted"),
        *("Work/Catch[0]", "Work/Catch[1]"),
    }


@pytest.mark.parametrize(
    ("language", "rules"),
    [
        (
            "JSONPath",
            [
                {
                    "And": [
                        {"Variable": "$x", "IsPresent": True},
                        {"Variable": "$x", "NumericEquals": 1},
                    ],
                    "Next": "T",
                },
                {"Variable": "$.n", "NumericGreaterThan": 0, "Next": "T"},
            ],
        ),
        (
            "JSONata",
            [
                {"Condition": "{% $x = 1 %}", "Next": "T"},
                {"Condition": "{% $states.input.n > 0 %}", "Next": "T"},
            ],
        ),
    ],
)
def test_a_rule_with_a_variable_is_uncertain(language: str, rules: Any) -> None:
    """The input of the Choice does not have the variable: without it another rule would hold."""
    definition = {
        "QueryLanguage": language,
        "StartAt": "P",
        "States": {
            "P": {"Type": "Pass", "Assign": {"x": 1}, "Next": "C"},
            "C": {"Type": "Choice", "Choices": rules, "Default": "F"},
            "T": {"Type": "Succeed"},
            "F": {"Type": "Fail"},
        },
    }
    reached = read(definition, {"n": 1})
    assert reached.keys == {"P", "P/Next", "C", "T"}
    assert reached.uncertain == {"C/Choices[0]", "C/Choices[1]"}


# -- the definitions that people published ---------------------------------------------------------


class Witness:
    """Notes, inside of the engine, which rule, Retrier or Catcher an execution takes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: set[str] = set()
        for module, name in ((choice, "_leave"), (recovery, "_retry"), (recovery, "_catch")):
            original = getattr(module, name)
            monkeypatch.setattr(module, name, self._noting(name, original))

    def _noting(self, name: str, original: Any) -> Any:
        def call(*arguments: Any) -> Any:
            result = original(*arguments)
            getattr(self, name)(*arguments, result)
            return result

        return call

    def _leave(self, _: Any, frame: Any, state: Any, taken: Any, *__: Any) -> None:
        rules = [number for number, rule in enumerate(state.rules) if rule.data is taken]
        self.keys.add(f"{frame.state}/" + (f"Choices[{rules[0]}]" if rules else "Default"))

    def _retry(self, turn: Any, frame: Any, retriers: Any, error: Any, retried: bool) -> None:
        del turn
        for number, retrier in enumerate(retriers):
            if matches(retrier.error_equals, error.name, of_result=error.of_result):
                key = attempted_key if retried else exhausted_key
                self.keys.add(key(frame.state, number))
                return

    def _catch(self, _: Any, frame: Any, state: Any, catcher: Any, *__: Any) -> None:
        number = next(n for n, entry in enumerate(state.recovery.catch) if entry is catcher)
        self.keys.add(catcher_key(frame.state, number))


def published() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the definitions that have a choice or a Retrier, and run in memory."""
    for path in sorted(DEFINITIONS.glob("*+*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            used = entry.get("features", {})
            if "Retry" in used or "Catch" in used or "state:Choice" in used:
                yield f"{path.stem}/{entry['id']}", entry["definition"]


def members(definition: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of all objects of a definition."""
    if isinstance(definition, dict):
        for key, value in definition.items():
            yield key, value
            yield from members(value)
    if isinstance(definition, list):
        for value in definition:
            yield from members(value)


def is_waiting(trace: engine.Trace, key: str) -> bool:
    """Whether a Retrier waits, or waited until the end of the execution: no attempt followed."""
    state, _, attempted = key.rpartition("/")
    statuses = {visit.status for visit in trace.visits_of(trace.graph.by_name[state])}
    return attempted.endswith("attempted") and bool(statuses & {"running", "aborted", "timed_out"})


class Chance:
    """Inputs and answers at random, of the texts and numbers that a definition compares with."""

    def __init__(self, definition: dict[str, Any], seed: int) -> None:
        self.random = random.Random(seed)
        self.errors = ["Any", "States.Timeout"]
        self.names = ["Payload", "x"]
        self.values: list[Any] = [True, False, None, 0, 5, "text", [], [1, 2], [{}]]
        for key, value in members(definition):
            if key == "ErrorEquals":
                self.errors += [name for name in value if name != "States.ALL"]
            elif isinstance(value, str) and value.startswith("$."):
                self.names += value[2:].replace("[", ".").split(".")
            elif not isinstance(value, dict | list) and "Equals" in key:
                self.values.append(value)

    def value(self, depth: int = 3) -> Any:
        """Return an object, mostly."""
        if not depth or self.random.random() < 0.3:
            return self.random.choice(self.values)
        return {name: self.value(depth - 1) for name in self.names if self.random.random() < 0.6}

    def answer(self, _: Any) -> Any:
        """Return a value, raise an error, or be silent."""
        if self.random.random() < 0.35:
            raise engine.StatesError(self.random.choice(self.errors))
        if self.random.random() < 0.05:
            raise engine.NoAnswer
        return self.value()


@pytest.mark.slow
def test_nothing_reached_is_missing_and_nothing_missing_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The history tells what the engine itself noted, for runs of the published definitions."""
    witness = Witness(monkeypatch)
    machines, kinds = 0, set()
    for name, definition in published():
        try:
            machine = engine.parse(json.dumps(definition))
        except engine.DefinitionError:
            continue
        reader = engine.CoverageReader(machine)
        machines += 1
        for seed in range(6):
            chance = Chance(definition, seed)
            witness.keys.clear()
            tasks = dict.fromkeys(reader.states, chance.answer)
            result = memory.run_some(machine, chance.value(), tasks, max_steps=150)
            trace, reached = reader.fold(result.events)
            told = {
                point.key
                for point in reader.points
                if point.kind in ("Choice rule", "Default", "Retrier", "Catcher")
                and point.key in reached.keys
            }
            assert told - witness.keys == set(), name
            missing = witness.keys - told - reached.uncertain
            assert {key for key in missing if not is_waiting(trace, key)} == set(), name
            entered = {point.key for point in reader.points if point.kind == "State"}
            assert entered & reached.keys == set(result.path), name
            kinds |= {key.rpartition("/")[2][:5] for key in told}
    if DEFINITIONS.is_dir():  # else there are no published definitions at hand
        assert machines >= 20
        assert kinds >= {"Choic", "Defau", "Retry", "Catch"}
