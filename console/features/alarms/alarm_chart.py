"""Draw the chart of an alarm: values per period against the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import clock
from console.features.alarms import alarm_display
from console.features.alarms.alarm_series import read_series
from console.features.metrics.web import axes, scale
from console.features.metrics.web.scale import HEIGHT, WIDTH
from console.statuses import AlarmKind, MissingData
from console.web.core import formatting

if TYPE_CHECKING:
    from console.features.alarms.alarm_series import AlarmSeries, SeriesPoint
    from console.features.alarms.models import Alarm

_HEADROOM = 1.15
"""The height of the axis as a multiple of the threshold, so that its line is below the edge."""
_BAR_SHARE = 0.8
"""The width of a bar as a share of its period."""


@dataclass(frozen=True, slots=True)
class AlarmBar:
    """One period with a value, or ``missing``: without a value, and counted as breaching."""

    start: int
    text: str
    breaching: bool
    x: float
    left: float
    top: float
    height: float
    missing: bool = False


@dataclass(frozen=True, slots=True)
class AlarmChart:
    """The periods of an alarm, by time.

    ``threshold_y``: the position of the threshold's line, None without one; ``threshold_text``: its
    value; ``step`` and ``width``: the widths of a period and of its bar.
    """

    series: AlarmSeries
    bars: list[AlarmBar]
    value_ticks: list[scale.ValueTick]
    time_axis: axes.WrittenAxis
    step: float
    width: float
    threshold_y: float | None
    threshold_text: str

    @property
    def value_axis(self) -> axes.WrittenAxis:
        """Return the value axis as HTML."""
        return axes.write_value_axis(self.value_ticks)

    @property
    def breaching(self) -> int:
        """Return the number of periods beyond the threshold, or counted as breaching."""
        return sum(bar.breaching for bar in self.bars)

    @property
    def missing(self) -> int:
        """Return the number of periods without data."""
        return sum(bar.missing for bar in self.bars)

    @property
    def period_text(self) -> str:
        """Return the length of a period."""
        return formatting.rough_duration(self.series.period)


def draw_alarm(alarm: Alarm) -> AlarmChart | None:
    """Return the chart of an alarm, None for an alarm on current executions."""
    series = read_series(alarm, clock.now_ms())
    if series is None:
        return None
    times = series.unit == "Milliseconds"
    values = [point.value for point in series.points]
    limit = series.limit
    most = max([*values, (limit or 0) * _HEADROOM]) or 1
    end = scale.axis_end(most, times=times)
    bars = [_bar_of_value(series, point, end) for point in series.points]
    if alarm.kind == AlarmKind.METRIC and alarm.missing == MissingData.BREACHING:
        bars = sorted([*bars, *_missing_bars(series)], key=lambda bar: bar.start)
    is_drawn = limit is not None and limit >= 0
    step = _step(series)
    times_named = scale.time_ticks(series.since, series.until, series.period)
    return AlarmChart(
        *(series, bars, scale.value_ticks(end, times=times)),
        *(axes.write_time_axis(times_named), step, step * _BAR_SHARE),
        HEIGHT * (1 - (limit or 0) / end) if is_drawn else None,
        _limit_text(alarm, series),
    )


def _step(series: AlarmSeries) -> float:
    """Return the width of a period."""
    return WIDTH * series.period / (series.until - series.since)


def _place(series: AlarmSeries, start: int) -> tuple[float, float]:
    """Return the begin of a period and of its bar."""
    x = WIDTH * (start - series.since) / (series.until - series.since)
    return x, x + _step(series) * (1 - _BAR_SHARE) / 2


def _bar_of_value(series: AlarmSeries, point: SeriesPoint, end: float) -> AlarmBar:
    height = max(HEIGHT * point.value / end, 1.5)
    place = (*_place(series, point.start), HEIGHT - height, height)
    return AlarmBar(point.start, _value_text(point.value, series.unit), point.breaching, *place)


def _missing_bars(series: AlarmSeries) -> list[AlarmBar]:
    """Return a bar of full height for each period without a value."""
    numbers = {(point.start - series.since) // series.period for point in series.points}
    count = (series.until - series.since) // series.period
    starts = [
        series.since + number * series.period for number in range(count) if number not in numbers
    ]
    return [
        AlarmBar(start, "No data", True, *_place(series, start), 0.0, HEIGHT, missing=True)
        for start in starts
    ]


def _limit_text(alarm: Alarm, series: AlarmSeries) -> str:
    if series.limit is None:
        return ""
    if alarm.kind == AlarmKind.METRIC:
        return alarm_display.threshold_text(series.limit, series.unit)
    return _value_text(series.limit, series.unit)


def _value_text(value: float, unit: str) -> str:
    if unit == "Milliseconds":
        return scale.value_text(value, times=True)
    return f"{value:.3g} %" if unit == "Percent" else f"{value:,.6g}"
