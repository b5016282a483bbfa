"""Read metric values: from the sums of past minutes, and from live rows after them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Count, F, Max, Min, Q, Sum, TextField, Value, When

from console.db.prepared import read_rows
from console.features.metrics import rollups
from console.features.metrics.models import MetricMinute
from console.features.metrics.names import METRICS
from console.features.metrics.rollups import MINUTE
from console.features.metrics.samples import Series
from console.features.metrics.tally import Tally
from console.models import Project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import QuerySet

Buckets = dict[int, Tally]
LiveValue = tuple[Series, int, Tally]
"""A value of one minute (epoch ms)."""


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """The requested values.

    ``resource`` and ``also`` as in ``Series``; None: of all machines together (children of Map Runs
    apart, as in lists of executions). ``since``, ``until``: whole minutes in epoch ms, the second
    exclusive. ``spread``: the metrics of which percentiles are requested.
    """

    project: int
    region: str
    metrics: tuple[str, ...]
    since: int
    until: int
    period: int
    resource: str | None = None
    also: str = ""
    spread: frozenset[str] = frozenset()

    def bucket(self, at_ms: int) -> int:
        """Return the start of a time's period, counted from ``since``."""
        return at_ms - (at_ms - self.since) % self.period

    def wants(self, series: Series) -> bool:
        """Whether a series is requested."""
        if (series.region, series.also) != (self.region, self.also):
            return False
        if series.metric not in self.metrics:
            return False
        return (
            "/" not in _machine(series)
            if self.resource is None
            else (series.resource == self.resource)
        )


def _machine(series: Series) -> str:
    """Return the state machine's ARN of a series, "" for task series, which may contain slashes."""
    return series.resource if METRICS[series.metric].dimension == "StateMachineArn" else ""


class LiveRows:
    """Values of minutes not yet summed up, read once for several queries."""

    def __init__(self) -> None:
        self.summed_until = rollups.summed_until()
        self._spans: dict[tuple[int, str, int, int], dict[str, list[LiveValue]]] = {}

    def of(self, query: MetricQuery) -> Iterator[LiveValue]:
        """Yield the values for a query."""
        groups = {METRICS[metric].group for metric in query.metrics} - {"gauges"}
        since = max(query.since, self.summed_until)
        for group in sorted(groups) if since < query.until else ():
            by_resource = self._read(query.project, group, since, query.until)
            if query.resource is None:
                values: Iterator[LiveValue] = itertools.chain.from_iterable(by_resource.values())
            else:
                values = iter(by_resource.get(query.resource, ()))
            yield from (value for value in values if query.wants(value[0]))

    def _read(self, project: int, group: str, since: int, until: int) -> dict[str, list[LiveValue]]:
        """Return the values of a period by resource."""
        span = project, group, since, until
        if span not in self._spans:
            values: dict[str, list[LiveValue]] = {}
            sums = rollups.sum_samples(project, {group}, since, until)
            for (series, minute), summary in sums.items():
                values.setdefault(series.resource, []).append((series, minute, summary))
            self._spans[span] = values
        return self._spans[span]


def read_buckets(query: MetricQuery, live: LiveRows | None = None) -> dict[str, Buckets]:
    """Return metric -> start of period (epoch ms) -> tally; empty periods are omitted."""
    buckets: dict[str, Buckets] = {metric: {} for metric in query.metrics}
    live = live or LiveRows()
    _add_sums(query, buckets)
    for series, minute, summary in live.of(query):
        buckets[series.metric].setdefault(query.bucket(minute), Tally()).take(summary)
    return buckets


def read_many(queries: Iterable[MetricQuery]) -> dict[MetricQuery, dict[str, Buckets]]:
    """Return the buckets of each query; queries that differ only in metrics are read once."""
    live = LiveRows()
    alike: dict[MetricQuery, list[MetricQuery]] = {}
    for query in queries:
        alike.setdefault(replace(query, metrics=(), spread=frozenset()), []).append(query)
    results: dict[MetricQuery, dict[str, Buckets]] = {}
    for whole, members in alike.items():
        metrics = tuple(sorted({metric for query in members for metric in query.metrics}))
        spread = frozenset().union(*(query.spread for query in members))
        buckets = read_buckets(replace(whole, metrics=metrics, spread=spread), live)
        results |= dict.fromkeys(members, buckets)
    return results


