"""Draw a bar chart per metric over a period."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse

from console.features.metrics import read, tally
from console.features.metrics.names import METRICS, SEVEN, WORK, Metric
from console.features.metrics.web import axes, combined, scale
from console.features.metrics.web.scale import HEIGHT, WIDTH
from console.features.metrics.web.span import (
    OF_MACHINES,
    PERIODS,
    RANGES,
    STATISTICS,
    ChartSpan,
    minute_text,
)
from console.web.core import formatting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import StateMachine
    from console.web.core.scope import Scope

_GROUPS = {
    "seven": ("Main metrics", SEVEN),
    "more": (
        "Redrives, Express, limits",
        tuple(
            metric.name
            for metric in METRICS.values()
            if metric.group in ("executions", "near") and metric.name not in SEVEN
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
    "TimedOut": "caught",
}
_REDRIVES = "ExecutionsRedriven"
_COMBINED = "seven"
"""The group whose metrics are also drawn together."""
_SHOWN = ("range", "from", "to", "period", "statistic", "group", "region")


def group_of_metric(name: str) -> str:
    """Return the chart group of a metric, "" without one."""
    return next((group for group, (_, names) in _GROUPS.items() if name in names), "")


# -- charts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One period with values. ``x``: begin of its period; ``href``: the counted executions."""

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
    """One metric. ``step`` and ``width``: the widths of a period and its bar."""

    name: str
    label: str
    unit: str
    statistic: str
    tone: str
    summary: str
    value_ticks: list[scale.ValueTick]
    step: float
    width: float
    bars: tuple[ChartBar, ...]

    @property
    def value_axis(self) -> axes.WrittenAxis:
        """Return the rendered value axis."""
        return axes.write_value_axis(self.value_ticks)

    @property
    def bars_with(self) -> list[ChartBar]:
        """Return the bars to draw: counts without zeros."""
        return [bar for bar in self.bars if bar.value or self.unit != "Count"]

    @property
    def mark(self) -> str:
        """Return a fingerprint of the chart."""
        text = repr([(bar.start, bar.text, bar.x) for bar in self.bars_with])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_samples(
    scope: Scope, span: ChartSpan, machine: StateMachine | None
) -> dict[str, read.Buckets]:
    """Read the metrics of a group; only percentiles need more than sums."""
    names = _GROUPS[span.group][1]
    metrics = [METRICS[name] for name in names]
    if span.group == _COMBINED:
        metrics.append(METRICS[_REDRIVES])
    spread = (
        {metric.name for metric in metrics if metric.unit != "Count"}
        if tally.is_percentile(span.statistic)
        else set()
    )
    duration_statistics = combined.statistics_of_durations(span)
    if span.group == _COMBINED and any(
        tally.is_percentile(name) for name, _ in duration_statistics
    ):
        spread.add(combined.DURATION)
    question = read.MetricQuery(
        *(scope.project.pk, scope.region, tuple(metric.name for metric in metrics)),
        *(span.since, span.until, span.period),
        resource=None if machine is None else machine.arn,
        spread=frozenset(spread),
    )
    return read.read_buckets(question)


def draw_charts(
    span: ChartSpan, buckets: Mapping[str, read.Buckets], machine: StateMachine | None
) -> list[Chart]:
    """Return a chart for each metric of a group."""
    return [_chart(METRICS[name], span, buckets[name], machine) for name in _GROUPS[span.group][1]]


def draw_combined(
    span: ChartSpan, buckets: Mapping[str, read.Buckets], machine: StateMachine | None
) -> list[combined.CombinedChart]:
    """Return the combined charts of a group."""
    if span.group != _COMBINED:
        return []

    def address(name: str, start: int) -> str:
        return _behind_address(METRICS[name], start, start + span.period, machine)

    return [
        combined.stack_outcomes(span, buckets, address),
        combined.draw_durations(span, buckets[combined.DURATION]),
    ]


