"""The form of a metric alarm: choices, stored columns and preview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.db import clock
from console.errors import ErrorCode, ServiceError
from console.features.alarms import alarm_chart, alarm_display, alarm_settings
from console.features.alarms import store as alarms
from console.features.alarms.models import Alarm
from console.features.metrics.names import METRICS
from console.statuses import AlarmComparison, AlarmKind, MachineType, MissingData
from console.web.core import formatting
from console.web.core.formatting import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.features.alarms.alarm_chart import AlarmChart
    from console.features.alarms.forms import MetricAlarmForm
    from console.models import StateMachine

_STATISTICS = (
    *("Sum", "Average", "Minimum", "Maximum", "SampleCount"),
    *("p50", "p90", "p95", "p99"),
)
_PERIODS = (60, 300, 900, 3_600, 21_600, 86_400)
_FIRST = "ExecutionsFailed"


def new_alarm(machine: StateMachine) -> Alarm:
    """Return an unsaved alarm with the initial values of the form."""
    return Alarm(
        project=machine.project,
        region=machine.region,
        machine=machine,
        name=f"{machine.name} {_FIRST}",
        kind=AlarmKind.METRIC,
        metric=_FIRST,
        resource=machine.arn,
        dimensions=json.dumps([{"Name": "StateMachineArn", "Value": machine.arn}]),
        statistic="Sum",
        period_s=300,
        threshold=1,
        comparison=AlarmComparison.AT_LEAST,
        missing=MissingData.NOT_BREACHING,
        updated_ms=0,
    )


def columns(alarm: Alarm, form: MetricAlarmForm) -> dict[str, Any]:
    """Return the columns of a form's alarm; raise ``ServiceError``."""
    sent = form.values
    if form.errors:
        raise ServiceError(ErrorCode.InvalidParameterValue, form.first_error[1])
    metric = sent["metric"] or alarm.metric
    if metric not in metric_names(alarm):
        raise ServiceError(
            ErrorCode.InvalidParameterValue,
            f"MetricName: {metric} is not a metric of the form",
        )
    parameters = form.parameters() | {"ActionsEnabled": alarm.enabled}
    parameters["Period"] = parameters["Period"] or alarm.period_s
    series_columns = ("machine", "resource", "also", "dimensions")
    return {
        "kind": AlarmKind.METRIC,
        **{name: getattr(alarm, name) for name in series_columns},
        "metric": metric,
        "statistic": alarm_settings.checked_statistic(sent["statistic"] or alarm.statistic),
        "unit": alarm.unit if metric == alarm.metric else "",
        **alarm_settings.threshold_fields(parameters),
    }


def preview(alarm: Alarm, form: MetricAlarmForm) -> AlarmChart | None:
    """Return the chart of a form's alarm; raise ``ServiceError``."""
    for name, value in columns(alarm, form).items():
        setattr(alarm, name, value)
    alarm.created_ms = alarm.created_ms or clock.now_ms()
    return alarm_chart.draw_alarm(alarm)


def metric_names(alarm: Alarm) -> list[str]:
    """Return the metrics available for the alarm's dimensions."""
    current = METRICS[alarm.metric] if alarm.metric in METRICS else METRICS[_FIRST]
    is_standard = alarm.machine is not None and alarm.machine.type != MachineType.EXPRESS
    return [
        metric.name
        for metric in METRICS.values()
        if metric.dimension == current.dimension
        and not (is_standard and metric.name.startswith("Express") and metric != current)
    ]


def form_context(alarm: Alarm, typed: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the context of the form. ``typed``: refused values, None: stored settings."""
    values = _stored(alarm) if typed is None else typed
    return {
        "typed": values,
        "metrics": [METRICS[name] for name in metric_names(alarm)],
        "statistics": _with_current(_STATISTICS, values.get("statistic", "")),
        "period_choices": [
            (number, formatting.rough_duration(int(number) * SECOND))
            for number in _with_current([str(period) for period in _PERIODS], _period_of(values))
        ],
        "comparisons": alarm_display.COMPARED,
        "missing_choices": {key: f"Treat {words}" for key, words in alarm_display.MISSING.items()},
    }


def _stored(alarm: Alarm) -> dict[str, str]:
    return {
        "name": alarm.name,
        "metric": alarm.metric,
        "statistic": alarm.statistic,
        "period": str(alarm.period_s),
        "comparison": alarm.comparison,
        "threshold": f"{alarm.threshold:.15g}",
        "datapoints": str(alarm.datapoints),
        "periods": str(alarm.periods),
        "missing": alarm.missing,
        "description": alarm.description,
        "revision": alarms.revision_of(alarm) if alarm.pk else "",
    }


def _with_current(choices: Sequence[str], current: str) -> list[str]:
    return [*choices, *([current] if current and current not in choices else [])]


def _period_of(values: Mapping[str, str]) -> str:
    """Return the period in the form, "" if invalid."""
    text = values.get("period", "")
    return text if text.isdecimal() and text.isascii() and len(text) <= 7 else ""  # noqa: PLR2004
