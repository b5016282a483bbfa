"""CloudWatch actions on metrics: ListMetrics, GetMetricStatistics and GetMetricData."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import seconds
from console.db import clock
from console.errors import ErrorCode, ServiceError
from console.features.metrics import read, tally
from console.features.metrics.names import LIMITS, METRICS, NAMESPACE, Metric
from console.features.metrics.rollups import MINUTE
from console.features.metrics.samples import Series
from console.own_api import LongPoll

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.awsapi.operations.call import Call
    from console.own_api import LongPoll

_PAGE = 500
_MOST_POINTS = 1440
_MOST_VALUES = 100_800
_LIST_MS = 14 * 24 * 60 * MINUTE
_RECENT_MS = 3 * 60 * MINUTE


# -- ListMetrics -----------------------------------------------------------------------------------


@reads(
    "Namespace MetricName Dimensions.Name Dimensions.Value NextToken RecentlyActive "
    "IncludeLinkedAccounts=false"
)
def list_metrics(call: Call) -> dict[str, Any]:
    """Answer ListMetrics: metrics with values in the last two weeks."""
    params, now = call.params, clock.now_ms()
    if params.get("RecentlyActive") not in (None, "PT3H"):
        raise ServiceError(
            ErrorCode.InvalidParameterValue, "RecentlyActive: the only value is PT3H"
        )
    start = paging.open_next(call) or 0
    span = _RECENT_MS if params.get("RecentlyActive") else _LIST_MS
    recent_series = read.known_series(call.project.pk, call.region, now - span, now)
    matching = [series for series in recent_series if _matches(series, params)]
    page = matching[start : start + _PAGE]
    answer: dict[str, Any] = {"Metrics": [_metric(series) for series in page]}
    if len(matching) > start + _PAGE:
        answer["NextToken"] = paging.seal_next(call, start + _PAGE)
    return answer


def _matches(series: Series, params: dict[str, Any]) -> bool:
    if params.get("Namespace", NAMESPACE) != NAMESPACE:
        return False
    if params.get("MetricName", series.metric) != series.metric:
        return False
    has = dict(_dimensions(series))
    dimensions = params.get("Dimensions") or []
    return all(
        dimension["Name"] in has and dimension.get("Value") in (None, has[dimension["Name"]])
        for dimension in dimensions
    )


def _metric(series: Series) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in _dimensions(series)]
    return {"Namespace": NAMESPACE, "MetricName": series.metric, "Dimensions": dimensions}


def _dimensions(series: Series) -> list[tuple[str, str]]:
    metric = METRICS[series.metric]
    if not metric.dimension:
        return []
    name, equals, value = series.also.partition("=")
    return [metric.dimension_of(series.resource), *([(name, value)] if equals else [])]


# -- GetMetricStatistics ---------------------------------------------------------------------------


@reads(
    "Namespace MetricName Dimensions.Name Dimensions.Value StartTime EndTime Period "
    "Statistics ExtendedStatistics Unit"
)
def get_metric_statistics(call: Call) -> dict[str, Any]:
    """Answer GetMetricStatistics."""
    params = call.params
    names = [*(params.get("Statistics") or []), *(params.get("ExtendedStatistics") or [])]
    if not names:
        raise ServiceError(
            ErrorCode.MissingParameter, "Must specify either Statistics or ExtendedStatistics"
        )
    if params.get("Statistics") and params.get("ExtendedStatistics"):
        raise ServiceError(
            ErrorCode.InvalidParameterCombination,
            "Statistics and ExtendedStatistics: one of them only",
        )
    query = _Query.of(call, params, params["Period"], names)
    answer: dict[str, Any] = {"Label": params["MetricName"], "Datapoints": []}
    if (query.until - query.since) / query.period > _MOST_POINTS:
        raise ServiceError(
            ErrorCode.InvalidParameterCombination,
            "You have requested up to "
            f"{(query.until - query.since) // query.period} datapoints, which exceeds the limit "
            f"of {_MOST_POINTS}. You may reduce the datapoints requested by increasing Period, or "
            "decreasing the time range.",
        )
    for start, values in query.points(names):
        point: dict[str, Any] = {"Timestamp": seconds(start), "Unit": query.unit}
        for name, value in zip(names, values, strict=True):
            if tally.is_percentile(name):
                point.setdefault("ExtendedStatistics", {})[name] = value
            else:
                point[name] = value
        answer["Datapoints"].append(point)
    return answer


@dataclass(frozen=True, slots=True)
class _Query:
    """A metric over a period; ``asked``: None if no series with these dimensions can exist."""

    since: int
    until: int
    period: int
    unit: str
    metric: str
    asked: read.MetricQuery | None

    @classmethod
    def of(cls, call: Call, metric: dict[str, Any], period_s: int, names: Sequence[str]) -> _Query:
        """Validate a request. ``metric``: has Namespace, MetricName, Dimensions and Unit."""
        for name in names:
            if not tally.is_statistic(name):
                raise ServiceError(
                    ErrorCode.InvalidParameterValue,
                    f"The value {name} for parameter Stat is not supported",
                )
        if period_s < 1 or period_s % 60:
            raise ServiceError(
                ErrorCode.InvalidParameterValue,
                f"The parameter Period must be a multiple of 60: got {period_s}",
            )
        since = read.floor_to_period(int(call.params["StartTime"] * 1000))
        until = -read.floor_to_period(-int(call.params["EndTime"] * 1000))
        if since >= until:
            raise ServiceError(
                ErrorCode.InvalidParameterValue,
                "The parameter StartTime must be less than the parameter EndTime.",
            )
        period = period_s * 1000
        definition = METRICS.get(metric.get("MetricName", ""))
        unit = "None" if definition is None else definition.unit
        series = series_of(call, metric)
        if series is None or metric.get("Unit") not in (None, unit):
            return cls(since, until, period, unit, "", None)
        percentiles = any(tally.is_percentile(name) for name in names)
        spread = frozenset({series.metric}) if percentiles else frozenset()
        if call.action == "GetMetricData":  # its periods follow the clock
            since = read.floor_to_period(since, period)
        query = read.MetricQuery(
            *(call.project.pk, call.region, (series.metric,), since, until, period),
            *(series.resource, series.also, spread),
        )
        return cls(since, until, period, unit, series.metric, query)

    def points(self, names: Sequence[str]) -> list[tuple[int, list[float]]]:
        """Return (start of period, values of the statistics), by time."""
        return [] if self.asked is None else read.data_points(self.asked, self.metric, names)


def series_of(call: Call, metric: dict[str, Any]) -> Series | None:
    """Return the series that the dimensions name, None if there can be none."""
    definition = METRICS.get(metric.get("MetricName", ""))
    if definition is None or metric.get("Namespace") != NAMESPACE:
        return None
    dimensions = {
        dimension["Name"]: dimension["Value"] for dimension in metric.get("Dimensions") or []
    }
    resource = _resource(definition, dimensions)
    more = {"StateMachineArn"} if definition.group == "limits" else {"Version", "Alias"}
    if resource is None or len(dimensions) > 1 or set(dimensions) - more:
        return None
    dimension_text = "".join(f"{name}={value}" for name, value in dimensions.items())
    return Series(call.project.pk, call.region, definition.name, resource, dimension_text)


def _resource(definition: Metric, dimensions: dict[str, str]) -> str | None:
    """Remove the metric's own dimension from ``dimensions`` and return it; None if absent."""
    if definition.group == "limits":
        name = next((limit for limit in LIMITS if limit in dimensions), None)
        return None if name is None else f"{name}={dimensions.pop(name)}"
    return dimensions.pop(definition.dimension, None) if definition.dimension else ""


