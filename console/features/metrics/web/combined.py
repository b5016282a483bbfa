"""Draw combined charts: outcomes as stacked bars, duration percentiles as lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.metrics.tally import Tally
from console.features.metrics.web import axes, scale
from console.features.metrics.web.scale import HEIGHT, WIDTH
from console.web.core import formatting
from console.web.core.formatting import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from console.features.metrics.read import Buckets
    from console.features.metrics.web.span import ChartSpan

OUTCOMES = (
    ("ExecutionsSucceeded", "Succeeded", "succeeded"),
    ("ExecutionsFailed", "Failed", "failed"),
    ("ExecutionsTimedOut", "Timed out", "caught"),
    ("ExecutionsAborted", "Aborted", "aborted"),
)
"""Metric, label and tone of each stacked series, from the bottom."""
DURATION = "ExecutionTime"
_PERCENTILES = (("p50", "Median"), ("p90", "p90"), ("p99", "p99"))
_PLAIN = (("Average", "Average"), ("Maximum", "Longest"))
_DOTS = 80
"""The number of values above which only the line is drawn."""
_LONGEST = 7 * DAY
"""Percentiles of a longer time take every minute's spread, which is slow to read."""


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """A part of a column. ``href``: its executions."""

    tone: str
    label: str
    href: str
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """One period. ``cells``: its values as texts, in series order, "" without a value."""

    start: int
    x: float
    left: float
    readout: str
    cells: tuple[str, ...]
    segments: tuple[ColumnPart, ...] = ()


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One metric or statistic of a chart.

    ``is_line``: it is drawn as a line, not as columns. ``path``: the line, "" without values;
    ``dots``: its values, where they are few.
    """

    word: str
    tone: str
    summary: str
    path: str = ""
    dots: str = ""
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class CombinedChart:
    """A chart of several series. ``step`` and ``width``: those of a period and its column."""

    key: str
    title: str
    series: tuple[ChartSeries, ...]
    columns: tuple[Column, ...]
    value_ticks: list[scale.ValueTick]
    step: float
    width: float

    @property
    def value_axis(self) -> axes.WrittenAxis:
        """Return the rendered value axis."""
        return axes.write_value_axis(self.value_ticks)

    @property
    def mark(self) -> str:
        """Return a fingerprint of the chart."""
        text = repr([(column.start, column.x, column.cells) for column in self.columns])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def statistics_of_durations(span: ChartSpan) -> tuple[tuple[str, str], ...]:
    """Return the statistics drawn together, each with its label."""
    return _PERCENTILES if span.until - span.since <= _LONGEST else _PLAIN


def stack_outcomes(
    span: ChartSpan, buckets: Mapping[str, Buckets], address: Callable[[str, int], str]
) -> CombinedChart:
    """Return the chart of outcomes of executions.

    ``address``: returns the page of the executions behind a metric and the start of a period.
    """
    starts = sorted({start for name, _, _ in OUTCOMES for start in buckets[name]})
    counts = {
        start: [_count(buckets[name].get(start)) for name, _, _ in OUTCOMES] for start in starts
    }
    end = scale.axis_end(max(map(sum, counts.values()), default=0) or 1, times=False)
    step, width = _sizes(span)
    columns = []
    for start in starts:
        if not any(counts[start]):
            continue
        x = step * (start - span.since) / span.period
        segments, top = [], HEIGHT
        for (name, word, tone), count in zip(OUTCOMES, counts[start], strict=True):
            if count:
                height = HEIGHT * count / end
                top -= height
                label = f"{formatting.clock_text(start)} UTC: {count:,.0f} {word.lower()}"
                segments.append(ColumnPart(tone, label, address(name, start), top, height))
        cells = tuple(f"{count:,.0f}" for count in counts[start])
        readout = " · ".join(
            f"{word} {cell}"
            for (_, word, _), cell, count in zip(OUTCOMES, cells, counts[start], strict=True)
            if count
        )
        bar_x = x + (step - width) / 2
        columns.append(Column(start, x, bar_x, readout, cells, tuple(segments)))
    totals = [sum(counts[start][row] for start in starts) for row in range(len(OUTCOMES))]
    series = tuple(
        ChartSeries(word, tone, f"{total:,.0f}")
        for (_, word, tone), total in zip(OUTCOMES, totals, strict=True)
    )
    return CombinedChart(
        *("outcomes", "Finished executions", series, tuple(columns)),
        *(scale.value_ticks(end, times=False) if columns else [], step, width),
    )


def draw_durations(span: ChartSpan, buckets: Buckets) -> CombinedChart:
    """Return the chart of durations, one line per statistic."""
    chosen = statistics_of_durations(span)
    starts = sorted(buckets)
    values = {start: [buckets[start].statistic(name) for name, _ in chosen] for start in starts}
    most = max((max(row) for row in values.values()), default=0)
    end = scale.axis_end(most or 1, times=True)
    step, width = _sizes(span)
    total = Tally()
    for tally in buckets.values():
        total.take(tally)
    columns, paths, dots = [], ["" for _ in chosen], ["" for _ in chosen]
    before: int | None = None
    for start in starts:
        x = step * (start - span.since) / span.period
        cells = tuple(scale.value_text(value, times=True) for value in values[start])
        readout = " · ".join(
            f"{word} {cell}" for (_, word), cell in zip(chosen, cells, strict=True)
        )
        columns.append(Column(start, x, x + (step - width) / 2, readout, cells))
        joined = before is not None and start - before == span.period
        for row, value in enumerate(values[start]):
            place = f"{x + step / 2:.2f} {HEIGHT * (1 - value / end):.2f}"
            paths[row] += f"L{place}" if joined else f"M{place}h0"
            dots[row] += f"M{place}h0"
        before = start
    series = tuple(
        ChartSeries(
            word,
            name.lower(),
            scale.value_text(total.statistic(name), times=True) if total.count else "-",
            path,
            marks if len(starts) <= _DOTS else "",
            is_line=True,
        )
        for (name, word), path, marks in zip(chosen, paths, dots, strict=True)
    )
    return CombinedChart(
        *("durations", "Durations of executions", series, tuple(columns)),
        *(scale.value_ticks(end, times=True) if columns else [], step, width),
    )


def _count(tally: Tally | None) -> float:
    return 0.0 if tally is None else tally.total


def _sizes(span: ChartSpan) -> tuple[float, float]:
    """Return the width of a period and of its column."""
    step = WIDTH * span.period / (span.until - span.since)
    return step, max(step * 0.8, 1.0)
