"""Measure how long each row of the timeline worked in one attempt at its execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution.timeline.pieces import BarPiece, clip_piece
from engine import Visits, covered_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.web.execution.step_tree import StepRow
    from console.web.execution.timeline.axis import TimeAxis


@dataclass(frozen=True, slots=True)
class RowDuration:
    """What the timeline says of a row. ``worked``: "" if it was not in the attempt, or runs.

    ``since``: what the clock of a row that runs counts from; ``visits``: how many it made.
    """

    worked: str = ""
    since: int | None = None
    visits: int = 0

    @property
    def paint(self) -> dict[str, str | int | None]:
        """Return what the script repaints the cell with."""
        return {"worked": self.worked, "worked_since": self.since, "visits": self.visits}


def attempt_durations(rows: Iterable[StepRow], axis: TimeAxis) -> dict[str, RowDuration]:
    """Return row id -> its duration in the attempt that was chosen, none if all are shown."""
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
    """Yield the visits of a state; of iterations the time from the first to the last."""
    if isinstance(row.visits_made, Visits):
        for since, until in row.visits_made.stays(now):
            yield BarPiece(since, until, "", "")
    elif row.entered_ms is not None:
        yield BarPiece(row.entered_ms, now if row.left_ms is None else row.left_ms, "", "")
