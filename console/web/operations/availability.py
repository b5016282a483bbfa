"""Report the measured availability of the server: figures against the target, hours, gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from console.store.state import readiness
from console.web.core import formatting

if TYPE_CHECKING:
    from collections.abc import Iterator

TARGET = 0.999
TARGET_PERCENT = f"{TARGET * 100:g} %"
_DAYS_SHOWN = 7
_LONGEST_MS = 30 * formatting.DAY
_SPANS = (("24 hours", formatting.DAY), ("7 days", 7 * formatting.DAY), ("30 days", _LONGEST_MS))
_MOST_INTERRUPTIONS = 20
_KEPT_PLACES = 3
_MET = formatting.StatusLabel("succeeded", "Met")
_MET_SO_FAR = formatting.StatusLabel("succeeded", "Met so far")
_MISSED = formatting.StatusLabel("failed", "Missed")
_TONES = ((0.0, "succeeded"), (0.1, "caught"), (1.0, "failed"))
"""The largest share of an hour that was lost -> the tone of its cell."""


@dataclass(frozen=True, slots=True)
class AvailabilityFigure:
    """The availability in a period. ``lost_ms`` of ``allowed_ms`` (by the target).

    ``whole``: False of all that is measured, where that is shorter than the next span.
    """

    span: str
    whole: bool
    measured_ms: int
    percent: str
    lost_ms: int
    allowed_ms: int
    label: formatting.StatusLabel


@dataclass(frozen=True, slots=True)
class MeasuredHour:
    """An hour of the calendar. ``tone``: "idle" if not measured, or in the future."""

    hour_ms: int
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredDay:
    """A day of the calendar in UTC with its 24 hours."""

    day_ms: int
    hours: tuple[MeasuredHour, ...]

    @property
    def name(self) -> str:
        """Return the day as ``11-22``."""
        return formatting.iso_text(self.day_ms)[5:10]


@dataclass(frozen=True, slots=True)
class AvailabilityReport:
    """The page's facts of past readiness; ``since_ms``: None before the first measure."""

    since_ms: int | None
    steady_since_ms: int | None
    figures: tuple[AvailabilityFigure, ...] = ()
    days: tuple[MeasuredDay, ...] = ()
    interruptions: tuple[readiness.Interruption, ...] = ()
    more: int = 0


def make_report(now_ms: int) -> AvailabilityReport:
    """Return the report; the current minute is left out."""
    until_ms = now_ms - now_ms % formatting.MINUTE
    since_ms = readiness.measured_since()
    if since_ms is None or since_ms >= until_ms:
        return AvailabilityReport(None, None)
    first_ms = max(since_ms, until_ms - _LONGEST_MS)
    minutes = readiness.measured_minutes(first_ms, until_ms)
    gaps = list(readiness.interruptions_of(minutes))
    steady_ms = gaps[-1].until_ms if gaps else first_ms
    return AvailabilityReport(
        since_ms,
        steady_ms if steady_ms < until_ms else None,
        tuple(_figures(minutes)),
        tuple(_days(minutes, until_ms)),
        tuple(reversed(gaps[-_MOST_INTERRUPTIONS:])),
        max(len(gaps) - _MOST_INTERRUPTIONS, 0),
    )


def _figures(minutes: list[readiness.MeasuredMinute]) -> Iterator[AvailabilityFigure]:
    """Yield the fully measured spans, then the measured part of the next span.

    A server of eight minutes has no figure of 30 days: it has one of eight minutes.
    """
    yielded_ms = 0
    for name, span_ms in _SPANS:
        availability = readiness.availability_of(minutes[-(span_ms // formatting.MINUTE) :])
        measured_ms = round(availability.minutes * formatting.MINUTE)
        if measured_ms == yielded_ms:
            return
        whole = measured_ms >= span_ms
        yield AvailabilityFigure(
            name if whole else formatting.duration_text(measured_ms),
            whole,
            measured_ms,
            percent_text(availability.share),
            round(availability.lost * formatting.MINUTE),
            round(measured_ms * (1 - TARGET)),
            _label(availability.share, whole=whole),
        )
        yielded_ms = measured_ms


def _label(share: float, *, whole: bool) -> formatting.StatusLabel:
    if share < TARGET:
        return _MISSED
    return _MET if whole else _MET_SO_FAR


def percent_text(share: float) -> str:
    """Format a share, rounded down: 99.9996 % never reads 100 %."""
    places = 10**_KEPT_PLACES
    return f"{math.floor(share * 100 * places) / places:g} %"


def _days(minutes: list[readiness.MeasuredMinute], until_ms: int) -> list[MeasuredDay]:
    """Return the last days, newest first."""
    hours = {
        hour: list(group)
        for hour, group in groupby(minutes, lambda row: _floor(row.minute_ms, formatting.HOUR))
    }
    today = _floor(until_ms, formatting.DAY)
    days = [today - number * formatting.DAY for number in range(_DAYS_SHOWN)]
    return [
        MeasuredDay(
            day,
            tuple(
                _hour(hour, hours.get(hour, []))
                for hour in range(day, day + formatting.DAY, formatting.HOUR)
            ),
        )
        for day in days
        if day + formatting.DAY > minutes[0].minute_ms
    ]


def _hour(hour_ms: int, minutes: list[readiness.MeasuredMinute]) -> MeasuredHour:
    if not minutes:
        return MeasuredHour(hour_ms, "idle", "not measured")
    availability = readiness.availability_of(minutes)
    lost = availability.lost / availability.minutes
    tone = next(tone for most, tone in _TONES if lost <= most)
    reasons = sorted({minute.reason for minute in minutes if minute.lost and minute.reason})
    text = f"{percent_text(availability.share)} of {availability.minutes:g} min"
    return MeasuredHour(hour_ms, tone, "; ".join([text, *reasons]))


def _floor(moment_ms: int, unit_ms: int) -> int:
    return moment_ms - moment_ms % unit_ms
