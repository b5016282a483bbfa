"""Compute the next times of a schedule: ``cron(...)`` in a time zone, ``rate(...)``, ``at(...)``.

Sources: the User Guides of EventBridge (expressions) and of EventBridge Scheduler (daylight saving
time: times in the gap of spring are skipped, repeated times of autumn happen once).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from console.db import clock
from console.features.notifications import cron, phrases

if TYPE_CHECKING:
    from collections.abc import Iterator

ScheduleError = cron.ScheduleError
_MOST_CHARACTERS = 256
_FORM = re.compile(r"(cron|rate|at)\((.*)\)", re.DOTALL)
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_RATE = re.compile(r"\s*(\d{1,9})\s+(minute|hour|day)(s?)\s*")
_UNIT_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A valid schedule: a cron expression in a zone, a period, or one time (milliseconds)."""

    cron: cron.Cron | None
    zone: tzinfo
    period_ms: int = 0
    once_ms: int | None = None

    def next(self, after_ms: int, began_ms: int) -> int | None:
        """Return the next time after a given one (epoch ms), None without any.

        ``began_ms``: when the schedule was made; rates count from there.
        """
        if self.once_ms is not None:
            return self.once_ms if self.once_ms > after_ms else None
        if self.cron is None:
            passed = max(after_ms - began_ms, 0) // self.period_ms
            return began_ms + (passed + 1) * self.period_ms
        after = clock.moment_of(after_ms)
        for moment in self._moments(clock.moment_of(after_ms, self.zone).date()):
            if moment > after:
                return int(moment.timestamp() * 1000)
        return None

    def _moments(self, first: date) -> Iterator[datetime]:
        """Yield the times (UTC) from a day of the zone on, in clock order."""
        assert self.cron is not None  # noqa: S101 - for the type checker
        for day in _days(self.cron, first):
            for hour in self.cron.hours:
                for minute in self.cron.minutes:
                    local = datetime.combine(day, time(hour, minute), self.zone)
                    moment = local.astimezone(UTC)
                    zoned = moment.astimezone(self.zone)
                    if zoned.replace(tzinfo=None) == local.replace(tzinfo=None):
                        yield moment


def _days(expression: cron.Cron, first: date) -> Iterator[date]:
    for year in expression.years:
        if year < first.year:
            continue
        for month in sorted(expression.months):
            if (year, month) < (first.year, first.month):
                continue
            for number in expression.days(year, month):
                day = date(year, month, number)
                if day >= first:
                    yield day


@dataclass(frozen=True, slots=True)
class ScheduleDates:
    """EventBridge Scheduler's start and end dates of a schedule (epoch ms).

    ``began_ms``: the start date, or else when it was made; a rate is due then for the first time.
    ``end_ms``: the end date, None without one.
    """

    began_ms: int
    end_ms: int | None = None

    def next(self, schedule: Schedule, after_ms: int) -> int | None:
        """Return a schedule's next time after a given one, None without any."""
        if schedule.once_ms is not None:  # neither date counts for it
            return schedule.next(after_ms, self.began_ms)
        before_ms = self.began_ms - schedule.period_ms
        moment = schedule.next(max(after_ms, self.began_ms - 1), before_ms)
        last_ms = clock.LAST_MS if self.end_ms is None else min(self.end_ms, clock.LAST_MS)
        return None if moment is None or moment > last_ms else moment


def parse_schedule(text: str, zone: str = "UTC", *, with_once: bool = False) -> Schedule:
    """Parse a schedule expression; raise ``ScheduleError``.

    ``with_once``: as EventBridge Scheduler has them, with ``at(...)`` and ``rate(1 hours)``.
    """
    match = _FORM.fullmatch(text.strip()) if len(text) <= _MOST_CHARACTERS else None
    if match is None or (match[1] == "at" and not with_once):
        forms = "cron(...), rate(...) or at(...)" if with_once else "cron(...) or rate(...)"
        expression = phrases.expression_of(text) if len(text) <= _MOST_CHARACTERS else ""
        raise ScheduleError(f"'{text[:80]}' is no schedule expression. Write {expression or forms}")
    place = _zone(zone)
    if match[1] == "at":
        return Schedule(None, place, once_ms=_once_ms(match[2], place))
    if match[1] == "cron":
        return Schedule(cron.parse_cron(match[2]), place)
    return Schedule(None, place, _period_ms(match[2], any_plural=with_once))


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"'{name}' is not a time zone such as Europe/Rome") from None


def _once_ms(text: str, zone: tzinfo) -> int:
    try:
        if _AT.fullmatch(text) is None:
            raise ValueError(text)  # noqa: TRY301 - the other half of the same check
        moment = datetime.fromisoformat(text).replace(tzinfo=zone)
        once_ms = int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ScheduleError(f"at: '{text}' is not a time of the form yyyy-mm-ddThh:mm:ss") from None
    if not clock.FIRST_MS <= once_ms <= clock.LAST_MS:
        raise ScheduleError(f"at: '{text}' in {zone} is not in the years 1 to 9999 of UTC")
    return once_ms


def _period_ms(text: str, *, any_plural: bool) -> int:
    match = _RATE.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise ScheduleError(f"rate: '{text}' is not a number with minutes, hours or days")
    number, unit, plural = int(match[1]), match[2], match[3]
    if (number == 1) == bool(plural) and not (plural and any_plural):
        raise ScheduleError("rate: 1 takes the singular, as 1 minute; more take the plural")
    period = number * _UNIT_MS[unit]
    if timedelta(milliseconds=period) > timedelta(days=366 * 100):
        raise ScheduleError("rate: the period is longer than a hundred years")
    return period
