"""Draw concurrent iterations of a Map in lanes: each in the first free lane."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from console.web.core import formatting
from console.web.execution.iteration_rows import WORST_FIRST, IterationSpan, endings_text
from console.web.execution.timeline.pieces import stays_by_attempt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.web.execution.iteration_rows import IterationSummary
    from console.web.execution.timeline.axis import AxisSpan, TimeAxis
    from engine import Trace

MOST_LANES = 24
"""Where more iterations ran at once, several of them share a lane."""
MOST_RECTANGLES = 400
_LANE, _LEAST, _MOST = 4, 22, 100
"""Pixels: a lane, the lowest and the highest bar."""
_APART = 2.0
_SEEN = 8.0
"""Units: short iterations of a lane that end alike and follow each other are drawn as one."""
_STRIP, _STRIP_GAP = 3, 1
"""Pixels: the mark of the critical path, and what is between it and the lanes."""
_RANKS = {formatting.STEP[status].tone: -rank for rank, status in enumerate(reversed(WORST_FIRST))}
"""Tone of an iteration -> 0 for the best, less for worse ones."""


@dataclass(slots=True)
class LaneRectangle:
    """One iteration, or adjacent ones with the same outcome. Units of the axis."""

    lane: int
    x: float
    width: float
    tone: str

    @property
    def drawing(self) -> str:
        """Return the SVG, with a gap to the next one."""
        width = self.width - 1 if self.width > _SEEN else self.width
        return (
            f'<rect class="{self.tone}" x="{self.x}" y="{self.lane}" width="{width}" height=".8"/>'
        )


@dataclass(frozen=True, slots=True)
class LaneBar:
    """The iterations of a Map over time. ``peak``: the maximum concurrency.

    ``critical``: x and width of what is on the critical path, in units. ``endings``: how they ended
    in the attempts on display.
    """

    rectangles: tuple[LaneRectangle, ...]
    lanes: int
    peak: int
    text: str
    critical: tuple[tuple[float, float], ...] = ()
    endings: str = ""

    @property
    def drawing(self) -> SafeString:
        """Return the SVG of all rectangles; no template, because there may be hundreds."""
        # Short iterations are widened to be seen, so that they overlap: the worst stands on top.
        ordered = sorted(self.rectangles, key=lambda each: _RANKS[each.tone], reverse=True)
        return SafeString("".join([rectangle.drawing for rectangle in ordered]))

    @property
    def height(self) -> int:
        """Return the height in pixels."""
        return self._lanes_px + (_STRIP_GAP + _STRIP if self.critical else 0)

    @property
    def units(self) -> float:
        """Return the height in lanes."""
        return round(self.lanes * self.height / self._lanes_px, 3)

    @property
    def strip(self) -> tuple[float, float]:
        """Return the place and height of the critical path's mark, in lanes."""
        lane = self.lanes / self._lanes_px
        return round(lane * (self._lanes_px + _STRIP_GAP), 3), round(lane * _STRIP, 3)

    @property
    def _lanes_px(self) -> int:
        return min(_MOST, max(_LEAST, _LANE * self.lanes))


def iteration_lanes(trace: Trace, summary: IterationSummary, axis: TimeAxis) -> LaneBar:
    """Return the lanes of a Map's iterations, split by attempt of the execution."""
    if len(axis.attempts) == 1:
        drawn = (summary.spans, axis.span, summary.text, axis.critical.visits)
        return trace.derive((lane_bar, summary.owner), drawn, lambda: lane_bar(*drawn))
    cut = [span for whole in summary.spans for span in _cut_by_attempt(trace, whole, axis)]
    text = summary.text
    if axis.chosen:
        later = len(summary.spans) - len(cut) + summary.not_started
        text = endings_text(Counter(span.status for span in cut), later)
    return lane_bar(cut, axis.span, text)