def _add_sums(query: MetricQuery, buckets: dict[str, Buckets]) -> None:
    """Sum in the database: a month has forty thousand rows per state machine.

    What percentiles need, the database cannot add: it returns each distinct distribution once, with
    the number of its minutes.
    """
    values: list[int | str] = [query.project, query.since, query.until - 1]
    values += [query.region, query.also]
    if query.resource is not None:
        values.append(query.resource)
    # Bound values are left out of the key, so that all machines share one statement.
    bound: dict[str, Any] = {"region": "", "also": "", "resource": query.resource and ""}
    key = replace(query, project=0, since=0, until=0, **bound)
    for row in read_rows(key, partial(_sum_rows, query), *values):
        metric, start, values_of, n, total, low, high, minutes = row
        spread = json.loads(values_of or "{}")
        times = Counter({int(value): count * minutes for value, count in spread.items()})
        summary = Tally(n, total, low, high, times)
        buckets[metric].setdefault(int(start), Tally()).take(summary)


def _sum_rows(
    query: MetricQuery,
    project: int,
    since: int,
    last: int,
    region: str,
    also: str,
    resource: str | None = None,
) -> QuerySet[MetricMinute, Any]:
    """Return the query of sums, grouped by the metrics and period of ``query``."""
    start = F("minute_ms") - (F("minute_ms") - since) % query.period
    none: Value | Case = Value("", output_field=TextField())
    spread = Case(When(metric__in=query.spread, then=F("spread")), default=none)
    rows = MetricMinute.objects.filter(
        project=project,
        region=region,
        metric__in=query.metrics,
        minute_ms__range=(since, last),
        also=also,
    ).order_by()
    if resource is not None:
        rows = rows.filter(resource=resource)
    else:
        rows = rows.exclude(Q(resource__contains=":states:") & Q(resource__contains="/"))
    return (
        rows.annotate(start=start, values_of=spread if query.spread else none)
        .values_list("metric", "start", "values_of")
        .annotate(
            n=Sum("count"),
            of=Sum("total"),
            low=Min("least"),
            high=Max("most"),
            minutes=Count("pk"),
        )
    )


def known_series(project: int, region: str, since: int, until: int) -> list[Series]:
    """Return the series of AWS's metrics with values in a period, sorted."""
    rows = MetricMinute.objects.filter(
        project=project, region=region, minute_ms__range=(since, until - 1)
    )
    names = rows.order_by().values_list("metric", "resource", "also").annotate(Count("pk"))
    all_series = {Series(project, region, *row[:3]) for row in names}
    start = max(since, rollups.summed_until())
    live = rollups.sum_samples(project, rollups.ALL, start, until)
    all_series |= {series for series, _ in live if series.region == region}
    all_series |= {series for series, _ in rollups.read_gauges(Project.objects.get(pk=project))}
    return sorted(
        series for series in all_series if series.region == region and series.metric in METRICS
    )


def floor_to_period(at_ms: int, step: int = MINUTE) -> int:
    """Return the start of a time's minute (or longer period)."""
    return at_ms - at_ms % step


def data_points(
    asked: MetricQuery, metric: str, statistics: Sequence[str]
) -> list[tuple[int, list[float]]]:
    """Return (start of period, value of each statistic), by time."""
    return points_of(read_buckets(asked)[metric], statistics)


def points_of(series: Buckets, statistics: Sequence[str]) -> list[tuple[int, list[float]]]:
    """Return (start of period, value of each statistic), by time."""
    return [
        (start, [series[start].statistic(name) for name in statistics]) for start in sorted(series)
    ]
