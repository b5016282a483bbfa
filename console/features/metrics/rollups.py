"""Roll up the metrics of each past minute, so that the sums outlive their rows.

The maintenance threads of a worker do this, never a step. A cursor in the database has the last
minute done. Sums and cursor change in one transaction, and only if the cursor is unchanged since
the sums began: repetitions after a crash and concurrent processes are harmless.

A minute is rolled up two minutes after its end, when its steps are committed, and is never looked
at again. Executions that are deleted later stay counted.

A late step writes the time at which it was due: after an hour without a server an execution times
out in the middle of that hour. So a minute is added up only when all its steps, and all earlier
steps, are committed, but at most ten minutes later.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Min

from console.db import clock
from console.db.prepared import read_rows
from console.db.writer import write
from console.features.metrics import samples, tally
from console.features.metrics.models import MetricMinute, MetricTotal
from console.features.metrics.samples import Series
from console.features.metrics.tally import Tally
from console.models import Execution, MapRun, Project, ServerFact, StateMachine
from console.store.state.health import oldest_step_age_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import QuerySet

MINUTE = 60_000
_LAG_MS = 2 * MINUTE
_PATIENCE_S = 600.0
_CHUNK_MS = 30 * MINUTE
_CURSOR = "metrics summed until"
_GAUGES_KEPT_MS = 15 * 24 * 60 * MINUTE
_AT_ONCE = 500
ALL = frozenset(samples.GROUPS)
SCRAPED = ALL - {"near"}
"""Groups whose live rows a scrape reads, too: not ``near`` (a limit), which reads many events."""
Minutes = dict[tuple[Series, int], Tally]


def sum_up() -> None:
    """Roll up every finished minute, and record the present gauges."""
    end = _end_of_steps(clock.now_ms() - _LAG_MS)
    while _next_chunk(end - end % MINUTE):
        pass
    _note_gauges()


@dataclass
class _LateStep:
    """The oldest late step. ``due_ms``: its due time; ``seen_s``: when first seen."""

    due_ms: int = 0
    seen_s: float = 0.0


_late = _LateStep()


def _end_of_steps(end: int) -> int:
    """Return the time, up to ``end``, before which all steps have been taken."""
    now_ms = clock.now_ms()
    oldest_ms = now_ms - oldest_step_age_ms(now_ms)
    if oldest_ms >= end:
        return end
    if oldest_ms != _late.due_ms:
        _late.due_ms, _late.seen_s = oldest_ms, time.monotonic()
    return oldest_ms if time.monotonic() - _late.seen_s < _PATIENCE_S else end


def summed_until() -> int:
    """Return the epoch ms up to which all is rolled up, 0 if nothing is."""
    values = read_rows("summed until", _read_cursor)
    return int(values[0][0]) if values else 0


def _read_cursor() -> QuerySet[ServerFact, tuple[str]]:
    return ServerFact.objects.filter(name=_CURSOR).values_list("value")


def sum_samples(project: int, groups: Collection[str], since: int, until: int) -> Minutes:
    """Sum the samples of a period by series and minute."""
    minutes: Minutes = {}
    for group in sorted(groups):
        for sample in samples.samples_of(project, group, since, until):
            key = sample.series, sample.at_ms - sample.at_ms % MINUTE
            minutes.setdefault(key, Tally()).add(sample.value)
    return minutes


def _next_chunk(end: int) -> bool:
    """Roll up one chunk before ``end``; return whether there is more."""
    cursor = summed_until()
    since = cursor or _first_minute(end)
    until = min(since + _CHUNK_MS, end)
    if since >= until:
        return False
    minutes: Minutes = {}
    for project in Project.objects.values_list("pk", flat=True):
        minutes |= sum_samples(project, ALL, since, until)
    return write(lambda: _store(cursor, until, minutes)) and until < end


def _first_minute(otherwise: int) -> int:
    """Return the minute of the oldest execution."""
    oldest = Execution.objects.aggregate(first=Min("start_ms"))["first"]
    return otherwise - MINUTE if oldest is None else oldest - oldest % MINUTE


def _store(cursor: int, until: int, minutes: Minutes) -> bool:
    """Write the sums and move the cursor, unless another process has (inside a transaction)."""
    fact, _ = ServerFact.objects.get_or_create(name=_CURSOR, defaults={"value": "0"})
    fact = ServerFact.objects.select_for_update().get(pk=fact.pk)
    if int(fact.value) != cursor:
        return False
    fact.value = str(until)
    fact.save()
    MetricMinute.objects.bulk_create(
        [
            MetricMinute(minute_ms=minute, **_rollup_row(key, summary))
            for (key, minute), summary in minutes.items()
        ],
        batch_size=_AT_ONCE,
    )
    totals: dict[Series, Tally] = {}
    for (series, _minute), summary in minutes.items():
        totals.setdefault(series, Tally()).take(summary)
    _add_totals(totals)
    return True


def _add_totals(totals: Mapping[Series, Tally]) -> None:
    for series, summary in totals.items():
        identity = _identity(series)
        row = MetricTotal.objects.select_for_update().filter(**identity).first()
        if row is None:
            MetricTotal.objects.create(**_rollup_row(series, summary))
            continue
        total = tally.tally_of_row(row)
        total.take(summary)
        MetricTotal.objects.filter(pk=row.pk).update(**_sums(total))


def _identity(series: Series) -> dict[str, Any]:
    return {
        "project_id": series.project,
        "region": series.region,
        "metric": series.metric,
        "resource": series.resource,
        "also": series.also,
    }


def _sums(summary: Tally) -> dict[str, Any]:
    return {
        "count": summary.count,
        "total": summary.total,
        "least": summary.least,
        "most": summary.most,
        "spread": summary.dumps(),
    }


def _rollup_row(series: Series, summary: Tally) -> dict[str, Any]:
    return _identity(series) | _sums(summary)


# -- gauges ----------------------------------------------------------------------------------------


def _note_gauges() -> None:
    """Record the open executions and Map Runs of this minute, once."""
    now = clock.now_ms()
    minute = now - now % MINUTE
    values = [
        (series, value)
        for project in Project.objects.all()
        for series, value in read_gauges(project)
    ]

    def store() -> None:
        MetricMinute.objects.filter(
            metric__in={series.metric for series, _ in values},
            minute_ms__lt=minute - _GAUGES_KEPT_MS,
        ).delete()
        for series, value in values:
            summary = Tally()
            summary.add(value)
            MetricMinute.objects.update_or_create(
                **_identity(series), minute_ms=minute, defaults=_sums(summary)
            )

    if values:
        write(store)


def read_gauges(project: Project) -> list[tuple[Series, int]]:
    """Return the number of open executions and Map Runs by region, and their limits."""
    machines = StateMachine.objects.filter(project=project)
    regions = sorted({*machines.order_by().values_list("region", flat=True).distinct()})
    gauges = []
    for region in regions or [settings.STATEYARD_REGION]:
        running = Execution.objects.filter(
            state_machine__in=machines.filter(region=region, type="STANDARD"), status="RUNNING"
        )
        runs = MapRun.objects.filter(parent__in=running, status="RUNNING")
        waiting = sum(total - started for total, started in runs.values_list("total", "started"))
        now = {
            "OpenExecutionCount": running.count(),
            "OpenExecutionLimit": 1_000_000,
            "ApproximateOpenMapRunCount": runs.count(),
            "OpenMapRunLimit": 1_000,
            "ApproximateMapRunBacklogSize": waiting,
        }
        gauges += [(Series(project.pk, region, name, ""), value) for name, value in now.items()]
    return gauges
