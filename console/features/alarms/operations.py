"""CloudWatch actions on alarms: PutMetricAlarm, DescribeAlarms, SetAlarmState and others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import seconds
from console.errors import ErrorCode, ServiceError
from console.features.alarms import alarm_settings
from console.features.alarms import store as alarms
from console.features.metrics import tally
from console.features.metrics.names import METRICS, NAMESPACE
from console.features.metrics.operations import series_of
from console.own_api import LongPoll
from console.statuses import AlarmKind, AlarmState

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from console.awsapi.operations.call import Call
    from console.features.alarms.models import Alarm
    from console.own_api import LongPoll

_PAGE = 50
_ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")
_REQUIRED = (
    *("MetricName", "Namespace", "Period", "Threshold"),
    *("EvaluationPeriods", "ComparisonOperator"),
)
"""Members of an alarm on a metric, which the model marks as optional because of other kinds of
alarms.
"""


@reads(
    "AlarmName AlarmDescription ActionsEnabled OKActions AlarmActions "
    "InsufficientDataActions MetricName Namespace Statistic ExtendedStatistic "
    "Dimensions.Name Dimensions.Value Period Unit EvaluationPeriods DatapointsToAlarm "
    "Threshold ComparisonOperator TreatMissingData"
)
def put_metric_alarm(call: Call) -> dict[str, Any]:
    """Answer PutMetricAlarm."""
    params = call.params
    _refuse_actions(params)
    for name in _REQUIRED:
        if params.get(name) is None:
            raise ServiceError(
                ErrorCode.MissingParameter, f"The parameter {name} must be specified."
            )
    fields = _metric_fields(call) | alarm_settings.threshold_fields(params)
    alarms.put_alarm(call.project, call.region, params["AlarmName"], fields, actor=call.actor)
    return {}


def _refuse_actions(params: dict[str, Any]) -> None:
    for name in _ACTIONS:
        if params.get(name):
            raise _refusal(
                f"{name} is not supported. Create a rule for the event 'CloudWatch Alarm State"
                " Change' of 'aws.cloudwatch' with targets instead"
            )


def _metric_fields(call: Call) -> dict[str, Any]:
    """Return the columns for the metric and its periods."""
    params = call.params
    plain, extended = params.get("Statistic"), params.get("ExtendedStatistic")
    if bool(plain) == bool(extended):
        raise ServiceError(
            ErrorCode.InvalidParameterCombination,
            "Exactly one of Statistic and ExtendedStatistic must be specified.",
        )
    statistic = alarm_settings.checked_statistic(str(plain or extended))
    series = series_of(call, params)
    if series is None:
        raise _refusal(
            f"The metric {params['MetricName']} of {params['Namespace']} with"
            f" {len(params.get('Dimensions') or [])} dimensions does not exist. Use a metric of"
            f" {NAMESPACE} with the dimensions in ListMetrics"
        )
    if METRICS[series.metric].group == "gauges":
        raise _refusal(
            f"{series.metric} is kept for no minute but the present: no alarm can look at it"
        )
    machine = None
    if METRICS[series.metric].dimension == "StateMachineArn":
        machine = call.project.statemachine_set.filter(arn=series.resource).first()
    return {
        "kind": AlarmKind.METRIC,
        "machine": machine,
        "metric": series.metric,
        "resource": series.resource,
        "also": series.also,
        "dimensions": json.dumps(params.get("Dimensions") or []),
        "statistic": statistic,
        "unit": params.get("Unit") or "",
    }


@reads("AlarmNames")
def delete_alarms(call: Call) -> dict[str, Any]:
    """Answer DeleteAlarms: all or, if one does not exist, none."""
    alarms.delete_alarms(call.project, call.region, call.params["AlarmNames"], actor=call.actor)
    return {}


@reads("AlarmName StateValue StateReason StateReasonData")
def set_alarm_state(call: Call) -> dict[str, Any]:
    """Answer SetAlarmState: valid until the next evaluation, within a minute."""
    params = call.params
    if params["StateValue"] not in tuple(AlarmState):
        raise _refusal(f"StateValue must be {', '.join(AlarmState)}, not {params['StateValue']}")
    alarms.set_alarm_state(
        call.project,
        call.region,
        params["AlarmName"],
        params["StateValue"],
        params["StateReason"],
        params.get("StateReasonData") or "",
        actor=call.actor,
    )
    return {}


@reads(
    "AlarmNames AlarmNamePrefix AlarmTypes ChildrenOfAlarmName ParentsOfAlarmName "
    "StateValue ActionPrefix MaxRecords NextToken"
)
def describe_alarms(call: Call) -> dict[str, Any]:
    """Answer DescribeAlarms: metric alarms by name; composite alarms do not exist."""
    params = call.params
    rows = _listed(call)
    if params.get("AlarmNames") and params.get("AlarmNamePrefix"):
        raise ServiceError(
            ErrorCode.InvalidParameterCombination,
            "AlarmNames and AlarmNamePrefix: one of them only",
        )
    if params.get("AlarmNames"):
        rows = rows.filter(name__in=params["AlarmNames"])
    if params.get("AlarmNamePrefix"):
        rows = rows.filter(name__startswith=params["AlarmNamePrefix"])
    if params.get("StateValue"):
        rows = rows.filter(state=params["StateValue"])
    # An alarm has no action and belongs to no composite one.
    related = ("ActionPrefix", "ChildrenOfAlarmName", "ParentsOfAlarmName")
    types = params.get("AlarmTypes") or ["MetricAlarm"]
    if "MetricAlarm" not in types or any(params.get(name) for name in related):
        rows = rows.none()
    start, most = (paging.open_next(call) or 0), params.get("MaxRecords") or _PAGE
    page = list(rows[start : start + most + 1])
    answer: dict[str, Any] = {"MetricAlarms": [_alarm_members(alarm) for alarm in page[:most]]}
    answer["CompositeAlarms"] = []
    if len(page) > most:
        answer["NextToken"] = paging.seal_next(call, start + most)
    return answer


@reads(
    "MetricName Namespace Statistic ExtendedStatistic Dimensions.Name Dimensions.Value Period Unit"
)
def describe_alarms_for_metric(call: Call) -> dict[str, Any]:
    """Answer DescribeAlarmsForMetric."""
    params = call.params
    series = series_of(call, params)
    rows = _listed(call)
    if series is None:
        rows = rows.none()
    else:
        rows = rows.filter(metric=series.metric, resource=series.resource, also=series.also)
    statistic = params.get("Statistic") or params.get("ExtendedStatistic")
    filters = {"statistic": statistic, "period_s": params.get("Period"), "unit": params.get("Unit")}
    rows = rows.filter(**{name: value for name, value in filters.items() if value})
    return {"MetricAlarms": [_alarm_members(alarm) for alarm in rows[: alarms.MOST_ALARMS]]}


def _listed(call: Call) -> QuerySet[Alarm]:
    return (
        alarms.alarms_of(call.project, call.region).filter(kind=AlarmKind.METRIC).order_by("name")
    )


def _alarm_members(alarm: Alarm) -> dict[str, Any]:
    """Return an alarm in CloudWatch's format."""
    extended = tally.is_percentile(alarm.statistic)
    described: dict[str, Any] = {
        "AlarmName": alarm.name,
        "AlarmArn": alarm.arn,
        "AlarmDescription": alarm.description or None,
        "AlarmConfigurationUpdatedTimestamp": seconds(alarm.updated_ms),
        "ActionsEnabled": alarm.enabled,
        **{name: [] for name in _ACTIONS},
        "StateValue": alarm.state,
        "StateReason": alarm.reason,
        "StateReasonData": alarm.reason_data or None,
        "StateUpdatedTimestamp": seconds(alarm.state_ms),
        "StateTransitionedTimestamp": seconds(alarm.state_ms),
        "MetricName": alarm.metric,
        "Namespace": NAMESPACE,
        "ExtendedStatistic" if extended else "Statistic": alarm.statistic,
        "Dimensions": json.loads(alarm.dimensions),
        "Period": alarm.period_s,
        "Unit": alarm.unit or None,
        "EvaluationPeriods": alarm.periods,
        "DatapointsToAlarm": alarm.datapoints,
        "Threshold": alarm.threshold,
        "ComparisonOperator": alarm.comparison,
        "TreatMissingData": alarm.missing,
    }
    return {name: value for name, value in described.items() if value is not None}


def _refusal(message: str) -> ServiceError:
    return ServiceError(ErrorCode.InvalidParameterValue, message)


HANDLERS: dict[str, Callable[[Call], dict[str, Any] | LongPoll]] = {
    "DeleteAlarms": delete_alarms,
    "DescribeAlarms": describe_alarms,
    "DescribeAlarmsForMetric": describe_alarms_for_metric,
    "PutMetricAlarm": put_metric_alarm,
    "SetAlarmState": set_alarm_state,
}
