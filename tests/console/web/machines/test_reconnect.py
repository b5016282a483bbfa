"""An edge of the graph leads to another state: its own field changes, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.editor.edits.definition_tree import DefinitionTree, EditRefused
from console.features.editor.edits.edges import EdgeTargets, GraphEdge, edge_targets, reconnect_edge
from tests.console.web.helpers import markup, text
from tests.features.editor.test_graph_edits import changed_lines

if TYPE_CHECKING:
    from django.test import Client

ORDER = """{
  "StartAt": "Pay",
  "States": {
    "Pay":  { "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "TimeoutSeconds" : 9,
              "Catch": [ {"ErrorEquals": ["A"], "Next": "Sorry"},
                         {"ErrorEquals": ["B"], "Next": "Sorry"} ],
              "Next": "Which?" },
    "Which?": {
      "Type": "Choice",
      "Choices": [
        { "Variable": "$.n", "NumericEquals": 1,   "Next": "Both" },
        { "Variable": "$.n", "NumericEquals": 2,   "Next": "Both" }
      ],
      "Default": "Sorry"
    },
    "Both": {
      "Type": "Parallel",
      "Branches": [
        {
          "StartAt": "Left",
          "States": {
            "Left": { "Type": "Pass", "Next": "Right" },
            "Right": { "Type": "Pass", "End": true }
          }
        }
      ],
      "End": true
    },
    "Sorry": { "Type": "Fail" }
  }
}
"""


def reconnected(edge: GraphEdge, target: str) -> list[str]:
    """Return the lines that an edge's new target changes."""
    tree = DefinitionTree(ORDER)
    reconnect_edge(tree, edge, target)
    return changed_lines(ORDER, tree.text())


def test_each_kind_of_edge_changes_its_own_field() -> None:
    """The second of two rules or catchers to one state, too; blanks and numbers stay."""
    assert reconnected(GraphEdge("Pay", "Which?"), "Both") == [
        '-              "Next": "Which?" },',
        '+              "Next": "Both" },',
    ]
    assert reconnected(GraphEdge("Pay", "Sorry", 1), "Which?") == [
        '-                         {"ErrorEquals": ["B"], "Next": "Sorry"} ],',
        '+                         {"ErrorEquals": ["B"], "Next": "Which?"} ],',
    ]
    assert reconnected(GraphEdge("Which?", "Both", 1), "Pay") == [
        '-        { "Variable": "$.n", "NumericEquals": 2,   "Next": "Both" }',
        '+        { "Variable": "$.n", "NumericEquals": 2,   "Next": "Pay" }',
    ]
    assert reconnected(GraphEdge("Which?", "Sorry"), "Both") == [
        '-      "Default": "Sorry"',
        '+      "Default": "Both"',
    ]


def test_starts_and_ends_change_too() -> None:
    """Of the machine and of a branch; End becomes Next in its place, and Next becomes End."""
    assert reconnected(GraphEdge(), "Which?") == ['-  "StartAt": "Pay",', '+  "StartAt": "Which?",']
    assert reconnected(GraphEdge(owner="Both"), "Right") == [
        '-          "StartAt": "Left",',
        '+          "StartAt": "Right",',
    ]
    assert reconnected(GraphEdge("Right", ""), "Left") == [
        '-            "Right": { "Type": "Pass", "End": true }',
        '+            "Right": { "Type": "Pass", "Next": "Left" }',
    ]
    assert reconnected(GraphEdge("Left", "Right"), "") == [
        '-            "Left": { "Type": "Pass", "Next": "Right" },',
        '+            "Left": { "Type": "Pass", "End": true },',
    ]
    assert reconnected(GraphEdge("Both", ""), "") == []


def test_states_of_the_same_level_are_the_targets() -> None:
    """Nothing leads into a branch or out of it; End is for what may end."""
    tree = DefinitionTree(ORDER)
    level = ("Pay", "Which?", "Both", "Sorry")
    assert edge_targets(tree, GraphEdge("Which?", "Sorry")) == EdgeTargets(
        "Sorry", level, end=False, made_by="the default"
    )
    caught = edge_targets(tree, GraphEdge("Pay", "Sorry", 1))
    assert (caught.end, caught.made_by) == (False, "catch 2")
    assert edge_targets(tree, GraphEdge("Which?", "Both", 1)).made_by == "rule 2"
    assert edge_targets(tree, GraphEdge("Pay", "Which?")) == EdgeTargets(
        "Which?", level[1:], end=True
    )
    assert edge_targets(tree, GraphEdge(owner="Both")) == EdgeTargets(
        "Left", ("Left", "Right"), end=False, made_by="branch 1"
    )


