"""What do the charts show?  A range of time, cut into bars, for some metrics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from console import clock
from console.metrics import read, tally
from console.metrics.names import METRICS, SEVEN, WORK, Metric
from console.web import words
from console.web.words import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from console.models import StateMachine
    from console.web.page import Yard

_WIDTH, _HEIGHT = 600.0, 100.0
_MOST_BARS = 180
_AIMED_AT = 64
_LONGEST = 400 * DAY
RANGES = {
    "1h": ("Last hour", HOUR),
    "3h": ("Last 3 hours", 3 * HOUR),
    "12h": ("Last 12 hours", 12 * HOUR),
    "1d": ("Last 24 hours", DAY),
    "7d": ("Last 7 days", 7 * DAY),
    "30d": ("Last 30 days", 30 * DAY),
    "own": ("From … to …", DAY),
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
_GROUPS = {
    "seven": ("The seven", SEVEN),
    "more": (
        "Redrives, Express",
        tuple(
            one.name
            for one in METRICS.values()
            if one.group == "executions" and one.name not in SEVEN
        ),
    ),
    **{
        kind: (
            work.words.capitalize() if kind != "lambda" else work.words,
            tuple(one.name for one in METRICS.values() if one.dimension == work.dimension),
        )
        for kind, work in WORK.items()
    },
    "account": (
        "Account",
        tuple(one.name for one in METRICS.values() if one.group == "gauges"),
    ),
}
_TONES = {
    "Succeeded": "succeeded",
    "Aborted": "aborted",
    "Throttled": "caught",
    "Failed": "failed",
    "TimedOut": "failed",
}
_OF_MACHINES = ("seven", "more")  # the groups whose metrics a machine has of its own
_SHOWN = ("range", "from", "to", "period", "statistic", "group", "region")


@dataclass(frozen=True, slots=True)
class Span:
    """What the reader chose; times in epoch ms, whole periods."""

    key: str
    since: int
    until: int
    period_key: str
    period: int
    widened: bool
    statistic: str
    group: str

    @classmethod
    def of(cls, query: Mapping[str, str], groups: Collection[str]) -> Span:
        """Read the query string; what makes no sense counts as not said."""
        key = query.get("range", "")
        key = key if key in RANGES else "3h"
        now = clock.now_ms()
        since, until = now - RANGES[key][1], now
        if key == "own":
            since, until = _moment(query.get("from", ""), since), _moment(query.get("to", ""), now)
            until = min(max(until, since + MINUTE), since + _LONGEST)
        asked = query.get("period", "")
        known = PERIODS.get(asked)
        fits = known is not None and (until - since) / known[1] <= _MOST_BARS
        period = known[1] if known is not None and fits else _period(until - since)
        statistic = query.get("statistic", "")
        group = query.get("group", "")
        end = -read.floor(-until, period)
        return cls(
            key,
            end - -(-(until - since) // period) * period,
            end,
            asked if fits else "",
            period,
            known is not None and not fits,
            statistic if statistic in STATISTICS else STATISTICS[0],
            group if group in groups else "seven",
        )

    @property
    def from_text(self) -> str:
        """Return the start as the field of the form has it."""
        return minute(self.since)

    @property
    def to_text(self) -> str:
        """Return the end as the field of the form has it."""
        return minute(self.until)


def _period(span: int) -> int:
    """Return the period that gives a handy number of bars."""
    fitting = (period for _, period in PERIODS.values() if span / period <= _AIMED_AT)
    return next(fitting, PERIODS["10080"][1])


def _moment(text: str, otherwise: int) -> int:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return otherwise


def minute(at_ms: int) -> str:
    """Write a minute in UTC, as an address has it: 2026-01-31T10:05."""
    return f"{datetime.fromtimestamp(at_ms / 1000, tz=UTC):%Y-%m-%dT%H:%M}"


def minute_of(text: str) -> int | None:
    """Return the minute that an address names, None if it names none."""
    found = _moment(text, -1)
    return None if found < 0 else read.floor(found)


# -- charts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    """One period with values. ``x``: where its period begins; ``href``: the executions behind."""

    start: int
    value: float
    text: str
    label: str
    href: str
    x: float
    left: float
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """One metric. ``step`` and ``width``: of a period and of its bar."""

    name: str
    unit: str
    statistic: str
    tone: str
    summary: str
    most: str
    step: float
    width: float
    bars: tuple[Bar, ...]

    @property
    def bars_with(self) -> list[Bar]:
        """Return the bars that stand for something: of counts, those that are not zero."""
        return [one for one in self.bars if one.value or self.unit != "Count"]

    @property
    def mark(self) -> str:
        """Return a fingerprint of what is drawn."""
        text = repr([(one.start, one.text, one.x) for one in self.bars_with])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def draw(here: Yard, span: Span, machine: StateMachine | None) -> list[Chart]:
    """Return the charts of a machine, or of all."""
    metrics = [METRICS[name] for name in _GROUPS[span.group][1]]
    return [
        _chart(one, span, buckets, machine) for one, buckets in _read(here, span, metrics, machine)
    ]


def _read(
    here: Yard, span: Span, metrics: list[Metric], machine: StateMachine | None
) -> list[tuple[Metric, read.Buckets]]:
    """Read counts and times apart: only percentiles of times need more than sums."""
    found: dict[str, read.Buckets] = {}
    for times in (False, True):
        names = tuple(one.name for one in metrics if (one.unit != "Count") == times)
        if names:
            asked = read.Asked(
                *(here.project.pk, here.region, names, span.since, span.until, span.period),
                resource=None if machine is None else machine.arn,
                spread=times and tally.is_percentile(span.statistic),
            )
            found |= read.buckets(asked)
    return [(one, found[one.name]) for one in metrics]


def _chart(
    metric: Metric, span: Span, buckets: read.Buckets, machine: StateMachine | None
) -> Chart:
    times = metric.unit != "Count"
    statistic = span.statistic if times else metric.usual
    values = {start: buckets[start].statistic(statistic) for start in sorted(buckets)}
    most = max(values.values(), default=0)
    step = _WIDTH * span.period / (span.until - span.since)
    width = max(step * 0.8, 1.0)
    bars = []
    for start, value in values.items():
        height = max(_HEIGHT * value / most, 1.5) if most and value else 0.0
        x = step * (start - span.since) / span.period
        text = _written(metric, statistic, value)
        label = f"{words.clock(start)} UTC: {text}"
        href = _behind(metric, start, start + span.period, machine) if value or times else ""
        left = x + (step - width) / 2
        bars.append(Bar(start, value, text, label, href, x, left, _HEIGHT - height, height))
    tone = next((tone for word, tone in _TONES.items() if word in metric.name), "")
    summary = _summary(metric, statistic, buckets)
    top = _written(metric, statistic, most)
    return Chart(
        *(metric.name, metric.unit, statistic, tone, summary, top, step, width, tuple(bars))
    )


def _summary(metric: Metric, statistic: str, buckets: read.Buckets) -> str:
    """Return the statistic over the whole range."""
    whole = tally.Tally()
    for one in buckets.values():
        whole.take(one)
    if not whole.count:
        return "0" if metric.usual == "Sum" else "-"
    return _written(metric, statistic, whole.statistic(statistic))


def _written(metric: Metric, statistic: str, value: float) -> str:
    if metric.unit == "Milliseconds" and statistic != "SampleCount":
        return words.duration(round(value))
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _behind(metric: Metric, since: int, until: int, machine: StateMachine | None) -> str:
    """Return the address of the executions behind a bar, "" where there are none."""
    if metric.group != "executions":
        return ""
    query = {"metric": metric.name, "from": minute(since), "to": minute(until)}
    if machine is not None:
        query |= {"machine": machine.name, "region": machine.region}
    return f"{reverse('behind')}?{urlencode(query)}"


# -- what pages get --------------------------------------------------------------------------------


def context(here: Yard, query: Mapping[str, str], machine: StateMachine | None) -> dict[str, Any]:
    """Return what the template of the charts needs."""
    groups = _GROUPS if machine is None else _OF_MACHINES
    span = Span.of(query, groups)
    charts = draw(here, span, machine)
    kept = {name: query[name] for name in _SHOWN if name in query}
    if machine is not None:
        kept["machine"] = machine.name
    seen = ",".join(f"{one.name}:{one.mark}" for one in charts)
    return {
        "span": span,
        "charts": charts,
        "csv_url": f"{reverse('charts-csv')}?{urlencode(kept)}",
        "delta_url": f"{reverse('charts-delta')}?{urlencode(kept | {'seen': seen})}",
        "choices": {
            "ranges": [(key, word) for key, (word, _) in RANGES.items()],
            "periods": [("", "Fitting"), *((key, word) for key, (word, _) in PERIODS.items())],
            "statistics": STATISTICS,
            "groups": [(key, _GROUPS[key][0]) for key in groups],
        },
    }
