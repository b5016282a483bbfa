"""Render the metrics of all projects and of the server for Prometheus.

Project metrics are computed from the database at each scrape and belong to no process: counters and
histograms are the sums of all finished minutes plus later rows, gauges are read now. So this is a
collector without the library's registry of counters. While the database does not answer, only the
numbers of this process are rendered.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from prometheus_client import exposition
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from console.db import clock
from console.features.metrics import rollups, tally
from console.features.metrics.engine_metrics import process_families, server_families
from console.features.metrics.models import MetricTotal
from console.features.metrics.names import METRICS, STATE_METRICS, Metric
from console.features.metrics.samples import Series
from console.features.metrics.tally import Tally
from console.models import Project
from console.store.state import health, late_schedules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RENDERERS: dict[str, Callable[[Collector], bytes]] = {
    openmetrics.CONTENT_TYPE_LATEST: openmetrics.generate_latest,
    exposition.CONTENT_TYPE_PLAIN_0_0_4: exposition.generate_latest,
}
"""Content type -> function that renders a collector in it; the first one is the default."""
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400)
_UNITS = {"Milliseconds": "seconds", "Bytes": "bytes"}


class MetricsCollector(Collector):
    """Collects all metrics: of this process, the server, projects (in order of ``METRICS``)."""

    def collect(self) -> Iterator[Family]:
        """Yield each metric family, also without samples."""
        yield from process_families()
        state = health.check_health()
        yield from server_families(state)
        if state.answered:
            yield from self._project_families()

    def _project_families(self) -> Iterator[Family]:
        totals = sorted(_totals().items())
        for metric in (*METRICS.values(), *STATE_METRICS.values()):
            if metric.group != "gauges":
                yield _summed_family(metric, totals)
        yield from _gauge_families()
        yield _schedule_delays()


def render_metrics(content_type: str) -> bytes:
    """Return the metrics in one of the formats of ``RENDERERS``."""
    return RENDERERS[content_type](MetricsCollector())


def prometheus_name(metric: Metric) -> str:
    """Return a metric's name for Prometheus: ``stateyard_executions_failed``."""
    name = f"stateyard_{_snake_case(metric.name)}"
    return f"{name}_{_UNITS[metric.unit]}" if metric.unit in _UNITS else name


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _totals() -> dict[Series, Tally]:
    """Return the total of every series."""
    totals: defaultdict[Series, Tally] = defaultdict(Tally)
    for row in MetricTotal.objects.iterator():
        series = Series(row.project_id, row.region, row.metric, row.resource, row.also)
        totals[series].take(tally.tally_of_row(row))
    summed, now = rollups.summed_until(), clock.now_ms()
    for project in Project.objects.values_list("pk", flat=True):
        live = rollups.sum_samples(project, rollups.SCRAPED, summed, now + 1)
        for (series, _minute), minute_tally in live.items():
            totals[series].take(minute_tally)
    return totals


def _summed_family(metric: Metric, totals: list[tuple[Series, Tally]]) -> Family:
    kind = "counter" if metric.unit == "Count" else "histogram"
    family = Family(prometheus_name(metric), metric.meaning, kind, _UNITS.get(metric.unit, ""))
    for series, total in totals:
        if series.metric != metric.name:
            continue
        if kind == "counter":
            family.add_sample(f"{family.name}_total", _labels(metric, series), total.total)
        else:
            _add_histogram(family, _labels(metric, series), total)
    return family


def _add_histogram(family: Family, labels: dict[str, str], total: Tally) -> None:
    """Add the samples of a histogram; a bucket counts values up to its bound."""
    scale = 1000 if family.unit == "seconds" else 1  # the tally has milliseconds
    for bound in _BUCKETS:
        below = sum(times for value, times in total.spread.items() if value / scale <= bound)
        family.add_sample(f"{family.name}_bucket", {**labels, "le": str(float(bound))}, below)
    family.add_sample(f"{family.name}_bucket", {**labels, "le": "+Inf"}, total.count)
    family.add_sample(f"{family.name}_count", labels, total.count)
    family.add_sample(f"{family.name}_sum", labels, total.total / scale)


def _gauge_families() -> Iterator[Family]:
    """Yield the present numbers: open executions, Map Runs, their limits."""
    samples = [
        sample for project in Project.objects.all() for sample in rollups.read_gauges(project)
    ]
    for metric in METRICS.values():
        if metric.group != "gauges":
            continue
        family = Family(prometheus_name(metric), metric.meaning, "gauge")
        for series, value in samples:
            if series.metric == metric.name:
                family.add_sample(family.name, _labels(metric, series), value)
        yield family


def _schedule_delays() -> Family:
    """Return project -> how late its scheduled starts are; 0 if on time."""
    meaning = "for how long the latest start by a schedule is late, 0 if none is"
    family = Family("stateyard_schedule_delay_seconds", meaning, "gauge", "seconds")
    delays_ms = late_schedules.start_delays(clock.now_ms())
    for project in Project.objects.order_by("pk").values_list("pk", flat=True):
        delay_s = delays_ms.get(project, 0) / 1000
        family.add_sample(family.name, {"project": str(project)}, delay_s)
    return family


def _labels(metric: Metric, series: Series) -> dict[str, str]:
    """Return the labels of a series: project, region, and its dimensions in snake case."""
    labels = {"project": str(series.project), "region": series.region}
    if metric.dimension:
        name, value = metric.dimension_of(series.resource)
        labels[_snake_case(name)] = value
    name, equals, value = series.also.partition("=")
    if equals:
        labels[_snake_case(name)] = value
    return labels
