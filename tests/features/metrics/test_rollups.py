"""Rollups equal the rows that they sum, also after a crash and after a deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.metrics import openmetrics, read, rollups
from console.features.metrics.models import MetricMinute, MetricTotal
from console.features.metrics.names import METRICS, STATE_METRICS
from console.models import Execution, ServerFact, TaskRow
from console.store.executions import redrive as redrives
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, complete, expiry
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    REGION,
    WAIT,
    WORK,
    create,
    drain,
    ended,
    function,
    one,
    start,
)

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from console.models import Project

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No", "Cause": "why"}}}
LATE = rollups.MINUTE * 5


def asked(project: Project, *metrics: str, **more: Any) -> read.MetricQuery:
    """Ask for the last half hour and the next, in one period."""
    now = read.floor_to_period(clock.now_ms())
    half = 30 * rollups.MINUTE
    span = {"since": now - half, "until": now + half, "period": 2 * half} | more
    return read.MetricQuery(project.pk, REGION, metrics, **span)


def sums(project: Project, *metrics: str, **more: Any) -> dict[str, float]:
    """Return the sum of each metric over that hour."""
    series = read.read_buckets(asked(project, *metrics, **more))
    return {
        metric: sum(bucket.total for bucket in buckets.values())
        for metric, buckets in series.items()
    }


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that lets the database clock be five minutes ahead."""
    real = clock.now_ms
    return lambda: monkeypatch.setattr(clock, "now_ms", lambda: real() + LATE)


def some(project: Project) -> None:
    """Run three that succeed, two that fail, one that is stopped; one goes on."""
    good, bad, wait = (
        create(project, definition, name)
        for definition, name in ((PASS, "good"), (FAIL, "bad"), (WAIT, "wait"))
    )
    for machine, times in ((good, 3), (bad, 2)):
        for _ in range(times):
            drain(start(machine))
    stop_execution(drain(start(wait)))
    drain(start(wait))


WANTED = {
    "ExecutionsStarted": 7,
    "ExecutionsSucceeded": 3,
    "ExecutionsFailed": 2,
    "ExecutionsAborted": 1,
    "ExecutionsTimedOut": 0,
}


def test_counts_equal_the_rows_before_and_after_summing(project: Project, later: Any) -> None:
    """Live, summed up, and summed up twice: the same numbers."""
    some(project)
    assert sums(project, *WANTED) == WANTED
    later()
    rollups.sum_up()
    assert MetricMinute.objects.filter(metric="ExecutionsFailed").exists()
    assert sums(project, *WANTED) == WANTED
    rollups.sum_up()
    assert sums(project, *WANTED) == WANTED
    assert (
        sum(MetricTotal.objects.filter(metric="ExecutionsFailed").values_list("total", flat=True))
        == 2
    )


