"""Validate the threshold of a metric alarm, with the errors of PutMetricAlarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.errors import ErrorCode, ServiceError
from console.features.alarms.alarm_rules import most_periods
from console.features.metrics import tally
from console.statuses import AlarmComparison, MissingData

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 1024


def checked_statistic(statistic: str) -> str:
    """Return a supported statistic; raise InvalidParameterValue."""
    if not tally.is_statistic(statistic):
        raise _refusal(f"The value {statistic} for parameter ExtendedStatistic is not supported")
    return statistic


def threshold_fields(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the threshold columns of ``Alarm``; raise InvalidParameterValue.

    ``params``: by the names of PutMetricAlarm.
    """
    period, periods = params["Period"], params["EvaluationPeriods"]
    if period < 1 or period % 60:
        raise _refusal(f"The parameter Period must be a multiple of 60, not {period}")
    most = most_periods(period)
    if not 1 <= periods <= most:
        raise _refusal(f"EvaluationPeriods must be 1 to {most} for {period} s, not {periods}")
    datapoints = params.get("DatapointsToAlarm") or periods
    if not 1 <= datapoints <= periods:
        raise _refusal(f"DatapointsToAlarm must be 1 to {periods}, not {datapoints}")
    if params["ComparisonOperator"] not in tuple(AlarmComparison):
        raise _refusal(f"ComparisonOperator: {params['ComparisonOperator']} needs metric math")
    missing = params.get("TreatMissingData") or MissingData.MISSING
    if missing not in tuple(MissingData):
        raise _refusal(f"TreatMissingData must be {', '.join(MissingData)}, not {missing}")
    description = params.get("AlarmDescription") or ""
    if len(description) > _LONGEST:
        raise _refusal(f"AlarmDescription must have at most {_LONGEST} characters")
    return {
        "description": description,
        "period_s": period,
        "periods": periods,
        "datapoints": datapoints,
        "threshold": params["Threshold"],
        "comparison": params["ComparisonOperator"],
        "missing": missing,
        "enabled": params.get("ActionsEnabled") is not False,
    }


def _refusal(message: str) -> ServiceError:
    return ServiceError(ErrorCode.InvalidParameterValue, message)
