"""Copy states as text, and paste them into an edge of the same or another definition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.features.editor.edits.definition_tree import EditRefused
from console.features.editor.edits.edges import EditDone, GraphEdge, edge_block
from console.features.editor.edits.operations import insert_states
from console.features.editor.edits.palette import EXIT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.features.editor.edits.definition_tree import DefinitionTree
    from console.features.editor.edits.palette import States

_WANTED = 'No state was copied. Wanted: JSON such as {"Name": {"Type": "Pass", "End": true}}.'


def copied_text(tree: DefinitionTree, name: str) -> str:
    """Return a state as a JSON object with its name and, for JSONata, its query language.

    The state machine it is pasted into may have another default language.
    """
    state = tree.place(name).block.states.value(name)
    if tree.language(name) == "JSONata" and "QueryLanguage" not in state:
        state = {"Type": state.get("Type"), "QueryLanguage": "JSONata", **state}
    return json.dumps({name: state}, indent=2, ensure_ascii=False)


def paste_states(tree: DefinitionTree, edge: GraphEdge, text: str) -> EditDone:
    """Insert copied states in an edge, under unused names.

    ``text``: an object of states, its members without braces, or a definition. A transition out of
    the copied states goes to the state of that name in the block of the edge, else to the edge's
    former target.
    """
    states = _read_states(text)
    sibling_names = {entry.key for entry in edge_block(tree, edge).states.entries}
    default = tree.language("")
    ready = {
        name: _with_open_ends(state, states, sibling_names, default)
        for name, state in states.items()
    }
    first = insert_states(tree, edge, ready, f"“{next(iter(ready))}”")
    return EditDone(first, f"Inserted {first}.")


def edge_behind(tree: DefinitionTree, name: str) -> GraphEdge:
    """Return the edge behind a state, in which a copy is inserted."""
    place = tree.place(name)
    target = place.node.text("Default" if place.type == "Choice" else "Next")
    return GraphEdge(source=name, target=target)


def _read_states(text: str) -> States:
    bare = text.strip().strip(",").strip()
    value = _loaded(bare) if bare.startswith("{") else _loaded(f"{{{bare}}}")
    if isinstance(value, dict) and isinstance(value.get("States"), dict):
        start = value.get("StartAt")
        value = {name: value["States"][name] for name in _start_first(value["States"], start)}
    is_states = isinstance(value, dict) and all(
        name and isinstance(state, dict) and isinstance(state.get("Type"), str)
        for name, state in value.items()
    )
    if not value or not is_states:
        raise EditRefused(_WANTED)
    states: States = value
    return states


def _loaded(text: str) -> Any:
    try:
        return engine.loads(text)
    except engine.JsonTextError:
        raise EditRefused(_WANTED) from None


def _start_first(names: Collection[str], start: Any) -> list[str]:
    return sorted(names, key=lambda name: name != start)


def _with_open_ends(
    state: Mapping[str, Any], copied: Collection[str], sibling_names: Collection[str], default: str
) -> dict[str, Any]:
    """Return a copied state whose outward transitions lead to ``EXIT``.

    ``copied``: the names of the copied states; ``sibling_names``: all states of the block;
    ``default``: the query language of the state machine.
    """

    def goal(target: Any, *, goes_on: bool = False) -> Any:
        return target if target in copied or (target in sibling_names and not goes_on) else EXIT

    copy = {
        key: value
        for key, value in state.items()
        if key != "End" and (key, value) != ("QueryLanguage", default)
    }
    if state["Type"] not in ("Choice", "Fail", "Succeed"):
        copy["Next"] = goal(state.get("Next"), goes_on=True)
    if "Default" in state:
        copy["Default"] = goal(state["Default"], goes_on=True)
    for key in ("Choices", "Catch"):
        if isinstance(state.get(key), list):
            rules = [rule for rule in state[key] if isinstance(rule, dict)]
            copy[key] = [{**rule, "Next": goal(rule.get("Next"))} for rule in rules]
    return copy
