"""The data flow of a step equals what TestState tells about the same state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.web.execution.time_machine import variables_visible_at
from console.web.history.traces import open_trace
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

FLOWING = {
    "Type": "Pass",
    "InputPath": "$.order",
    "Parameters": {"id.$": "$.id", "fixed": 1},
    "ResultPath": "$.made",
    "OutputPath": "$.made",
}


def stages(client: Client, execution: Execution, query: str) -> dict[str, str]:
    """Return name -> text of the stages on display; "=" where nothing changed."""
    flow = client.get(page(execution, f"{query}&tab=flow")).context["panel"].flow
    assert flow.problem == ""
    return {stage.name: "=" if stage.unchanged else stage.payload.text for stage in flow.stages}


def run(project: Project, definition: dict[str, Any], data: Any) -> Execution:
    """Run a machine to its end."""
    return drain(start(create(project, definition), data, "x"))


def test_every_stage_of_a_jsonpath_state_is_told(project: Project, client: Client) -> None:
    """The value after InputPath, Parameters, ResultPath and OutputPath, and who made it."""
    execution = run(project, one("P", **FLOWING), {"order": {"id": 7}})
    told = stages(client, execution, "?step=P")
    assert {name: value if value == "=" else json.loads(value) for name, value in told.items()} == {
        "Input": {"order": {"id": 7}},
        "After InputPath": {"id": 7},
        "After Parameters": {"id": 7, "fixed": 1},
        "After ResultSelector": "=",
        "After ResultPath": {"order": {"id": 7}, "made": {"id": 7, "fixed": 1}},
        "Output": {"id": 7, "fixed": 1},
    }
    shown = text(client.get(page(execution, "_step?step=P&tab=flow")))
    assert "<code>&quot;$.order&quot;</code>" in shown or '<code>"$.order"</code>' in shown
    assert "unchanged" in shown


def test_the_stages_of_a_jsonata_state_see_variables(project: Project, client: Client) -> None:
    """Output and Assign are told; variables of earlier states count."""
    first = {"Type": "Pass", "Assign": {"n": 4}, "Next": "P"}
    second = {
        "Type": "Pass",
        "Output": "{% $n + $states.input.m %}",
        "Assign": {"n": "{% $n * 2 %}"},
        "End": True,
    }
    machine = {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": first, "P": second}}
    execution = run(project, machine, {"m": 3})
    told = stages(client, execution, "?step=P")
    assert told["Output"] == "7"
    assert json.loads(told["Assigned variables"]) == {"n": 8}
    with open_trace(execution) as trace:
        assert variables_visible_at(execution, trace, 2) == {}
        assert variables_visible_at(execution, trace, 3) == {"n": "4"}
        assert variables_visible_at(execution, trace, trace.last) == {"n": "8"}


def test_what_children_left_behind_is_a_result(project: Project, client: Client) -> None:
    """Of a Parallel and of a Map, before ResultSelector."""
    inner = {"StartAt": "B", "States": {"B": {"Type": "Pass", "Result": 5, "End": True}}}
    outer = {"Type": "Parallel", "Branches": [inner], "ResultSelector": {"x.$": "$[0]"}}
    execution = run(project, one("P", **outer), {})
    told = stages(client, execution, "?step=P")
    assert (told["Result"], json.loads(told["After ResultSelector"])) == ("[5]", {"x": 5})


@pytest.mark.postgres_too
def test_variables_of_an_iteration_stay_in_it(project: Project, client: Client) -> None:
    """An inner line of control sees the outer ones, never its neighbours."""
    inner = {
        "StartAt": "Set",
        "States": {
            "Set": {"Type": "Pass", "Assign": {"i.$": "$"}, "Next": "Use"},
            "Use": {"Type": "Pass", "Parameters": {"got.$": "$i", "all.$": "$n"}, "End": True},
        },
    }
    over = {"Type": "Map", "ItemProcessor": inner, "ResultSelector": {"r.$": "$"}, "End": True}
    before = {"Type": "Pass", "Assign": {"n": 1}, "Next": "M"}
    execution = run(project, {"StartAt": "A", "States": {"A": before, "M": over}}, [10, 20])
    for index, value in enumerate((10, 20)):
        told = stages(client, execution, f"?step=Use&iteration={index}")
        assert json.loads(told["After Parameters"]) == {"got": value, "all": 1}
    told = stages(client, execution, "?step=M")
    assert json.loads(told["Result"]) == [{"got": 10, "all": 1}, {"got": 20, "all": 1}]
    assert visible(execution) == {"n": "1"}


def visible(execution: Execution) -> dict[str, str]:
    """Return the variables at the end."""
    with open_trace(execution) as trace:
        return variables_visible_at(execution, trace, trace.last)


@pytest.mark.parametrize("query", ["?step=Nowhere", "?step=P&visit=99", ""])
def test_a_flow_of_nothing_is_no_error(project: Project, client: Client, query: str) -> None:
    """Whatever the address says, the page answers."""
    execution = run(project, one("P", Type="Pass"), {})
    assert text(client.get(page(execution, f"{query}{'&' if query else '?'}tab=flow")))
