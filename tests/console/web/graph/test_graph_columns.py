"""A long graph is wrapped into columns: nothing overlaps, and each arrow leads to its target."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest

from console.web.graph import plain_layers
from console.web.graph.compose import in_columns
from console.web.graph.diagram import Arrow, Diagram, Direction, Rectangle

WIDE, HIGH = 200.0, 66.0
NUMBER = r"(-?[\d.]+),(-?[\d.]+)"


def diagram(
    states: int, ways: list[tuple[int, int]], direction: Direction = Direction.DOWN
) -> Diagram:
    """Return a chain of states with more ways between some of them."""
    boxes = [Rectangle(f"n{number}", WIDE, HIGH) for number in range(states)]
    pairs = [*pairwise(range(states)), *ways]
    arrows = [Arrow(f"e{place}", f"n{a}", f"n{b}") for place, (a, b) in enumerate(pairs)]
    return Diagram((*boxes, *arrows), direction)


CHAIN = diagram(100, [])
CAUGHT = diagram(60, [(number, 59) for number in range(57)] + [(40, 3), (58, 0)])


@pytest.mark.parametrize("chart", [CHAIN, CAUGHT])
def test_a_long_diagram_has_about_the_shape_of_a_frame(chart: Diagram) -> None:
    """So that all of it can be seen at once; no box lies on another one."""
    flat = plain_layers.lay_out(chart, 500)
    assert flat.height > 3 * flat.width
    drawn = in_columns(chart, flat)
    assert 0.6 < drawn.width / drawn.height < 2.5
    assert set(drawn.spots) == set(flat.spots)
    for first, second in combinations(drawn.spots.values(), 2):
        apart = abs(first[0] - second[0]) >= WIDE or abs(first[1] - second[1]) >= HIGH
        assert apart
    for x, y in drawn.spots.values():
        assert WIDE / 2 <= x <= drawn.width - WIDE / 2
        assert HIGH / 2 <= y <= drawn.height - HIGH / 2


@pytest.mark.parametrize("chart", [CHAIN, CAUGHT])
def test_each_arrow_leads_from_its_source_to_its_target_around_the_boxes(chart: Diagram) -> None:
    """Its straight pieces cross no box, and it stays inside the picture."""
    drawn = in_columns(chart, plain_layers.lay_out(chart, 500))
    arrows = {part.id: part for part in chart.parts if isinstance(part, Arrow)}
    assert len(drawn.curves) == len({(each.source, each.target) for each in arrows.values()})
    for curve in drawn.curves:
        arrow = arrows[curve.id]
        points = [(float(x), float(y)) for x, y in re.findall(NUMBER, curve.path)]
        (x, y), (to_x, to_y) = drawn.spots[arrow.source], drawn.spots[arrow.target]
        assert points[0] == pytest.approx((x, y + HIGH / 2), abs=0.1)
        assert points[-1] == pytest.approx((to_x, to_y - HIGH / 2), abs=0.1)
        for at_x, at_y in points:
            assert -0.1 <= at_x <= drawn.width + 0.1
            assert -0.1 <= at_y <= drawn.height + 0.1
        for begin, end in pairwise(points):
            left, right = sorted((begin[0], end[0]))
            top, bottom = sorted((begin[1], end[1]))
            for box_x, box_y in drawn.spots.values():
                beside = right <= box_x - WIDE / 2 + 1 or left >= box_x + WIDE / 2 - 1
                above = bottom <= box_y - HIGH / 2 + 1 or top >= box_y + HIGH / 2 - 1
                assert beside or above, (arrow, begin, end)


def test_a_short_or_broad_diagram_stays_as_it_is() -> None:
    """A chain of ten states has one column, and so has what is about as broad as high."""
    short = diagram(10, [])
    flat = plain_layers.lay_out(short, 500)
    assert in_columns(short, flat) is flat
    broad = Diagram(
        tuple(Rectangle(f"n{number}", 3 * WIDE, 40 * HIGH) for number in range(2)), Direction.DOWN
    )
    flat = plain_layers.lay_out(broad, 500)
    assert in_columns(broad, flat) is flat


def test_a_diagram_that_leads_to_the_right_is_wrapped_into_rows() -> None:
    """The same picture with x and y exchanged."""
    chart = diagram(100, [], Direction.RIGHT)
    flat = plain_layers.lay_out(chart, 500)
    assert flat.width > 3 * flat.height
    drawn = in_columns(chart, flat)
    assert 0.3 < drawn.width / drawn.height < 2.5
    assert len({round(y) for _, y in drawn.spots.values()}) > 3
