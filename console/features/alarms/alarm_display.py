"""Prepare alarms for the pages: state, condition in words, and the forms."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Exists, OuterRef, Window
from django.urls import reverse

from console.db import clock
from console.db.prepared import read_rows
from console.events import body
from console.features.alarms import store as alarms
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.alarms.alarm_series import unit_of_metric
from console.features.alarms.forms import OFFERED
from console.features.alarms.models import Alarm
from console.features.metrics.web import charts
from console.features.notifications import patterns
from console.features.notifications.web import rule_display
from console.models import EventRule
from console.statuses import (
    AlarmComparison,
    AlarmKind,
    AlarmState,
    ExecutionStatus,
    MissingData,
)
from console.web.core import formatting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import Manager, QuerySet

    from console.models import StateMachine
    from console.web.core.scope import Scope

STATES = rule_display.ALARM_STATES
_ORDER = tuple(STATES)
_MOST_RULES = 20
_ARN = re.compile(r"arn:aws[a-z-]*:cloudwatch:([a-z0-9-]+):\d{12}:alarm:.+")
_BEGINS = (AlarmState.ALARM, AlarmState.OK)
_TITLES = {
    AlarmKind.FAILURE_RATE: "Failure rate",
    AlarmKind.NO_SUCCESS: "No success",
    AlarmKind.DURATION: "Duration",
    AlarmKind.STUCK: "Stuck in a state",
}
_DEFAULTS: dict[str, dict[str, str]] = {
    AlarmKind.FAILURE_RATE: {"threshold": "20", "period": "1 h", "minimum": "5"},
    AlarmKind.NO_SUCCESS: {"period": "1 d"},
    AlarmKind.DURATION: {"threshold": "150", "period": "1 h", "minimum": "20"},
    AlarmKind.STUCK: {"period": "1 h"},
}
_CHARTS: dict[str, str] = {
    AlarmKind.FAILURE_RATE: "outcomes",
    AlarmKind.DURATION: "durations",
}
COMPARED = {
    AlarmComparison.AT_LEAST: "at least",
    AlarmComparison.ABOVE: "above",
    AlarmComparison.BELOW: "below",
    AlarmComparison.AT_MOST: "at most",
}
MISSING = {
    MissingData.MISSING: "insufficient data",
    MissingData.IGNORE: "keep state",
    MissingData.BREACHING: "breaching",
    MissingData.NOT_BREACHING: "not breaching",
}


_EXACT_TIMES = (
    *((1, formatting.SECOND), (100, 10 * formatting.SECOND), (formatting.SECOND, formatting.HOUR)),
    *((formatting.MINUTE, formatting.DAY), (formatting.HOUR, math.inf)),
)
"""The times that two units write exactly: multiples of the first number below the second."""


@dataclass(frozen=True, slots=True)
class AlarmRow:
    """One alarm of a list. ``revision``: the base of an editor's change.

    ``current``: the reason by an evaluation now, "" without an evaluation; the stored reason is
    that of the last change of state.
    """

    alarm: Alarm
    status: formatting.StatusLabel
    words: str
    revision: str
    current: str = ""

    @property
    def past_reason(self) -> str:
        """Return the reason of the last change, "" if the current evaluation has the same.

        An alarm without enough data updates its reason at each evaluation.
        """
        alarm = self.alarm
        repeated = alarm.reason == self.current or alarm.state == AlarmState.INSUFFICIENT_DATA
        return "" if self.current and repeated else alarm.reason

    @property
    def editable(self) -> bool:
        """Whether a form can change it."""
        return self.alarm.kind in OFFERED

    @property
    def chart(self) -> str:
        """Return the metric for the link to its chart, "" for an alarm on executions."""
        return _CHARTS.get(self.alarm.kind, self.alarm.metric)

    @property
    def listed(self) -> str:
        """Return the status of the executions it watches, for the link to their list."""
        stuck = self.alarm.kind == AlarmKind.STUCK
        return ExecutionStatus.RUNNING if stuck else ExecutionStatus.SUCCEEDED

    @property
    def chart_group(self) -> str:
        """Return the group of its metric's chart, for an alarm without a state machine."""
        return charts.group_of_metric(self.alarm.metric)


@dataclass(frozen=True, slots=True)
class AlarmFields:
    """Contents of a form. ``name``: of the edited alarm, "" for a new alarm."""

    kind: str
    title: str
    values: Mapping[str, str]
    name: str = ""
    problem: str = ""
    is_open: bool = False


def alarm_rows(rows: Iterable[Alarm]) -> list[AlarmRow]:
    """Return alarms for a list: alarms in ALARM first, then by name."""
    ordered = sorted(rows, key=lambda alarm: (_ORDER.index(alarm.state), alarm.name))
    return [
        AlarmRow(alarm, STATES[alarm.state], alarm_words(alarm), alarms.revision_of(alarm))
        for alarm in ordered
    ]


