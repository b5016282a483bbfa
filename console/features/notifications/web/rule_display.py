"""Prepare rules, targets and deliveries for display."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.db.models import Q

from console.db import clock
from console.events import addresses, body
from console.features.notifications.web.schedule_words import schedule_words
from console.features.notifications.web.target_health import TargetHealth, health_of_targets
from console.integrations import web
from console.integrations.redaction import without_secrets
from console.integrations.targets import MachineKey
from console.models import EventRule, StateMachine
from console.statuses import (
    UNSUCCESSFUL,
    AlarmState,
    DeliveryStatus,
    ExecutionStatus,
    MachineStatus,
    RuleState,
)
from console.store.state.late_schedules import late_schedules
from console.web.core.existing import arn_kind, existing_arns
from console.web.core.formatting import EXECUTION, StatusLabel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.models import EventTarget
    from console.web.core.scope import Scope

PAGE = 50
_MACHINES = 500
STATUSES = (
    ExecutionStatus.SUCCEEDED,
    ExecutionStatus.FAILED,
    ExecutionStatus.TIMED_OUT,
    ExecutionStatus.ABORTED,
    ExecutionStatus.RUNNING,
)
ALARM_STATES: dict[str, StatusLabel] = {
    AlarmState.ALARM: StatusLabel("failed", "In alarm"),
    AlarmState.OK: StatusLabel("succeeded", "OK"),
    AlarmState.INSUFFICIENT_DATA: StatusLabel("idle", "Insufficient data"),
}
ALARM_DEFAULT = (AlarmState.ALARM, AlarmState.OK)
ABOUT_ALARMS = "alarms"
_ALARM_FIELDS = {"source", "detail-type", "resources", "detail"}
DELIVERY: dict[str, StatusLabel] = {
    DeliveryStatus.WAITING: StatusLabel("running", "Waiting"),
    DeliveryStatus.SENDING: StatusLabel("running", "Sending"),
    DeliveryStatus.DELIVERED: StatusLabel("succeeded", "Delivered"),
    DeliveryStatus.DEAD: StatusLabel("failed", "Dead letter"),
}


@dataclass(frozen=True, slots=True)
class PatternMeaning:
    """The meaning of a pattern: statuses and state machine ARNs (none: any).

    ``own``: the pattern has conditions that the form cannot show. ``alarms``: the pattern matches
    changes of alarms, not of executions; ``statuses`` are then states of alarms.
    """

    statuses: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    own: bool = False
    alarms: bool = False

    @property
    def words(self) -> list[str]:
        """Return the statuses or alarm states in words."""
        states = ALARM_STATES if self.alarms else EXECUTION
        return [states[each].word if each in states else each for each in self.statuses]


@dataclass(frozen=True, slots=True)
class SentTarget:
    """A target as shown on pages. ``deleted``: its state machine was deleted.

    ``refused``: its web address is not among the endpoints in targets.json, so nothing is sent to
    it.
    """

    target: EventTarget
    kind: str
    shown: str
    health: TargetHealth = field(default_factory=TargetHealth)
    deleted: bool = False
    refused: bool = False

    @property
    def endpoint_line(self) -> str:
        """Return the line missing in targets.json to allow this target; "" if none is missing."""
        if not self.refused:
            return ""
        parts = urlsplit(without_secrets(addresses.web_address(self.target.address)))
        return endpoint_line(f"{parts.scheme}://{parts.netloc}")

    @property
    def machine(self) -> str:
        """Return the name of the target's state machine, "" for other targets."""
        parts = self.target.address.split(":")
        return parts[6] if parts[5:6] == ["stateMachine"] and len(parts) > 6 else ""  # noqa: PLR2004


@dataclass(slots=True)
class RuleRow:
    """One rule of a list. ``counts``: deliveries by status.

    ``late_ms``: when the overdue run of the schedule was due, epoch ms; None if it is on time.
    """

    rule: EventRule
    meaning: PatternMeaning
    targets: list[SentTarget]
    counts: dict[str, int] = field(default_factory=dict)
    late_ms: int | None = None

    @property
    def under_way(self) -> int:
        """Return the number of pending deliveries."""
        return self.counts.get(DeliveryStatus.WAITING, 0) + self.counts.get(
            DeliveryStatus.SENDING, 0
        )

    @property
    def next_ms(self) -> int | None:
        """Return the next time of the schedule, epoch ms."""
        return self.rule.due_ms if self.rule.schedule_group else self.rule.next_ms

    @property
    def schedule_words(self) -> str:
        """Return the schedule in words, "" if too complex."""
        return schedule_words(self.rule.schedule, self.rule.timezone)

    @property
    def status(self) -> StatusLabel:
        """Return icon and word of the rule's state: enabled, disabled or late."""
        return rule_state(self.rule) if self.late_ms is None else _LATE


