"""Draw what an alarm looks at against its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console import clock
from console.metrics.alarm_series import read_series
from console.web.core import formatting
from console.web.metrics import scale
from console.web.metrics.scale import HEIGHT, WIDTH

if TYPE_CHECKING:
    from console.metrics.alarm_series import AlarmSeries
    from console.models import Alarm


@dataclass(frozen=True, slots=True)
class AlarmBar:
    """One period with a value."""

    start: int
    text: str
    breaching: bool
    x: float
    left: float
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class AlarmChart:
    """The periods of an alarm. ``threshold_y``: of the line of the threshold, None without one.

    ``threshold_text``: its value; ``step`` and ``width``: of a period and of its bar.
    """

    series: AlarmSeries
    bars: list[AlarmBar]
    value_ticks: list[scale.ValueTick]
    time_ticks: list[scale.TimeTick]
    step: float
    width: float
    threshold_y: float | None
    threshold_text: str

    @property
    def breaching(self) -> int:
        """Return how many periods are beyond the threshold."""
        return sum(bar.breaching for bar in self.bars)

    @property
    def period_text(self) -> str:
        """Return the length of a period."""
        return formatting.rough_duration(self.series.period)


def draw_alarm(alarm: Alarm) -> AlarmChart | None:
    """Return the chart of an alarm, None where it looks at executions as they are now."""
    series = read_series(alarm, clock.now_ms())
    if series is None:
        return None
    times = series.unit == "Milliseconds"
    values = [point.value for point in series.points]
    limit = series.limit
    most = max([*values, limit or 0]) or 1
    end = scale.axis_end(most, times=times)
    step = WIDTH * series.period / (series.until - series.since)
    width = step * 0.8
    bars = []
    for point in series.points:
        x = WIDTH * (point.start - series.since) / (series.until - series.since)
        height = max(HEIGHT * point.value / end, 1.5)
        text = _value_text(point.value, series.unit)
        left = x + (step - width) / 2
        place = (x, left, HEIGHT - height, height)
        bars.append(AlarmBar(point.start, text, point.breaching, *place))
    is_drawn = limit is not None and limit >= 0
    return AlarmChart(
        *(series, bars, scale.value_ticks(end, times=times)),
        *(scale.time_ticks(series.since, series.until, series.period), step, width),
        HEIGHT * (1 - (limit or 0) / end) if is_drawn else None,
        "" if limit is None else _value_text(limit, series.unit),
    )


def _value_text(value: float, unit: str) -> str:
    if unit == "Milliseconds":
        return scale.value_text(value, times=True)
    return f"{value:.3g} %" if unit == "Percent" else f"{value:,.6g}"
