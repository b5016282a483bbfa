"""Build the timeline of the execution page: its axis, and bar and duration of each row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from console.db import clock
from console.features.timeline import bars
from console.features.timeline.pieces import (
    BarPiece,
    TimelineZoom,
    clip_piece,
    stays_by_attempt,
)
from console.web.core import formatting
from console.web.execution.iteration_rows import WORST_FIRST, IterationSpan, endings_text
from engine import Visits, covered_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.http import QueryDict

    from console.features.timeline.axis import AxisSpan, TimeAxis
    from console.models import Execution
    from console.web.execution.iteration_rows import IterationSummary
    from console.web.execution.step_tree import StepRow
    from engine import Trace


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """The timeline of an execution. ``bars``, ``durations``, ``lanes``: by row id.

    ``drawn_ms``: when it was drawn; the bars of a running execution are drawn anew later.
    """

    axis: TimeAxis
    bars: Mapping[str, Sequence[bars.Segment]]
    durations: Mapping[str, RowDuration]
    lanes: Mapping[str, LaneBar]
    zoom: TimelineZoom
    drawn_ms: int


def timeline_part(
    execution: Execution,
    trace: Trace,
    rows: Sequence[StepRow],
    query: QueryDict,
    past_ms: int | None,
) -> TimelinePart:
    """Return the timeline of some rows. ``past_ms``: the displayed time, None for now."""
    zoom = TimelineZoom.of(query)
    now = clock.now_ms()
    axis, drawn = bars.timeline_bars(execution, trace, rows, now, past_ms, zoom)
    return TimelinePart(
        axis=axis,
        bars=drawn,
        durations=attempt_durations(rows, axis),
        lanes={
            row.id: iteration_lanes(trace, row.iterations, axis)
            for row in rows
            if row.iterations is not None
        },
        zoom=zoom,
        drawn_ms=now,
    )


@dataclass(frozen=True, slots=True)
class RowDuration:
    """The duration of a row. ``worked``: "" if it was not in the attempt, or is running.

    ``since``: the start of the clock of a running row; ``visits``: how many it made.
    """

    worked: str = ""
    since: int | None = None
    visits: int = 0

    @property
    def paint(self) -> dict[str, str | int | None]:
        """Return the values with which the script repaints the cell."""
        return {"worked": self.worked, "worked_since": self.since, "visits": self.visits}


def attempt_durations(rows: Iterable[StepRow], axis: TimeAxis) -> dict[str, RowDuration]:
    """Return row id -> duration in the selected attempt; empty if all are shown."""
    if not axis.chosen:
        return {}
    return {row.id: _duration(row, axis) for row in rows}


def _duration(row: StepRow, axis: TimeAxis) -> RowDuration:
    chosen = axis.attempts[axis.chosen - 1]
    stays = [
        (since, until)
        for piece in _pieces(row, axis.span.now)
        for attempt, since, until in clip_piece(piece, axis.attempts)
        if attempt is chosen
    ]
    if not stays:
        return RowDuration()
    worked = covered_ms([since for since, _ in stays], [until for _, until in stays])
    if row.since is not None and axis.chosen == len(axis.attempts):
        return RowDuration(since=axis.span.now - worked, visits=len(stays))
    return RowDuration(formatting.duration_text(worked), visits=len(stays))


def _pieces(row: StepRow, now: int) -> Iterator[BarPiece]:
    """Yield the visits of a state; for iterations the time from first to last."""
    if isinstance(row.visits_made, Visits):
        for since, until in row.visits_made.stays(now):
            yield BarPiece(since, until, "", "")
    elif row.entered_ms is not None:
        yield BarPiece(row.entered_ms, now if row.left_ms is None else row.left_ms, "", "")


MOST_LANES = 24
"""The maximum number of lanes; above it, several iterations share one."""
MOST_RECTANGLES = 400
_LANE, _LEAST, _MOST = 4, 22, 100
"""Pixels: a lane, the lowest and the highest bar."""
_APART = 2.0
_SEEN = 8.0
"""Units: short iterations of a lane that end alike and follow each other are drawn as one."""
_STRIP, _STRIP_GAP = 3, 1
"""Pixels: the mark of the critical path, and the gap between it and the lanes."""
_RANKS = {formatting.STEP[status].tone: -rank for rank, status in enumerate(reversed(WORST_FIRST))}
"""Tone of an iteration -> its rank: 0 for the best, lower for worse."""


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
    """The iterations of a Map over time.

    ``critical``: x and width of the parts on the critical path, in units. ``endings``: how they
    ended in the attempts on display.
    """

    rectangles: tuple[LaneRectangle, ...]
    lanes: int
    text: str
    critical: tuple[tuple[float, float], ...] = ()
    endings: str = ""

    @property
    def drawing(self) -> SafeString:
        """Return the SVG of all rectangles, without a template: there may be hundreds of bars."""
        # Short iterations are widened to be visible and may overlap: the worst is drawn on top.
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


def _cut_by_attempt(trace: Trace, span: IterationSpan, axis: TimeAxis) -> Iterator[IterationSpan]:
    """Yield an iteration for each displayed attempt, with its outcome there."""
    for stay in stays_by_attempt(trace, span.visits, axis, span.status):
        if stay.attempt in axis.shown:
            runs = span.end is None and stay.status == span.status
            end = None if runs else stay.until
            yield IterationSpan(stay.since, end, stay.status, span.visits, stay.critical)


def lane_bar(
    spans: Sequence[IterationSpan],
    axis: AxisSpan,
    text: str,
    on_path: frozenset[int] = frozenset(),
) -> LaneBar:
    """Return the bar of iterations.

    ``text``: how the iterations ended, as text; ``on_path``: visits on the critical path.
    """
    placed, peak = _assign_lanes(spans, axis.now)
    lanes = min(max(peak, 1), MOST_LANES)
    rectangles, critical = _draw_lanes(placed, axis, lanes, max(peak, 1), on_path)
    at_once = f"up to {peak:,} at once" if peak > 1 else "one at a time"
    words = f"{text}; {at_once}"
    marks = tuple(_merged_marks(critical))
    return LaneBar(tuple(rectangles), lanes, words, marks, text)


def _draw_lanes(
    placed: list[tuple[IterationSpan, int]],
    axis: AxisSpan,
    lanes: int,
    peak: int,
    on_path: frozenset[int],
) -> tuple[list[LaneRectangle], list[tuple[float, float]]]:
    """Return the rectangles of iterations, and (x, width) of those on the critical path.

    ``placed``: each with its number among the ``peak`` that ran at once. One loop without calls:
    there may be thousands of iterations.
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
