"""Compute metric values of a period from the rows that steps have committed.

A value exists if and only if its row exists, so nothing is counted twice or without a commit.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Q

import engine
from console.db.prepared import read_rows
from console.features.metrics import cost, near_limits
from console.features.metrics.names import ENDS, REDRIVEN_ENDS, WORK
from console.models import Execution, HistoryEvent, TaskRow, ThrottledMinute
from console.statuses import TaskClock
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

_AT_ONCE = 100  # executions whose outcomes one query reads


class Series(NamedTuple):
    """One metric of one resource; ``also``: a second dimension such as ``Version=<arn>``."""

    project: int
    region: str
    metric: str
    resource: str
    also: str = ""


class MetricSample(NamedTuple):
    """One value at one time."""

    series: Series
    at_ms: int
    value: float


def samples_of(project: int, group: str, since: int, until: int) -> Iterator[MetricSample]:
    """Return the samples of one of the ``GROUPS`` in [since, until), epoch ms."""
    return GROUPS[group](project, (since, until - 1))


# -- executions ------------------------------------------------------------------------------------

_BARE = (
    *("state_machine_arn", "version_arn", "alias_arn", "start_ms", "stop_ms", "redrive_ms"),
    *("pk", "status", "redrive_count", "state_machine__type", "definition_id"),
)
_END_EVENTS = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}
_REDRIVE_EVENT = "ExecutionRedriven"


def _executions(project: int, span: tuple[int, int]) -> Iterator[MetricSample]:
    executions = Execution.objects.filter(project=project).order_by().values(*_BARE)
    began = Q(start_ms__range=span) | Q(redrive_ms__range=span)
    for row in executions.filter(began).iterator():
        for metric, column in (
            ("ExecutionsStarted", "start_ms"),
            ("ExecutionsRedriven", "redrive_ms"),
        ):
            if row[column] is not None and span[0] <= row[column] <= span[1]:
                yield from _each(project, row, metric, row[column], 1)
    redriven: dict[int, dict[str, Any]] = {}
    for row in executions.filter(Q(stop_ms__range=span) | Q(redrive_ms__gte=span[0])).iterator():
        if row["redrive_count"]:
            redriven[row["pk"]] = row
        else:
            yield from _ended(project, row, _End(row["status"], row["start_ms"], row["stop_ms"]))
    yield from _ends_of_redriven(project, redriven, span)
    for arn, _api, minute_ms, count in read_rows("throttled", _throttled_query, project, *span):
        series = Series(project, _region(arn), "ExecutionThrottled", arn)
        yield MetricSample(series, minute_ms, count)


def _throttled_query(
    project: int, since: int, last: int
) -> QuerySet[ThrottledMinute, tuple[str, str, int, int]]:
    """Return the query of throttled work: state machine, action, minute, count."""
    rows = ThrottledMinute.objects.filter(project=project, minute_ms__range=(since, last))
    return rows.values_list("state_machine_arn", "api", "minute_ms", "count")


class _End(NamedTuple):
    """One end of an execution. ``since_ms``: its start, or the last redrive before."""

    status: str
    since_ms: int
    at_ms: int
    redriven: bool = False


def _ends_of_redriven(
    project: int, rows: dict[int, dict[str, Any]], span: tuple[int, int]
) -> Iterator[MetricSample]:
    """Return all ends of redriven executions: a redrive does not remove earlier ends.

    1. An execution fails.
    2. It is redriven before that minute has been summed up: its row says RUNNING.
    3. The end would count only if the redrive came late, so such ends are read from the history.
    """
    numbers = iter(rows)
    while batch := list(itertools.islice(numbers, _AT_ONCE)):
        for number, end in _read_ends({number: rows[number] for number in batch}):
            if span[0] <= end.at_ms <= span[1]:
                yield from _ended(project, rows[number], end)


def _read_ends(batch: dict[int, dict[str, Any]]) -> Iterator[tuple[int, _End]]:
    """Yield execution -> its ends, by their events."""
    types = [*_END_EVENTS, _REDRIVE_EVENT]
    events = HistoryEvent.objects.filter(execution_id__in=list(batch), type__in=types)
    ordered = events.order_by("execution_id", "event_id")
    since: dict[int, int] = {}
    for number, kind, at_ms in ordered.values_list("execution_id", "type", "at_ms"):
        if kind == _REDRIVE_EVENT:
            since[number] = at_ms
        else:
            begun = since.get(number, batch[number]["start_ms"])
            yield number, _End(_END_EVENTS[kind], begun, at_ms, redriven=number in since)


def _ended(project: int, row: dict[str, Any], end: _End) -> Iterator[MetricSample]:
    at_ms, status = end.at_ms, end.status
    took = at_ms - end.since_ms
    yield from _each(project, row, ENDS[status], at_ms, 1)
    yield from _each(project, row, "ExecutionTime", at_ms, took)
    yield from _each(project, row, "ExecutionsStarted", at_ms, 0)
    if end.redriven:
        yield from _each(project, row, REDRIVEN_ENDS[status], at_ms, 1)
    if row["state_machine__type"] == "EXPRESS":
        memory = cost.BASE_MB * cost.MB
        billed = cost.billed_ms(took)
        yield from _each(project, row, "ExpressExecutionBilledDuration", at_ms, billed)
        yield from _each(project, row, "ExpressExecutionMemory", at_ms, memory)
        yield from _each(
            project, row, "ExpressExecutionBilledMemory", at_ms, cost.billed_mb(memory) * cost.MB
        )


def _each(
    project: int, row: dict[str, Any], metric: str, at_ms: int, value: float
) -> Iterator[MetricSample]:
    """Return the value for the state machine, and for the version or alias of the start."""
    arn = row["state_machine_arn"]
    series = Series(project, _region(arn), metric, arn)
    yield MetricSample(series, at_ms, value)
    for name, column in (("Version", "version_arn"), ("Alias", "alias_arn")):
        if row[column]:
            qualifier = row[column].rpartition(":")[2]
            yield MetricSample(series._replace(also=f"{name}={qualifier}"), at_ms, value)


def _region(arn: str) -> str:
    return arn.split(":")[3]


def _near(project: int, span: tuple[int, int]) -> Iterator[MetricSample]:
    """Return executions that came near a limit."""
    near = list(near_limits.near_executions(project, span))
    rows = Execution.objects.filter(pk__in={number for number, _ in near}).order_by().values(*_BARE)
    by_number = {row["pk"]: row for row in rows}
    for number, at_ms in near:
        if number in by_number:
            yield from _each(project, by_number[number], "ExecutionsNearLimit", at_ms, 1)


# -- limits ----------------------------------------------------------------------------------------


def _limits(project: int, span: tuple[int, int]) -> Iterator[MetricSample]:
    """Return throttled work; transitions also by state machine, as AWS does."""
    for arn, api, minute_ms, count in read_rows("throttled", _throttled_query, project, *span):
        resource = f"APIName={api}" if api else "ServiceMetric=StateTransition"
        series = Series(project, _region(arn), "ThrottledEvents", resource)
        yield MetricSample(series, minute_ms, count)
        if not api:
            by_machine = series._replace(also=f"StateMachineArn={arn}")
            yield MetricSample(by_machine, minute_ms, count)


# -- tasks -----------------------------------------------------------------------------------------

_OUTCOMES = {name: engine.EVENT_TYPES[name].stage for name in event_types.WORK_OUTCOMES}
_LINKS = event_types.WORK_PROGRESS
_TASK = (
    *("execution_id", "task", "kind", "resource", "scheduled_ms", "started_ms", "closed_ms"),
    *("clock", "state", "execution__state_machine_arn"),
)


def _tasks(project: int, span: tuple[int, int]) -> Iterator[MetricSample]:
    tasks = TaskRow.objects.filter(execution__project=project, kind__in=WORK).order_by()
    # by status and kind, so that the index of dispatchable tasks is used
    statuses = ["scheduled", "started", "waiting", "closed"]
    new = tasks.filter(status__in=statuses, scheduled_ms__range=span)
    for row in new.values(*_TASK).iterator():
        yield _make_sample(project, row, "Scheduled", row["scheduled_ms"], 1)
    for row in tasks.filter(started_ms__range=span).values(*_TASK).iterator():
        yield _make_sample(project, row, "Started", row["started_ms"], 1)
        took = row["started_ms"] - row["scheduled_ms"]
        yield _make_sample(project, row, "ScheduleTime", row["started_ms"], took, times=True)
    closed = tasks.filter(closed_ms__range=span).order_by("execution_id").values(*_TASK)
    groups = itertools.groupby(closed.iterator(), lambda row: row["execution_id"])
    batches = ((number, list(rows)) for number, rows in groups)
    while batch := dict(itertools.islice(batches, _AT_ONCE)):
        yield from _closed_tasks(project, batch)


def _closed_tasks(project: int, batch: dict[int, list[dict[str, Any]]]) -> Iterator[MetricSample]:
    """Return the outcomes of tasks; cancelled tasks do not count."""
    outcomes = _outcomes({number: rows[0] for number, rows in _first(batch)})
    for number, rows in batch.items():
        for row in rows:
            outcome = outcomes.get((number, row["task"]))
            if outcome is None:
                continue
            at_ms = row["closed_ms"]
            yield from _attempt(project, row, outcome)
            yield _make_sample(project, row, _outcome_metric(outcome, row), at_ms, 1)
            yield _make_sample(project, row, "Time", at_ms, at_ms - row["scheduled_ms"], times=True)
            if row["started_ms"] is not None:
                yield _make_sample(
                    project, row, "RunTime", at_ms, at_ms - row["started_ms"], times=True
                )


def _attempt(project: int, row: dict[str, Any], outcome: str) -> Iterator[MetricSample]:
    """Return the state metrics of a Task attempt, of ``STATE_METRICS``."""
    machine, at_ms = row["execution__state_machine_arn"], row["closed_ms"]
    values = {f"TaskAttempts{outcome}": 1, "TaskAttemptTime": at_ms - row["scheduled_ms"]}
    for metric, value in values.items():
        series = Series(project, _region(machine), metric, machine, f"State={row['state']}")
        yield MetricSample(series, at_ms, value)


def _outcome_metric(outcome: str, row: dict[str, Any]) -> str:
    """Return an outcome's name in metrics; only activities distinguish timeouts.

    The history does not: AWS writes States.Timeout for a missed heartbeat, too.
    """
    silent = row["kind"] == "activity" and row["clock"] == TaskClock.HEARTBEAT
    return "HeartbeatTimedOut" if silent and outcome == "TimedOut" else outcome


def _first(
    batch: dict[int, list[dict[str, Any]]],
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Return executions with their oldest task first."""
    for number, rows in batch.items():
        yield number, sorted(rows, key=lambda row: int(row["task"]))


