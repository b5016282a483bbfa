"""Find an edge of the graph in a definition's tree, and connect it to another state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.features.editor.edits.definition_tree import (
    EditRefused,
    StateBlock,
    Transition,
    put_field,
    transitions_of,
)
from console.features.editor.edits.json_tree import JsonContainer, fresh_value, rename_key

if TYPE_CHECKING:
    from console.features.editor.edits.definition_tree import DefinitionTree

END = ""
"""The target of an edge that ends its block."""
_LAST = ("Succeed", "Fail")
"""Types of states without a next state."""


@dataclass(frozen=True, slots=True)
class EditDone:
    """The result of an edit: the state to select, "" for none, and a message."""

    selected: str
    message: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of the graph. ``source``: "" for the start of a block; ``target``: "" for its end.

    ``occurrence``: the index among the edges between the two, from 0. ``owner`` and ``index``: the
    block, for an edge from its start.
    """

    source: str = ""
    target: str = ""
    occurrence: int = 0
    owner: str = ""
    index: int = 0


@dataclass(frozen=True, slots=True)
class EdgeTargets:
    """The possible targets of an edge. ``current``: its target, "" for the end of its block.

    ``made_by``: the part of the state that has it ("catch 1"), "" for Next and End.
    """

    current: str
    states: tuple[str, ...]
    end: bool
    made_by: str = ""


def edge_block(tree: DefinitionTree, edge: GraphEdge) -> StateBlock:
    """Return the block of an edge; raise ``EditRefused``."""
    if edge.source:
        return tree.place(edge.source).block
    return tree.block(edge.owner, edge.index)


def lead_edge(block: StateBlock, edge: GraphEdge, target: str, name: str) -> None:
    """Connect an edge to another state or to the end; raise ``EditRefused``.

    ``target``: the edge's present target; ``name``: the new one.
    """
    transition = _edge_transition(block, edge, target)
    if transition is not None and name != END:
        transition.lead_to(name)
    else:
        lead_to(_source_state(block, edge), name)


def _source_state(block: StateBlock, edge: GraphEdge) -> JsonContainer:
    state = block.state(edge.source)
    if state is None:
        raise EditRefused(f"The text has no state “{edge.source}” any more.")
    return state


def _edge_transition(block: StateBlock, edge: GraphEdge, target: str) -> Transition | None:
    """Return the field of an edge, None for an edge to the end of the block."""
    if not edge.source:
        return Transition(block.node, "StartAt")
    state = _source_state(block, edge)
    if target == END:
        if state.text("Type") in (*_LAST, "Choice"):
            raise EditRefused(f"Nothing follows “{edge.source}”: it is a {state.text('Type')}.")
        return None
    edges = [each for each in transitions_of(state) if each.target == target]
    if edge.occurrence >= len(edges):
        raise EditRefused(f"“{edge.source}” does not lead to “{target}” any more.")
    return edges[edge.occurrence]


def lead_to(state: JsonContainer, target: str) -> None:
    """Set ``Next`` or ``End`` of a state; the field keeps its position."""
    old, new = ("Next", "End") if target == END else ("End", "Next")
    value: Any = True if target == END else target
    entry = state.find(old)
    if entry is not None and state.find(new) is None:
        rename_key(entry, new)
        entry.value = fresh_value(value)
        return
    state.drop(old)
    put_field(state, new, value)


# -- another target --------------------------------------------------------------------------------


def edge_targets(tree: DefinitionTree, edge: GraphEdge) -> EdgeTargets:
    """Return the possible targets of an edge; raise ``EditRefused`` if it does not exist.

    These are the states of its block: no transition crosses a branch. Only a state's own Next may
    become End, and it must not lead back to the state itself, which would never end.
    """
    block = edge_block(tree, edge)
    current = edge.target or (END if edge.source else block.start)
    transition = _edge_transition(block, edge, current)
    follows = bool(edge.source) and (
        transition is None or (transition.key == "Next" and transition.rules is None)
    )
    names = (entry.key for entry in block.states.entries)
    states = tuple(name for name in names if not follows or name != edge.source)
    return EdgeTargets(current, states, end=follows, made_by=_made_by(tree, edge, transition))


def _made_by(tree: DefinitionTree, edge: GraphEdge, transition: Transition | None) -> str:
    """Return a text that names the part of a state with an edge: two may have the same target."""
    if edge.owner:
        is_parallel = tree.place(edge.owner).type == "Parallel"
        return f"branch {edge.index + 1}" if is_parallel else ""
    if transition is None or transition.rules is None:
        return "the default" if transition and transition.key == "Default" else ""
    place = next(
        at for at, rule in enumerate(transition.rules.items(), 1) if rule is transition.holder
    )
    is_choice = tree.place(edge.source).type == "Choice"
    return f"{'rule' if is_choice else 'catch'} {place}"


def reconnect_edge(tree: DefinitionTree, edge: GraphEdge, target: str) -> EditDone:
    """Connect an edge to another state of its block, or to the end of the block.

    States that become unreachable stay: they may be meant for another edge.
    """
    targets = edge_targets(tree, edge)
    selected = edge.source or target
    if target == targets.current:
        return EditDone(selected, "Nothing was changed.")
    if target == END and not targets.end:
        raise EditRefused("Only Next can become End: choose a state for this edge.")
    if target != END and target not in targets.states:
        if target == edge.source:
            raise EditRefused(f"“{target}” would follow itself, and never end.")
        raise EditRefused(f"“{target}” does not stand on the same level as this edge.")
    lead_edge(edge_block(tree, edge), edge, targets.current, target)
    begins = edge.source or (f"The start of {edge.owner}" if edge.owner else "The start")
    return EditDone(selected, f"{begins} leads to {target or 'the end'} now.")