def _cut_by_attempt(trace: Trace, whole: IterationSpan, axis: TimeAxis) -> Iterator[IterationSpan]:
    """Yield an iteration for each displayed attempt, with its outcome there."""
    for stay in stays_by_attempt(trace, whole.visits, axis, whole.status):
        if stay.attempt in axis.shown:
            runs = whole.end is None and stay.status == whole.status
            end = None if runs else stay.until
            yield IterationSpan(stay.since, end, stay.status, whole.visits, stay.critical)


def lane_bar(
    spans: Sequence[IterationSpan],
    axis: AxisSpan,
    text: str,
    on_path: frozenset[int] = frozenset(),
) -> LaneBar:
    """Return the bar of iterations.

    ``text``: how they ended, in words; ``on_path``: visits on the critical path.
    """
    placed, peak = _assign_lanes(spans, axis.now)
    lanes = min(max(peak, 1), MOST_LANES)
    rectangles, critical = _draw_lanes(placed, axis, lanes, max(peak, 1), on_path)
    at_once = f"up to {peak:,} at once" if peak > 1 else "one at a time"
    words = f"{text}; {at_once}"
    marks = tuple(_merged_marks(critical))
    return LaneBar(tuple(rectangles), lanes, peak, words, marks, text)


def _draw_lanes(
    placed: list[tuple[IterationSpan, int]],
    axis: AxisSpan,
    lanes: int,
    peak: int,
    on_path: frozenset[int],
) -> tuple[list[LaneRectangle], list[tuple[float, float]]]:
    """Return the rectangles of iterations, and (x, width) of those on the critical path.

    ``placed``: each with its number among the ``peak`` that ran at once. One loop without calls:
    there may be thousands.
    """
    rectangles: list[LaneRectangle] = []
    marks: list[tuple[float, float]] = []
    last: dict[int, LaneRectangle] = {}
    places: dict[tuple[int, int], tuple[float, float]] = {}  # many begin and end at once
    tones = {status: formatting.STEP[status].tone for status in WORST_FIRST}
    for (begin, ended, status, visits, critical), number in placed:
        end = axis.now if ended is None else ended
        if end < axis.begin or begin > axis.end:
            continue
        place = places.get((begin, end))
        if place is None:
            stretch = max(begin, axis.begin), min(end, axis.end)
            place = places[begin, end] = axis.place(*stretch, least=_APART)
        if critical or not on_path.isdisjoint(visits):
            marks.append(place)
        (x, width), tone = place, tones[status]
        lane = number * lanes // peak
        before = last.get(lane)
        if before is not None and (
            (before.tone == tone and width < _SEEN and x - before.x - before.width < _APART)
            or len(rectangles) >= MOST_RECTANGLES - MOST_LANES
        ):  # it is drawn as a part of the one before it in its lane, with the tone of the worse one
            before.tone = min(before.tone, tone, key=_RANKS.__getitem__)
            if x + width - before.x > before.width:
                before.width = round(x + width - before.x, 1)
        else:
            last[lane] = LaneRectangle(lane, x, width, tone)
            rectangles.append(last[lane])
    return rectangles, marks


def _merged_marks(marks: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join touching marks of the critical path."""
    merged: list[tuple[float, float]] = []
    for x, width in sorted(marks):
        if merged and x - sum(merged[-1]) < _APART:
            first = merged[-1][0]
            merged[-1] = (first, round(max(sum(merged[-1]), x + width) - first, 1))
        else:
            merged.append((x, width))
    return merged


def _assign_lanes(
    spans: Sequence[IterationSpan], now: int
) -> tuple[list[tuple[IterationSpan, int]], int]:
    """Return each iteration with its lane, by start, and the number of lanes."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    placed: list[tuple[IterationSpan, int]] = []
    count = 0
    for span in sorted(spans, key=itemgetter(0)):
        begin, end = span[:2]
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, count = count, count + 1
        heappush(busy, (now if end is None else end, lane))
        placed.append((span, lane))
    return placed, count
