"""Compose the picture of a graph from separate layouts of its groups.

A group is the state machine, a Parallel's branch or a Map's processor, and is laid out alone. An
inner group becomes a box in its parent, so boxes nest cleanly. A Parallel or Map has threads: lines
from its head to the first state of each branch, and from the last states to its edge. A thread
bends only before and after the groups, so that it crosses no box.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from console.web.graph.columns import in_columns
from console.web.graph.diagram import Arrow, Diagram, Direction, Rectangle
from console.web.graph.shapes import (
    ENTRY,
    EXIT,
    GAP,
    LINE,
    PAD,
    Box,
    EdgeLine,
    Picture,
    Point,
    cut_text,
    head_height,
    label_width,
    lines_below,
    name_lines,
    text_width,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from console.web.graph.diagram import Curve, Drawn
    from console.web.graph.graph_view import GraphView
    from engine import Edge, Graph, Node, StateGroup

    Draw = Callable[[Diagram], Drawn]

T = TypeVar("T")
_TOOLTIP = 500  # characters
_TERMINAL, _JOINT = (61.92, 28.8), (0.72, 0.72)
"""Sizes of Start and End, and of the point where the lines out of a group meet; pixels."""
_MARGIN = 8
_APART = 16
"""How much room an edge without a label has beside others that join the same states; pixels.