@pytest.mark.parametrize(
    ("edge", "target", "said"),
    [
        (GraphEdge("Pay", "Which?"), "Left", "level"),
        (GraphEdge("Left", "Right"), "Sorry", "level"),
        (GraphEdge("Left", "Right"), "Left", "itself"),
        (GraphEdge("Which?", "Sorry"), "", "Only Next"),
        (GraphEdge("Pay", "Sorry"), "", "Only Next"),
        (GraphEdge("Pay", "Sorry", 2), "Both", "does not lead"),
        (GraphEdge("Gone", "Sorry"), "Both", "no state"),
        (GraphEdge("Sorry", ""), "Both", "Nothing follows"),
        (GraphEdge(owner="Both", index=3), "Left", "no branch 4"),
    ],
)
def test_other_targets_are_refused(edge: GraphEdge, target: str, said: str) -> None:
    """The reader is told why."""
    with pytest.raises(EditRefused, match=said):
        reconnect_edge(DefinitionTree(ORDER), edge, target)


def test_the_panel_of_an_edge_offers_its_targets(client: Client) -> None:
    """By keyboard alone; a text that has no such edge any more still offers the palette."""
    sent = {"act": "palette", "text": ORDER, "source": "Left", "target": "Right", "occurrence": "0"}
    shown = markup(client.post("/machines/new/_edit", sent))
    assert '<option value="Right" selected>Right</option><option value="">End</option>' in shown
    assert '<option value="Left"' not in shown
    assert "Change target" not in text(client.post("/machines/new/_edit", sent | {"text": "{"}))
    answer = text(client.post("/machines/new/_edit", sent | {"act": "reconnect", "leads_to": ""}))
    assert "Left leads to the end now." in answer
    assert '"Left": { "Type": "Pass", "End": true },' in answer


def test_what_is_not_connected_yet_is_drawn(client: Client) -> None:
    """A state that nothing leads to, a loop without an end, and what leads nowhere."""
    tree = DefinitionTree(ORDER)
    reconnect_edge(tree, GraphEdge("Left", "Right"), "")
    checked = text(client.post("/machines/new/_check", {"text": tree.text()}))
    assert 'State "Right" is not reachable.' in checked
    assert 'aria-label="Right, Pass"' in checked
    tree = DefinitionTree(ORDER)
    reconnect_edge(tree, GraphEdge("Right", ""), "Left")
    checked = text(client.post("/machines/new/_check", {"text": tree.text()}))
    assert "no terminal state" in checked
    assert 'aria-label="Right, Pass"' in checked
    missing = ORDER.replace('"Next": "Right"', '"Next": "Gone"')
    checked = text(client.post("/machines/new/_check", {"text": missing}))
    assert "Missing 'Next' target: Gone" in checked
    assert 'aria-label="Left, Pass"' in checked


def _edges(**changes: Any) -> int:
    """Return how many edges the picture of a definition with changed states has."""
    states: dict[str, Any] = {
        "A": {"Type": "Pass", "Next": "B"},
        "B": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "C"},
        "C": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.x", "IsNull": True, "Next": "D"}],
            "Default": "D",
        },
        "D": {"Type": "Wait", "Seconds": 1, "End": True},
    }
    definition = {"StartAt": "A", "States": states | changes}
    return len(engine.draw_unfinished(json.dumps(definition)).edges)


def test_a_definition_is_drawn_while_it_is_written() -> None:
    """Each state that has a type is there, with the edges whose targets are."""
    assert _edges() == 4
    assert _edges(A={"Type": "Pass", "Next": "Bo"}) == 3
    assert _edges(A={"Type": "Pass"}) == 3
    assert _edges(B={"Type": "Task", "Next": "C"}) == 4
    assert _edges(B={"Type": "Task", "Resource": "arn", "InputPath": "$.[", "Next": "C"}) == 4
    assert _edges(C={"Type": "Choice", "Choices": [], "Default": "D"}) == 3
    assert _edges(C={"Type": "Choice", "Choices": [{"Next": "D"}]}) == 3
    assert _edges(D={"Type": "Wait", "Wrong": 1, "End": True}) == 4
    states_that_cannot_be_told_apart = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, '
    for text_of_definition in (
        states_that_cannot_be_told_apart + '"A": {"Type": "Succeed"}}}',
        states_that_cannot_be_told_apart + '"": {"Type": "Succeed"}}}',
        states_that_cannot_be_told_apart + '"B": {"Type": "Suc"}}}',
        states_that_cannot_be_told_apart + '"B": {}}}',
        states_that_cannot_be_told_apart + '"B": {"Type": "Map"}}}',
        states_that_cannot_be_told_apart + '"B": {"Type": "Parallel", "Branches": [1]}}}',
        states_that_cannot_be_told_apart + '"B": {"Type": "Choice", "Choices": [1]}}}',
        *("", "{", "[]", "{}", "null", '{"States": {}}', '{"Resources": {}}'),
        '{"StartAt": "B", "States": {"A": {"Type": "Succeed"}}}',
    ):
        with pytest.raises(engine.DefinitionError):
            engine.draw_unfinished(text_of_definition)
