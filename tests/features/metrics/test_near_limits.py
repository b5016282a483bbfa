"""Executions near a limit of AWS are counted, in live minutes as in rollups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import engine
from console.db import clock
from console.db.audit import Actor
from console.features.alarms import store as alarms
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.metrics import openmetrics, rollups
from console.models import Execution, HistoryEvent, RunRow
from console.statuses import AlarmKind, AlarmState
from tests.console.store.helpers import PASS, REGION, WAIT, create, drain, start
from tests.console.web.helpers import text
from tests.features.metrics.test_rollups import later, sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

__all__ = ["later"]
METRIC = "ExecutionsNearLimit"
_YEAR_MS = engine.MAX_EXECUTION_S * 1000


def test_an_alarm_looks_at_it(project: Project, client: Client, later: Callable[[], None]) -> None:
    """The form offers it beside the metrics of executions, and a count above 0 breaches."""
    machine = create(project, PASS, "large")
    drain(start(machine, "s" * 230_000))
    fields = {
        "kind": AlarmKind.METRIC,
        "machine": machine,
        "metric": METRIC,
        "resource": machine.arn,
        "statistic": "Sum",
        "period_s": 3600,
        "threshold": 0.0,
        "comparison": "GreaterThanThreshold",
    }
    alarm = alarms.put_alarm(project, REGION, "near", fields, actor=Actor("ada"))
    later()
    assert evaluate_alarm(alarm, clock.now_ms()).state == AlarmState.ALARM
    form = text(client.get(f"/alarms/{alarm.pk}/?edit=1"))
    assert f'<option value="{METRIC}"' in form
    assert '<option value="ExecutionsFailed"' in form


def count(project: Project, **more: str) -> float:
    """Return the sum of the metric within half an hour from now."""
    return sums(project, METRIC, **more)[METRIC]


def test_a_large_payload_counts_at_the_end(project: Project) -> None:
    """Once for an execution, however many of its events have it; by its own size."""
    machine = create(project, PASS, "large")
    drain(start(machine, "s" * 230_000))
    drain(start(machine, '"' * 100_000))  # 200,002 bytes, and 400,000 inside the event
    drain(start(create(project, PASS, "small"), "s" * 200_000))
    start(machine, "s" * 230_000)  # it runs on
    assert count(project) == 1
    assert count(project, resource=machine.arn) == 1


def test_a_long_history_counts_while_it_runs(project: Project) -> None:
    """At its event 20,000: earlier ones and later ones do not count again."""
    execution = drain(start(create(project, WAIT), {}, "x"))
    for last in (19_999, 20_000, 24_000):
        event = HistoryEvent(
            execution=execution, event_id=last, previous=1, type="PassStateEntered"
        )
        event.at_ms = clock.now_ms()
        event.save(force_insert=True)
        RunRow.objects.filter(pk=execution.pk).update(next_event=last + 1)
        assert count(project) == (last >= 20_000)


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    ("number", "apart_ms", "near"), [(4_000, 0, 1), (4_000, 1, 0), (3_998, 0, 0)]
)
def test_fast_transitions_count_at_the_end(
    project: Project, number: int, apart_ms: int, *, near: int
) -> None:
    """80 % of what AWS's bucket of us-east-1 refills, within any second."""
    execution = drain(start(create(project, PASS), {}, "x"))
    assert count(project) == 0
    events = [
        HistoryEvent(
            execution=execution,
            event_id=100 + place,
            previous=1,
            type="PassStateEntered",
            at_ms=execution.start_ms + 60_000 + place * apart_ms,
        )
        for place in range(number)
    ]
    HistoryEvent.objects.bulk_create(events)
    RunRow.objects.filter(pk=execution.pk).update(next_event=2 * number)
    assert count(project) == near


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    ("share", "ended", "near"),
    [(0.79, None, 0), (0.8, None, 1), (0.8, 0.5, 0), (0.8, 0.9, 1), (0.9, None, 0)],
)
def test_an_execution_near_its_year_counts_when_it_comes_there(
    project: Project, share: float, ended: float | None, *, near: int
) -> None:
    """Not before, not again a month later, and not if it ended before."""
    execution = drain(start(create(project, WAIT), {}, "x"))
    start_ms = clock.now_ms() - int(_YEAR_MS * share) - 1_000
    stop_ms = None if ended is None else start_ms + int(_YEAR_MS * ended)
    Execution.objects.filter(pk=execution.pk).update(start_ms=start_ms, stop_ms=stop_ms)
    assert count(project) == near


def test_rollups_count_the_same(project: Project, later: Callable[[], None]) -> None:
    """Also for the version that was started, for a scrape, and when the execution is gone."""
    machine = create(project, PASS, "large")
    execution = drain(start(machine, "s" * 230_000))
    name = f'stateyard_executions_near_limit_total{{project="{project.pk}"'
    live = openmetrics.render_metrics(next(iter(openmetrics.RENDERERS))).decode()
    assert name not in live  # a scrape reads no events
    later()
    rollups.sum_up()
    Execution.objects.filter(pk=execution.pk).delete()
    assert count(project, resource=machine.arn) == 1
    summed = openmetrics.render_metrics(next(iter(openmetrics.RENDERERS))).decode()
    assert name in summed
