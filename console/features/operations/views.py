"""View of the operations page: readiness, availability, workers, and the oldest waiting work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.views.decorators.http import require_safe

from console import access
from console.config.version import server_version
from console.db import clock
from console.features.operations import readiness
from console.store.state import health
from console.store.tasks import workers
from console.web.core import formatting
from console.web.core.scope import render, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse


_READY = formatting.StatusLabel("succeeded", "Ready")
_NOT_READY = formatting.StatusLabel("failed", "Not ready")


@require_safe
def operations_page(request: HttpRequest) -> HttpResponse:
    """Show ``/operations/``; only owners and administrators see host names."""
    may_see_hosts = access.may_administer(request.user, "ViewHosts")
    now_ms = clock.now_ms()
    state = health.check_health()
    report = make_report(now_ms)
    context: dict[str, Any] = {
        "section": "operations",
        "health": state,
        "label": _READY if state.ready else _NOT_READY,
        "process_since": health.PROCESS_STARTED_MS,
        "waiting": health.list_waiting_work(now_ms),
        "late_ms": health.LATE_MS,
        "workers": workers.list_workers() if state.workers is not None else None,
        "server_version": server_version(),
        "database": connection.vendor.replace("sqlite", "SQLite").replace(
            "postgresql", "PostgreSQL"
        ),
        "hosts": may_see_hosts or scope_of(request).may("ViewHosts"),
        "report": report,
        "steady_since": _steady_since(report, state),
        "target": TARGET_PERCENT,
    }
    return render(request, "operations/page.html", context)


def _steady_since(report: AvailabilityReport, state: health.Health) -> int | None:
    """Return since when the server has been ready, None if it was not just now.

    One process is the whole server, which was not ready before that process began; the missing part
    of the newest minute may be before its start.
    """
    steady_ms, began_ms = report.steady_since_ms, health.PROCESS_STARTED_MS
    if state.workers is not None:
        return steady_ms
    if steady_ms is not None:
        return max(steady_ms, began_ms)
    is_new = bool(report.interruptions) and began_ms >= report.interruptions[0].from_ms
    return began_ms if is_new and state.ready else None


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

    ``whole``: whether all of ``span`` was measured; False for the time measured so far.
    """

    span: str
    whole: bool
    percent: str
    lost_ms: int
    allowed_ms: int
    label: formatting.StatusLabel


@dataclass(frozen=True, slots=True)
class MeasuredHour:
    """An hour of the calendar. ``tone``: "idle" if not measured, or in the future."""

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
        is_full_span = measured_ms >= span_ms
        yield AvailabilityFigure(
            name if is_full_span else formatting.duration_text(measured_ms),
            is_full_span,
            percent_text(availability.share),
            round(availability.lost * formatting.MINUTE),
            round(measured_ms * (1 - TARGET)),
            _label(availability.share, whole=is_full_span),
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
                _hour(hours.get(hour, []))
                for hour in range(day, day + formatting.DAY, formatting.HOUR)
            ),
        )
        for day in days
        if day + formatting.DAY > minutes[0].minute_ms
    ]


def _hour(minutes: list[readiness.MeasuredMinute]) -> MeasuredHour:
    if not minutes:
        return MeasuredHour("idle", "not measured")
    availability = readiness.availability_of(minutes)
    lost = availability.lost / availability.minutes
    tone = next(tone for most, tone in _TONES if lost <= most)
    reasons = sorted({minute.reason for minute in minutes if minute.lost and minute.reason})
    text = f"{percent_text(availability.share)} of {availability.minutes:g} min"
    return MeasuredHour(tone, "; ".join([text, *reasons]))


def _floor(moment_ms: int, unit_ms: int) -> int:
    return moment_ms - moment_ms % unit_ms