_LATE = StatusLabel("failed", "Late")


def rule_state(rule: EventRule) -> StatusLabel:
    """Return icon and word of a rule's state."""
    on = rule.state == RuleState.ENABLED
    return StatusLabel("succeeded", "Enabled") if on else StatusLabel("idle", "Disabled")


def endpoint_line(origin: str) -> str:
    """Return the line of targets.json that allows an origin."""
    return f'"http": {json.dumps({"endpoints": [origin]})}'


# -- patterns --------------------------------------------------------------------------------------


def pattern_of(statuses: Sequence[str], machine_arn: str) -> str:
    """Return the pattern of status changes to ``statuses``; state machine "" means any."""
    detail: dict[str, Any] = {"status": list(statuses)}
    if machine_arn:
        detail["stateMachineArn"] = [machine_arn]
    pattern = {"source": [body.SOURCE], "detail-type": [body.DETAIL_TYPE], "detail": detail}
    return json.dumps(pattern, indent=2)


def alarm_pattern_of(states: Sequence[str], machine_arn: str) -> str:
    """Return the pattern of alarm changes to ``states``; state machine "" means any."""
    pattern: dict[str, Any] = {
        "source": [body.ALARM_SOURCE],
        "detail-type": [body.ALARM_DETAIL_TYPE],
    }
    if machine_arn:
        pattern["resources"] = [machine_arn]
    return json.dumps(pattern | {"detail": {"state": {"value": list(states)}}}, indent=2)


def pattern_meaning(pattern: str) -> PatternMeaning:
    """Return a pattern's meaning; ``own`` if the form cannot express it."""
    if not pattern:
        return PatternMeaning()
    own = PatternMeaning(own=True)
    try:
        read = json.loads(pattern)
    except ValueError:
        return own
    detail = read.get("detail") if isinstance(read, dict) else None
    if isinstance(read, dict) and read.get("detail-type") == [body.ALARM_DETAIL_TYPE]:
        return _alarm_meaning(read)
    if not isinstance(detail, dict) or set(read) - {"source", "detail-type", "detail"}:
        return own
    plain = read.get("source") == [body.SOURCE] and not set(detail) - {"status", "stateMachineArn"}
    values = [detail.get("status", []), detail.get("stateMachineArn", [])]
    kind = read.get("detail-type", [body.DETAIL_TYPE]) == [body.DETAIL_TYPE]
    if not plain or not kind or not all(_pattern_texts(value) for value in values):
        return own
    return PatternMeaning(tuple(values[0]), tuple(values[1]))


def _alarm_meaning(read: dict[str, Any]) -> PatternMeaning:
    """Return the meaning of an alarm pattern; with ``statuses`` if the form can express it."""
    resources = read.get("resources", [])
    machines = tuple(resources) if _pattern_texts(resources) else ()
    plain = read.get("source") == [body.ALARM_SOURCE] and _pattern_texts(resources)
    match read.get("detail"):
        case {"state": {"value": list(states), **more}, **others} if not (more or others):
            if plain and _pattern_texts(states) and not set(read) - _ALARM_FIELDS:
                return PatternMeaning(tuple(states), machines, alarms=True)
    return PatternMeaning(machines=machines, alarms=True)


@dataclass(frozen=True, slots=True)
class PatternChoices:
    """The form's choices: statuses and a state machine's ARN, "" for any.

    ``alarms``: the statuses are states of alarms, not of executions.
    """

    statuses: tuple[str, ...]
    machine: str
    alarms: bool = False

    @property
    def pattern(self) -> str:
        """Return the pattern of the choices."""
        make = alarm_pattern_of if self.alarms else pattern_of
        return make(self.statuses, self.machine)

    @classmethod
    def sent(cls, values: Mapping[str, Any]) -> PatternChoices:
        """Return the choices in a form."""
        alarms = values["about"] == ABOUT_ALARMS
        chosen = values["alarm_state"] if alarms else values["status"]
        return cls(tuple(chosen), values["machine"], alarms)


def pattern_choices(pattern: str) -> PatternChoices | None:
    """Return a pattern as choices of the form, None if the form cannot express it."""
    meaning = pattern_meaning(pattern)
    if meaning.own or not meaning.statuses or len(meaning.machines) > 1:
        return None
    if set(meaning.statuses) - set(ALARM_STATES if meaning.alarms else STATUSES):
        return None
    machine = next(iter(meaning.machines), "")
    if machine and arn_kind(machine) != "stateMachine":
        return None
    return PatternChoices(meaning.statuses, machine, meaning.alarms)


def choices_context(choices: PatternChoices) -> dict[str, Any]:
    """Return the context of the pattern choices: all options and the selection."""
    return {
        "about_alarms": choices.alarms,
        "statuses_to_tell": STATUSES,
        "alarm_states": ALARM_STATES,
        "chosen": UNSUCCESSFUL if choices.alarms else choices.statuses,
        "chosen_states": choices.statuses if choices.alarms else ALARM_DEFAULT,
    }


