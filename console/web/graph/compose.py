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
from math import ceil, sqrt
from typing import TYPE_CHECKING, TypeVar

from console.web.graph.diagram import Arrow, Curve, Diagram, Direction, Drawn, Rectangle
from console.web.graph.plain_layers import mirrored, turned
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
    from collections.abc import Mapping, Sequence


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from console.web.graph.graph_view import GraphView
    from engine import Edge, Graph, Node, StateGroup

    Draw = Callable[[Diagram], Drawn]

T = TypeVar("T")
_TOOLTIP = 500  # characters
_TERMINAL, _JOINT = (61.92, 28.8), (0.72, 0.72)
"""Sizes of Start and End, and of the point where the lines out of a group meet; pixels."""
_MARGIN = 8
_APART = 16
"""The space between edges without labels that connect the same two states; pixels.

Without it Graphviz draws all of them within a few pixels, too close to be distinguished or clicked.
"""
_BUS, _CORNER = 14, 8
"""The distance of crossing edges from the branches, and the radius of the corners; pixels."""


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
    is_single = len(parts) == 1  # its ways in and out need no place in common with others
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for group, part in zip(groups, parts, strict=True):
        moved = _shift(part, offset, 0)
        boxes += moved.boxes
        lines += moved.lines
        if moved.start is not None:
            x, y = moved.start
            turns = [(x if is_single else middle, -ENTRY), (x, y if y < 1 else 0)]
            lines.append(_thread(group, [*turns, (x, y)], "in", Direction.DOWN))
        if moved.end is not None:
            x = moved.end[0]
            turns = [(x, height), (x if is_single else middle, height + EXIT + PAD)]
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
    is_single = len(parts) == 1
    boxes: list[Box] = []
    lines: list[EdgeLine] = []
    for group, part in zip(groups, parts, strict=True):
        moved = _shift(part, 0, top)
        boxes += moved.boxes
        lines += moved.lines
        if moved.start is not None:
            x, y = moved.start
            turns = [(-ENTRY - PAD, y if is_single else middle), (x if x < 1 else 0, y)]
            lines.append(_thread(group, [*turns, (x, y)], "in", Direction.RIGHT))
        if moved.end is not None:
            y = moved.end[1]
            turns = [(width, y), (width + EXIT + PAD, y if is_single else middle)]
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
            _middle_width(edge, view, is_single=parallel[edge.source, edge.target] == 1),
        )
        for place, edge in enumerate(states.edges)
    ]
    ends = _edge_ends(states.nodes, outer=states.outer)
    if ends and states.last is None:
        parts.append(Rectangle("end", *end))
        parts += [Arrow(f"{end.id}-end", end.id, "end", headless=not states.outer) for end in ends]
    return Diagram(tuple(parts), view.direction, tight=view.compact)


def _middle_width(edge: Edge, view: GraphView, *, is_single: bool) -> float:
    """Return the width to reserve at the middle of an edge: for its label, or parallel edges."""
    if view.compact:  # no edge has a label, and they share the room evenly
        return 0
    return label_width(cut_text(edge.label)) if edge.label else 0 if is_single else _APART


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
        # a curve ends near the point where the outgoing lines meet: extend it to that point
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


LEAST_ROWS = 20
"""A diagram with fewer rows has one column."""
_SLIM = 2.5
"""The ratio of height to width from which a diagram is wrapped."""
_RATIO = 1.4
"""Width of a frame as a multiple of its height."""
_AWAY, _LANE, _RADIUS = 14, 9, 6
"""Pixels: from a row to the way of its arrows, between two lanes, of a corner."""
_CROSSING = 400
"""Pixels that a cut may be away from its ideal place to be crossed by one arrow less."""
_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")


def in_columns(diagram: Diagram, drawn: Drawn) -> Drawn:
    """Return a long slim layout in columns (in rows, if it runs to the right)."""
    if diagram.direction is Direction.RIGHT:
        return mirrored(_wrapped(turned(diagram), mirrored(drawn), 1 / _RATIO))
    return _wrapped(diagram, drawn, _RATIO)


@dataclass(frozen=True, slots=True)
class _Row:
    """Boxes side by side."""

    top: float
    bottom: float
    boxes: frozenset[str]


