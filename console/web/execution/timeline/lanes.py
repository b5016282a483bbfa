"""Draw how many iterations of a Map ran at once: each stands in the first lane that is free."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.web.execution.iteration_rows import IterationSpan
    from console.web.execution.timeline.axis import AxisSpan

MOST_LANES = 24
"""Where more iterations ran at once, several of them share a lane."""
MOST_RECTANGLES = 400
_LANE, _LEAST, _MOST = 4, 22, 100
"""Pixels: a lane, the lowest and the highest bar."""
_APART = 2.0
_SEEN = 8.0
"""Units: short iterations of a lane that end alike and follow each other are drawn as one."""


@dataclass(slots=True)
class LaneRectangle:
    """One iteration, or several of a lane that ended alike. Units of the axis."""

    lane: int
    x: float
    width: float
    tone: str

    @property
    def drawn_width(self) -> float:
        """Return its width without the gap to the next one."""
        return self.width - 1 if self.width > _SEEN else self.width


@dataclass(frozen=True, slots=True)
class LaneBar:
    """The iterations of a Map over time. ``peak``: how many ran at once at most."""

    rectangles: tuple[LaneRectangle, ...]
    lanes: int
    peak: int
    text: str

    @property
    def height(self) -> int:
        """Return how high it is, in pixels."""
        return min(_MOST, max(_LEAST, _LANE * self.lanes))


def lane_bar(spans: Sequence[IterationSpan], axis: AxisSpan, text: str) -> LaneBar:
    """Return the lanes of iterations. ``text``: how they ended, in words."""
    placed, peak = _assign_lanes(spans, axis.now)
    lanes = min(max(peak, 1), MOST_LANES)
    rectangles: list[LaneRectangle] = []
    last: dict[int, LaneRectangle] = {}
    for span, number in placed:
        end = axis.now if span.end is None else span.end
        if end < axis.begin or span.begin > axis.end:
            continue
        lane = number * lanes // max(peak, 1)
        x, width = axis.place(max(span.begin, axis.begin), min(end, axis.end), least=_APART)
        before = last.get(lane)
        if before is not None and _is_merged(before, span.tone, x, width, len(rectangles)):
            before.width = round(max(before.width, x + width - before.x), 1)
        else:
            last[lane] = LaneRectangle(lane, x, width, span.tone)
            rectangles.append(last[lane])
    at_once = f"at most {peak:,} at once" if peak > 1 else "one after the other"
    return LaneBar(tuple(rectangles), lanes, peak, f"{text}; {at_once}")


def _is_merged(before: LaneRectangle, tone: str, x: float, width: float, count: int) -> bool:
    """Tell whether an iteration is drawn as a part of the one before it in its lane."""
    if count >= MOST_RECTANGLES - MOST_LANES:
        return True
    near = x - before.x - before.width < _APART
    return near and before.tone == tone and width < _SEEN


def _assign_lanes(
    spans: Sequence[IterationSpan], now: int
) -> tuple[list[tuple[IterationSpan, int]], int]:
    """Return each iteration with its lane, by beginning, and how many lanes there are."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    placed: list[tuple[IterationSpan, int]] = []
    count = 0
    for span in sorted(spans, key=lambda span: span.begin):
        for lane in _released(busy, span.begin):
            heappush(free, lane)
        if free:
            lane = heappop(free)
        else:
            lane, count = count, count + 1
        heappush(busy, (now if span.end is None else span.end, lane))
        placed.append((span, lane))
    return placed, count


def _released(busy: list[tuple[int, int]], until: int) -> Iterator[int]:
    while busy and busy[0][0] <= until:
        yield heappop(busy)[1]
