"""Place each state of a definition in its picture.

One group at a time is laid out (the machine, a branch, an item processor), by Graphviz in a process
of its own (``graph.layout_pool``). An inner group becomes a box of its parent, so boxes nest
cleanly. Words and links are our template's. What Graphviz does not lay out within its limits is
drawn in plain layers, and the picture says so.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import engine
from console.web.graph import dot, layout_cache, plain_layers
from console.web.graph.bounds import MOST_ARROWS, bound_graph
from console.web.graph.diagram import Arrow, Diagram, Rectangle
from console.web.graph.layout_cache import Layout
from console.web.graph.layout_pool import LIMIT_S, POOL, LayoutFailure, NotLaidOut
from console.web.graph.shapes import (
    ENTRY,
    EXIT,
    GAP,
    HEAD,
    LINE,
    PAD,
    Box,
    EdgeLine,
    Picture,
    Point,
    cut_text,
    label_width,
    text_width,
    wrap_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from console.web.graph.diagram import Curve, Drawn
    from engine import Edge, Graph, Node, StateGroup

    Draw = Callable[[Diagram], Drawn]

T = TypeVar("T")
_TOOLTIP = 500  # characters
_TERMINAL, _JOINT = (61.92, 28.8), (0.72, 0.72)
"""Sizes of Start and End, and of the point where the lines out of a group meet; pixels."""

_PLAIN = "it is drawn in plain layers, without the words on its arrows."
_TOO_LARGE = f"This workflow is too large for Graphviz within {LIMIT_S:.0f} seconds; {_PLAIN}"
_WHY = {
    LayoutFailure.TIME: _TOO_LARGE,
    LayoutFailure.SLOW: _TOO_LARGE,
    LayoutFailure.CRASH: f"Graphviz could not lay out this workflow; {_PLAIN}",
    LayoutFailure.QUEUE: "Graphviz is busy with other workflows: this one is drawn in plain layers."
    " Load the page again for the usual picture.",
}
_TOO_MANY = f"This workflow has too many transitions for Graphviz; {_PLAIN}"


# -- pictures that are kept ------------------------------------------------------------------------


class _Pictures:
    """The pictures that were asked for last, by definition."""

    def __init__(self, most: int) -> None:
        """``most``: boxes and lines of all of them together."""
        self._most = most
        self._room = most
        self._known: OrderedDict[str, tuple[Picture, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> Picture | None:
        """Return a picture, unless it was to be tried again by now."""
        with self._lock:
            picture, until_ms = self._known.get(key, (None, 0))
            if picture is None or (until_ms and until_ms <= layout_cache.now_ms()):
                return None
            self._known.move_to_end(key)
            return picture

    def put(self, key: str, picture: Picture, until_ms: int) -> None:
        """Keep a picture; ``until_ms``: for so long, 0 for ever."""
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
        """Forget all."""
        with self._lock:
            self._known.clear()
            self._room = self._most


PICTURES = _Pictures(100_000)


def definition_picture(text: str, kind: str = "STANDARD") -> Picture:
    """Return the laid-out picture of a definition; raise ``engine.DefinitionError``.

    It takes at most about three seconds, of which the layout is two; most of the time none at all,
    since pictures are kept here and layouts in a folder (``layout_cache``).
    """
    key = layout_cache.layout_digest(text)
    known = PICTURES.get(f"{kind} {key}")
    if known is None:
        graph = engine.build_graph(engine.parse_stored(text, kind))
        known, layout = _laid_out(graph, key)
        if layout.limit is not LayoutFailure.QUEUE:
            PICTURES.put(f"{kind} {key}", known, layout.until_ms)
    return known


@lru_cache(maxsize=16)
def state_names(text: str) -> tuple[str, ...]:
    """Return the names of all states, drawn or not; raise ``engine.DefinitionError``."""
    return tuple(node.name for node in engine.build_graph(engine.parse_stored(text)).nodes)


def _laid_out(graph: Graph, key: str) -> tuple[Picture, Layout]:
    """Return a picture, and the layout it was made of. ``key``: what it is kept under."""
    part = bound_graph(graph)
    notices = []
    if len(part.nodes) < len(graph.nodes):
        states = f"{len(part.nodes):,} of {len(graph.nodes):,} states are drawn"
        notices.append(f"{states}, those nearest to the start. The text has all of them.")
    if len(part.edges) > MOST_ARROWS:
        return _plain_layout(part, [*notices, _TOO_MANY]), Layout()
    drawn, layout = _kept(part, key) or _by_graphviz(part, key)
    if drawn is None:
        why = _WHY[layout.limit or LayoutFailure.CRASH]
        return _plain_layout(part, [*notices, why]), layout
    return replace(drawn, notices=tuple(notices)), layout


def _kept(graph: Graph, key: str) -> tuple[Picture | None, Layout] | None:
    """Return the picture of a layout that is kept, None if there is none that fits."""
    layout = layout_cache.read_layout(key)
    if layout is None:
        return None
    if layout.limit is not None:
        return None, layout
    try:
        return _whole_picture(graph, lambda name: _known(layout, name)), layout
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # of other sizes, or nothing that this version wrote


def _known(layout: Layout, diagram: Diagram) -> Drawn:
    return dot.parse_layout(layout.groups[layout_cache.layout_digest(dot.dot_source(diagram))])


def _by_graphviz(graph: Graph, key: str) -> tuple[Picture | None, Layout]:
    """Return the picture that Graphviz makes, None if it did not within its limits; keep both."""
    layout = Layout()
    try:
        with POOL.session() as session:

            def draw(diagram: Diagram) -> Drawn:
                text = dot.dot_source(diagram)
                answer = layout.groups[layout_cache.layout_digest(text)] = session.lay_out(text)
                return dot.parse_layout(answer)

            # whoever had the child before may have laid out the same
            known = _kept(graph, key)
            if known is not None:
                return known
            made = _whole_picture(graph, draw)
    except NotLaidOut as error:
        made, layout = None, layout_cache.with_time_limit(error.reason)
    if layout.limit is not LayoutFailure.QUEUE:
        layout_cache.write_layout(key, layout)
    return made, layout


def _plain_layout(graph: Graph, notices: list[str]) -> Picture:
    pairs = len({(edge.source, edge.target) for edge in graph.edges})
    if pairs > MOST_ARROWS:
        notices = [*notices, f"{MOST_ARROWS:,} of {pairs:,} arrows are drawn."]
    left = MOST_ARROWS

    def draw(diagram: Diagram) -> Drawn:
        nonlocal left
        drawn = plain_layers.lay_out(diagram, max(left, 0))
        left -= len(drawn.curves)
        return drawn

    return replace(_whole_picture(graph, draw), notices=tuple(notices))


# -- composing -------------------------------------------------------------------------------------


def _whole_picture(graph: Graph, draw: Draw) -> Picture:
    layout = _Composer(graph, draw)
    return _shift(layout.group(layout.groups[""][0]), 8, 8, grow=16)


class _Composer:
    """Lays out a group, its inner groups first. ``groups``: by the state that holds them."""

    def __init__(self, graph: Graph, draw: Draw) -> None:
        self._draw = draw
        self.groups = _move_by(graph.groups, lambda group: group.owner)
        self._nodes = _move_by(graph.nodes, lambda node: node.group)
        self._edges = _move_by(graph.edges, lambda edge: graph.by_id[edge.source].group)

    def group(self, group: StateGroup) -> Picture:
        nodes, edges = self._nodes[group.id], self._edges.get(group.id, [])
        inner = {node.id: self._inside(node) for node in nodes}
        sizes = {node.id: _picture_size(node, inner[node.id]) for node in nodes}
        drawn = self._draw(_diagram(group, nodes, edges, sizes))
        return _compose(group, nodes, edges, inner, sizes, drawn)

    def _inside(self, node: Node) -> Picture | None:
        """Return the branches of a Parallel or the processor of a Map, side by side."""
        groups = self.groups.get(node.id)
        if not groups:
            return None
        parts = [self.group(group) for group in groups]
        width = sum(part.width for part in parts) + GAP * (len(parts) - 1)
        least = text_width(node) - 2 * PAD
        left = max(0.0, (least - width) / 2)
        height = max(part.height for part in parts)
        boxes: list[Box] = []
        lines: list[EdgeLine] = []
        middle = max(width, least) / 2
        for part in parts:
            moved = _shift(part, left, 0)
            boxes += moved.boxes
            lines += [_thread(node.id, (middle, -ENTRY), moved.start, "in"), *moved.lines]
            if moved.end is not None:
                lines.append(_thread(node.id, moved.end, (middle, height + EXIT + PAD), "out"))
            left += part.width + GAP
        return Picture(max(width, least), height, tuple(boxes), tuple(lines))


def _move_by(things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    ends: dict[str, list[T]] = {}
    for thing in things:
        ends.setdefault(key(thing), []).append(thing)
    return ends


def _compose(
    group: StateGroup,
    nodes: list[Node],
    edges: list[Edge],
    inner: dict[str, Picture | None],
    sizes: dict[str, Point],
    drawn: Drawn,
) -> Picture:
    outer = not group.owner
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for node in nodes:
        box = _state_box(
            node, drawn.spots[node.id], sizes[node.id], nested=inner[node.id] is not None
        )
        boxes.append(box)
        inside = inner[node.id]
        if inside is not None:
            moved = _shift(inside, box.x + PAD, box.y + HEAD + ENTRY + LINE * (len(box.lines) - 1))
            boxes += moved.boxes
            lines += moved.lines
    first = drawn.spots[group.start]
    start = drawn.spots["start"] if outer else (first[0], first[1] - sizes[group.start][1] / 2)
    known = {f"e{place}": edge for place, edge in enumerate(edges)}
    lines += [
        _edge_line(curve, known.get(curve.id), "next" if outer else "out") for curve in drawn.curves
    ]
    end = drawn.spots.get("end")
    return Picture(drawn.width, drawn.height, tuple(boxes), tuple(lines), start, end)


def _diagram(
    group: StateGroup, nodes: list[Node], edges: list[Edge], sizes: dict[str, Point]
) -> Diagram:
    """Return what is laid out of a group: ids and sizes, in the order of the definition."""
    outer = not group.owner
    end = _TERMINAL if outer else _JOINT
    parts: list[Rectangle | Arrow] = []
    if outer:
        parts += [Rectangle("start", *end), Arrow(f"start-{group.start}", "start", group.start)]
    parts += [Rectangle(node.id, *sizes[node.id]) for node in nodes]
    parts += [
        Arrow(f"e{place}", edge.source, edge.target, label_width(cut_text(edge.label)))
        if edge.label
        else Arrow(f"e{place}", edge.source, edge.target)
        for place, edge in enumerate(edges)
    ]
    ends = _edge_ends(nodes, outer=outer)
    if ends:
        parts.append(Rectangle("end", *end))
        parts += [Arrow(f"{end.id}-end", end.id, "end", headless=not outer) for end in ends]
    return Diagram(tuple(parts))


def _edge_ends(nodes: list[Node], *, outer: bool) -> list[Node]:
    """Return who leads to End. A Fail is an end of its own, unless the machine has no other."""
    last = [node for node in nodes if node.ends]
    happy = [node for node in last if node.type != "Fail"]
    return happy if happy or not outer else last


def _state_box(node: Node, middle: Point, size: Point, *, nested: bool) -> Box:
    x, y = middle[0] - size[0] / 2, middle[1] - size[1] / 2
    return Box(node, x, y, size[0], size[1], tuple(wrap_text(node.name)), nested)


def _edge_line(drawn: Curve, edge: Edge | None, kind: str) -> EdgeLine:
    if edge is None:  # from Start or to End
        source, _, target = drawn.id.partition("-")
        return EdgeLine(source, target, kind, drawn.path)
    at = drawn.label_at
    label, full_label = (
        (cut_text(edge.label), edge.label[:_TOOLTIP]) if at is not None else ("", "")
    )
    return EdgeLine(edge.source, edge.target, edge.kind, drawn.path, label, full_label, at)


def _thread(node: str, start: Point, end: Point | None, kind: str) -> EdgeLine:
    """Join the head or foot of a Parallel or Map with one of its branches."""
    (x, y), (to_x, to_y) = start, end or start
    bend = (to_y - y) / 2
    curve = f"{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
    return EdgeLine(node, node, kind, f"M{x:.1f},{y:.1f} C{curve}")


def _shift(part: Picture, x: float, y: float, grow: float = 0) -> Picture:
    def moved(point: Point | None) -> Point | None:
        return None if point is None else (point[0] + x, point[1] + y)

    return replace(
        part,
        width=part.width + grow,
        height=part.height + grow,
        boxes=tuple(replace(box, x=box.x + x, y=box.y + y) for box in part.boxes),
        lines=tuple(
            replace(line, path=_move(line.path, x, y), at=moved(line.at)) for line in part.lines
        ),
        start=moved(part.start),
        end=moved(part.end),
    )


def _move(path: str, x: float, y: float) -> str:
    def shift(match: re.Match[str]) -> str:
        return f"{float(match[1]) + x:.1f},{float(match[2]) + y:.1f}"

    return _PAIR.sub(shift, path)


_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")


def _picture_size(node: Node, inside: Picture | None) -> Point:
    rows = len(wrap_text(node.name))
    if inside is None:
        return text_width(node), 14 + LINE * (rows + 2) + 8
    return inside.width + 2 * PAD, inside.height + HEAD + ENTRY + LINE * (rows - 1) + PAD + EXIT
