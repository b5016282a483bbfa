"""Fold a Parallel or Map of a large state machine into one box."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.web.graph.graph_view import GraphView
    from console.web.graph.shapes import Picture
    from engine import Graph

FOLD_ABOVE = 150
"""Machines with more states fold their groups."""


def states_inside(graph: Graph) -> dict[str, list[str]]:
    """Return Parallel or Map -> the ids of the states inside, at any depth."""
    owners = {group.id: group.owner for group in graph.groups}
    inside: dict[str, list[str]] = {group.owner: [] for group in graph.groups if group.owner}
    for node in graph.nodes:
        owner = owners[node.group]
        while owner:
            inside[owner].append(node.id)
            owner = owners[graph.by_id[owner].group]
    return inside


def owners_around(graph: Graph, name: str) -> set[str]:
    """Return the ids of the Parallels and Maps around a state; none for an unknown one."""
    owners = {group.id: group.owner for group in graph.groups}
    around: set[str] = set()
    node = graph.by_name.get(name, "")
    while node and (node := owners[graph.by_id[node].group]):
        around.add(node)
    return around


def fold_groups(graph: Graph, unfolded: Collection[str]) -> tuple[Graph, Mapping[str, int]]:
    """Return a graph without the states of folded groups; and owner -> number of states."""
    inside = states_inside(graph)
    folded = {owner: len(nodes) for owner, nodes in inside.items() if owner not in unfolded}
    hidden = {node for owner in folded for node in inside[owner]}
    nodes = tuple(node for node in graph.nodes if node.id not in hidden)
    shown = {node.id for node in nodes}
    folded_graph = replace(
        graph,
        nodes=nodes,
        edges=tuple(edge for edge in graph.edges if edge.source in shown),
        groups=tuple(
            group
            for group in graph.groups
            if not group.owner or (group.owner in shown and group.owner not in folded)
        ),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )
    return folded_graph, {owner: count for owner, count in folded.items() if owner in shown}


def view_around(graph: Graph, chosen: str, view: GraphView) -> GraphView:
    """Return a view that shows the selected state. Small state machines have no folds."""
    return view.folding(owners_around(graph, chosen) if len(graph.nodes) > FOLD_ABOVE else None)


def fold_links(view: GraphView, picture: Picture) -> dict[str, str]:
    """Return box -> URL parameter of unfolded groups after a click on its sign."""
    return {
        box.node.id: ",".join(sorted(view.unfolded ^ {box.node.id}))
        for box in picture.boxes
        if view.folds and (box.folded or box.nested)
    }
