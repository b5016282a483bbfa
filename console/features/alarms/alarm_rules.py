"""Evaluate alarms: compute the state (OK, ALARM, INSUFFICIENT_DATA) from metrics and executions.

Nothing is written here. The cost does not grow with the executions: metrics are read from the sums
of minutes, the last success by an index, and of the running executions the oldest ``MOST_RUNNING``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db.models import OuterRef, Subquery

from console.db import clock
from console.features.metrics import read
from console.features.metrics.names import METRICS
from console.features.metrics.rollups import MINUTE
from console.models import Execution, HistoryEvent
from console.statuses import (
    AlarmComparison,
    AlarmKind,
    AlarmState,
    ExecutionStatus,
    MissingData,
)
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.alarms.models import Alarm

MOST_RUNNING = 1_000
"""The number of longest-running executions of a machine that are read."""
PAST_MS = 14 * 24 * 60 * MINUTE
"""The length of the past with which durations are compared."""
_ENDS = ("ExecutionsSucceeded", "ExecutionsFailed", "ExecutionsTimedOut")
_NEWEST = 20
_HOUR_S, _DAY_S = 3_600, 86_400
_LACKING = "Insufficient data"


class AlarmVerdict(NamedTuple):
    """The evaluated state of an alarm, and the reason."""

    state: AlarmState
    reason: str


def evaluate_alarm(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    """Return the state of an alarm at a time."""
    return _RULES[AlarmKind(alarm.kind)](alarm, now_ms)


# -- metrics ---------------------------------------------------------------------------------------


def most_periods(period_s: int) -> int:
    """Return the maximum number of periods, by CloudWatch's limit of a day or week."""
    return (_DAY_S if period_s < _HOUR_S else 7 * _DAY_S) // period_s


