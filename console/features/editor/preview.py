"""Draw the definition in the editor while the reader types."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine
from console.web.graph import definition_text, graph_view, svg
from console.web.graph.graph_view import MOST_UNFOLDED
from console.web.graph.shapes import bound_graph

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.web.graph.graph_view import GraphView
    from engine import Graph


@dataclass(frozen=True, slots=True)
class ShownPreview:
    """The state of the editor's graph: the drawn part, the unfolded groups and the selected state.

    ``opened``: the names of unfolded groups, because their ids change with the text; ``chosen``:
    the name of the selected state; ``drawn``: the digest of the displayed graph.
    """

    opened: tuple[str, ...] = ()
    chosen: str = ""
    drawn: str = ""


def read_shown(sent: Mapping[str, str]) -> ShownPreview:
    """Parse the editor's state of its graph; invalid values are ignored."""
    try:
        names = engine.loads(sent["opened"]) if sent["opened"] else []
    except engine.JsonTextError:
        names = []
    listed = names if isinstance(names, list) else []
    opened = tuple(name for name in listed if isinstance(name, str))[:MOST_UNFOLDED]
    return ShownPreview(opened, sent["chosen"], sent["drawn"])


def preview_context(
    text: str, kind: str, view: GraphView, preview: ShownPreview | None = None
) -> dict[str, Any]:
    """Return a definition's picture and the lines of its states; ``broken`` if it cannot be drawn.

    ``picture`` is also None if the editor shows it already: most edits change no box or line.
    ``kind``: the type of the state machine.
    """
    preview = preview or ShownPreview()
    try:
        graph = engine.draw_unfinished(text, kind)
        view = _folding_view(graph, view, preview)
        drawn = _graph_digest(graph, view)
        picture = (
            None if drawn == preview.drawn else svg.definition_picture(text, kind, view, graph)
        )
    except engine.DefinitionError:
        return {"broken": True, "picture": None, "graph_view": view}
    unfolded = [graph.by_id[node].name for node in sorted(view.unfolded) if node in graph.by_id]
    return {
        "broken": False,
        "picture": picture,
        "drawn": drawn,
        "graph_view": view,
        "fold_links": graph_view.fold_links(view, picture) if picture else {},
        "state_places": state_places(text, graph, _visible_nodes(graph, view)),
        "opened": json.dumps(unfolded),
    }


def _folding_view(graph: Graph, view: GraphView, preview: ShownPreview) -> GraphView:
    if len(graph.nodes) <= graph_view.FOLD_ABOVE:
        return view.folding(None)
    ids = {graph.by_name[name] for name in preview.opened if name in graph.by_name}
    return view.folding(ids | graph_view.owners_around(graph, preview.chosen))


def _visible_nodes(graph: Graph, view: GraphView) -> set[str]:
    part = graph_view.fold_groups(graph, view.unfolded)[0] if view.folds else graph
    return {node.id for node in bound_graph(part).nodes}


def _graph_digest(graph: Graph, view: GraphView) -> str:
    """Return a digest of everything that is drawn of a graph, and how."""
    nodes = [replace(node, text="") for node in graph.nodes]
    parts = repr((view.key, nodes, graph.edges, graph.groups))
    return hashlib.sha256(parts.encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StateLines:
    """A state: the id of its node, its name, its first and last line, from 1.

    ``node``: "" if it is not drawn; ``block``: the id of the surrounding Parallel or Map and the
    number of the branch, "" at the top.
    """

    node: str
    name: str
    block: str
    first: int
    last: int


MOST_PLACES = 2000
"""Number of states above which only drawn states have line numbers: each takes a hundred bytes."""


def state_places(text: str, graph: Graph, drawn: Collection[str]) -> list[StateLines]:
    """Return the lines of the states. ``drawn``: ids of the drawn states."""
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
