"""Preview the next times of a schedule expression in a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.db import clock
from console.features.notifications import schedules
from console.features.notifications.web.schedule_words import schedule_words
from console.web.core import formatting

if TYPE_CHECKING:
    from datetime import tzinfo

_MOMENTS = 5


@dataclass(frozen=True, slots=True)
class NextTime:
    """One time: epoch ms, local time in the schedule's zone, and the time until then."""

    at_ms: int
    local: str
    distance: str

    @classmethod
    def of(cls, at_ms: int, zone: tzinfo, now_ms: int) -> NextTime:
        """Return a time in a zone."""
        shown = clock.moment_of(at_ms, zone)
        distance = formatting.duration_text(at_ms - now_ms)
        return cls(at_ms, f"{shown:%a %d %b %Y %H:%M:%S %Z}", distance)


def next_times(
    expression: str, zone: str, began_ms: int | None = None, end_ms: int | None = None
) -> dict[str, Any]:
    """Return the next five times, or why there are none.

    ``began_ms``: the begin of a rate, None for now; ``end_ms``: the end date. In the result,
    ``problem`` is the error of the expression, and ``zone_problem`` that of the time zone.
    """
    nothing = {"zone": zone, "times": [], "problem": "", "zone_problem": ""}
    if not expression:
        return nothing
    wrong = "problem"
    try:
        schedules.parse_schedule(expression, "UTC", with_once=True)
        wrong = "zone_problem"
        schedule = schedules.parse_schedule(expression, zone, with_once=True)
    except schedules.ScheduleError as error:
        return nothing | {wrong: str(error)}
    now_ms = clock.now_ms()
    times: list[NextTime] = []
    dates = schedules.ScheduleDates(now_ms if began_ms is None else began_ms, end_ms)
    at_ms = dates.next(schedule, now_ms)
    while at_ms is not None and len(times) < _MOMENTS:
        times.append(NextTime.of(at_ms, schedule.zone, now_ms))
        at_ms = dates.next(schedule, at_ms)
    words = schedule_words(expression, zone) if times else ""
    problem = "" if times else "No runs left"
    return nothing | {"times": times, "problem": problem, "words": words}
