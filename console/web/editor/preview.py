"""Draw the definition that a person is writing, with the groups of a large one folded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.web.editor.places import state_places
from console.web.graph import folding, svg
from console.web.graph.graph_view import MOST_UNFOLDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.web.graph.graph_view import GraphView
    from engine import Graph


def preview_context(
    text: str, kind: str, view: GraphView, opened: Iterable[str] = (), chosen: str = ""
) -> dict[str, Any]:
    """Return the picture of a definition, None if it cannot be drawn, and where its states stand.

    ``kind``: the type of the machine. ``opened``: the names of groups that are unfolded; their ids
    change with the text. ``chosen``: the name of a state that must be seen.
    """
    try:
        graph = engine.build_graph(engine.parse_unfinished(text, kind))
        view = _folding_view(graph, view, opened, chosen)
        drawn = svg.definition_picture(text, kind, view, graph)
    except engine.DefinitionError:
        return {"picture": None, "graph_view": view}
    unfolded = [graph.by_id[node].name for node in sorted(view.unfolded) if node in graph.by_id]
    return {
        "picture": drawn,
        "graph_view": view,
        "fold_links": folding.fold_links(view, drawn),
        "state_places": state_places(text, graph, drawn),
        "opened": json.dumps(unfolded),
    }


def _folding_view(graph: Graph, view: GraphView, opened: Iterable[str], chosen: str) -> GraphView:
    if len(graph.nodes) <= folding.FOLD_ABOVE:
        return view.folding(None)
    ids = {graph.by_name[name] for name in opened if name in graph.by_name}
    return view.folding(ids | folding.owners_around(graph, chosen))


def opened_names(sent: str) -> list[str]:
    """Return the names in a JSON list that the page sends; none of anything else."""
    try:
        names = engine.loads(sent) if sent else []
    except engine.JsonTextError:
        return []
    known = names if isinstance(names, list) else []
    return [name for name in known if isinstance(name, str)][:MOST_UNFOLDED]