def test_a_crash_between_summing_and_the_cursor_doubles_nothing(
    project: Project, later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails on its way into the database leaves neither sums nor cursor behind."""
    some(project)
    later()
    with monkeypatch.context() as broken:
        broken.setattr(rollups, "_add_totals", lambda _totals: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rollups.sum_up()
    assert rollups.summed_until() == 0
    assert not MetricMinute.objects.exists()
    rollups.sum_up()
    assert sums(project, *WANTED) == WANTED


@pytest.mark.postgres_too
def test_a_slower_process_writes_nothing(project: Project, later: Any) -> None:
    """Who began at a cursor that has moved since is refused."""
    some(project)
    later()
    rollups.sum_up()
    before = MetricMinute.objects.count()
    assert rollups.write(lambda: rollups._store(0, clock.now_ms(), {})) is False  # type: ignore[attr-defined]
    assert MetricMinute.objects.count() == before
    assert ServerFact.objects.get(name="metrics summed until").value != "0"


@pytest.fixture
def timed_out_while_away(project: Project, later: Any) -> Execution:
    """An execution whose time ended while no worker was there."""
    execution = drain(start(create(project, {**WAIT, "TimeoutSeconds": 30})))
    later()
    return execution


def test_what_timed_out_while_no_worker_was_there_is_counted(
    project: Project, timed_out_while_away: Execution
) -> None:
    """Its end lies in a minute that was over before any worker could see it."""
    rollups.sum_up()
    execution = drain(timed_out_while_away)
    assert execution.status == "TIMED_OUT"
    rollups.sum_up()
    assert rollups.summed_until() > (execution.stop_ms or 0)
    assert sums(project, "ExecutionsTimedOut") == {"ExecutionsTimedOut": 1}


def test_a_step_that_is_never_taken_does_not_end_the_metrics(
    timed_out_while_away: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minutes are summed after a while."""
    rollups.sum_up()
    held = rollups.summed_until()
    monkeypatch.setattr(rollups, "_PATIENCE_S", 0)
    rollups.sum_up()
    assert rollups.summed_until() > held
    timed_out_while_away.refresh_from_db()
    assert timed_out_while_away.status == "RUNNING"


def test_deleted_executions_stay_counted(project: Project, later: Any) -> None:
    """The sums outlive the rows they were made from."""
    some(project)
    later()
    rollups.sum_up()
    Execution.objects.all().delete()
    assert sums(project, *WANTED) == WANTED


def test_percentiles_of_the_time_come_from_the_executions(project: Project, later: Any) -> None:
    """p100 of ExecutionTime is the longest execution, summed up or not."""
    some(project)
    longest = max(
        execution.stop_ms - execution.start_ms
        for execution in Execution.objects.exclude(stop_ms=None)
    )
    for _ in range(2):
        buckets = read.read_buckets(
            asked(project, "ExecutionTime", spread=frozenset({"ExecutionTime"}))
        )["ExecutionTime"]
        (bucket,) = buckets.values()
        assert bucket.count == 6
        assert bucket.statistic("p100") == bucket.most == longest
        later()
        rollups.sum_up()


@pytest.mark.parametrize("summed", [False, True], ids=["redriven at once", "redriven later"])
def test_a_redrive_takes_no_end_back(project: Project, later: Any, summed: bool) -> None:
    """It counts with its time, however soon the redrive comes; the pause before that is no time."""
    execution = drain(start(create(project, FAIL)))
    if summed:
        later()
        rollups.sum_up()
    redrives.redrive_execution(execution)
    assert sums(project, "ExecutionsFailed") == {"ExecutionsFailed": 1}
    drain(execution)
    ends = {"ExecutionsFailed": 2, "RedrivenExecutionsFailed": 1, "ExecutionsRedriven": 1}
    assert sums(project, *ends) == ends
    assert sums(project, "ExecutionTime")["ExecutionTime"] < LATE


def test_one_machine_has_its_own_numbers(project: Project) -> None:
    """The dimension StateMachineArn separates machines."""
    some(project)
    arn = Execution.objects.filter(status="FAILED").values_list("state_machine_arn", flat=True)[0]
    got = sums(project, "ExecutionsFailed", "ExecutionsSucceeded", resource=arn)
    assert got == {"ExecutionsFailed": 2, "ExecutionsSucceeded": 0}


def test_functions_are_counted_by_how_they_ended(
    project: Project, worker: Any, settings: Settings
) -> None:
    """Calls that succeed and that fail, with retries: each call counts once, also of its state."""
    del worker
    settings.STATEYARD_FUNCTIONS = {"AddressFinder": "console.samples.functions:find_address"}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    calls = {
        "StartAt": "Good",
        "States": {
            "Good": function("AddressFinder", Next="Bad"),
            "Bad": function("nowhere", Retry=retry, End=True),
        },
    }
    ended(start(create(project, calls), {"customerId": "7"}))
    names = [f"LambdaFunctions{how}" for how in ("Scheduled", "Succeeded", "Failed", "TimedOut")]
    arn = "arn:aws:lambda:us-east-1:123456789012:function:"
    bad = sums(project, *names, resource=f"{arn}nowhere")
    assert (bad[names[0]], bad[names[1]], bad[names[3]]) == (2, 0, 0)
    assert bad[names[2]] == 2
    attempts = {
        (sample.labels["state"], sample.name): sample.value
        for family in openmetrics.MetricsCollector().collect()
        for sample in family.samples
        if sample.name.startswith("stateyard_task_attempts_")
    }
    assert attempts == {
        ("Good", "stateyard_task_attempts_succeeded_total"): 1,
        ("Bad", "stateyard_task_attempts_failed_total"): 2,
    }
    listed = read.known_series(project.pk, REGION, 0, clock.now_ms() + LATE)
    assert not {series.metric for series in listed} & set(STATE_METRICS)


def test_activities_have_times_and_outcomes(project: Project) -> None:
    """Scheduled, started and succeeded once; the times add up."""
    activities.create_activity(project, ACTIVITY.split(":")[3], "work")
    execution = drain(start(create(project, WORK)))
    work = claim.take_activity_task(ACTIVITY, "me")
    assert work is not None
    complete.succeed(work.token, "{}")
    drain(execution)
    names = [name for name in METRICS if name.startswith("Activit")]
    got = sums(project, *names, resource=ACTIVITY)
    assert got["ActivitiesScheduled"] == got["ActivitiesStarted"] == 1
    assert got["ActivitiesSucceeded"] == 1
    assert got["ActivityTime"] == got["ActivityScheduleTime"] + got["ActivityRunTime"]


@pytest.mark.parametrize(
    ("column", "counted"),
    [("heartbeat_due_ms", "ActivitiesHeartbeatTimedOut"), ("timeout_due_ms", "ActivitiesTimedOut")],
)
def test_a_missed_heartbeat_has_a_metric_of_its_own(
    project: Project, column: str, counted: str
) -> None:
    """The history says States.Timeout of both clocks; the metrics tell them apart."""
    activities.create_activity(project, ACTIVITY.split(":")[3], "work")
    work = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=600, HeartbeatSeconds=60)
    execution = drain(start(create(project, work)))
    taken = claim.take_activity_task(ACTIVITY, "me")
    assert taken is not None
    drain(execution)
    TaskRow.objects.update(**{column: 1})
    assert expiry.expire_tasks([(execution.pk, taken.task)]) == 1
    drain(execution)
    names = ("ActivitiesHeartbeatTimedOut", "ActivitiesTimedOut", "ActivitiesFailed")
    got = sums(project, *names, resource=ACTIVITY)
    assert got == dict.fromkeys(names, 0) | {counted: 1}


def test_open_executions_are_noted_each_minute(project: Project) -> None:
    """The gauge of the account counts what runs; noting it twice in a minute changes nothing."""
    some(project)
    rollups.sum_up()
    rollups.sum_up()
    rows = MetricMinute.objects.filter(metric="OpenExecutionCount")
    assert {(row.count, row.total) for row in rows} == {(1, 1.0)}


def test_many_queries_read_what_they_share_once(
    project: Project, django_assert_max_num_queries: Any
) -> None:
    """Each gets what it gets alone; five hundred take as many statements as there are machines."""
    some(project)
    machines = [*project.statemachine_set.values_list("arn", flat=True), "nobody's"]
    metrics = ("ExecutionsStarted", "ExecutionsSucceeded", "ExecutionsFailed", "ExecutionTime")
    queries = [
        asked(project, metric, resource=machine) for machine in machines for metric in metrics
    ]
    queries *= 500 // len(queries)
    with django_assert_max_num_queries(3 * len(machines) + 15):
        answers = read.read_many(queries)
    for query in queries[: len(machines) * len(metrics)]:
        (metric,) = query.metrics
        assert answers[query][metric] == read.read_buckets(query)[metric]