# -- GetMetricData ---------------------------------------------------------------------------------


@reads(
    "MetricDataQueries.Id MetricDataQueries.MetricStat.Metric.Namespace "
    "MetricDataQueries.MetricStat.Metric.MetricName "
    "MetricDataQueries.MetricStat.Metric.Dimensions.Name "
    "MetricDataQueries.MetricStat.Metric.Dimensions.Value "
    "MetricDataQueries.MetricStat.Period MetricDataQueries.MetricStat.Stat "
    "MetricDataQueries.MetricStat.Unit MetricDataQueries.Expression "
    "MetricDataQueries.Label MetricDataQueries.ReturnData StartTime EndTime NextToken "
    "ScanBy MaxDatapoints",
    ignored={"LabelOptions": "the time zone of dynamic labels, which are refused"},
)
def get_metric_data(call: Call) -> dict[str, Any]:
    """Answer GetMetricData: several metrics, in pages of a number of values."""
    params = call.params
    queries = [query for query in params["MetricDataQueries"] if query.get("ReturnData", True)]
    _check(params["MetricDataQueries"])
    most = params.get("MaxDatapoints") or _MOST_VALUES
    budget, start = most, paging.open_next(call) or 0
    results, seen = [], 0
    parsed = [_query_of(call, query) for query in queries]
    buckets = read.read_many(query.asked for query in parsed if query.asked is not None)
    for query, series_query in zip(queries, parsed, strict=True):
        points = _values(call, query, series_query, buckets)
        shown = points[max(start - seen, 0) :][:budget]
        complete = max(start - seen, 0) + len(shown) >= len(points)
        seen += len(points)
        budget -= len(shown)
        results.append(_result(query, shown, complete))
    answer: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
    if start + most < seen:
        answer["NextToken"] = paging.seal_next(call, start + most)
    return answer