def evaluated(rows: Iterable[AlarmRow]) -> list[AlarmRow]:
    """Return rows with the current evaluation of each. It costs some queries an alarm."""
    now_ms = clock.now_ms()
    return [replace(row, current=evaluate_alarm(row.alarm, now_ms).reason) for row in rows]


def alarms_of_machine(machine: StateMachine) -> list[AlarmRow]:
    """Return the alarms of a state machine."""
    rows = Alarm.objects.filter(machine=machine).select_related("machine")
    return alarm_rows(rows[: alarms.MOST_ALARMS])


def overview_live(scope: Scope, most: int) -> dict[str, Any]:
    """Return the alarms in ALARM, for the overview."""
    alarmed, count = alarms_in_alarm(scope, most)
    stamp = [count, *((row.alarm.pk, row.alarm.state_ms) for row in alarmed)]
    return {"alarmed": alarmed, "alarm_count": count, "seen": stamp}


def alarm_address(scope: Scope, arn: str) -> str:
    """Return the URL of an alarm by ARN, that of the list if it is deleted."""
    match = _ARN.fullmatch(arn)
    if match is None:
        return ""
    rows = Alarm.objects.filter(project=scope.project, arn=arn)
    for number in rows.values_list("pk", flat=True):
        return f"{reverse('alarm', args=[number])}?region={match[1]}"
    return f"{reverse('alarms')}?region={match[1]}"


def machines_with_alarms(machines: QuerySet[StateMachine]) -> QuerySet[StateMachine]:
    """Annotate state machines with whether they have an alarm in ALARM."""
    alarmed = Alarm.objects.filter(machine=OuterRef("pk"), state=AlarmState.ALARM)
    return machines.annotate(in_alarm=Exists(alarmed))


def newest_alarm(machine: StateMachine) -> list[Alarm]:
    """Return a state machine's latest alarm in ALARM; ``total`` counts all.

    No query if the state machine was read with ``machines_with_alarms``.
    """
    if not getattr(machine, "in_alarm", True):
        return []
    rows = Alarm.objects.filter(machine=machine, state=AlarmState.ALARM)
    return list(rows.annotate(total=Window(Count("*"))).order_by("-state_ms")[:1])


def alarms_with_arns() -> dict[str, Manager[Any]]:
    """Return the alarm queries by kind of ARN."""
    return {"alarm": Alarm.objects}


def alarms_in_alarm(scope: Scope, most: int) -> tuple[list[AlarmRow], int]:
    """Return the alarms in ALARM, latest change first, and their number."""
    project, region = scope.project, scope.region

    def find() -> QuerySet[Alarm, tuple[int, int]]:
        rows = alarms.alarms_of(project, region).filter(state=AlarmState.ALARM)
        counted = rows.order_by("-state_ms").annotate(total=Window(Count("*")))
        return counted.values_list("pk", "total")[:most]

    counted_rows = read_rows(("in alarm", project.pk, region, most), find)
    # none as most of the time: their rows are wide, and so is that of their machine
    if not counted_rows:
        return [], 0
    numbers = [number for number, _ in counted_rows]
    # one may have recovered since its number was read
    rows = Alarm.objects.filter(pk__in=numbers, state=AlarmState.ALARM)
    newest = rows.select_related("machine").order_by("-state_ms")
    listed = [AlarmRow(alarm, STATES[alarm.state], alarm_words(alarm), "") for alarm in newest]
    return listed, counted_rows[0][1]


def alarm_words(alarm: Alarm) -> str:
    """Return the condition of an alarm as a sentence."""
    span = formatting.rough_duration(alarm.period_s * formatting.SECOND)
    limit = f"{alarm.threshold:g} %"
    match AlarmKind(alarm.kind):
        case AlarmKind.FAILURE_RATE:
            ends = f"{alarm.minimum} or more executions within {span}"
            return f"Alarm if more than {limit} of {ends} fail or time out"
        case AlarmKind.NO_SUCCESS:
            return f"Alarm if no execution succeeds for {span}"
        case AlarmKind.DURATION:
            return (
                f"Alarm if the 95th percentile of the duration within {span} exceeds {limit} of the"
                f" two weeks before, with {alarm.minimum} or more executions"
            )
        case AlarmKind.STUCK:
            state = f"in {alarm.state_name} " if alarm.state_name else "in one state "
            return f"Alarm if an execution stays {state}for more than {span}"
        case AlarmKind.METRIC:
            compared = COMPARED[AlarmComparison(alarm.comparison)]
            bound = threshold_text(alarm.threshold, unit_of_metric(alarm))
            words = f"Alarm if {alarm.statistic} of {alarm.metric} is {compared} {bound}"
            if alarm.periods == 1:
                return f"{words} within {span}"
            return f"{words} in {alarm.datapoints} of {alarm.periods} periods of {span}"


