"""Make pictures of definitions, with a cache in memory and in files.

Graphviz lays out each group in a child process (``graph.layout_pool``); ``graph.compose`` combines
them. Texts and links come from our template. A graph beyond Graphviz's limits is drawn in plain
layers, with a note in the picture.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import engine
from console.web.graph import dot, layout_cache, plain_layers
from console.web.graph.bounds import MOST_ARROWS, bound_graph
from console.web.graph.compose import compose_picture
from console.web.graph.folding import fold_groups
from console.web.graph.graph_view import WHOLE
from console.web.graph.layout_cache import Layout
from console.web.graph.layout_pool import LIMIT_S, POOL, LayoutFailure, NotLaidOut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.web.graph.diagram import Diagram, Drawn
    from console.web.graph.graph_view import GraphView
    from console.web.graph.shapes import Picture
    from engine import Graph

_PLAIN = "it is drawn in plain layers, without labels on arrows."
_TOO_LARGE = f"This workflow is too large for Graphviz within {LIMIT_S:.0f} seconds; {_PLAIN}"
_WHY = {
    LayoutFailure.TIME: _TOO_LARGE,
    LayoutFailure.SLOW: _TOO_LARGE,
    LayoutFailure.CRASH: f"Graphviz could not lay out this workflow; {_PLAIN}",
    LayoutFailure.QUEUE: "Graphviz is busy, so this workflow is drawn in plain layers."
    " Reload the page for the usual picture.",
}
_TOO_MANY = f"This workflow has too many transitions for Graphviz; {_PLAIN}"


# -- pictures that are kept ------------------------------------------------------------------------


class _Pictures:
    """Cache of the most recently used pictures, by definition."""

    def __init__(self, most: int) -> None:
        """``most``: total number of boxes and lines."""
        self._most = most
        self._room = most
        self._known: OrderedDict[str, tuple[Picture, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> Picture | None:
        """Return a picture, unless it has expired."""
        with self._lock:
            picture, until_ms = self._known.get(key, (None, 0))
            if picture is None or (until_ms and until_ms <= layout_cache.now_ms()):
                return None
            self._known.move_to_end(key)
            return picture

    def put(self, key: str, picture: Picture, until_ms: int) -> None:
        """Cache a picture; ``until_ms``: its expiry, 0 for never."""
        with self._lock:
            self._drop(key)
            self._known[key] = (picture, until_ms)
            self._room -= picture.weight
            while self._room < 0 and len(self._known) > 1:
                self._drop(next(iter(self._known)))

    def _drop(self, key: str) -> None:
        dropped = self._known.pop(key, None)
        if dropped is not None:
            self._room += dropped[0].weight

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._known.clear()
            self._room = self._most


PICTURES = _Pictures(100_000)


def definition_picture(
    text: str, kind: str = "STANDARD", view: GraphView = WHOLE, graph: Graph | None = None
) -> Picture:
    """Return the laid-out picture of a definition; raise ``engine.DefinitionError``.

    ``graph``: the definition's own, for one that the engine would not run.

    It takes at most about three seconds, of which the layout is two; most of the time none at all,
    since pictures are kept here and layouts in a folder (``layout_cache``).
    """
    key = layout_cache.layout_digest(view.key + text)
    picture = PICTURES.get(f"{kind} {key}")
    if picture is None:
        graph = graph or engine.build_graph(engine.parse_stored(text, kind))
        folded: Mapping[str, int] = {}
        if view.folds:
            graph, folded = fold_groups(graph, view.unfolded)
        picture, layout = _laid_out(graph, key, view)
        if folded:
            picture = _with_folds(picture, folded)
        if layout.limit is not LayoutFailure.QUEUE:
            PICTURES.put(f"{kind} {key}", picture, layout.until_ms)
    return picture


def _with_folds(picture: Picture, folded: Mapping[str, int]) -> Picture:
    """Return a picture whose boxes show the number of folded states."""
    boxes = (replace(box, folded=folded.get(box.node.id, 0)) for box in picture.boxes)
    return replace(picture, boxes=tuple(boxes))


@lru_cache(maxsize=16)
def state_names(text: str) -> tuple[str, ...]:
    """Return the names of all states, also undrawn ones; raise ``engine.DefinitionError``."""
    return tuple(node.name for node in engine.build_graph(engine.parse_stored(text)).nodes)


def _laid_out(graph: Graph, key: str, view: GraphView) -> tuple[Picture, Layout]:
    """Return a picture and its layout. ``key``: the cache key."""
    part = bound_graph(graph)
    notices = []
    if len(part.nodes) < len(graph.nodes):
        states = f"{len(part.nodes):,} of {len(graph.nodes):,} states are drawn"
        notices.append(f"{states}, nearest to the start first. The definition has all of them.")
    if len(part.edges) > MOST_ARROWS:
        return _plain_layout(part, view, [*notices, _TOO_MANY]), Layout()
    drawn, layout = _kept(part, key, view) or _by_graphviz(part, key, view)
    if drawn is None:
        why = _WHY[layout.limit or LayoutFailure.CRASH]
        return _plain_layout(part, view, [*notices, why]), layout
    return replace(drawn, notices=tuple(notices)), layout


def _kept(graph: Graph, key: str, view: GraphView) -> tuple[Picture | None, Layout] | None:
    """Return the picture of a cached layout, None without a valid one."""
    layout = layout_cache.read_layout(key)
    if layout is None:
        return None
    if layout.limit is not None:
        return None, layout
    try:
        return compose_picture(graph, lambda name: _known(layout, name), view), layout
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # of other sizes, or nothing that this version wrote


def _known(layout: Layout, diagram: Diagram) -> Drawn:
    return dot.parse_layout(layout.groups[layout_cache.layout_digest(dot.dot_source(diagram))])


def _by_graphviz(graph: Graph, key: str, view: GraphView) -> tuple[Picture | None, Layout]:
    """Return Graphviz's picture, None beyond its limits; cache both."""
    layout = Layout()
    try:
        with POOL.session() as session:

            def draw(diagram: Diagram) -> Drawn:
                text = dot.dot_source(diagram)
                answer = layout.groups[layout_cache.layout_digest(text)] = session.lay_out(text)
                return dot.parse_layout(answer)

            # the child's previous user may have laid out the same graph
            cached = _kept(graph, key, view)
            if cached is not None:
                return cached
            picture = compose_picture(graph, draw, view)
    except NotLaidOut as error:
        picture, layout = None, layout_cache.with_time_limit(error.reason)
    if layout.limit is not LayoutFailure.QUEUE:
        layout_cache.write_layout(key, layout)
    return picture, layout


def _plain_layout(graph: Graph, view: GraphView, notices: list[str]) -> Picture:
    pairs = len({(edge.source, edge.target) for edge in graph.edges})
    if pairs > MOST_ARROWS:
        notices = [*notices, f"{MOST_ARROWS:,} of {pairs:,} arrows are drawn."]
    budget = MOST_ARROWS

    def draw(diagram: Diagram) -> Drawn:
        nonlocal budget
        drawn = plain_layers.lay_out(diagram, max(budget, 0))
        budget -= len(drawn.curves)
        return drawn

    return replace(compose_picture(graph, draw, view), notices=tuple(notices))