def _wrapped(diagram: Diagram, drawn: Drawn, ratio: float) -> Drawn:
    if drawn.height < _SLIM * drawn.width:
        return drawn
    sizes = {part.id: part for part in diagram.parts if isinstance(part, Rectangle)}
    arrows = {part.id: part for part in diagram.parts if isinstance(part, Arrow)}
    rows = _rows(sizes, drawn.spots)
    if len(rows) < LEAST_ROWS:
        return drawn
    count = ceil(sqrt(ratio * drawn.height / (drawn.width + 4 * _AWAY)))
    cuts = _cuts(rows, list(arrows.values()), drawn.height / count)
    if not cuts:
        return drawn
    return _Columns(rows, cuts, sizes, arrows, drawn).wrapped()


def _rows(sizes: Mapping[str, Rectangle], spots: Mapping[str, Point]) -> list[_Row]:
    """Return the boxes in rows, top to bottom; boxes with overlapping heights share a row."""
    rows: list[_Row] = []
    for box in sorted(sizes, key=lambda box: spots[box][1] - sizes[box].height / 2):
        middle, half = spots[box][1], sizes[box].height / 2
        if rows and middle - half < rows[-1].bottom:
            last = rows.pop()
            rows.append(_Row(last.top, max(last.bottom, middle + half), last.boxes | {box}))
        else:
            rows.append(_Row(middle - half, middle + half, frozenset({box})))
    return rows


def _cuts(rows: Sequence[_Row], arrows: Sequence[Arrow], height: float) -> list[int]:
    """Return the first row of each column: near multiples of a height, crossed by few arrows."""
    row_of = {box: number for number, row in enumerate(rows) for box in row.boxes}
    crossed = [0] * (len(rows) + 1)
    for arrow in arrows:
        first, last = sorted((row_of[arrow.source], row_of[arrow.target]))
        for place in range(first + 1, last + 1):
            crossed[place] += 1
    cuts: list[int] = []
    ideal = height
    while ideal < rows[-1].bottom - height / 2:
        near = [
            place
            for place in range((cuts[-1] if cuts else 0) + 1, len(rows))
            if abs(rows[place].top - ideal) <= height / 3
        ]
        if near:
            best = min(near, key=lambda at: _CROSSING * crossed[at] + abs(rows[at].top - ideal))
            cuts.append(best)
        ideal += height
    return cuts