def threshold_text(value: float, unit: str) -> str:
    """Format a threshold with its metric's unit; a duration in words if exact."""
    if unit != "Milliseconds":
        return f"{value:.15g}"
    is_exact = any(value < most and value % part == 0 for part, most in _EXACT_TIMES)
    return formatting.limit_text(round(value)) if value >= 0 and is_exact else f"{value:,.15g} ms"


def missing_words(alarm: Alarm) -> str:
    """Return the treatment of missing data in words, "" for an alarm without periods."""
    return MISSING[MissingData(alarm.missing)] if alarm.kind == AlarmKind.METRIC else ""


def alarm_forms(
    machine: StateMachine, rows: Sequence[AlarmRow], chosen: str, typed: Mapping[str, str], why: str
) -> list[AlarmFields]:
    """Return a form for each kind; the selected alarm's form is open and changes it.

    ``typed``: the sent form that was refused because of ``why``.
    """
    editing = next((row for row in rows if row.editable and row.alarm.name == chosen), None)
    forms = []
    for kind in OFFERED:
        title = _TITLES[kind]
        values = {"name": f"{machine.name} {title.lower()}", **_DEFAULTS[kind]}
        name, problem, is_open = "", "", False
        if editing is not None and editing.alarm.kind == kind:
            values, name, is_open = _values_of(editing), chosen, True
        if typed.get("kind") == kind:
            values, problem, is_open = dict(typed), why, True
            name = values.get("name", "") if values.get("revision") else ""
            theirs = next((row for row in rows if row.alarm.name == name), None)
            if theirs is not None and theirs.revision != values["revision"]:
                values["revision"] = theirs.revision
                problem = f"{why}: {theirs.words}. Save again to replace that."
        forms.append(AlarmFields(kind, title, values, name, problem, is_open))
    return forms


def _values_of(row: AlarmRow) -> dict[str, str]:
    alarm = row.alarm
    return {
        "name": alarm.name,
        "threshold": f"{alarm.threshold:g}",
        "period": formatting.rough_duration(alarm.period_s * formatting.SECOND)
        if alarm.period_s % 60 == 0 and _is_round(alarm.period_s)
        else f"{alarm.period_s} s",
        "minimum": str(alarm.minimum),
        "state": alarm.state_name,
        "revision": row.revision,
    }


def _is_round(seconds: int) -> bool:
    """Whether a duration's words parse back to the same duration."""
    return any(seconds % unit == 0 and seconds // unit < 100 for unit in (86_400, 3_600, 60))  # noqa: PLR2004


# -- rules -----------------------------------------------------------------------------------------


def alarm_pattern(machine_arn: str) -> str:
    """Return the event pattern of all changes of a state machine's alarms to or from ALARM."""
    changed = {"value": [AlarmState.ALARM]}
    pattern = {
        "source": [body.ALARM_SOURCE],
        "detail-type": [body.ALARM_DETAIL_TYPE],
        "resources": [machine_arn],
        "detail": {"$or": [{"state": changed}, {"previousState": changed}]},
    }
    return json.dumps(pattern, indent=2)


def alarm_rules(
    scope: Scope, machine: StateMachine | None, alarm: Alarm | None = None
) -> list[EventRule]:
    """Return the rules that match changes of a state machine's alarms or of an alarm, by name.

    ``alarm``: None for the rules that match all alarms of the machine.
    """
    rules = EventRule.objects.filter(project=scope.project, region=scope.region)
    rules = rules.filter(pattern__contains=body.ALARM_SOURCE).order_by("name")
    matching = (rule for rule in rules if _gets_alarm(scope, rule, machine, alarm))
    return list(islice(matching, _MOST_RULES))


def _gets_alarm(
    scope: Scope, rule: EventRule, machine: StateMachine | None, alarm: Alarm | None
) -> bool:
    """Whether a rule matches the begin or end of an alarm."""
    event = {
        "source": body.ALARM_SOURCE,
        "detail-type": body.ALARM_DETAIL_TYPE,
        "account": scope.project.account_id,
        "region": scope.region,
        "resources": [*([alarm.arn] if alarm else []), *([machine.arn] if machine else [])],
    }
    name = "" if alarm is None else alarm.name
    try:
        pattern = patterns.parse_pattern(rule.pattern)
    except patterns.PatternError:
        return False
    for state, before in (_BEGINS, reversed(_BEGINS)):
        detail = {"state": {"value": state}, "previousState": {"value": before}}
        text = json.dumps(event | {"detail": {"alarmName": name, **detail}})
        if pattern.matches(text):
            return True
    return False
