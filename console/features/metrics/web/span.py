"""Read the period of the charts from the query string, and choose the length of a bar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from console.db import clock
from console.features.metrics import read
from console.web.core.formatting import DAY, HOUR, MINUTE
from console.web.core.scope import choose, reject_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MOST_BARS = 180
_AIMED_AT = 64
_LONGEST = 400 * DAY
_LATEST = 200 * 365 * DAY
OF_MACHINES = ("seven", "more")
"""The groups whose metrics a machine has of its own."""
RANGES = {
    "1h": ("Last hour", HOUR),
    "3h": ("Last 3 hours", 3 * HOUR),
    "12h": ("Last 12 hours", 12 * HOUR),
    "1d": ("Last 24 hours", DAY),
    "7d": ("Last 7 days", 7 * DAY),
    "30d": ("Last 30 days", 30 * DAY),
    "own": ("Custom time", DAY),
}
PERIODS = {
    "1": ("1 minute", MINUTE),
    "5": ("5 minutes", 5 * MINUTE),
    "15": ("15 minutes", 15 * MINUTE),
    "60": ("1 hour", HOUR),
    "180": ("3 hours", 3 * HOUR),
    "720": ("12 hours", 12 * HOUR),
    "1440": ("1 day", DAY),
    "10080": ("7 days", 7 * DAY),
}
STATISTICS = ("Average", "p50", "p90", "p95", "p99", "Minimum", "Maximum", "Sum", "SampleCount")


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """The selected period; times in epoch ms, whole bars."""

    key: str
    since: int
    until: int
    period_key: str
    period: int
    widened: bool
    statistic: str
    group: str

    @classmethod
    def of(cls, query: Mapping[str, str], groups: Collection[str]) -> ChartSpan:
        """Read the query string; invalid values are ignored."""
        key = choose(query, "range", RANGES, "3h")
        now = clock.now_ms()
        since, until = now - RANGES[key][1], now
        if key == "own":
            since, until = _asked_moment(query, "from", since), _asked_moment(query, "to", now)
            until = min(max(until, since + MINUTE), since + _LONGEST)
        asked_period = choose(query, "period", PERIODS)
        choice = PERIODS.get(asked_period)
        fits = choice is not None and (until - since) / choice[1] <= _MOST_BARS
        period = choice[1] if choice is not None and fits else _period(until - since)
        end = -read.floor_to_period(-until, period)
        return cls(
            key,
            read.floor_to_period(since, period),
            end,
            asked_period if fits else "",
            period,
            choice is not None and not fits,
            choose(query, "statistic", STATISTICS, STATISTICS[0]),
            choose(query, "group", groups, "seven"),
        )

    @property
    def title(self) -> str:
        """Return a title: ``Last 3 hours``."""
        return RANGES[self.key][0]

    @property
    def period_text(self) -> str:
        """Format the length of a bar."""
        return next(word for word, period in PERIODS.values() if period == self.period)

    @property
    def leads(self) -> bool:
        """Whether bars link to executions."""
        return self.group in OF_MACHINES

    @property
    def shown_until(self) -> int:
        """Return the end of the period with values: now at the latest."""
        now = clock.now_ms()
        return min(self.until, now) if now > self.since else self.until

    @property
    def from_text(self) -> str:
        """Return the start for the form's field."""
        return minute_text(self.since)

    @property
    def to_text(self) -> str:
        """Return the end for the form's field."""
        return minute_text(self.until)


def _period(span: int) -> int:
    """Return the bar length that gives a suitable number of bars."""
    fitting = (period for _, period in PERIODS.values() if span / period <= _AIMED_AT)
    return next(fitting, PERIODS["10080"][1])


def _asked_moment(query: Mapping[str, str], name: str, otherwise: int) -> int:
    moment_ms = _moment(query.get(name, ""), -1)
    if moment_ms < 0 and query.get(name):
        reject_value(query, name, "a time like 2026-01-31T10:05")
    return otherwise if moment_ms < 0 else moment_ms


def _moment(text: str, otherwise: int) -> int:
    try:
        moment_ms = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
        return min(max(moment_ms, 2 * _LONGEST), _LATEST)
    except (ValueError, OverflowError):
        return otherwise


def minute_text(at_ms: int) -> str:
    """Format a minute in UTC for a URL: 2026-01-31T10:05."""
    return f"{clock.moment_of(at_ms):%Y-%m-%dT%H:%M}"


def minute_of(text: str) -> int | None:
    """Parse a minute from a URL, None if invalid."""
    at_ms = _moment(text, -1)
    return None if at_ms < 0 else read.floor_to_period(at_ms)
