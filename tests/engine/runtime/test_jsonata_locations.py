"""A JSONata expression that fails is told by its place below the state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.runtime.harness import Sim, machine, task

UNDEFINED = "{% $states.input.missing %}"
NEXT = {"Next": "N"}


@pytest.mark.parametrize(
    ("state", "location"),
    [
        ({"Type": "Pass", "Output": {"a": {"b": [1, UNDEFINED]}}, **NEXT}, "Output/a/b[1]"),
        ({"Type": "Pass", "Output": [[UNDEFINED]], **NEXT}, "Output[0][0]"),
        ({"Type": "Pass", "Assign": {"x": {"y": UNDEFINED}}, **NEXT}, "Assign/x/y"),
        (
            {"Type": "Choice", "Choices": [{"Condition": UNDEFINED, **NEXT}]},
            "Choices[0]/Condition",
        ),
        (
            {
                "Type": "Choice",
                "Choices": [
                    {"Condition": False, **NEXT},
                    {"Condition": True, "Output": {"v": UNDEFINED}, **NEXT},
                ],
            },
            "Choices[1]/Output/v",
        ),
        (
            {
                "Type": "Choice",
                "Choices": [{"Condition": True, "Assign": {"x": UNDEFINED}, **NEXT}],
            },
            "Choices[0]/Assign/x",
        ),
    ],
)
def test_the_place_of_an_expression_that_yields_nothing(
    state: dict[str, Any], location: str
) -> None:
    """The field below the state, with the index of an array: in the cause and in the event.

    Source: measurements in github.com/floci-io/floci/pull/2689.
    """
    definition = machine("A", A=state, N={"Type": "Succeed"}) | {"QueryLanguage": "JSONata"}
    sim = Sim(definition, {})
    assert sim.types[-2:] == ["EvaluationFailed", "ExecutionFailed"]
    assert f"specified for the field '{location}' returned nothing" in sim.finish.cause
    failed = next(event for event in sim.events if event.type == "EvaluationFailed")
    assert failed.details["location"] == location


def test_the_place_in_a_catcher() -> None:
    """Below its place among the others."""
    catch = [
        {"ErrorEquals": ["Other"], **NEXT},
        {"ErrorEquals": ["States.ALL"], "Output": {"o": UNDEFINED}, **NEXT},
    ]
    definition = machine("A", A=task(Catch=catch), N={"Type": "Succeed"})
    sim = Sim(definition | {"QueryLanguage": "JSONata"}, {})
    sim.fail("A", "E", "c")
    assert "'Catch[1]/Output/o'" in sim.finish.cause
