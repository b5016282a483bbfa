"""Build the timeline of the execution page: its axis, and bar and duration of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import clock
from console.web.core import formatting
from console.web.execution.timeline import bars
from console.web.execution.timeline.lanes import LaneBar, iteration_lanes
from console.web.execution.timeline.pieces import BarPiece, clip_piece
from console.web.execution.timeline.zoom import TimelineZoom
from engine import Visits, covered_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.http import QueryDict

    from console.models import Execution
    from console.web.execution.step_tree import StepRow
    from console.web.execution.timeline.axis import TimeAxis
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

    ``since``: what the clock of a row that runs counts from; ``visits``: how many it made.
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
