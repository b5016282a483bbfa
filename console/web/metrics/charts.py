"""Draw the charts: a range of time, cut into bars, for some metrics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from console.metrics import read, tally
from console.metrics.names import METRICS, SEVEN, WORK, Metric
from console.web.core import formatting
from console.web.metrics.span import (
    OF_MACHINES,
    PERIODS,
    RANGES,
    STATISTICS,
    ChartSpan,
    minute_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import StateMachine
    from console.web.core.scope import Scope

_WIDTH, _HEIGHT = 600.0, 100.0
_GROUPS = {
    "seven": ("Main metrics", SEVEN),
    "more": (
        "Redrives, Express",
        tuple(
            metric.name
            for metric in METRICS.values()
            if metric.group == "executions" and metric.name not in SEVEN
        ),
    ),
    **{
        kind: (
            work.words.capitalize() if kind != "lambda" else work.words,
            tuple(metric.name for metric in METRICS.values() if metric.dimension == work.dimension),
        )
        for kind, work in WORK.items()
    },
    "account": (
        "Account",
        tuple(metric.name for metric in METRICS.values() if metric.group in ("gauges", "limits")),
    ),
}
_TONES = {
    "Succeeded": "succeeded",
    "Aborted": "aborted",
    "Throttled": "caught",
    "Failed": "failed",
    "TimedOut": "failed",
}
_SHOWN = ("range", "from", "to", "period", "statistic", "group", "region")


# -- charts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChartBar:
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
    bars: tuple[ChartBar, ...]

    @property
    def bars_with(self) -> list[ChartBar]:
        """Return the bars that stand for something: of counts, those that are not zero."""
        return [bar for bar in self.bars if bar.value or self.unit != "Count"]

    @property
    def mark(self) -> str:
        """Return a fingerprint of what is drawn."""
        text = repr([(bar.start, bar.text, bar.x) for bar in self.bars_with])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def draw_charts(scope: Scope, span: ChartSpan, machine: StateMachine | None) -> list[Chart]:
    """Return the charts of a machine, or of all."""
    metrics = [METRICS[name] for name in _GROUPS[span.group][1]]
    return [
        _chart(metric, span, buckets, machine)
        for metric, buckets in _read_samples(scope, span, metrics, machine)
    ]


def _read_samples(
    scope: Scope, span: ChartSpan, metrics: list[Metric], machine: StateMachine | None
) -> list[tuple[Metric, read.Buckets]]:
    """Read the values; only percentiles of times need more than sums."""
    times = frozenset(metric.name for metric in metrics if metric.unit != "Count")
    question = read.MetricQuery(
        *(scope.project.pk, scope.region, tuple(metric.name for metric in metrics)),
        *(span.since, span.until, span.period),
        resource=None if machine is None else machine.arn,
        spread=times if tally.is_percentile(span.statistic) else frozenset(),
    )
    buckets = read.read_buckets(question)
    return [(metric, buckets[metric.name]) for metric in metrics]


def _chart(
    metric: Metric, span: ChartSpan, buckets: read.Buckets, machine: StateMachine | None
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
        text = _value_text(metric, statistic, value)
        label = f"{formatting.clock_text(start)} UTC: {text}"
        href = (
            _behind_address(metric, start, start + span.period, machine) if value or times else ""
        )
        left = x + (step - width) / 2
        bars.append(ChartBar(start, value, text, label, href, x, left, _HEIGHT - height, height))
    tone = next((tone for word, tone in _TONES.items() if word in metric.name), "")
    summary = _summary(metric, statistic, buckets)
    top = _value_text(metric, statistic, most)
    return Chart(
        *(metric.name, metric.unit, statistic, tone, summary, top, step, width, tuple(bars))
    )


def _summary(metric: Metric, statistic: str, buckets: read.Buckets) -> str:
    """Return the statistic over the whole range."""
    whole = tally.Tally()
    for value in buckets.values():
        whole.take(value)
    if not whole.count:
        return "0" if metric.usual == "Sum" else "-"
    return _value_text(metric, statistic, whole.statistic(statistic))


def _value_text(metric: Metric, statistic: str, value: float) -> str:
    if metric.unit == "Milliseconds" and statistic != "SampleCount":
        return formatting.duration_text(round(value))
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _behind_address(metric: Metric, since: int, until: int, machine: StateMachine | None) -> str:
    """Return the address of the executions behind a bar, "" where there are none."""
    if metric.group != "executions":
        return ""
    query = {"metric": metric.name, "from": minute_text(since), "to": minute_text(until)}
    if machine is not None:
        query |= {"machine": machine.name, "region": machine.region}
    return f"{reverse('chart-executions')}?{urlencode(query)}"


# -- what pages get --------------------------------------------------------------------------------


def charts_context(
    scope: Scope, query: Mapping[str, str], machine: StateMachine | None
) -> dict[str, Any]:
    """Return what the template of the charts needs."""
    groups = _GROUPS if machine is None else OF_MACHINES
    span = ChartSpan.of(query, groups)
    charts = draw_charts(scope, span, machine)
    parameters = {name: query[name] for name in _SHOWN if name in query}
    if machine is not None:
        parameters["machine"] = machine.name
    marks = ",".join(f"{chart.name}:{chart.mark}" for chart in charts)
    return {
        "span": span,
        "charts": charts,
        "csv_url": f"{reverse('charts-csv')}?{urlencode(parameters)}",
        "delta_url": f"{reverse('charts-delta')}?{urlencode(parameters | {'seen': marks})}",
        "choices": {
            "ranges": [(key, word) for key, (word, _) in RANGES.items()],
            "periods": [("", "Automatic"), *((key, word) for key, (word, _) in PERIODS.items())],
            "statistics": STATISTICS,
            "groups": [(key, _GROUPS[key][0]) for key in groups],
        },
    }