Without it Graphviz draws all of them in a few pixels, where none can be told or pressed.
"""
_BUS, _CORNER = 14, 8
"""How far from the branches their ways go across, and the radius of the corners; pixels."""


def compose_picture(graph: Graph, draw: Draw, view: GraphView) -> Picture:
    """Return the picture of a whole graph. ``draw``: lays out one group."""
    composer = _Composer(graph, draw, view)
    return _shift(composer.group(composer.groups[""][0]), _MARGIN, _MARGIN, grow=2 * _MARGIN)


@dataclass(frozen=True, slots=True)
class _GroupStates:
    """One group: its states, transitions, inner groups, and sizes."""

    group: StateGroup
    nodes: list[Node]
    edges: list[Edge]
    inner: dict[str, Picture | None]
    sizes: dict[str, Point]

    @property
    def outer(self) -> bool:
        """Whether it is the state machine itself."""
        return not self.group.owner

    @property
    def last(self) -> Node | None:
        """Return the only final state of the group, if it is surely placed last.

        Without loops every other state stands before it, and a thread can leave from its edge.
        """
        sources = {edge.source for edge in self.edges}
        sinks = [node for node in self.nodes if node.id not in sources]
        if self.outer or len(sinks) != 1 or _edge_ends(self.nodes, outer=False) != sinks:
            return None
        targets: dict[str, set[str]] = {}
        for edge in self.edges:
            targets.setdefault(edge.source, set()).add(edge.target)
        try:
            TopologicalSorter(targets).prepare()
        except CycleError:
            return None
        return sinks[0]

    @property
    def has_start(self) -> bool:
        """Whether its start is drawn: of the state machine, or if a loop leads back to it.

        Without loops, the first state stands before all others, and a thread can reach it.
        """
        return self.outer or any(edge.target == self.group.start for edge in self.edges)


class _Composer:
    """Lays out a group after its inner groups. ``groups``: by owning state."""

    def __init__(self, graph: Graph, draw: Draw, view: GraphView) -> None:
        self._draw = draw
        self._view = view
        self.groups = _move_by(graph.groups, lambda group: group.owner)
        self._nodes = _move_by(graph.nodes, lambda node: node.group)
        self._edges = _move_by(graph.edges, lambda edge: graph.by_id[edge.source].group)

    def group(self, group: StateGroup) -> Picture:
        nodes = self._nodes[group.id]
        inner = {node.id: self._inside(node) for node in nodes}
        sizes = {node.id: _box_size(node, inner[node.id], self._view) for node in nodes}
        states = _GroupStates(group, nodes, self._edges.get(group.id, []), inner, sizes)
        diagram = _diagram(states, self._view)
        drawn = self._draw(diagram)
        if not self._view.compact:  # a narrow column has no room for a second one
            drawn = in_columns(diagram, drawn)
        return _compose(states, drawn, self._view)

    def _inside(self, node: Node) -> Picture | None:
        """Return the branches of a Parallel or the processor of a Map, side by side."""
        groups = self.groups.get(node.id)
        if not groups:
            return None
        parts = [self.group(group) for group in groups]
        if self._view.direction is Direction.DOWN:
            return _side_by_side(node, groups, parts, self._view)
        return _one_below_the_other(node, groups, parts, self._view)


def _side_by_side(
    node: Node, groups: list[StateGroup], parts: list[Picture], view: GraphView
) -> Picture:
    """Return the branches side by side, for a graph that runs down."""
    width = sum(part.width for part in parts) + GAP * (len(parts) - 1)
    least = text_width(node, compact=view.compact) - 2 * PAD
    offset = max(0.0, (least - width) / 2)
    height = max(part.height for part in parts)
    middle = max(width, least) / 2
    alone = len(parts) == 1  # its ways in and out need no place in common with others
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for group, part in zip(groups, parts, strict=True):
        moved = _shift(part, offset, 0)
        boxes += moved.boxes
        lines += moved.lines
        if moved.start is not None:
            x, y = moved.start
            turns = [(x if alone else middle, -ENTRY), (x, y if y < 1 else 0)]
            lines.append(_thread(group, [*turns, (x, y)], "in", Direction.DOWN))
        if moved.end is not None:
            x = moved.end[0]
            turns = [(x, height), (x if alone else middle, height + EXIT + PAD)]
            lines.append(_thread(group, [moved.end, *turns], "out", Direction.DOWN))
        offset += part.width + GAP
    return Picture(max(width, least), height, tuple(boxes), tuple(lines))


def _one_below_the_other(
    node: Node, groups: list[StateGroup], parts: list[Picture], view: GraphView
) -> Picture:
    """Return the branches one below the other, for a graph that runs to the right."""
    height = sum(part.height for part in parts) + GAP * (len(parts) - 1)
    least = text_width(node, compact=view.compact) - 2 * PAD - ENTRY - EXIT
    width = max(least, *(part.width for part in parts))
    # lines come to the middle of the box around it, which has a head
    corner = _inner_corner(len(name_lines(node, compact=view.compact)), view)[1]
    middle, top = max((height + PAD - corner) / 2, 0), 0.0
    alone = len(parts) == 1
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for group, part in zip(groups, parts, strict=True):
        moved = _shift(part, 0, top)
        boxes += moved.boxes
        lines += moved.lines
        if moved.start is not None:
            x, y = moved.start
            turns = [(-ENTRY - PAD, y if alone else middle), (x if x < 1 else 0, y)]
            lines.append(_thread(group, [*turns, (x, y)], "in", Direction.RIGHT))
        if moved.end is not None:
            y = moved.end[1]
            turns = [(width, y), (width + EXIT + PAD, y if alone else middle)]
            lines.append(_thread(group, [moved.end, *turns], "out", Direction.RIGHT))
        top += part.height + GAP
    return Picture(width, height, tuple(boxes), tuple(lines))


def _thread(group: StateGroup, points: list[Point], kind: str, direction: Direction) -> EdgeLine:
    """Connect the head or edge of a Parallel or Map with one of its branches.

    ``points``: three; it bends in the strip where there are no boxes, and is straight elsewhere.
    """
    bend = 0 if kind == "in" else 1
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for place, (start, end) in enumerate(pairwise(points)):
        if place == bend:
            path += f" {_bend(start, end, kind, direction)}"
        elif start != end:  # an arrow head has no direction after a way of no length
            path += f" L{end[0]:.1f},{end[1]:.1f}"
    return EdgeLine(group.owner, group.owner, kind, path, thread=f"{kind}-{group.id}")


def _bend(start: Point, end: Point, kind: str, direction: Direction) -> str:
    """Return a path to a parallel line: straight, across with round corners, and straight."""
    down = direction is Direction.DOWN
    (x, y), (to_x, to_y) = (start, end) if down else (start[::-1], end[::-1])
    if abs(to_x - x) < 1:
        return f"L{end[0]:.1f},{end[1]:.1f}"
    bus = to_y - _BUS if kind == "in" else y + _BUS
    radius = min(_CORNER, abs(to_x - x) / 2)
    side = radius if to_x > x else -radius

    def at(across: float, along: float) -> str:
        return f"{across:.1f},{along:.1f}" if down else f"{along:.1f},{across:.1f}"

    first, second = at(x, bus), at(to_x, bus)
    return (
        f"L{at(x, bus - radius)} C{first} {first} {at(x + side, bus)} "
        f"L{at(to_x - side, bus)} C{second} {second} {at(to_x, bus + radius)} L{at(to_x, to_y)}"
    )


def _move_by(things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    ends: dict[str, list[T]] = {}
    for thing in things:
        ends.setdefault(key(thing), []).append(thing)
    return ends


def _compose(states: _GroupStates, drawn: Drawn, view: GraphView) -> Picture:
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for node in states.nodes:
        size, inside = states.sizes[node.id], states.inner[node.id]
        words = tuple(name_lines(node, compact=view.compact))
        box = _state_box(node, drawn.spots[node.id], size, words, nested=inside is not None)
        box = replace(box, plain=view.plain, compact=view.compact)
        boxes.append(box)
        if inside is not None:
            left, top = _inner_corner(len(box.lines), view)
            moved = _shift(inside, box.x + left, box.y + top)
            boxes += moved.boxes
            lines += moved.lines
    edges = [replace(edge, label="") if view.compact else edge for edge in states.edges]
    edge_of = {f"e{place}": edge for place, edge in enumerate(edges)}
    lines += [_edge_line(curve, edge_of.get(curve.id), states, drawn) for curve in drawn.curves]
    # where lines into the group and out of it end: at points of their own, or at its outer boxes
    way = view.direction
    start = drawn.spots.get("start") or _edge_point(states, drawn, states.group.start, way, -1)
    end = drawn.spots.get("end")
    if end is None and states.last is not None:
        end = _edge_point(states, drawn, states.last.id, way, 1)
    return Picture(drawn.width, drawn.height, tuple(boxes), tuple(lines), start, end)


def _edge_point(
    states: _GroupStates, drawn: Drawn, node: str, direction: Direction, side: int
) -> Point:
    """Return the middle of a box's edge. ``side``: -1 where lines enter, 1 where they leave."""
    (x, y), (width, height) = drawn.spots[node], states.sizes[node]
    if direction is Direction.DOWN:
        return x, y + side * height / 2
    return x + side * width / 2, y


