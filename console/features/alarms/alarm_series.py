"""Read the values of an alarm over time, for its chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.alarms.alarm_rules import (
    breaches,
    failure_counts,
    metric_points,
    past_percentile,
    percentiles,
)
from console.features.metrics import read
from console.features.metrics.names import METRICS
from console.features.metrics.rollups import MINUTE
from console.statuses import AlarmKind

if TYPE_CHECKING:
    from console.features.alarms.models import Alarm

MOST_PERIODS = 60
_PERIODS = 24
"""The number of periods that are read for an alarm on executions."""
_LONGEST_MS = 14 * 24 * 60 * MINUTE


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """The value of one period. ``breaching``: beyond the threshold."""

    start: int
    value: float
    breaching: bool


@dataclass(frozen=True, slots=True)
class AlarmSeries:
    """The values from ``since`` to ``until`` in steps of ``period``, epoch ms.

    ``limit``: the threshold in the same unit, None where it is not known yet. ``unit``: Count,
    Milliseconds or Percent.
    """

    label: str
    unit: str
    since: int
    until: int
    period: int
    limit: float | None
    points: list[SeriesPoint]


def unit_of_metric(alarm: Alarm) -> str:
    """Return the unit of a metric alarm's values and threshold."""
    metric = METRICS.get(alarm.metric)
    return "Count" if metric is None or alarm.statistic == "SampleCount" else metric.unit


def read_series(alarm: Alarm, now_ms: int) -> AlarmSeries | None:
    """Return an alarm's values, None for an alarm on current executions."""
    period = alarm.period_s * 1000
    until = read.floor_to_period(now_ms)
    if alarm.kind == AlarmKind.METRIC:
        count = max(alarm.periods, min(MOST_PERIODS, _LONGEST_MS // period))
    else:
        until += MINUTE  # the minute that is not over yet counts, as when it is evaluated
        count = max(3, min(_PERIODS, _LONGEST_MS // period))
    since = until - count * period
    match AlarmKind(alarm.kind):
        case AlarmKind.METRIC:
            label, unit = f"{alarm.statistic} of {alarm.metric}", unit_of_metric(alarm)
            limit: float | None = alarm.threshold
            points = [
                SeriesPoint(start, value, breaches(alarm, value))
                for start, value in metric_points(alarm, since, until)
            ]
        case AlarmKind.FAILURE_RATE:
            label, unit, limit = "Failed or timed out", "Percent", alarm.threshold
            points = [
                SeriesPoint(start, 100 * bad / ended, 100 * bad / ended > alarm.threshold)
                for start, bad, ended in failure_counts(alarm, since, until)
                if ended >= max(alarm.minimum, 1)
            ]
        case AlarmKind.DURATION:
            label, unit = "95th percentile of the duration", "Milliseconds"
            past, of_past = past_percentile(alarm, until - period)
            limit = past * alarm.threshold / 100 if of_past >= max(alarm.minimum, 1) else None
            points = [
                SeriesPoint(start, value, limit is not None and value > limit)
                for start, value, number in percentiles(alarm, since, until, period)
                if number >= alarm.minimum
            ]
        case AlarmKind.NO_SUCCESS:
            label, unit, limit = "Executions succeeded", "Count", None
            points = [
                SeriesPoint(start, ended - bad, breaching=False)
                for start, bad, ended in failure_counts(alarm, since, until)
                if ended > bad
            ]
        case AlarmKind.STUCK:
            return None
    return AlarmSeries(label, unit, since, until, period, limit, points)
