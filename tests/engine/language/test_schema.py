"""The JSON Schema accepts what the checks accept, and refuses what an editor can underline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import engine
from console import samples
from tests.conformance.cases import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(samples.__file__).parent
VALIDATOR = jsonschema.Draft7Validator(engine.json_schema())
END = {"Type": "Succeed"}
TASK = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
RULE = {"Variable": "$.n", "NumericEquals": 1, "Next": "End"}
EQUALS_TEXT = {"Variable": "$.n", "NumericEquals": "1", "Next": "End"}
WRONG: dict[str, dict[str, Any]] = {
    "no Type": {"Comment": "x"},
    "unknown Type": {"Type": "Tsk"},
    "unknown field": {**TASK, "Parameter": {}},
    "no Resource": {"Type": "Task", "End": True},
    "Next and End": {**TASK, "Next": "End"},
    "neither Next nor End": {"Type": "Pass"},
    "End: false": {"Type": "Pass", "End": False},
    "a field of JSONata": {**TASK, "Arguments": {}},
    "a field of JSONPath": {**TASK, "QueryLanguage": "JSONata", "Parameters": {}},
    "two fields of which one is allowed": {"Type": "Wait", "Seconds": 1, "Timestamp": "x"},
    "no ErrorEquals": {**TASK, "Retry": [{"MaxAttempts": 2}]},
    "a Catcher without Next": {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"]}]},
    "a rule without Next": {"Type": "Choice", "Choices": [{**RULE, "Next": None}]},
    "a rule with two comparisons": {"Type": "Choice", "Choices": [{**RULE, "And": [RULE]}]},
    "a rule that compares with text": {"Type": "Choice", "Choices": [EQUALS_TEXT]},
    "no state in a branch": {
        "Type": "Parallel",
        "End": True,
        "Branches": [{"StartAt": "A", "States": {}}],
    },
    "an unknown field in an item processor": {
        "Type": "Map",
        "End": True,
        "ItemProcessor": {"StartAt": "A", "States": {"A": {**END, "Nxt": "B"}}},
    },
    "seconds as text": {"Type": "Wait", "Seconds": "1", "End": True},
}


def test_the_schema_is_one() -> None:
    """Every reference leads somewhere, too."""
    schema = engine.json_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    references = set(_references(schema))
    assert references == {f"#/definitions/{name}" for name in schema["definitions"]}


def test_accepted_definitions_are_valid() -> None:
    """The samples, and those of public repositories (where they are) that the checks accept."""
    count = 0
    for path in sorted([*SAMPLES.glob("*.asl.json"), *DEFINITIONS.glob("*.json")]):
        for machine in _machines(json.loads(path.read_text(encoding="utf-8"))):
            if not any(each.severity == "ERROR" for each in engine.check(json.dumps(machine))):
                count += 1
                assert not list(VALIDATOR.iter_errors(machine)), path.name
    assert count >= 15


@pytest.mark.parametrize("state", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("depth", [0, 1])
def test_a_wrong_state_is_refused(state: dict[str, Any], depth: int) -> None:
    """At the top and in a branch; the checks refuse it, too."""
    states = {"State": state, "End": END}
    for _ in range(depth):
        branch = {"StartAt": "State", "States": states}
        states = {"State": {"Type": "Parallel", "End": True, "Branches": [branch]}}
    machine = {"StartAt": "State", "States": states}
    assert list(VALIDATOR.iter_errors(machine))
    assert [each for each in engine.check(json.dumps(machine)) if each.severity == "ERROR"]


def test_states_of_a_jsonata_machine_have_fields_of_jsonata() -> None:
    """Without naming their language."""
    wait = {"Type": "Wait", "Seconds": "{% $states.input.s %}", "End": True}
    machine = {"QueryLanguage": "JSONata", "StartAt": "W", "States": {"W": wait}}
    assert not list(VALIDATOR.iter_errors(machine))
    wait["SecondsPath"] = "$.s"
    assert list(VALIDATOR.iter_errors(machine))


def _machines(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all definitions inside of a JSON value, also those that stand in a text."""
    if isinstance(value, dict):
        if "StartAt" in value and "States" in value:
            yield value
        value = list(value.values())
    elif isinstance(value, str) and '"StartAt"' in value and value.lstrip().startswith("{"):
        try:
            value = [json.loads(value)]
        except ValueError:
            return
    if isinstance(value, list):
        for each in value:
            yield from _machines(each)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
