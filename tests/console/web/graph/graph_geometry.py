"""Find what makes a picture of a graph hard to read: crossed boxes, covered labels, cut names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from console.web.graph.shapes import NAME_SIZE, SIGNS, text_width_px

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.web.graph.shapes import Box, EdgeLine, Picture, Point
    from engine import Graph

Area = tuple[float, float, float, float]
"""Left, top, right, bottom; pixels."""
_SLACK = 1.5  # pixels that lines may touch
_CURVE_PARTS = 16
_NO_WAY = 1e-9
_POINTS_OF_A_CURVE = 3
_TOKEN = re.compile(r"[MCL]|(-?[\d.]+),(-?[\d.]+)")


@dataclass(slots=True)
class Flaws:
    """What was found: a short text for each place."""

    crossed_boxes: list[str] = field(default_factory=list)
    labels_on_boxes: list[str] = field(default_factory=list)
    labels_on_labels: list[str] = field(default_factory=list)
    labels_on_lines: list[str] = field(default_factory=list)
    cut_names: list[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Return how many there are of each kind."""
        return {name: len(getattr(self, name)) for name in self.__slots__}


def find_flaws(picture: Picture, graph: Graph) -> Flaws:
    """Return the flaws of a picture. ``graph``: says which boxes lie in which."""
    owners = {group.id: group.owner for group in graph.groups}
    around = {node.id: set(_around(graph, owners, node.id)) for node in graph.nodes}
    areas = {box.node.id: _shrunk(box) for box in picture.boxes} | _terminals(picture)
    ways = [(line, flattened(line.path)) for line in picture.lines]
    flaws = Flaws(cut_names=[box.node.name for box in picture.boxes if _is_cut(box)])
    for line, way in ways:
        own = around.get(line.source, set()) | around.get(line.target, set())
        if line.source == line.target and line.kind in ("in", "out"):  # a thread within its box
            own |= {line.source}
        flaws.crossed_boxes += [
            f"{line.key} through {node}"
            for node, area in areas.items()
            if node not in own and crosses(way, area)
        ]
    _check_labels(flaws, ways, areas, around)
    return flaws


def _check_labels(
    flaws: Flaws,
    ways: Sequence[tuple[EdgeLine, list[Point]]],
    areas: Mapping[str, Area],
    around: Mapping[str, set[str]],
) -> None:
    """Add what labels cover, and what covers them."""
    labels = [(line, _plate(line)) for line, _ in ways if line.label]
    for place, (line, plate) in enumerate(labels):
        flaws.labels_on_boxes += [
            f"{line.key} on {node}"
            for node, area in areas.items()
            if node not in around[line.source] and _meet(plate, area)
        ]
        flaws.labels_on_labels += [
            f"{line.key} on {other.key}"
            for other, beneath in labels[place + 1 :]
            if _meet(plate, beneath)
        ]
        flaws.labels_on_lines += [
            f"{line.key} on {other.key}"
            for other, way in ways
            if other is not line and crosses(way, plate)
        ]


def _terminals(picture: Picture) -> dict[str, Area]:
    """Return where Start and End stand."""
    half_width, half_height = 31 - _SLACK, 14.5 - _SLACK
    areas = {}
    for name, point in (("start", picture.start), ("end", picture.end)):
        if point is not None:
            x, y = point
            areas[name] = (x - half_width, y - half_height, x + half_width, y + half_height)
    return areas


def _around(graph: Graph, owners: dict[str, str], node: str) -> tuple[str, ...]:
    """Return the states that a state stands in."""
    owner = owners[graph.by_id[node].group]
    return (owner, *_around(graph, owners, owner)) if owner else ()


def _shrunk(box: Box) -> Area:
    return (
        box.x + _SLACK,
        box.y + _SLACK,
        box.x + box.width - _SLACK,
        box.y + box.height - _SLACK,
    )


def _plate(line: EdgeLine) -> Area:
    x, y, width, height = line.plate
    return x + _SLACK, y + _SLACK, x + width - _SLACK, y + height - _SLACK


def _is_cut(box: Box) -> bool:
    widest = max(text_width_px(line, NAME_SIZE, bold=True) for line in box.lines)
    shown = "".join("".join(box.lines).split()) == "".join(box.node.name.split())
    return widest > box.width - SIGNS + 0.01 or not shown


def _meet(first: Area, second: Area) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


def crosses(way: Sequence[Point], area: Area) -> bool:
    """Return whether a line leads through an area."""
    return any(_cuts(*piece, area) for piece in pairwise(way))


def _cuts(start: Point, end: Point, area: Area) -> bool:
    """Clip a straight piece to an area, as Liang and Barsky do."""
    begin, until = 0.0, 1.0
    for axis in (0, 1):
        delta = end[axis] - start[axis]
        low, high = area[axis] - start[axis], area[axis + 2] - start[axis]
        if abs(delta) < _NO_WAY:
            if low > 0 or high < 0:
                return False
            continue
        near, far = sorted((low / delta, high / delta))
        begin, until = max(begin, near), min(until, far)
    return begin < until


def flattened(path: str) -> list[Point]:
    """Return the points of path data in M, C and L, curves as short straight pieces."""
    points: list[Point] = []
    mode = ""
    held: list[Point] = []
    for match in _TOKEN.finditer(path):
        if match[0] in "MCL":
            mode, held = match[0], []
            continue
        held.append((float(match[1]), float(match[2])))
        if mode != "C":
            points += held
            held = []
        elif len(held) == _POINTS_OF_A_CURVE:
            points += _curve(points[-1], *held)
            held = []
    return points


def _curve(start: Point, first: Point, second: Point, end: Point) -> Iterator[Point]:
    for number in range(1, _CURVE_PARTS + 1):
        t = number / _CURVE_PARTS
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        yield (
            sum(
                w * point[0] for w, point in zip(weights, (start, first, second, end), strict=True)
            ),
            sum(
                w * point[1] for w, point in zip(weights, (start, first, second, end), strict=True)
            ),
        )
