"""Draw the definition that a person is writing, with the groups of a large one folded."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine
from console.web.graph import definition_text, folding, svg
from console.web.graph.bounds import bound_graph
from console.web.graph.graph_view import MOST_UNFOLDED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.web.graph.graph_view import GraphView
    from engine import Graph


@dataclass(frozen=True, slots=True)
class ShownPreview:
    """The state of the editor's graph: already drawn, unfolded and selected.

    ``opened``: the names of groups that are unfolded, since their ids change with the text;
    ``chosen``: the name of a state that must be seen; ``drawn``: the digest of the graph there is.
    """

    opened: tuple[str, ...] = ()
    chosen: str = ""
    drawn: str = ""


def read_shown(sent: Mapping[str, str]) -> ShownPreview:
    """Return what an editor sends of its preview; what makes no sense is left out."""
    try:
        names = engine.loads(sent["opened"]) if sent["opened"] else []
    except engine.JsonTextError:
        names = []
    listed = names if isinstance(names, list) else []
    opened = tuple(name for name in listed if isinstance(name, str))[:MOST_UNFOLDED]
    return ShownPreview(opened, sent["chosen"], sent["drawn"])


def preview_context(
    text: str, kind: str, view: GraphView, shown: ShownPreview | None = None
) -> dict[str, Any]:
    """Return the picture of a definition and where its states stand; ``broken`` if there is none.

    ``picture`` is None, too, if the editor shows it already: most of what a person types changes no
    box and no line. ``kind``: the type of the machine.
    """
    shown = shown or ShownPreview()
    try:
        graph = engine.draw_unfinished(text, kind)
        view = _folding_view(graph, view, shown)
        drawn = _graph_digest(graph, view)
        picture = None if drawn == shown.drawn else svg.definition_picture(text, kind, view, graph)
    except engine.DefinitionError:
        return {"broken": True, "picture": None, "graph_view": view}
    unfolded = [graph.by_id[node].name for node in sorted(view.unfolded) if node in graph.by_id]
    return {
        "broken": False,
        "picture": picture,
        "drawn": drawn,
        "graph_view": view,
        "fold_links": folding.fold_links(view, picture) if picture else {},
        "state_places": state_places(text, graph, _visible_nodes(graph, view)),
        "opened": json.dumps(unfolded),
    }


def _folding_view(graph: Graph, view: GraphView, shown: ShownPreview) -> GraphView:
    if len(graph.nodes) <= folding.FOLD_ABOVE:
        return view.folding(None)
    ids = {graph.by_name[name] for name in shown.opened if name in graph.by_name}
    return view.folding(ids | folding.owners_around(graph, shown.chosen))


def _visible_nodes(graph: Graph, view: GraphView) -> set[str]:
    part = folding.fold_groups(graph, view.unfolded)[0] if view.folds else graph
    return {node.id for node in bound_graph(part).nodes}


def _graph_digest(graph: Graph, view: GraphView) -> str:
    """Return what tells pictures apart: everything that is drawn of a graph, and how."""
    nodes = [replace(node, text="") for node in graph.nodes]
    parts = repr((view.key, nodes, graph.edges, graph.groups))
    return hashlib.sha256(parts.encode(errors="surrogatepass")).hexdigest()[:16]


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
