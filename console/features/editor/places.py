"""Tell which lines of the text each drawn state has, for text and graph to highlight each other."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.graph import definition_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine import Graph


@dataclass(frozen=True, slots=True)
class StateLines:
    """A state: the id of its node, its name, its first and last line, from 1.

    ``node``: "" if it is not drawn; ``block``: the id of the Parallel or Map that it stands in, ""
    at the top, and the number of the branch.
    """

    node: str
    name: str
    block: str
    first: int
    last: int


MOST_PLACES = 2000
"""Of more states only those that are drawn have a place: each takes a hundred bytes to send."""


def state_places(text: str, graph: Graph, drawn: Collection[str]) -> list[StateLines]:
    """Return the lines of the states. ``drawn``: the ids of those that the picture has."""
    few = len(graph.nodes) <= MOST_PLACES
    blocks = {group.id: f"{group.owner}.{group.index}" for group in graph.groups}
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return [
        StateLines(
            node.id if node.id in drawn else "",
            name,
            blocks[node.group],
            bisect_right(starts, start),
            bisect_right(starts, end - 1),
        )
        for name, start, end in definition_text.state_places(text)
        if (node := graph.by_id.get(graph.by_name.get(name, ""))) is not None
        and (few or node.id in drawn)
    ]