def _pattern_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


# -- lists -----------------------------------------------------------------------------------------


def rule_rows(scope: Scope, *, scheduled: bool, after: str = "") -> tuple[list[RuleRow], str]:
    """Return a page of rules by name, and the key of the next page, "" at the end.

    Schedules of EventBridge Scheduler follow by group and name; their key is ``GROUP/NAME``.
    """
    rules = EventRule.objects.filter(_comes_after(after), project=scope.project)
    rules = rules.filter(region=scope.region)
    rules = rules.exclude(schedule="") if scheduled else rules.exclude(pattern="")
    rules = rules.select_related("project").prefetch_related("targets")
    order = ("schedule_group", "schedule_name", "name")
    page = list(rules.order_by(*order)[: PAGE + 1])
    return list_rows(page[:PAGE]), _page_key(page[PAGE - 1]) if len(page) > PAGE else ""


def list_rows(listed: list[EventRule]) -> list[RuleRow]:
    """Return rules with their targets and deliveries, in two or three queries."""
    targets = {rule.pk: list(rule.targets.all()) for rule in listed}
    every = [target for each in targets.values() for target in each]
    health = health_of_targets([target.pk for target in every])
    deleted_arns = _deleted_machines(listed)
    scheduled = [rule.pk for rule in listed if rule.schedule]
    late = late_schedules(clock.now_ms(), scheduled) if scheduled else {}
    rows = []
    for rule in listed:
        sent_rows = [
            replace(
                sent, deleted=sent.target.address in deleted_arns, refused=_is_refused(rule, sent)
            )
            for sent in sent_targets(rule, health)
        ]
        row = RuleRow(rule, pattern_meaning(rule.pattern), sent_rows, late_ms=late.get(rule.pk))
        for sent in row.targets:
            for status, count in sent.health.counts.items():
                row.counts[status] = row.counts.get(status, 0) + count
        rows.append(row)
    return rows


def _is_refused(rule: EventRule, sent: SentTarget) -> bool:
    url = addresses.web_address(sent.target.address)
    if not url.startswith(("http://", "https://")):
        return False
    return not web.is_named_origin(url, MachineKey(rule.project.name))


def _deleted_machines(rules: list[EventRule]) -> set[str]:
    """Return targets that are deleted state machines of the rule's account."""
    arns = {
        target.address
        for rule in rules
        for target in rule.targets.all()
        if arn_kind(target.address) == "stateMachine"
        and target.address.split(":")[4] == rule.arn.split(":")[4]
    }
    return arns - existing_arns(arns)


def _page_key(rule: EventRule) -> str:
    group = rule.schedule_group
    return f"{group}/{rule.schedule_name}" if group else rule.name


def _comes_after(key: str) -> Q:
    group, slash, name = key.partition("/")
    if not slash:  # the name of a rule, or the first page
        return Q(schedule_group="", name__gt=key) | Q(schedule_group__gt="")
    return Q(schedule_group__gt=group) | Q(schedule_group=group, schedule_name__gt=name)


def sent_targets(
    rule: EventRule, health: Mapping[int, TargetHealth] | None = None
) -> list[SentTarget]:
    """Return the targets of a rule, by id."""
    targets = sorted(rule.targets.all(), key=lambda target: target.target_id)
    return [sent_target(target, (health or {}).get(target.pk)) for target in targets]


def sent_target(target: EventTarget, health: TargetHealth | None = None) -> SentTarget:
    """Return a target for display."""
    kind = addresses.KINDS.get(addresses.kind_of_row(target.address), "Unknown address")
    return SentTarget(target, kind, _target_name(target), health or TargetHealth())


def _target_name(target: EventTarget) -> str:
    """Return the distinguishing part of an address."""
    address = target.address
    if address.startswith("arn:"):
        return address.split(":", 5)[5].removeprefix("stateMachine:").removeprefix("function:")
    return without_secrets(address).removeprefix("mailto:")


def machine_names(scope: Scope) -> list[StateMachine]:
    """Return state machines to select from."""
    machines = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    return list(machines.only("name", "arn").order_by("name")[:_MACHINES])


def machine_options(scope: Scope, chosen: str) -> list[StateMachine]:
    """Return state machines to select from, including the selected one."""
    machines = machine_names(scope)
    if chosen and all(machine.arn != chosen for machine in machines):
        machines.append(StateMachine(name=chosen.rpartition(":")[2], arn=chosen))
    return machines


def target_address(typed: str) -> str:
    """Return a typed target as an address: mail addresses get ``mailto:``."""
    typed = typed.strip()
    mail = "@" in typed and ":" not in typed and "/" not in typed
    return f"mailto:{typed}" if mail else typed
