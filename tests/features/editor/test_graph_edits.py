"""The edits of the graph: text in, text out; what is not meant keeps every character."""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.editor.edits import operations
from console.features.editor.edits.definition_tree import DefinitionTree, EditRefused
from console.features.editor.edits.edges import GraphEdge
from console.features.editor.edits.json_tree import format_text, read_tree, write_tree
from console.features.editor.edits.palette import PIECES
from console.features.editor.state_form import read_fields, state_form
from console.models import Project
from tests.console.web.helpers import CHAIN, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

SAMPLES = sorted((Path(__file__).parents[3] / "console/samples").glob("*.asl.json"))
ODD = """
{ "Comment" : "caf\\u00e9",   "StartAt":"Pay",

  "States": {
    "Pay":  { "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
              "Parameters": {"FunctionName": "Pay",
                             "Payload": {"Rate": 1.50, "Big": 12345678901234567890}},
              "Next": "Ship" },
    "Ship": {
        "Type": "Pass",
        "End": true
    }
  }
}
"""
BASE = json.dumps(CHAIN, indent=2)


def edited(definition: str, act: Callable[..., Any], *arguments: Any) -> str:
    """Return the text after an edit, which must leave a definition without errors."""
    tree = DefinitionTree(definition)
    act(tree, *arguments)
    changed = tree.text()
    problems = [each for each in engine.check(changed) if each.severity == "ERROR"]
    assert problems == [], changed
    return changed


def states(definition: str) -> dict[str, Any]:
    """Return the states of a text."""
    by_name: dict[str, Any] = json.loads(definition)["States"]
    return by_name


