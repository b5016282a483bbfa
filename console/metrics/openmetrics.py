"""What does Prometheus read?  Every metric of every project, in the OpenMetrics text format.

Counters are the sums of all minutes that are over and of the rows since.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from console import clock
from console.metrics import rollups, tally
from console.metrics.names import METRICS, Metric
from console.metrics.samples import Series
from console.metrics.tally import Tally
from console.models import MetricTotal, Project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def text() -> str:
    """Return the exposition."""
    found = _totals()
    lines: list[str] = []
    for metric in METRICS.values():
        if metric.group == "gauges":
            continue
        mine = sorted(
            (series, one) for series, one in found.items() if series.metric == metric.name
        )
        lines += _family(metric, mine)
    lines += _gauges()
    return "\n".join([*lines, "# EOF", ""])


def name_of(metric: Metric) -> str:
    """Return a metric's name for Prometheus: ``stepyard_executions_failed``."""
    units = {"Milliseconds": "_seconds", "Bytes": "_bytes"}
    return f"stepyard_{_snake(metric.name)}{units.get(metric.unit, '')}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _totals() -> dict[Series, Tally]:
    """Return what every series came to so far."""
    found: defaultdict[Series, Tally] = defaultdict(Tally)
    for row in MetricTotal.objects.iterator():
        series = Series(row.project_id, row.region, row.metric, row.resource, row.also)
        found[series].take(tally.of_row(row))
    summed, now = rollups.summed_until(), clock.now_ms()
    for project in Project.objects.values_list("pk", flat=True):
        live = rollups.gather(project, rollups.ALL, summed, now + 1)
        for (series, _minute), one in live.items():
            found[series].take(one)
    return found


def _family(metric: Metric, rows: Iterable[tuple[Series, Tally]]) -> Iterator[str]:
    name = name_of(metric)
    yield f"# TYPE {name} {'counter' if metric.unit == 'Count' else 'histogram'}"
    if metric.unit != "Count":
        yield f"# UNIT {name} {name.rpartition('_')[2]}"
    yield f"# HELP {name} {metric.meaning}"
    for series, one in rows:
        labels = _labels(metric, series)
        if metric.unit == "Count":
            yield f"{name}_total{{{labels}}} {one.total:g}"
        else:
            yield from _histogram(name, labels, one, 1000 if name.endswith("_seconds") else 1)


def _histogram(name: str, labels: str, one: Tally, scale: int) -> Iterator[str]:
    for bound in _BOUNDS_S:
        below = sum(times for value, times in one.spread.items() if value / scale <= bound)
        yield f'{name}_bucket{{{labels},le="{float(bound)}"}} {below}'
    yield f'{name}_bucket{{{labels},le="+Inf"}} {one.count}'
    yield f"{name}_count{{{labels}}} {one.count}"
    yield f"{name}_sum{{{labels}}} {one.total / scale!r}"


def _gauges() -> Iterator[str]:
    """Return how things stand now."""
    rows = [one for project in Project.objects.all() for one in rollups.gauges(project)]
    for metric in METRICS.values():
        if metric.group != "gauges":
            continue
        name = name_of(metric)
        yield f"# TYPE {name} gauge"
        yield f"# HELP {name} {metric.meaning}"
        for series, value in rows:
            if series.metric == metric.name:
                yield f"{name}{{{_labels(metric, series)}}} {value}"


def _labels(metric: Metric, series: Series) -> str:
    labels = {"project": str(series.project), "region": series.region}
    if metric.dimension:
        name, value = metric.dimension_of(series.resource)
        labels[_snake(name)] = value
    name, equals, value = series.also.partition("=")
    if equals:
        labels[_snake(name)] = value
    return ",".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in labels.items())
