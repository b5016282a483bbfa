"""The rows and fields of a state's form in both query languages, and copied states."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from console.features.editor.edits import operations
from console.features.editor.edits.copying import copied_text, edge_behind, paste_states
from console.features.editor.edits.definition_tree import DefinitionTree, EditRefused
from console.features.editor.edits.edges import GraphEdge
from console.features.editor.state_form import read_fields, state_form

END: dict[str, Any] = {"Type": "Succeed"}
CALL = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Retry": [{"ErrorEquals": ["States.ALL"]}],
    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}],
    "Next": "Done",
}


def machine(states: dict[str, Any], **more: Any) -> str:
    """Return the text of a machine that begins with the first of the states."""
    return json.dumps({"StartAt": next(iter(states)), **more, "States": states}, indent=2)


def saved(definition: str, name: str, **sent: str) -> dict[str, Any]:
    """Return a state after its form was sent; the definition must have no errors then."""
    tree = DefinitionTree(definition)
    typed = {key.replace("__", "-"): value for key, value in sent.items()}
    operations.put_fields(tree, name, read_fields(tree, name, typed))
    assert [each for each in engine.check(tree.text()) if each.severity == "ERROR"] == []
    state: dict[str, Any] = json.loads(tree.text())["States"][name]
    return state


def test_a_condition_of_true_stays_true() -> None:
    """JSONata allows a Condition that is true or false without an expression."""
    choice = {"Type": "Choice", "Choices": [{"Condition": True, "Next": "Done"}]}
    definition = machine({"Pick": choice, "Done": END, "Else": END}, QueryLanguage="JSONata")
    assert saved(definition, "Pick", rule__0__next="Else", f__Default="Done")["Choices"] == [
        {"Condition": True, "Next": "Else"}
    ]
    typed = {"rule__0__condition": "{% $states.input.a %}", "f__Default": "Else"}
    assert (
        saved(definition, "Pick", **typed)["Choices"][0]["Condition"] == typed["rule__0__condition"]
    )


def test_a_rule_of_jsonata_has_output_and_assign() -> None:
    """An expression or JSON; Next stays the last field."""
    choice = {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "Done"}]}
    definition = machine({"Pick": choice, "Done": END}, QueryLanguage="JSONata")
    typed = {"rule__0__more__Output": "{% $states.input %}", "rule__0__more__Assign": '{"a": 1}'}
    assert list(saved(definition, "Pick", **typed)["Choices"][0].items()) == [
        ("Condition", "{% true %}"),
        ("Output", "{% $states.input %}"),
        ("Assign", {"a": 1}),
        ("Next", "Done"),
    ]


def test_a_retrier_has_every_field() -> None:
    """Longest wait and jitter, too; an empty one goes out."""
    definition = machine({"Call": CALL, "Done": END})
    typed = {"retry__0__delay": "30", "retry__0__jitter": "FULL", "retry__0__interval": "2"}
    retrier = {
        "ErrorEquals": ["States.ALL"],
        "IntervalSeconds": 2,
        "MaxDelaySeconds": 30,
        "JitterStrategy": "FULL",
    }
    assert saved(definition, "Call", **typed)["Retry"] == [retrier]
    again = machine({"Call": {**CALL, "Retry": [retrier]}, "Done": END})
    without = saved(again, "Call", retry__0__delay="", retry__0__jitter="")["Retry"][0]
    assert list(without) == ["ErrorEquals", "IntervalSeconds"]


def test_a_catcher_has_its_result_path() -> None:
    """A path, or null, which discards the error; in JSONata it has Output."""
    definition = machine({"Call": CALL, "Done": END})
    for text, value in (("$.error", "$.error"), ("null", None)):
        catcher = saved(definition, "Call", catch__0__more__ResultPath=text)["Catch"][0]
        assert list(catcher.items())[1:] == [("ResultPath", value), ("Next", "Done")]
    jsonata = machine({"Call": CALL, "Done": END}, QueryLanguage="JSONata")
    output = "{% $states.errorOutput %}"
    assert saved(jsonata, "Call", catch__0__more__Output=output)["Catch"][0]["Output"] == output


def test_a_path_may_be_null() -> None:
    """It is shown as null, stays if nothing is typed, and can be typed."""
    definition = machine({"Call": {**CALL, "ResultPath": None}, "Done": END})
    shown = {
        each.name: each.value for each in state_form(DefinitionTree(definition), "Call").fields
    }
    assert (shown["ResultPath"], shown["OutputPath"]) == ("null", "")
    state = saved(definition, "Call", f__ResultPath="null", f__OutputPath="null")
    assert (state["ResultPath"], state["OutputPath"]) == (None, None)
    assert "ResultPath" not in saved(definition, "Call", f__ResultPath="")


@pytest.mark.parametrize("kind", ["StringLessThan", "NumericEqualsPath", "TimestampLessThanEquals"])
def test_a_rule_offers_every_comparison(kind: str) -> None:
    """Those of paths, too."""
    rule = {"Variable": "$.a", "StringEquals": "x", "Next": "Done"}
    definition = machine({"Pick": {"Type": "Choice", "Choices": [rule]}, "Done": END})
    row = state_form(DefinitionTree(definition), "Pick").rules[0]
    assert kind in row.operators
    value = {"S": "b", "N": "$.b", "T": "2026-01-01T00:00:00Z"}[kind[0]]
    choice = saved(definition, "Pick", rule__0__operator=kind, rule__0__value=value)["Choices"][0]
    assert choice == {"Variable": "$.a", kind: value, "Next": "Done"}


# -- copied states ---------------------------------------------------------------------------------


def pasted(definition: str, edge: GraphEdge, text: str) -> dict[str, Any]:
    """Return the states after a paste, which must leave no errors."""
    tree = DefinitionTree(definition)
    paste_states(tree, edge, text)
    assert [each for each in engine.check(tree.text()) if each.severity == "ERROR"] == []
    states: dict[str, Any] = json.loads(tree.text())["States"]
    return states


TWO = machine({"First": {"Type": "Pass", "Next": "Done"}, "Done": END})


def test_a_copied_state_is_pasted_behind_another() -> None:
    """Its Catch leads to a state of the same name if there is one, its Next where the edge led."""
    source = DefinitionTree(machine({"Call": {**CALL, "Next": "Ok"}, "Ok": END, "Done": END}))
    tree = DefinitionTree(TWO)
    states = pasted(TWO, edge_behind(tree, "First"), copied_text(source, "Call"))
    assert list(states) == ["First", "Call", "Done"]
    assert states["First"]["Next"] == "Call"
    assert states["Call"] == CALL


def test_a_catch_that_leads_nowhere_here_gets_a_state() -> None:
    """At the end of a block, where no edge leads on."""
    alone = machine({"First": {"Type": "Pass", "End": True}})
    states = pasted(alone, GraphEdge("First", ""), json.dumps({"Call": CALL}))
    assert states["Call"]["Catch"][0]["Next"] == "Done"
    assert states["Done"] == {"Type": "Succeed"}


def test_a_pasted_map_has_free_names_inside() -> None:
    """A state inside of a copied Map is renamed if its name is taken."""
    inner = {"StartAt": "First", "States": {"First": {"Type": "Pass", "End": True}}}
    states = pasted(
        TWO,
        GraphEdge("First", "Done"),
        json.dumps({"Each": {"Type": "Map", "ItemProcessor": inner}}),
    )
    assert states["Each"]["ItemProcessor"]["StartAt"] == "First 2"
    assert list(states["Each"]["ItemProcessor"]["States"]) == ["First 2"]


@pytest.mark.parametrize("trail", ["", ","])
def test_members_without_braces_are_pasted(trail: str) -> None:
    """As they are copied out of a text; of a whole definition all its states are."""
    states = pasted(TWO, GraphEdge("First", "Done"), f'  "Nap": {{"Type": "Pass"}}{trail}\n')
    assert "Nap" in states
    step = {"Type": "Pass", "End": True}
    whole = machine({"First": {"Type": "Pass", "Next": "First 2"}, "First 2": step})
    states = pasted(TWO, GraphEdge("First", "Done"), whole)
    assert list(states) == ["First", "First 2", "First 2 2", "Done"]


def test_a_jsonata_state_says_so() -> None:
    """In a machine of JSONPath it keeps its language; in one of JSONata it needs no word of it."""
    source = DefinitionTree(
        machine({"Set": {"Type": "Pass", "Output": 1, "End": True}}, QueryLanguage="JSONata")
    )
    text = copied_text(source, "Set")
    assert pasted(TWO, GraphEdge("First", "Done"), text)["Set"]["QueryLanguage"] == "JSONata"
    there = machine({"First": {"Type": "Pass", "End": True}}, QueryLanguage="JSONata")
    assert "QueryLanguage" not in pasted(there, GraphEdge("First", ""), text)["Set"]


@pytest.mark.parametrize("text", ["", "hello", "[1]", '{"a": 1}', '{"": {"Type": "Pass"}}', "{"])
def test_what_is_no_state_is_refused(text: str) -> None:
    """The message says what is wanted."""
    with pytest.raises(EditRefused, match="No state was copied"):
        paste_states(DefinitionTree(TWO), GraphEdge("First", "Done"), text)