def _diagram(states: _GroupStates, view: GraphView) -> Diagram:
    """Return the diagram of a group: ids and sizes, in definition order."""
    end = _TERMINAL if states.outer else _JOINT
    first = states.group.start
    parts: list[Rectangle | Arrow] = []
    if states.has_start:
        parts += [Rectangle("start", *end), Arrow(f"start-{first}", "start", first)]
    parts += [Rectangle(node.id, *states.sizes[node.id]) for node in states.nodes]
    parallel = Counter((edge.source, edge.target) for edge in states.edges)
    parts += [
        Arrow(
            f"e{place}",
            edge.source,
            edge.target,
            _middle_width(edge, view, alone=parallel[edge.source, edge.target] == 1),
        )
        for place, edge in enumerate(states.edges)
    ]
    ends = _edge_ends(states.nodes, outer=states.outer)
    if ends and states.last is None:
        parts.append(Rectangle("end", *end))
        parts += [Arrow(f"{end.id}-end", end.id, "end", headless=not states.outer) for end in ends]
    return Diagram(tuple(parts), view.direction, tight=view.compact)


def _middle_width(edge: Edge, view: GraphView, *, alone: bool) -> float:
    """Return the width to reserve at the middle of an edge: for its label, or parallel edges."""
    if view.compact:  # no edge has a label, and they share the room evenly
        return 0
    return label_width(cut_text(edge.label)) if edge.label else 0 if alone else _APART


def _edge_ends(nodes: list[Node], *, outer: bool) -> list[Node]:
    """Return the states that lead to End. A Fail needs no End, unless there is no other."""
    last = [node for node in nodes if node.ends]
    happy = [node for node in last if node.type != "Fail"]
    return happy if happy or not outer else last


def _state_box(
    node: Node, middle: Point, size: Point, words: tuple[str, ...], *, nested: bool
) -> Box:
    x, y = middle[0] - size[0] / 2, middle[1] - size[1] / 2
    return Box(node, x, y, size[0], size[1], words, nested)


def _edge_line(curve: Curve, edge: Edge | None, states: _GroupStates, drawn: Drawn) -> EdgeLine:
    if edge is None:  # from Start or to End
        source, _, target = curve.id.partition("-")
        if states.outer:
            return EdgeLine(source, target, "next", curve.path)
        if source == "start":
            return EdgeLine(source, target, "in", curve.path)
        # a curve ends beside the point where the ways out meet: without a gap, it leads to it
        x, y = drawn.spots["end"]
        return EdgeLine(source, target, "out", f"{curve.path} L{x:.1f},{y:.1f}")
    at = curve.label_at if edge.label else None
    label, full_label = (
        (cut_text(edge.label), edge.label[:_TOOLTIP]) if at is not None else ("", "")
    )
    return EdgeLine(edge.source, edge.target, edge.kind, curve.path, label, full_label, at)


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


def _inner_corner(rows: int, view: GraphView) -> Point:
    """Return the corner of the inner area in a Parallel's or Map's box."""
    head = head_height(rows, plain=view.plain, compact=view.compact)
    down = view.direction is Direction.DOWN
    return (PAD, head + ENTRY) if down else (PAD + ENTRY, head + PAD)


def _box_size(node: Node, inside: Picture | None, view: GraphView) -> Point:
    rows = len(name_lines(node, compact=view.compact))
    if inside is None:
        below = lines_below(plain=view.plain, compact=view.compact)
        width = text_width(node, compact=view.compact)
        return width, (8 if view.compact else 14) + LINE * (rows + below) + 8
    left, top = _inner_corner(rows, view)
    if view.direction is Direction.DOWN:
        return inside.width + left + PAD, inside.height + top + PAD + EXIT
    return inside.width + left + EXIT + PAD, inside.height + top + PAD
