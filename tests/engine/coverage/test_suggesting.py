"""Inputs and answers that reach what no test has reached."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import engine
from engine.coverage.conditions import read_choice
from engine.data.expression import ABSENT
from tests.engine.coverage.test_reading import DEFINITIONS, FUNCTION, HARD, published

if TYPE_CHECKING:
    from collections.abc import Mapping


def reached_by(definition: Mapping[str, Any], suggestion: engine.Suggestion) -> frozenset[str]:
    """Return what ``engine.run`` reaches with a suggestion."""
    tasks = {name: script.function() for name, script in suggestion.tasks.items()}
    result = engine.run(definition, suggestion.input, tasks)
    return engine.CoverageReader(engine.parse(json.dumps(definition))).read(result.events).keys


def suggestions(definition: Mapping[str, Any]) -> dict[str, engine.Suggestion]:
    """Return key -> suggestion of every point of a definition."""
    reader = engine.CoverageReader(engine.parse(json.dumps(definition)))
    return engine.suggest(reader, reader.points)


def test_every_point_has_an_input_that_reaches_it() -> None:
    """All but the timeout of a Task that misses its heartbeat first."""
    plans = suggestions(HARD)
    reader = engine.CoverageReader(engine.parse(json.dumps(HARD)))
    assert {point.key for point in reader.points} - plans.keys() == {"Work/TimeoutSeconds"}
    for key, plan in plans.items():
        assert key in reached_by(HARD, plan), key
    rest = "; One returns {}"  # what the execution needs to succeed
    expected = 'input {"k":2,"items":[{}]}; Work returns {}'
    assert str(plans["Sort/Choices[1]"]) == expected + rest
    expected = 'input {"k":0,"items":[{}]}; Work raises A once, then returns {}'
    assert str(plans["Work/Retry[0] attempted"]) == expected + rest
    assert str(plans["Work/HeartbeatSeconds"]) == 'input {"k":0}; Work never answers'
    assert plans["Each with many items"].input["items"] == [{}, {}]


def test_a_value_may_come_from_the_answer_of_a_task() -> None:
    """Where ResultPath and OutputPath put it, with the wrapper of lambda:invoke."""
    call = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "score", "Payload.$": "$.customer"},
        "ResultPath": "$.risk",
        "Next": "High?",
    }
    rules = [{"Variable": "$.risk.Payload.score", "NumericGreaterThan": 80, "Next": "Stop"}]
    machine = {
        "StartAt": "Score",
        "States": {
            "Score": call,
            "High?": {"Type": "Choice", "Choices": rules, "Default": "Fine"},
            "Stop": {"Type": "Fail", "Error": "Risk"},
            "Fine": {"Type": "Succeed"},
        },
    }
    plans = suggestions(machine)
    assert str(plans["High?/Choices[0]"]) == (
        'input {"customer":"example"}; Score returns {"Payload":{"score":81}}'
    )
    assert all(key in reached_by(machine, plan) for key, plan in plans.items())
    assert len(plans) == 7


def test_a_loop_that_nothing_ends_is_named() -> None:
    """A poll whose answer never changes reaches its way back, and goes on for ever."""
    rules = [{"Variable": "$.status", "StringEquals": "RUNNING", "Next": "Rest"}]
    machine = {
        "StartAt": "Ask",
        "States": {
            "Ask": {"Type": "Task", "Resource": FUNCTION, "Next": "Done?"},
            "Done?": {"Type": "Choice", "Choices": rules, "Default": "End"},
            "Rest": {"Type": "Wait", "Seconds": 5, "Next": "Ask"},
            "End": {"Type": "Succeed"},
        },
    }
    plan = suggestions(machine)["Done?/Choices[0]"]
    assert str(plan) == (
        'input {}; Ask returns {"status":"RUNNING"}; the execution then goes on for ever'
    )
    assert plan.as_json() == {
        "input": {},
        "tasks": {"Ask": {"result": {"status": "RUNNING"}}},
        "ends": False,
    }


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ({"Variable": "$.a.b", "StringMatches": "x*z"}, "xxz"),
        (
            {"Variable": "$.a.b", "TimestampGreaterThan": "2026-01-31T12:00:00Z"},
            "2026-01-31T13:00:00Z",
        ),
        ({"Variable": "$.a.b", "IsPresent": False}, ABSENT),
        ({"Variable": "$.a.b", "IsNull": True}, None),
        ({"Not": {"Variable": "$.a.b", "BooleanEquals": True}}, False),
        ({"Condition": "{% $states.input.a.b >= 7.5 %}"}, 7.5),
        ({"Condition": "{% 7 < $states.input.a.b %}"}, 8),
        ({"Condition": "{% $count($states.input.a.b) = 2 %}"}, [{}, {}]),
        ({"Condition": "{% $states.input.a.b in ['x', 'y'] %}"}, "x"),
        ({"Condition": "{% $not($exists($states.input.a.b)) %}"}, ABSENT),
    ],
)  # fmt: skip
def test_a_rule_is_solved(rule: Mapping[str, Any], values: Any) -> None:
    """For each kind of comparison, of JSONPath and JSONata."""
    assert next(read_choice({"Choices": [rule]}).solve(0)) == {("", "a", "b"): values}


@pytest.mark.parametrize(
    "rule",
    [
        {"Variable": "$$.Execution.Name", "StringEquals": "x"},
        {"Variable": "$..a", "NumericEquals": 1},
        {"Condition": "{% $sum($states.input.prices) > 5 %}"},
        {
            "And": [
                {"Variable": "$.a", "NumericLessThan": 1},
                {"Variable": "$.a", "NumericGreaterThan": 1},
            ]
        },
    ],
)  # fmt: skip
def test_a_rule_without_a_solution_has_none(rule: Mapping[str, Any]) -> None:
    """What cannot be solved, or contradicts itself, is not guessed."""
    assert list(read_choice({"Choices": [rule]}).solve(0)) == []


def test_a_choice_of_a_thousand_rules_is_solved() -> None:
    """Its last rule comes after all others: the search is no recursion."""
    rules = [{"Variable": "$.k", "StringEquals": f"v{number}"} for number in range(1_100)]
    choice = read_choice({"Choices": rules})
    assert next(choice.solve(1_099)) == {("", "k"): "v1099"}
    default = next(read_choice({"Choices": rules[:100]}).solve(None))
    assert default[("", "k")] not in {rule["StringEquals"] for rule in rules[:100]}


def test_a_search_among_contradicting_alternatives_ends() -> None:
    """40 alternatives of two have a trillion ways, none of which is a solution."""
    either = {"Or": [{"Variable": f"$.{name}", "BooleanEquals": True} for name in "ab"]}
    never = [{"Variable": "$.c", "IsNull": value} for value in (True, False)]
    assert list(read_choice({"Choices": [{"And": [*[either] * 40, *never]}]}).solve(0)) == []


@pytest.mark.slow
def test_no_suggestion_for_published_definitions_is_wrong() -> None:
    """Each of them reaches its point in ``engine.run``; there are some for most points."""
    points = proven = 0
    machines = (
        definition
        for _, definition in published()
        if not any(d.severity == "ERROR" for d in engine.check(json.dumps(definition)))
    )
    for definition in islice(machines, 20):
        plans = suggestions(definition)
        reader = engine.CoverageReader(engine.parse(json.dumps(definition)))
        points += len(reader.points)
        for key, plan in plans.items():
            if plan.ends:
                assert key in reached_by(definition, plan), key
                proven += 1
    assert proven > points * 0.6 or not DEFINITIONS.is_dir()
