"""Measure how long the visits of a state lasted together, as the timeline draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine import Visits

MOST_VISITS = 50
"""Above this those of a state's visits that are close to each other are drawn as one segment."""


def first_and_last(visits: Visits) -> tuple[int, int | None]:
    """Return when the first visit began and the last one ended, None if the newest has not."""
    begin, end = visits.span(0)
    return begin, None if visits[-1].left_ms is None else end


def worked_ms(visits: Visits, now: int) -> int:
    """Return how long a state worked: time side by side counts once, that before a redrive not."""
    return visits.covered_ms(now)


def wall_time(stays: Iterable[tuple[int, int]]) -> int:
    """Return how much time some stays cover: what they have in common counts once."""
    known = list(stays)
    return engine.covered_ms([since for since, _ in known], [until for _, until in known])