def _chart(
    metric: Metric, span: ChartSpan, buckets: read.Buckets, machine: StateMachine | None
) -> Chart:
    times = metric.unit != "Count"
    statistic = span.statistic if times else metric.usual
    values = {start: buckets[start].statistic(statistic) for start in sorted(buckets)}
    in_time = metric.unit == "Milliseconds" and statistic != "SampleCount"
    end = scale.axis_end(max(values.values(), default=0) or 1, times=in_time)
    step = WIDTH * span.period / (span.until - span.since)
    width = max(step * 0.8, 1.0)
    bars = []
    for start, value in values.items():
        height = max(HEIGHT * value / end, 1.5) if value else 0.0
        x = step * (start - span.since) / span.period
        text = scale.value_text(value, times=in_time)
        label = f"{formatting.clock_text(start)} UTC: {text}"
        href = (
            _behind_address(metric, start, start + span.period, machine) if value or times else ""
        )
        bar_x = x + (step - width) / 2
        bars.append(ChartBar(start, value, text, label, href, x, bar_x, HEIGHT - height, height))
    tone = next((tone for word, tone in _TONES.items() if word in metric.name), "")
    has_values = any(bar.value or times for bar in bars)
    ticks = scale.value_ticks(end, times=in_time) if has_values else []
    return Chart(
        *(metric.name, metric.label, metric.unit, statistic, tone),
        *(_summary(metric, statistic, buckets, in_time=in_time), ticks, step, width, tuple(bars)),
    )


def _summary(metric: Metric, statistic: str, buckets: read.Buckets, *, in_time: bool) -> str:
    """Return the statistic over the whole range."""
    total = tally.Tally()
    for value in buckets.values():
        total.take(value)
    if not total.count:
        return "0" if metric.usual == "Sum" else "-"
    return scale.value_text(total.statistic(statistic), times=in_time)


@dataclass(frozen=True, slots=True)
class RedriveCount:
    """The number of redrives in the charts' period. ``href``: the executions."""

    count: int
    href: str


def count_redrives(
    span: ChartSpan, buckets: Mapping[str, read.Buckets], machine: StateMachine | None
) -> RedriveCount | None:
    """Return the redrives, which let ends exceed executions; None without redrives."""
    values = buckets.get(_REDRIVES, {}).values()
    count = round(sum(value.statistic("Sum") for value in values))
    if span.group != _COMBINED or not count:
        return None
    address = _behind_address(METRICS[_REDRIVES], span.since, span.until, machine)
    return RedriveCount(count, address)


def _behind_address(metric: Metric, since: int, until: int, machine: StateMachine | None) -> str:
    """Return the URL of a bar's executions, "" without any."""
    if metric.group != "executions":
        return ""
    query = {"metric": metric.name, "from": minute_text(since), "to": minute_text(until)}
    if machine is not None:
        query |= {"machine": machine.name, "region": machine.region}
    return f"{reverse('chart-executions')}?{urlencode(query)}"


# -- what pages get --------------------------------------------------------------------------------


def overview_context(scope: Scope, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the charts of the overview: of all state machines."""
    return charts_context(scope, query, None)


def charts_context(
    scope: Scope, query: Mapping[str, str], machine: StateMachine | None
) -> dict[str, Any]:
    """Return the template context of the charts."""
    groups = _GROUPS if machine is None else OF_MACHINES
    span = ChartSpan.of(query, groups)
    buckets = read_samples(scope, span, machine)
    charts = draw_charts(span, buckets, machine)
    combined_charts = draw_combined(span, buckets, machine)
    parameters = {name: query[name] for name in _SHOWN if name in query}
    if machine is not None:
        parameters["machine"] = machine.name
    marks = [f"{chart.name}:{chart.mark}" for chart in charts]
    marks += [f"{chart.key}:{chart.mark}" for chart in combined_charts]
    marks_of_page = {"seen": ",".join(marks)}
    return {
        "span": span,
        "charts": charts,
        "combined": combined_charts,
        "redrives": count_redrives(span, buckets, machine),
        "time_axis": axes.write_time_axis(scale.time_ticks(span.since, span.until, span.period)),
        "csv_url": f"{reverse('charts-csv')}?{urlencode(parameters)}",
        "delta_url": f"{reverse('charts-delta')}?{urlencode(parameters | marks_of_page)}",
        "choices": {
            "ranges": [
                (key, "Custom" if key == "own" else key, word) for key, (word, _) in RANGES.items()
            ],
            "periods": [("", "Automatic"), *((key, word) for key, (word, _) in PERIODS.items())],
            "statistics": STATISTICS,
            "groups": [(key, _GROUPS[key][0]) for key in groups],
        },
    }