def _check(queries: Sequence[dict[str, Any]]) -> None:
    for query in queries:
        if query.get("Expression"):
            raise ServiceError(
                ErrorCode.InvalidParameterValue,
                f"MetricDataQueries: {query['Id']!r} is an Expression, and metric math is not "
                "served: ask for a MetricStat and compute with its values",
            )
        if not query.get("MetricStat"):
            raise ServiceError(
                ErrorCode.MissingParameter, f"MetricDataQueries: {query['Id']!r} has no MetricStat"
            )
        if "${" in (query.get("Label") or ""):
            raise ServiceError(
                ErrorCode.InvalidParameterValue,
                f"MetricDataQueries: the Label of {query['Id']!r} is dynamic, and only constant "
                "labels are served",
            )
    if len({query["Id"] for query in queries}) < len(queries):
        raise ServiceError(
            ErrorCode.InvalidParameterValue, "MetricDataQueries: the Ids must differ"
        )


def _query_of(call: Call, query: dict[str, Any]) -> _Query:
    stat = query["MetricStat"]
    metric = stat["Metric"] | ({"Unit": stat["Unit"]} if stat.get("Unit") else {})
    return _Query.of(call, metric, stat["Period"], [stat["Stat"]])


def _values(
    call: Call,
    query: dict[str, Any],
    series_query: _Query,
    buckets: dict[read.MetricQuery, dict[str, read.Buckets]],
) -> list[tuple[int, list[float]]]:
    periods = {} if series_query.asked is None else buckets[series_query.asked][series_query.metric]
    points = read.points_of(periods, [query["MetricStat"]["Stat"]])
    ascending = call.params.get("ScanBy") == "TimestampAscending"
    return points if ascending else points[::-1]


def _result(
    query: dict[str, Any], points: list[tuple[int, list[float]]], complete: bool
) -> dict[str, Any]:
    return {
        "Id": query["Id"],
        "Label": query.get("Label") or query["MetricStat"]["Metric"].get("MetricName", ""),
        "Timestamps": [seconds(start) for start, _ in points],
        "Values": [value for _, (value,) in points],
        "StatusCode": "Complete" if complete else "PartialData",
    }


HANDLERS: dict[str, Callable[[Call], dict[str, Any] | LongPoll]] = {
    "GetMetricData": get_metric_data,
    "GetMetricStatistics": get_metric_statistics,
    "ListMetrics": list_metrics,
}