def changed_lines(before: str, after: str) -> list[str]:
    """Return the lines that differ, with their signs."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:2] not in ("--", "++", "@@")]


# -- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_an_untouched_tree_writes_its_own_text(path: Path) -> None:
    """Every character is kept, and formatting changes white space only."""
    source = path.read_text("utf-8").strip()
    assert write_tree(read_tree(source)) == source
    assert json.loads(format_text(source)) == json.loads(source)


def test_an_edit_changes_its_own_lines_only() -> None:
    """White space, escapes, long numbers and order elsewhere stay as they were typed."""
    after = edited(ODD, operations.rename_state, "Ship", "Send")
    assert changed_lines(ODD, after) == [
        '-              "Next": "Ship" },',
        '-    "Ship": {',
        '+              "Next": "Send" },',
        '+    "Send": {',
    ]
    after = edited(ODD, operations.put_fields, "Ship", {"Comment": "by air"})
    assert changed_lines(ODD, after) == ['+        "Comment": "by air",']
    after = edited(ODD, operations.put_fields, "Pay", {"TimeoutSeconds": 9})
    assert '12345678901234567890}}, "TimeoutSeconds": 9' in " ".join(after.split())
    assert "1.50" in after


def test_text_in_one_line_is_formatted() -> None:
    """A minified definition becomes one that a person can read."""
    after = edited(json.dumps(CHAIN), operations.rename_state, "Nap", "Doze")
    assert after == BASE.replace("Nap", "Doze")


@pytest.mark.parametrize("broken", ["", "{", "[]", '"States"', '{"States": 1}', "{'a': 1}"])
def test_what_is_no_definition_is_refused_in_words(broken: str) -> None:
    """The reader is told what to mend."""
    with pytest.raises(EditRefused, match=r"JSON|States"):
        DefinitionTree(broken)


# -- inserting -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("language", ["JSONPath", "JSONata"])
@pytest.mark.parametrize("key", sorted(PIECES))
def test_each_piece_makes_a_valid_definition(key: str, language: str) -> None:
    """At the start, between two states and at the end, in both query languages."""
    plain = {"QueryLanguage": language, **CHAIN}
    plain["States"] = {"First": {"Type": "Pass", "Next": "Nap"}, "Nap": CHAIN["States"]["Nap"]}
    source = json.dumps(plain, indent=2)
    after = edited(source, operations.insert_piece, GraphEdge("Nap", ""), key)
    assert changed_lines(source, after)[0].startswith(('-      "End"', '+      "Next"'))
    if key in ("succeed", "fail"):
        for edge in (GraphEdge("", ""), GraphEdge("First", "Nap")):
            with pytest.raises(EditRefused, match="Insert it in the edge to End"):
                operations.insert_piece(DefinitionTree(source), edge, key)
        return
    first = states(edited(source, operations.insert_piece, GraphEdge("", ""), key))
    between = states(edited(source, operations.insert_piece, GraphEdge("First", "Nap"), key))
    assert set(first) == set(between) > set(CHAIN["States"])
    again = edited(after, operations.insert_piece, GraphEdge("First", "Nap"), key)
    assert len(states(again)) > len(states(after))


def test_one_of_two_edges_between_the_same_states_is_meant() -> None:
    """The rule and the default of a Choice lead to one state; the second edge is the default."""
    source = edited(BASE, operations.insert_piece, GraphEdge("First", "Nap"), "choice")
    after = edited(source, operations.insert_piece, GraphEdge("Choice", "Nap", 1), "wait")
    choice = states(after)["Choice"]
    assert (choice["Choices"][0]["Next"], choice["Default"]) == ("Nap", "Wait")
    with pytest.raises(EditRefused, match="any more"):
        operations.insert_piece(DefinitionTree(source), GraphEdge("Choice", "Nap", 2), "wait")


def test_states_are_inserted_in_a_branch() -> None:
    """The start of a block is named by its owner and its place."""
    source = edited(BASE, operations.insert_piece, GraphEdge("First", "Nap"), "parallel")
    after = edited(source, operations.insert_piece, GraphEdge(owner="Parallel", index=1), "map")
    after = edited(after, operations.add_branch, "Parallel")
    branches = states(after)["Parallel"]["Branches"]
    assert [block["StartAt"] for block in branches] == ["Branch A", "Map", "Branch C"]
    assert branches[1]["States"]["Map"]["Next"] == "Branch B"


# -- the menu --------------------------------------------------------------------------------------


def test_deleting_reconnects() -> None:
    """What led to the state leads to what followed it; an end stays an end."""
    after = edited(BASE, operations.delete_state, "First")
    assert json.loads(after) == {"StartAt": "Nap", "States": {"Nap": CHAIN["States"]["Nap"]}}
    assert "End" in states(edited(BASE, operations.delete_state, "Nap"))["First"]
    with pytest.raises(EditRefused, match="only state"):
        operations.delete_state(DefinitionTree(after), "Nap")


def test_deleting_takes_what_nothing_leads_to_any_more() -> None:
    """The branches of a deleted Choice go with it, and the message names them."""
    source = edited(BASE, operations.insert_piece, GraphEdge("First", "Nap"), "choice")
    source = edited(source, operations.add_rule, "Choice")
    tree = DefinitionTree(source)
    assert "Pass" in operations.delete_state(tree, "Choice").message
    assert json.loads(tree.text()) == CHAIN


def test_deleting_a_handler_takes_its_catch() -> None:
    """No transition is left that leads nowhere."""
    source = edited(ODD, operations.add_catch, "Pay")
    assert states(source)["Pay"]["Catch"][0]["Next"] == "Pay failed"
    assert states(edited(source, operations.delete_state, "Pay failed")) == states(ODD)


def test_duplicates_have_names_of_their_own() -> None:
    """Also those inside of them."""
    source = edited(BASE, operations.insert_piece, GraphEdge("First", "Nap"), "parallel")
    after = states(edited(source, operations.duplicate_state, "Parallel"))
    assert list(after) == ["First", "Parallel", "Parallel 2", "Nap"]
    assert after["Parallel"]["Next"] == "Parallel 2"
    assert after["Parallel 2"]["Next"] == "Nap"
    assert after["Parallel 2"]["Branches"][0]["StartAt"] == "Branch A 2"


def test_a_duplicate_has_the_same_data() -> None:
    """A field of its data that is called Next is no transition."""
    data = {"Next": "Pay", "Default": "Pay", "list": [{"Next": "Pay"}]}
    tree = DefinitionTree(ODD)
    operations.put_fields(tree, "Pay", {"Parameters": {"FunctionName": "Pay", "Payload": data}})
    after = states(edited(tree.text(), operations.duplicate_state, "Pay"))
    assert after["Pay 2"]["Parameters"]["Payload"] == data
    assert list(after["Pay 2"]) == list(after["Pay"])
    assert (after["Pay"]["Next"], after["Pay 2"]["Next"]) == ("Pay 2", "Ship")


@pytest.mark.parametrize("wrapper", ["Parallel", "Map"])
def test_wrapping_takes_transitions_and_catch_along(wrapper: str) -> None:
    """Inside, the state ends; outside, its targets are still beside."""
    source = edited(ODD, operations.add_catch, "Pay")
    after = edited(source, operations.wrap_state, "Pay", wrapper)
    outer = states(after)[wrapper]
    inner = (outer.get("Branches") or [outer["ItemProcessor"]])[0]["States"]["Pay"]
    assert outer["Catch"][0]["Next"] == "Pay failed"
    assert outer["Next"] == "Ship"
    assert inner["End"] is True
    assert "Catch" not in inner
    assert "1.50" in after


def test_retry_comes_before_the_one_for_every_error() -> None:
    """ASL wants States.ALL last."""
    source = edited(ODD, operations.put_fields, "Pay", {"Retry": [{"ErrorEquals": ["States.ALL"]}]})
    after = edited(source, operations.add_retry, "Pay")
    assert [rule["ErrorEquals"][-1] for rule in states(after)["Pay"]["Retry"]] == [
        "States.Timeout",
        "States.ALL",
    ]


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (operations.rename_state, ("Pay", "Ship")),
    (operations.rename_state, ("Pay", "x" * 81)),
    (operations.rename_state, ("Nobody", "Ship")),
    (operations.add_retry, ("Ship",)),
    (operations.add_catch, ("Ship",)),
    (operations.add_branch, ("Ship",)),
    (operations.add_rule, ("Ship",)),
    (operations.insert_piece, (GraphEdge("Pay", "Ship"), "nothing")),
    (operations.insert_piece, (GraphEdge(owner="Pay", index=3), "pass")),
]


@pytest.mark.parametrize(("act", "arguments"), REFUSED)
def test_what_cannot_be_done_is_refused(act: Callable[..., Any], arguments: Any) -> None:
    """The reason is for the reader."""
    with pytest.raises(EditRefused, match=r".{10}"):
        act(DefinitionTree(ODD), *arguments)


# -- the form --------------------------------------------------------------------------------------


def saved(source: str, name: str, **sent: str) -> Any:
    """Return a state after its form was sent."""
    tree = DefinitionTree(source)
    operations.put_fields(tree, name, read_fields(tree, name, sent))
    return states(tree.text())[name]


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    """All inputs come back as they were shown."""
    for path in SAMPLES:
        source = path.read_text("utf-8")
        tree = DefinitionTree(source)
        for place in list(tree.places()):
            form = state_form(tree, place.name)
            sent = {each.input_name: each.value for each in form.fields}
            sent |= {
                f"{row.prefix}-{key}": row.values[key] for row in form.rules for key in row.values
            }
            assert read_fields(tree, place.name, sent) == {}
        assert tree.text() == source


def test_a_form_writes_values_of_the_right_kind() -> None:
    """Numbers, JSON, transitions; what is emptied goes."""
    after = saved(ODD, "Pay", **{"f-TimeoutSeconds": "30", "f-Parameters": "", "f-Next": ""})
    assert after["TimeoutSeconds"] == 30
    assert after["End"] is True
    assert not {"Parameters", "Next"} & set(after)
    assert (
        saved(ODD, "Pay", **{"f-@FunctionName": "Charge"})["Parameters"]["FunctionName"] == "Charge"
    )
    with pytest.raises(EditRefused, match="Parameters: this is not JSON at line 1"):
        saved(ODD, "Pay", **{"f-Parameters": "{nope"})


def test_rules_retries_and_catches_are_rows() -> None:
    """Each row has its own inputs; a row can be deleted."""
    source = edited(BASE, operations.insert_piece, GraphEdge("First", "Nap"), "choice")
    rule = {"rule-0-operator": "NumericGreaterThan", "rule-0-value": "10", "rule-0-variable": "$.n"}
    after = saved(source, "Choice", **rule)["Choices"]
    assert after == [{"Variable": "$.n", "NumericGreaterThan": 10, "Next": "Nap"}]
    with pytest.raises(EditRefused, match="must be a number"):
        saved(source, "Choice", **rule | {"rule-0-value": "ten"})
    with pytest.raises(EditRefused, match="needs a rule"):
        saved(source, "Choice", **{"rule-0-delete": "on"})
    source = edited(edited(ODD, operations.add_retry, "Pay"), operations.add_catch, "Pay")
    after = saved(source, "Pay", **{"retry-0-errors": "A, B", "retry-0-attempts": "7"})
    assert (after["Retry"][0]["ErrorEquals"], after["Retry"][0]["MaxAttempts"]) == (["A", "B"], 7)
    assert after["Retry"][0]["JitterStrategy"] == "FULL"
    assert "Catch" not in saved(source, "Pay", **{"catch-0-delete": "on"})


FORMATTED = """{
  "StartAt": "Which?",
  "States": {
    "Which?": {
      "Type": "Choice",
      "Choices": [
        { "Variable": "$.n", "NumericEquals": 1.0, "Next": "Each" },
        { "Variable": "$.n",   "StringEquals": "two\\nlines", "Next": "Each" },
        { "Variable": "$.n", "NumericEquals": 3,   "Next": "Each" }
      ],
      "Default": "Each"
    },
    "Each": {
      "Type": "Map",
      "ItemProcessor": {
        "ProcessorConfig": { "Mode": "INLINE" },
        "StartAt": "Call",
        "States": {
          "Call": { "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
                    "Comment": "one\\ntwo",
                    "Parameters": { "FunctionName": "Old",  "Rate": 1.50, "Ids": [1,2, 3] },
                    "Retry": [ {"ErrorEquals": ["A"], "MaxAttempts":2}, {"ErrorEquals": ["B"]} ],
                    "End": true }
        }
      },
      "End": true
    }
  }
}"""


@pytest.mark.parametrize(
    ("state", "sent", "lines"),
    [
        ("Call", {"f-@FunctionName": "New"}, ['"New",  "Rate": 1.50, "Ids": [1,2, 3]']),
        ("Each", {"f-@Mode": "DISTRIBUTED"}, ['{ "Mode": "DISTRIBUTED", "ExecutionType": ']),
        ("Call", {"retry-1-attempts": "7"}, ['"MaxAttempts":2}, {"ErrorEquals": ["B"], "Max']),
        ("Call", {"retry-0-delete": "on"}, ['"Retry": [ {"ErrorEquals": ["B"]} ]']),
        ("Which?", {"rule-2-value": "4"}, ['{ "Variable": "$.n", "NumericEquals": 4,   "Next"']),
        ("Which?", {"rule-0-delete": "on"}, []),
        ("Call", {"f-Comment": "one\r\nthree"}, ['"Comment": "one\\nthree"']),
    ],
)
def test_a_form_changes_the_smallest_part_that_differs(
    state: str, sent: dict[str, str], lines: list[str]
) -> None:
    """One value of the parameters, one rule of three: the others stay as they are spelled."""
    tree = DefinitionTree(FORMATTED)
    operations.put_fields(tree, state, read_fields(tree, state, sent))
    changed = changed_lines(FORMATTED, tree.text())
    assert len([line for line in changed if line[0] == "-"]) == 1
    written = [line for line in changed if line[0] == "+"]
    assert len(written) == len(lines)
    assert all(part in line for part, line in zip(lines, written, strict=True))


@pytest.mark.parametrize("state", ["Which?", "Each", "Call"])
def test_what_an_input_cannot_hold_is_not_changed_by_it(state: str) -> None:
    """An input of one line drops line breaks, one of several spells them in its own way."""
    tree = DefinitionTree(FORMATTED)
    form = state_form(tree, state)
    sent = {
        each.input_name: each.value.replace("\n", "\r\n" if each.lines else "")
        for each in form.fields
    }
    for row in form.rules:
        sent |= {
            f"{row.prefix}-{name}": value.replace("\n", "\r\n" if name == "condition" else "")
            for name, value in row.values.items()
        }
    assert read_fields(tree, state, sent) == {}


@pytest.mark.parametrize("name", [" blank ", "two\nlines", "@end", "__proto__"])
def test_an_odd_name_is_kept(client: Client, name: str) -> None:
    """The form renames a state only if somebody typed another name."""
    states = {name: {"Type": "Pass", "Next": "Last"}, "Last": {"Type": "Succeed"}}
    source = json.dumps({"StartAt": name, "States": states}, indent=2)
    sent = {"text": source, "act": "save", "state": name, "name": name.replace("\n", "")}
    assert "Nothing was changed." in text(client.post("/machines/new/_edit", sent))
    back = {"text": source, "act": "save", "state": "Last", "name": "Last"}
    assert "Nothing was changed." in text(client.post("/machines/new/_edit", back))


def test_a_target_that_is_missing_stays_chosen(client: Client) -> None:
    """The first state of a list must not become the target by a press on Apply."""
    source = FORMATTED.replace(
        '"NumericEquals": 3,   "Next": "Each"', '"IsNull": true, "Next": "Gone"'
    )
    answer = text(
        client.post("/machines/new/_edit", {"text": source, "act": "show", "state": "Which?"})
    )
    assert '<option value="Gone" selected>Gone (missing)</option>' in answer


def test_a_wrong_definition_is_edited_or_refused() -> None:
    """Branches that are no blocks stay as they are; what is no object is no state."""
    branches = {"Type": "Parallel", "Branches": [1, {"States": []}, {}], "End": True}
    tree = DefinitionTree(json.dumps({"StartAt": "A", "States": {"A": branches}}))
    operations.duplicate_state(tree, "A")
    assert states(tree.text())["A 2"]["Branches"] == branches["Branches"]
    data = {"Type": "Pass", "Result": {"States": ["CA", "NY"]}, "End": True}
    tree = DefinitionTree(json.dumps({"StartAt": "A", "States": {"A": data}}))
    operations.duplicate_state(tree, "A")
    assert states(tree.text())["A 2"]["Result"] == data["Result"]
    with pytest.raises(EditRefused, match="no state “A”"):
        operations.duplicate_state(DefinitionTree('{"States": {"A": []}}'), "A")


# -- the page --------------------------------------------------------------------------------------


def test_an_edit_by_the_page(client: Client) -> None:
    """The answer has the new text and the form of the new state."""
    edge = {"source": "First", "target": "Nap", "occurrence": "0"}
    sent = {"text": BASE.replace("\n", "\r\n"), "act": "insert", "piece": "wait", **edge}
    answer = text(client.post("/machines/new/_edit", sent))
    assert '<template data-new-text>{\n  "StartAt": "First"' in answer
    assert 'data-selected="Wait"' in answer
    assert "Wait for approval" in text(client.post("/machines/new/_edit", {"act": "palette"}))


@pytest.mark.postgres_too
def test_pieces_name_the_account_of_the_project(project: Project, client: Client) -> None:
    """Both those that the graph inserts and those of completion: their ARNs can be used here."""
    Project.objects.filter(pk=project.pk).update(account_id="210987654321")
    edge = {"source": "First", "target": "Nap", "occurrence": "0"}
    sent = {"text": BASE, "act": "insert", "piece": "sns", **edge}
    answers = [client.post("/machines/new/_edit", sent), client.get("/machines/new/")]
    for shown in map(text, answers):
        assert "arn:aws:sns:us-east-1:210987654321:my-topic" in shown
        assert "123456789012" not in shown


def test_a_refused_edit_by_the_page(client: Client) -> None:
    """422 with the reason; the form stays."""
    sent = {"text": BASE, "act": "add-retry", "state": "First"}
    answer = text(client.post("/machines/new/_edit", sent), 422)
    assert "Retry is for Task" in answer
    assert 'data-selected="First"' in answer
    for odd in ({"act": "none"}, {"act": "show", "state": "<b>"}, {}, {"act": "insert"}):
        raw = client.post("/machines/new/_edit", {"text": BASE, **odd})
        assert raw.status_code in (200, 422)
        assert b"<b>" not in raw.content.replace(b"<b>Pass", b"")
