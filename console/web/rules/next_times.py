"""Compute the next moments of a schedule expression, so that a form can show what it means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console import clock
from console.events import schedules
from console.web.core import formatting
from console.web.rules.schedule_words import schedule_words

_MOMENTS = 5


@dataclass(frozen=True, slots=True)
class NextTime:
    """One moment: epoch ms, as the clocks of the schedule's zone show it, and how long until."""

    at_ms: int
    local: str
    distance: str


def next_times(expression: str, zone: str) -> dict[str, Any]:
    """Return the next five moments, or why there are none. A rate counts from now."""
    if not expression:
        return {"zone": zone, "times": [], "problem": ""}
    try:
        schedule = schedules.parse_schedule(expression, zone, with_once=True)
    except schedules.ScheduleError as error:
        return {"zone": zone, "times": [], "problem": str(error)}
    now_ms = clock.now_ms()
    times: list[NextTime] = []
    at_ms = schedule.next(now_ms, now_ms)
    while at_ms is not None and len(times) < _MOMENTS:
        shown = datetime.fromtimestamp(at_ms / 1000, schedule.zone)
        distance = formatting.duration_text(at_ms - now_ms)
        times.append(NextTime(at_ms, f"{shown:%a %d %b %Y %H:%M:%S %Z}", distance))
        at_ms = schedule.next(at_ms, now_ms)
    words = schedule_words(expression, zone) if times else ""
    problem = "" if times else "No moment is left"
    return {"zone": zone, "times": times, "problem": problem, "words": words}
