"""Limit a graph to a drawable number of states: those nearest to the start."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine import Graph, StateGroup

MOST_STATES = 1000
PART = 500
"""How many states are drawn of a graph that has more than ``MOST_STATES``."""
MOST_ARROWS = 2000
"""Graphviz is not asked for more, and no more are drawn in plain layers.

(2,000 arrows between layers of 20 states took it a second; a page with them has a megabyte.)
"""


def bound_graph(graph: Graph) -> Graph:
    """Return the part of a graph to draw: the states nearest to the start.

    A state inside a Parallel or Map is as near as the state that holds it.
    """
    if len(graph.nodes) <= MOST_STATES:
        return graph
    nearest = _nearest(graph)
    kept_nodes = {node for node, _ in zip(nearest, range(PART), strict=False)}
    nodes = tuple(node for node in graph.nodes if node.id in kept_nodes)
    return replace(
        graph,
        nodes=nodes,
        edges=tuple(
            edge for edge in graph.edges if edge.source in kept_nodes and edge.target in kept_nodes
        ),
        groups=tuple(group for group in graph.groups if group.start in kept_nodes),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )


def _nearest(graph: Graph) -> Iterator[str]:
    """Yield the ids of all reachable states, breadth first."""
    inner: dict[str, list[StateGroup]] = {}
    for group in graph.groups:
        inner.setdefault(group.owner, []).append(group)
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.source, []).append(edge.target)
    queue = deque(group.start for group in inner.get("", ()))
    reached = set(queue)
    while queue:
        node = queue.popleft()
        yield node
        for near in (*(group.start for group in inner.get(node, ())), *targets.get(node, ())):
            if near not in reached:
                reached.add(near)
                queue.append(near)