class _Columns:
    """The columns of one layout."""

    def __init__(
        self,
        rows: Sequence[_Row],
        cuts: Sequence[int],
        sizes: Mapping[str, Rectangle],
        arrows: Mapping[str, Arrow],
        drawn: Drawn,
    ) -> None:
        self._sizes, self._arrows, self._drawn = sizes, arrows, drawn
        edges = [0, *cuts, len(rows)]
        self._parts = [rows[first:after] for first, after in pairwise(edges)]
        self._row_of = {box: row for row in rows for box in row.boxes}
        self._column_of = {
            box: number
            for number, part in enumerate(self._parts)
            for row in part
            for box in row.boxes
        }
        self._lanes: list[dict[str, int]] = [{} for _ in range(len(self._parts) + 1)]
        """Gutter (0 is before the first column) -> target -> its lane."""
        self._below: dict[str, int] = {}  # target -> its lane below all columns
        for curve in drawn.curves:
            self._take_lanes(arrows[curve.id])

    def _take_lanes(self, arrow: Arrow) -> None:
        source, target = self._column_of[arrow.source], self._column_of[arrow.target]
        if source == target:
            return
        for gutter in {source + 1, target}:
            self._lanes[gutter].setdefault(arrow.target, len(self._lanes[gutter]))
        if source + 1 != target:
            self._below.setdefault(arrow.target, len(self._below))

    def wrapped(self) -> Drawn:
        gutters: list[float] = []
        shifts: list[Point] = []
        x = bottom = 0.0
        for number, part in enumerate(self._parts):
            gutters.append(x + _AWAY)
            x += self._gutter_width(number)
            left, right = self._extent(number)
            shifts.append((x - left, _AWAY - part[0].top))
            x += right - left
            bottom = max(bottom, part[-1].bottom - part[0].top + _AWAY)
        gutters.append(x + _AWAY)
        x += self._gutter_width(len(self._parts))
        floor = bottom + 2 * _AWAY
        spots = {
            box: _moved(spot, shifts[self._column_of[box]])
            for box, spot in self._drawn.spots.items()
        }
        curves = tuple(
            self._curve(curve, spots, shifts, gutters, floor) for curve in self._drawn.curves
        )
        return Drawn(x, floor + _LANE * len(self._below), spots, curves)

    def _gutter_width(self, number: int) -> float:
        lanes = len(self._lanes[number])
        outer = number in (0, len(self._parts))
        return 2 * _AWAY + _LANE * (lanes - 1) if lanes else 0.0 if outer else 2.0 * _AWAY

    def _extent(self, column: int) -> tuple[float, float]:
        """Return the left and right edge of a column's boxes, arrows and labels."""
        edges: list[float] = []
        for row in self._parts[column]:
            for box in row.boxes:
                middle, half = self._drawn.spots[box][0], self._sizes[box].width / 2
                edges += (middle - half, middle + half)
        for curve in self._drawn.curves:
            arrow = self._arrows[curve.id]
            if self._column_of[arrow.source] == column == self._column_of[arrow.target]:
                edges += (float(x) for x, _ in _PAIR.findall(curve.path))
                if curve.label_at:
                    half = arrow.label_width / 2
                    edges += (curve.label_at[0] - half, curve.label_at[0] + half)
        return min(edges), max(edges)

    def _curve(
        self,
        curve: Curve,
        spots: Mapping[str, Point],
        shifts: Sequence[Point],
        gutters: Sequence[float],
        floor: float,
    ) -> Curve:
        arrow = self._arrows[curve.id]
        source, target = self._column_of[arrow.source], self._column_of[arrow.target]
        if source == target:
            shift = shifts[source]
            label_at = curve.label_at and _moved(curve.label_at, shift)
            return replace(curve, path=_moved_path(curve.path, shift), label_at=label_at)
        (x, y), (to_x, to_y) = spots[arrow.source], spots[arrow.target]
        y += self._sizes[arrow.source].height / 2
        to_y -= self._sizes[arrow.target].height / 2
        out = self._row_of[arrow.source].bottom + shifts[source][1] + _AWAY
        come = self._row_of[arrow.target].top + shifts[target][1] - _AWAY

        def lane(gutter: int) -> float:
            return gutters[gutter] + _LANE * self._lanes[gutter][arrow.target]

        points = [(x, y), (x, out), (lane(source + 1), out)]
        if source + 1 != target:
            low = floor + _LANE * self._below[arrow.target]
            points += [(lane(source + 1), low), (lane(target), low)]
        points += [(lane(target), come), (to_x, come), (to_x, to_y)]
        label_at = ((x + points[2][0]) / 2, out) if curve.label_at else None
        return Curve(curve.id, _round_corners(points), label_at)


def _moved(point: Point, shift: Point) -> Point:
    return point[0] + shift[0], point[1] + shift[1]


def _moved_path(path: str, shift: Point) -> str:
    def moved(match: re.Match[str]) -> str:
        return f"{float(match[1]) + shift[0]:.1f},{float(match[2]) + shift[1]:.1f}"

    return _PAIR.sub(moved, path)


def _round_corners(points: Sequence[Point]) -> str:
    """Return a path through points, alternately across and along, with round corners."""
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        radius = min(_RADIUS, _length(before, corner) / 2, _length(corner, after) / 2)
        begin, end = _towards(corner, before, radius), _towards(corner, after, radius)
        path += (
            f" L{begin[0]:.1f},{begin[1]:.1f}"
            f" Q{corner[0]:.1f},{corner[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
        )
    return f"{path} L{points[-1][0]:.1f},{points[-1][1]:.1f}"


def _length(first: Point, second: Point) -> float:
    return abs(first[0] - second[0]) + abs(first[1] - second[1])


def _towards(point: Point, other: Point, distance: float) -> Point:
    length = _length(point, other)
    share = distance / length if length else 0
    return point[0] + (other[0] - point[0]) * share, point[1] + (other[1] - point[1]) * share
