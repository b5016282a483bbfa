"""Make pictures of definitions, with a cache in memory and in files.

Graphviz lays out each group in a child process (``graph.layout_pool``); ``graph.compose`` combines
them. Texts and links come from our template. A graph beyond Graphviz's limits is drawn in plain
layers, with a note in the picture.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console.web.graph import dot, plain_layers
from console.web.graph.compose import compose_picture
from console.web.graph.graph_view import WHOLE, fold_groups
from console.web.graph.layout_pool import LIMIT_S, POOL, LayoutFailure, NotLaidOut
from console.web.graph.shapes import MOST_ARROWS, bound_graph

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
            if picture is None or (until_ms and until_ms <= now_ms()):
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
    since pictures are kept here and layouts in a folder.
    """
    key = layout_digest(view.key + text)
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
    """Return the names of all states, drawn or not; raise ``engine.DefinitionError``."""
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
    layout = read_layout(key)
    if layout is None:
        return None
    if layout.limit is not None:
        return None, layout
    try:
        return compose_picture(graph, lambda name: _known(layout, name), view), layout
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # of other sizes, or nothing that this version wrote


def _known(layout: Layout, diagram: Diagram) -> Drawn:
    return dot.parse_layout(layout.groups[layout_digest(dot.dot_source(diagram))])


def _by_graphviz(graph: Graph, key: str, view: GraphView) -> tuple[Picture | None, Layout]:
    """Return Graphviz's picture, None beyond its limits; cache both."""
    layout = Layout()
    try:
        with POOL.session() as session:

            def draw(diagram: Diagram) -> Drawn:
                text = dot.dot_source(diagram)
                answer = layout.groups[layout_digest(text)] = session.lay_out(text)
                return dot.parse_layout(answer)

            # the child's previous user may have laid out the same graph
            cached = _kept(graph, key, view)
            if cached is not None:
                return cached
            picture = compose_picture(graph, draw, view)
    except NotLaidOut as error:
        picture, layout = None, with_time_limit(error.reason)
    if layout.limit is not LayoutFailure.QUEUE:
        write_layout(key, layout)
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


MOST_FILES = 1000
MOST_BYTES = 64 * 1024 * 1024
_FORMAT = 2
_TRY_AGAIN_MS = {LayoutFailure.TIME: 24 * 3600 * 1000, LayoutFailure.CRASH: 24 * 3600 * 1000} | {
    LayoutFailure.SLOW: 10 * 60 * 1000
}
"""The time for which a definition that was too much for Graphviz is not retried."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The cached layout of a definition.

    ``groups``: SHA-256 of a group's DOT text -> its layout, so a group with changed sizes is laid
    out again. ``limit``: why there is no layout; ``until_ms``: expiry of that note.
    """

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    limit: LayoutFailure | None = None
    until_ms: int = 0


def now_ms() -> int:
    """Return this host's time: the files are on it, and no database is needed to read them."""
    return int(time.time() * 1000)


def with_time_limit(reason: LayoutFailure) -> Layout:
    """Return the layout of a definition that has just exceeded Graphviz's limits."""
    return Layout(limit=reason, until_ms=now_ms() + _TRY_AGAIN_MS.get(reason, 0))


def layout_digest(text: str) -> str:
    """Return the SHA-256 of a text, which may have lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_layout(key: str) -> Layout | None:
    """Return the cached layout of a key, None if missing or expired."""
    path = _path(key)
    if path is None:
        return None
    try:
        written = path.read_text("ascii")
        os.utime(path)
    except (OSError, ValueError):
        return None
    layout = _parse_file(written)
    if layout is None or (layout.limit is not None and layout.until_ms <= now_ms()):
        return None
    return layout


def _parse_file(written: str) -> Layout | None:
    """Read a file's text: a line with a SHA-256, then the JSON of which it is the hash."""
    checksum, _, text = written.partition("\n")
    if layout_digest(text) != checksum:
        return None
    try:
        limit, until_ms, groups = json.loads(text)
        return Layout(dict(groups), LayoutFailure(limit) if limit else None, int(until_ms))
    except (TypeError, ValueError):  # of another version
        return None


def write_layout(key: str, layout: Layout) -> None:
    """Store a layout, unless the folder cannot be written."""
    path = _path(key)
    if path is None:
        return
    text = json.dumps([layout.limit or "", layout.until_ms, layout.groups], separators=(",", ":"))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # a draft of its own: two threads may write the same layout
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix="draft-")
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{layout_digest(text)}\n{text}")
        Path(draft).replace(path)
        _delete_oldest(path.parent)


def _path(key: str) -> Path | None:
    folder: Path | None = settings.STATEYARD_LAYOUTS
    return folder / f"{key}-{_FORMAT}" if folder is not None else None


def _delete_oldest(folder: Path) -> None:
    """Delete the least recently used files above the limit."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process removed it
            about = path.stat()
            files.append((about.st_mtime_ns, about.st_size, path))
    room = sum(size for _, size, _ in files) - MOST_BYTES
    surplus = len(files) - MOST_FILES
    for _, size, path in sorted(files):
        if room <= 0 and surplus <= 0:
            return
        path.unlink(missing_ok=True)
        room -= size
        surplus -= 1
