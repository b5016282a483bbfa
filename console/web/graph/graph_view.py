"""View options of a graph: its direction, and which groups of a large graph are unfolded."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web.graph.diagram import Direction

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.http import HttpRequest

    from console.web.graph.shapes import Picture
    from engine import Graph


DIRECTION_COOKIE = "direction"
MOST_UNFOLDED = 200
_NODE_ID = re.compile(r"n\d{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GraphView:
    """View options. ``folds``: whether groups of a large state machine are folded.

    ``unfolded``: ids of the unfolded groups. ``plain``: boxes without a status line, so the graph
    is smaller. ``compact``: boxes with names only, and transitions without labels, for narrow
    columns.
    """

    direction: Direction = Direction.DOWN
    folds: bool = False
    unfolded: frozenset[str] = frozenset()
    plain: bool = False
    compact: bool = False

    @property
    def key(self) -> str:
        """Return the cache key of a layout within its definition, "" for the default view."""
        folded = f" folded {' '.join(sorted(self.unfolded))}" if self.folds else ""
        size = " compact" if self.compact else " plain" if self.plain else ""
        usual = self.direction is Direction.DOWN and not folded and not size
        return "" if usual else f"{self.direction}{folded}{size}\n"

    def folding(self, opened: set[str] | None) -> GraphView:
        """Return the view with all groups folded, except ``unfolded`` and ``opened``.

        None: no group is folded.
        """
        if opened is None:
            return replace(self, folds=False, unfolded=frozenset())
        return replace(self, folds=True, unfolded=self.unfolded | opened)


WHOLE = GraphView()
"""The default view: downwards, with nothing folded."""


def graph_view_of(request: HttpRequest) -> GraphView:
    """Return the view that the cookie and the URL select; invalid values are ignored."""
    cookie = request.COOKIES.get(DIRECTION_COOKIE, "")
    direction = Direction(cookie) if cookie in list(Direction) else Direction.DOWN
    node_ids = _NODE_ID.findall(request.GET.get("unfold", "")[: 8 * MOST_UNFOLDED])
    return GraphView(direction, unfolded=frozenset(node_ids[:MOST_UNFOLDED]))


FOLD_ABOVE = 150
"""The groups of a state machine with more states are folded."""


def states_inside(graph: Graph) -> dict[str, list[str]]:
    """Return id of a Parallel or Map -> ids of the states inside, at any depth."""
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
    """Return a graph without the states of folded groups, and owner -> number of hidden states."""
    inside = states_inside(graph)
    folded = {owner: len(nodes) for owner, nodes in inside.items() if owner not in unfolded}
    hidden = {node for owner in folded for node in inside[owner]}
    nodes = tuple(node for node in graph.nodes if node.id not in hidden)
    node_ids = {node.id for node in nodes}
    folded_graph = replace(
        graph,
        nodes=nodes,
        edges=tuple(edge for edge in graph.edges if edge.source in node_ids),
        groups=tuple(
            group
            for group in graph.groups
            if not group.owner or (group.owner in node_ids and group.owner not in folded)
        ),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )
    return folded_graph, {owner: count for owner, count in folded.items() if owner in node_ids}


def view_around(graph: Graph, chosen: str, view: GraphView) -> GraphView:
    """Return a view that shows the selected state. Small state machines have no folds."""
    return view.folding(owners_around(graph, chosen) if len(graph.nodes) > FOLD_ABOVE else None)


def fold_links(view: GraphView, picture: Picture) -> dict[str, str]:
    """Return box id -> value of the URL parameter ``unfold`` for a click on the fold sign."""
    return {
        box.node.id: ",".join(sorted(view.unfolded ^ {box.node.id}))
        for box in picture.boxes
        if view.folds and (box.folded or box.nested)
    }