def _judge_metric(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    """Evaluate the latest whole periods of a metric, as CloudWatch does."""
    values = _values(alarm, now_ms)
    datapoints = [(start, value) for start, value in values if value is not None]
    gaps = len(values) - len(datapoints)
    over = sum(breaches(alarm, value) for _, value in datapoints)
    if alarm.missing == MissingData.BREACHING:
        breaching, counted = gaps + over, len(values)
    elif alarm.missing == MissingData.NOT_BREACHING:
        breaching, counted = over, len(values)
    else:
        breaching, counted = over, len(datapoints)
    if not counted:
        ignores_gaps = alarm.missing == MissingData.IGNORE
        state = AlarmState(alarm.state) if ignores_gaps else AlarmState.INSUFFICIENT_DATA
        unknown = "1 datapoint was unknown" if gaps == 1 else f"{gaps} datapoints were unknown"
        return AlarmVerdict(state, f"Insufficient Data: {unknown}.")
    alarmed = breaching >= min(alarm.datapoints, counted)
    reason = _reason(alarm, datapoints, gaps, alarmed=alarmed)
    return AlarmVerdict(AlarmState.ALARM if alarmed else AlarmState.OK, reason)


_THRESHOLDS = {
    AlarmComparison.AT_LEAST: "greater than or equal to",
    AlarmComparison.ABOVE: "greater than",
    AlarmComparison.BELOW: "less than",
    AlarmComparison.AT_MOST: "less than or equal to",
}
_TREATED = {MissingData.BREACHING: "Breaching", MissingData.NOT_BREACHING: "NonBreaching"}


def _reason(
    alarm: Alarm, datapoints: Sequence[tuple[int, float]], gaps: int, *, alarmed: bool
) -> str:
    """Return the reason of a metric alarm's state, in CloudWatch's words.

    The latest datapoint comes first. In ALARM the breaching datapoints count, else the others.
    """
    missing = "" if alarm.missing not in _TREATED else _missing_words(alarm, gaps)
    if not datapoints:
        periods = "1 period" if gaps == 1 else f"{gaps} periods"
        return f"Threshold Crossed: no datapoints were received for {periods} and {missing}."
    datapoints_of_verdict = [pair for pair in datapoints if breaches(alarm, pair[1]) == alarmed]
    points = ", ".join(
        f"{value} ({clock.moment_of(start):%d/%m/%y %H:%M:%S})"
        for start, value in reversed(datapoints_of_verdict[-_NEWEST:])
    )
    if alarmed and alarm.periods > 1:
        number = f"{len(datapoints_of_verdict)} out of the last {alarm.periods} datapoints"
    else:
        number = (
            "1 datapoint"
            if len(datapoints_of_verdict) == 1
            else f"{len(datapoints_of_verdict)} datapoints"
        )
    limit = f"{_THRESHOLDS[AlarmComparison(alarm.comparison)]} the threshold ({alarm.threshold})"
    were = "was" if len(datapoints_of_verdict) == 1 else "were"
    reason = f"Threshold Crossed: {number} [{points}] {were} {'' if alarmed else 'not '}{limit}"
    if missing and gaps:
        reason += f" and {missing}"
    least = f"{alarm.datapoints} datapoint{'' if alarm.datapoints == 1 else 's'}"
    if alarmed and alarm.periods > 1:
        reason += f" (minimum {least} for OK -> ALARM transition)"
    return f"{reason}."


def _missing_words(alarm: Alarm, gaps: int) -> str:
    """Return the treatment of missing datapoints in words."""
    number = "1 missing datapoint was" if gaps == 1 else f"{gaps} missing datapoints were"
    return f"{number} treated as [{_TREATED[MissingData(alarm.missing)]}]"


def breaches(alarm: Alarm, value: float) -> bool:
    """Whether a value is beyond the threshold of an alarm."""
    match AlarmComparison(alarm.comparison):
        case AlarmComparison.AT_LEAST:
            return value >= alarm.threshold
        case AlarmComparison.ABOVE:
            return value > alarm.threshold
        case AlarmComparison.BELOW:
            return value < alarm.threshold
        case AlarmComparison.AT_MOST:
            return value <= alarm.threshold


def _values(alarm: Alarm, now_ms: int) -> list[tuple[int, float | None]]:
    """Return the latest whole periods, oldest first: start and value, None without one."""
    period = alarm.period_s * 1000
    until = read.floor_to_period(now_ms)
    since = until - alarm.periods * period
    points = dict(metric_points(alarm, since, until))
    return [(start, points.get(start)) for start in range(since, until, period)]


def metric_points(alarm: Alarm, since: int, until: int) -> list[tuple[int, float]]:
    """Return start and value of each period with a value."""
    metric = METRICS.get(alarm.metric)
    if metric is None or alarm.unit not in ("", metric.unit):
        return []
    query = _query(alarm, (alarm.metric,), since, until, alarm.period_s * 1000)
    points = read.data_points(query, alarm.metric, [alarm.statistic])
    return [(start, float(values[0])) for start, values in points]


def _query(
    alarm: Alarm, metrics: tuple[str, ...], since: int, until: int, period: int
) -> read.MetricQuery:
    resource, also = alarm.resource, alarm.also
    if alarm.kind != AlarmKind.METRIC:
        resource, also = alarm.machine.arn if alarm.machine is not None else "", ""
    spread = frozenset(metrics) if alarm.statistic.startswith("p") else frozenset()
    return read.MetricQuery(
        *(alarm.project_id, alarm.region, metrics, since, until, period), resource, also, spread
    )


# -- executions ------------------------------------------------------------------------------------


def _judge_failure_rate(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    until = read.floor_to_period(now_ms) + MINUTE
    since = until - alarm.period_s * 1000
    _, bad, ended = next(iter(failure_counts(alarm, since, until)), (since, 0, 0))
    within = _within(alarm.period_s)
    if ended < alarm.minimum:
        reason = f"{_LACKING}: {_ends(ended)} {within}; it takes {alarm.minimum}"
        return AlarmVerdict(AlarmState.INSUFFICIENT_DATA, reason)
    rate = 100 * bad / ended
    were = "was a failure or timeout" if bad == 1 else "were failures or timeouts"
    reason = (
        f"{bad} of {_ends(ended)} {within} {were}:"
        f" {_percent(rate)}; the limit is {_percent(alarm.threshold)}"
    )
    return AlarmVerdict(AlarmState.ALARM if rate > alarm.threshold else AlarmState.OK, reason)


def failure_counts(alarm: Alarm, since: int, until: int) -> list[tuple[int, int, int]]:
    """Return for each period: its start, failed or timed out executions, ended executions.

    What was stopped counts as neither.
    """
    buckets = read.read_buckets(_query(alarm, _ENDS, since, until, alarm.period_s * 1000))
    counts = []
    for start in sorted({start for name in _ENDS for start in buckets[name]}):
        succeeded, failed, timed_out = (
            round(buckets[name][start].statistic("Sum")) if start in buckets[name] else 0
            for name in _ENDS
        )
        counts.append((start, failed + timed_out, succeeded + failed + timed_out))
    return counts


def _judge_success(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    """Evaluate the time since the last success, or since the state machine's creation."""
    rows = Execution.objects.filter(
        state_machine=alarm.machine_id, status=ExecutionStatus.SUCCEEDED, map_run=None
    ).order_by("-start_ms")
    ends = rows.values_list("stop_ms", flat=True)[:_NEWEST]
    last = max((stop_ms for stop_ms in ends if stop_ms is not None), default=None)
    since = last if last is not None else alarm.created_ms
    limit = f"the limit is {_span(alarm.period_s)}"
    ago = f"{_span((now_ms - since) // 1000)} ago"
    reason = f"no execution has succeeded since the alarm was made, {ago}; {limit}"
    late = now_ms - since > alarm.period_s * 1000
    if last is None:
        if late:
            return AlarmVerdict(AlarmState.ALARM, reason[0].upper() + reason[1:])
        return AlarmVerdict(AlarmState.INSUFFICIENT_DATA, f"{_LACKING}: {reason}")
    state = AlarmState.ALARM if late else AlarmState.OK
    return AlarmVerdict(state, f"The last success was {ago}; {limit}")


def _judge_duration(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    """Compare the 95th percentile of the duration with its value in the two weeks before."""
    until = read.floor_to_period(now_ms) + MINUTE
    since = until - alarm.period_s * 1000
    now, number = _percentile(alarm, since, until)
    past, of_past = past_percentile(alarm, since)
    within = _within(alarm.period_s)
    if min(number, of_past) < alarm.minimum:
        reason = (
            f"{_LACKING}: {_ends(number)} {within} and {of_past} in the two weeks"
            f" before; it takes {alarm.minimum} of both"
        )
        return AlarmVerdict(AlarmState.INSUFFICIENT_DATA, reason)
    percent = 100 * now / past if past else 100.0
    reason = (
        f"The 95th percentile of the duration was {_span(now / 1000)} {within} and"
        f" {_span(past / 1000)} in the two weeks before: {_percent(percent)};"
        f" the limit is {_percent(alarm.threshold)}"
    )
    return AlarmVerdict(AlarmState.ALARM if percent > alarm.threshold else AlarmState.OK, reason)


def past_percentile(alarm: Alarm, until: int) -> tuple[float, int]:
    """Return the 95th percentile (ms) of the two weeks before a time, and the count."""
    return _percentile(alarm, until - PAST_MS, until)


def _percentile(alarm: Alarm, since: int, until: int) -> tuple[float, int]:
    """Return the 95th percentile (ms) of the durations in a period, and the count."""
    for _, value, count in percentiles(alarm, since, until, until - since):
        return value, count
    return 0.0, 0


def percentiles(alarm: Alarm, since: int, until: int, period: int) -> list[tuple[int, float, int]]:
    """Return for each period: its start, the 95th percentile (ms), the count."""
    arn = alarm.machine.arn if alarm.machine is not None else ""
    name = "ExecutionTime"
    query = read.MetricQuery(
        *(alarm.project_id, alarm.region, (name,), since, until, period, arn),
        spread=frozenset({name}),
    )
    points = read.data_points(query, name, ["p95", "SampleCount"])
    return [(start, value, round(count)) for start, (value, count) in points]


def _judge_stuck(alarm: Alarm, now_ms: int) -> AlarmVerdict:
    """Find executions that entered their current state too long ago."""
    latest = now_ms - alarm.period_s * 1000
    entries = HistoryEvent.objects.filter(
        execution=OuterRef("pk"), type__in=event_types.STATE_ENTRIES
    ).order_by("-event_id")
    oldest = Execution.objects.filter(
        state_machine=alarm.machine_id,
        status=ExecutionStatus.RUNNING,
        map_run=None,
        start_ms__lte=latest,
    ).order_by("start_ms")[:MOST_RUNNING]
    rows = oldest.annotate(
        entered=Subquery(entries.values("at_ms")[:1]), at=Subquery(entries.values("state")[:1])
    ).values_list("name", "at", "entered")
    stuck = [
        (name, state, entered)
        for name, state, entered in rows
        if entered is not None and entered <= latest and alarm.state_name in ("", state)
    ]
    limit = _span(alarm.period_s)
    too_long = f"been in {alarm.state_name or 'one state'} for more than {limit}"
    if not stuck:
        return AlarmVerdict(AlarmState.OK, f"No execution has {too_long}")
    name, state, entered = min(stuck, key=lambda each: each[2])
    since = _span((now_ms - entered) // 1000)
    if len(stuck) == 1:
        reason = f"{name} has been in {state} for {since}; the limit is {limit}"
    else:
        reason = f"{len(stuck)} executions have {too_long}: {name} longest, in {state} for {since}"
    return AlarmVerdict(AlarmState.ALARM, reason)


_RULES = {
    AlarmKind.METRIC: _judge_metric,
    AlarmKind.FAILURE_RATE: _judge_failure_rate,
    AlarmKind.NO_SUCCESS: _judge_success,
    AlarmKind.DURATION: _judge_duration,
    AlarmKind.STUCK: _judge_stuck,
}


_UNITS = ((86_400, "d", "day"), (3_600, "h", "hour"), (60, "min", "minute"))


def _span(seconds: float) -> str:
    """Format a duration with at most two units: ``1 min 36 s``, ``2 h``, ``1.25 s``."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.3g} s"
    whole = round(seconds)
    small = [*_UNITS[1:], (1, "s", "")]
    for (unit, name, _), (part, part_name, _) in zip(_UNITS, small, strict=True):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name}" + (f" {rest} {part_name}" if rest else "")
    return f"{whole} s"


def _within(seconds: int) -> str:
    """Format a period that ends now: ``in the last hour``, ``in the last 90 min``."""
    names = {unit: word for unit, _, word in _UNITS}
    return f"in the last {names.get(seconds) or _span(seconds)}"


def _percent(value: float) -> str:
    return f"{value:,.0f} %" if value >= 100 else f"{value:.3g} %"  # noqa: PLR2004


def _ends(count: int) -> str:
    """Count ends of executions; a redriven execution counts once per run."""
    return f"{count} end{'' if count == 1 else 's'}"
