"""Simple layered layout in linear time, for graphs too large for Graphviz.

Each box is below all its predecessors, except in loops. An arrow to the next row is a curve; any
other leaves its row, runs in a lane at the right and enters above its target. Arrows to the same
target share a lane. Labels are omitted for lack of room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web.graph.diagram import Arrow, Curve, Diagram, Direction, Drawn, Rectangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.web.graph.shapes import Point

# Pixels: the widest row, between two boxes, between two rows, from a row to the way of its arrows,
# between two lanes.
_WIDEST, _BESIDE, _BELOW, _AWAY, _LANE = 2400, 29, 48, 14, 8
_LANES = 40


def lay_out(diagram: Diagram, most_arrows: int) -> Drawn:
    """Place all boxes, and the first ``most_arrows`` arrows between different pairs."""
    if diagram.direction is Direction.RIGHT:
        return mirrored(_downwards(turned(diagram), most_arrows))
    return _downwards(diagram, most_arrows)


def turned(diagram: Diagram) -> Diagram:
    """Return a diagram with width and height of its boxes exchanged."""
    parts = (
        replace(part, width=part.height, height=part.width) if isinstance(part, Rectangle) else part
        for part in diagram.parts
    )
    return Diagram(tuple(parts))


def mirrored(drawn: Drawn) -> Drawn:
    """Return a downward layout turned to the right: x and y are exchanged."""
    return Drawn(
        drawn.height,
        drawn.width,
        {name: (y, x) for name, (x, y) in drawn.spots.items()},
        tuple(
            Curve(curve.id, _PAIR.sub(r"\2,\1", curve.path), curve.label_at)
            for curve in drawn.curves
        ),
    )


_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")


def _downwards(diagram: Diagram, most_arrows: int) -> Drawn:
    boxes = {part.id: part for part in diagram.parts if isinstance(part, Rectangle)}
    arrows = _distinct(part for part in diagram.parts if isinstance(part, Arrow))
    rows = _rows(boxes, arrows)
    drawn = arrows[:most_arrows]
    places = _places(boxes, rows)
    lanes: dict[str, int] = {}
    curves = tuple(_curve(arrow, places, lanes) for arrow in drawn)
    gutter = _BESIDE + _LANE * min(len(lanes), _LANES) if lanes else 0
    return Drawn(places.width + gutter, places.height, places.spots, curves)


def _distinct(arrows: Iterable[Arrow]) -> list[Arrow]:
    """Return one arrow per pair of boxes: without labels, others would overlap."""
    layers: dict[tuple[str, str], Arrow] = {}
    for arrow in arrows:
        layers.setdefault((arrow.source, arrow.target), arrow)
    return list(layers.values())


def _rows(boxes: Mapping[str, Rectangle], arrows: Sequence[Arrow]) -> list[list[str]]:
    """Return the boxes row by row; a wide layer takes several rows."""
    targets: dict[str, list[str]] = {box: [] for box in boxes}
    for arrow in arrows:
        targets[arrow.source].append(arrow.target)
    layers: dict[int, list[str]] = {}
    for node, layer in _layers(targets).items():
        layers.setdefault(layer, []).append(node)
    return [row for layer in sorted(layers) for row in _broken(boxes, layers[layer])]


def _layers(targets: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the layer of each box: its longest path, without arrows that close a loop."""
    order, loops = _order(targets)
    layers = dict.fromkeys(targets, 0)  # in the order of the definition
    for node in order:
        for target in targets[node]:
            if (node, target) not in loops:
                layers[target] = max(layers[target], layers[node] + 1)
    return layers


def _order(targets: Mapping[str, Sequence[str]]) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the boxes in topological order, and the arrows that close a loop.

    A depth-first search with a stack of its own: a chain may be longer than Python's.
    """
    finished: list[str] = []
    state: dict[str, bool] = {}  # False: on the way, True: done
    loops: set[tuple[str, str]] = set()
    for root in targets:
        if root in state:
            continue
        state[root] = False
        stack = [(root, iter(targets[root]))]
        while stack:
            node, following = stack[-1]
            target = next(following, None)
            if target is None:
                state[node] = True
                finished.append(node)
                stack.pop()
            elif target not in state:
                state[target] = False
                stack.append((target, iter(targets[target])))
            elif not state[target]:
                loops.add((node, target))
    return finished[::-1], loops


def _broken(boxes: Mapping[str, Rectangle], layer: Sequence[str]) -> list[list[str]]:
    rows: list[list[str]] = []
    room = 0.0
    for node in layer:
        width = boxes[node].width + _BESIDE
        if not rows or width > room:
            rows.append([])
            room = _WIDEST
        rows[-1].append(node)
        room -= width
    return rows


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions. ``rows``: of each box; ``tops``, ``bottoms``: of each row."""

    width: float
    height: float
    spots: Mapping[str, Point]
    boxes: Mapping[str, Rectangle]
    rows: Mapping[str, int]
    tops: Sequence[float]
    bottoms: Sequence[float]


def _places(boxes: Mapping[str, Rectangle], rows: Sequence[Sequence[str]]) -> _Places:
    widths = [sum(boxes[node].width + _BESIDE for node in row) - _BESIDE for row in rows]
    width = max(widths)
    spots: dict[str, Point] = {}
    tops: list[float] = []
    bottoms: list[float] = []
    y = _BELOW / 2
    for row, wide in zip(rows, widths, strict=True):
        height = max(boxes[node].height for node in row)
        x = (width - wide) / 2
        for node in row:
            spots[node] = (x + boxes[node].width / 2, y + boxes[node].height / 2)
            x += boxes[node].width + _BESIDE
        tops.append(y)
        bottoms.append(y + height)
        y += height + _BELOW
    numbers = {node: number for number, row in enumerate(rows) for node in row}
    return _Places(width, y - _BELOW / 2, spots, boxes, numbers, tops, bottoms)


def _curve(arrow: Arrow, places: _Places, lanes: dict[str, int]) -> Curve:
    source, target = arrow.source, arrow.target
    (x, y), (to_x, to_y) = places.spots[source], places.spots[target]
    y += places.boxes[source].height / 2
    to_y -= places.boxes[target].height / 2
    source_row, target_row = places.rows[source], places.rows[target]
    if target_row == source_row + 1:
        bend = (to_y - y) / 2
        way = f"C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
        return Curve(arrow.id, f"M{x:.1f},{y:.1f} {way}")
    lane = lanes.setdefault(target, len(lanes)) % _LANES
    side = places.width + _BESIDE + _LANE * lane
    out, come = places.bottoms[source_row] + _AWAY, places.tops[target_row] - _AWAY
    points = ((x, y), (x, out), (side, out), (side, come), (to_x, come), (to_x, to_y))
    return Curve(arrow.id, "M" + " L".join(f"{a:.1f},{b:.1f}" for a, b in points))
