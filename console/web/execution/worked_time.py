"""Measure how long the visits of a state lasted together, as the timeline draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine import Visits

MOST_VISITS = 50
"""Above this a state's visits are drawn as one segment, from the first to the last."""


def first_and_last(visits: Visits) -> tuple[int, int | None]:
    """Return when the first visit began and the last one ended, None if the newest has not."""
    begin, end = visits.span(0)
    return begin, None if visits[-1].left_ms is None else end


def worked_ms(visits: Visits, now: int) -> int:
    """Return how long a state worked: time side by side counts once, that before a redrive not."""
    if len(visits) > MOST_VISITS:
        begin, end = visits.span(now)
        return visits.worked_ms(begin, end)
    return wall_time(visits.worked_stays(now))


def wall_time(stays: Iterable[tuple[int, int]]) -> int:
    """Return how much time some stays cover: what they have in common counts once."""
    total, last = 0, 0
    for since, until in sorted(stays):
        total += max(0, until - max(since, last))
        last = max(last, until)
    return total