def _outcomes(oldest: dict[int, dict[str, Any]]) -> dict[tuple[int, int], str]:
    """Return (execution, task) -> outcome, by following events back to the task."""
    where = Q()
    for number, row in oldest.items():
        where |= Q(execution_id=number, event_id__gt=row["task"])
    events = HistoryEvent.objects.filter(where, type__in=[*_OUTCOMES, *_LINKS])
    columns = ("execution_id", "event_id", "previous", "type")
    back: dict[tuple[int, int], int] = {}
    outcomes: dict[tuple[int, int], str] = {}
    ordered = events.order_by("execution_id", "event_id").values_list(*columns)
    for number, event, previous, kind in ordered:
        task = back.get((number, previous), previous)
        if kind in _LINKS:
            back[number, event] = task
        else:
            outcomes[number, task] = _OUTCOMES[kind]
    return outcomes


def _make_sample(
    project: int, row: dict[str, Any], suffix: str, at_ms: int, value: float, *, times: bool = False
) -> MetricSample:
    kind = WORK[row["kind"]]
    metric = (kind.singular if times else kind.plural) + suffix
    region = _region(row["execution__state_machine_arn"])
    return MetricSample(Series(project, region, metric, row["resource"]), at_ms, value)


GROUPS: dict[str, Callable[[int, tuple[int, int]], Iterator[MetricSample]]] = {
    "executions": _executions,
    "tasks": _tasks,
    "limits": _limits,
    "near": _near,
}
