"""Wrap a long graph into columns, as a newspaper does, for chains such as 100 states.

The graph is cut between rows; the part above the first cut is the first column, and so on. Arrows
within a column stay unchanged. An arrow to another column leaves below its row, runs in a lane
between the columns and enters above its target.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, sqrt
from typing import TYPE_CHECKING

from console.web.graph.diagram import Arrow, Curve, Diagram, Direction, Drawn, Rectangle
from console.web.graph.plain_layers import mirrored, turned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.web.graph.shapes import Point

LEAST_ROWS = 20
"""A diagram with fewer rows has one column."""
_SLIM = 2.5
"""How many times as high as wide a diagram is that is wrapped."""
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
        """Gutter, from the one before the first column -> target -> its lane."""
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
        return Curve(curve.id, _rounded(points), label_at)


def _moved(point: Point, shift: Point) -> Point:
    return point[0] + shift[0], point[1] + shift[1]


def _moved_path(path: str, shift: Point) -> str:
    def moved(match: re.Match[str]) -> str:
        return f"{float(match[1]) + shift[0]:.1f},{float(match[2]) + shift[1]:.1f}"

    return _PAIR.sub(moved, path)


def _rounded(points: Sequence[Point]) -> str:
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
