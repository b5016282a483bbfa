"""Show rules, their targets and their deliveries on the pages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q

from console.events import addresses, body
from console.integrations.redaction import without_secrets
from console.models import Delivery, EventRule, StateMachine
from console.statuses import DeliveryStatus, ExecutionStatus, MachineStatus, RuleState
from console.web.core.formatting import StatusLabel

if TYPE_CHECKING:
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
DELIVERY: dict[str, StatusLabel] = {
    DeliveryStatus.WAITING: StatusLabel("running", "Waiting"),
    DeliveryStatus.SENDING: StatusLabel("running", "Sending"),
    DeliveryStatus.DELIVERED: StatusLabel("succeeded", "Delivered"),
    DeliveryStatus.DEAD: StatusLabel("failed", "Dead letter"),
}


@dataclass(frozen=True, slots=True)
class PatternMeaning:
    """What a pattern wants, if it says only that: statuses and ARNs of machines (none: any).

    ``own``: it says more. ``alarms``: it wants changes of alarms, not of executions.
    """

    statuses: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    own: bool = False
    alarms: bool = False


@dataclass(frozen=True, slots=True)
class SentTarget:
    """A target as the pages name it."""

    target: EventTarget
    kind: str
    shown: str


@dataclass(slots=True)
class RuleRow:
    """One rule of a list. ``counts``: deliveries by status."""

    rule: EventRule
    meaning: PatternMeaning
    targets: list[SentTarget]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def under_way(self) -> int:
        """Return how many deliveries have not ended."""
        return self.counts.get(DeliveryStatus.WAITING, 0) + self.counts.get(
            DeliveryStatus.SENDING, 0
        )

    @property
    def next_ms(self) -> int | None:
        """Return when the schedule is due next, epoch ms."""
        return self.rule.due_ms if self.rule.schedule_group else self.rule.next_ms

    @property
    def status(self) -> StatusLabel:
        """Return whether the rule is on."""
        return rule_state(self.rule)


def rule_state(rule: EventRule) -> StatusLabel:
    """Return sign and word of a rule's state."""
    on = rule.state == RuleState.ENABLED
    return StatusLabel("succeeded", "Enabled") if on else StatusLabel("idle", "Disabled")


# -- patterns --------------------------------------------------------------------------------------


def pattern_of(statuses: list[str], machine_arn: str) -> str:
    """Return the pattern of a status change to one of ``statuses``; "" stands for any machine."""
    detail: dict[str, Any] = {"status": statuses}
    if machine_arn:
        detail["stateMachineArn"] = [machine_arn]
    pattern = {"source": [body.SOURCE], "detail-type": [body.DETAIL_TYPE], "detail": detail}
    return json.dumps(pattern, indent=2)


def pattern_meaning(pattern: str) -> PatternMeaning:
    """Return what a pattern wants, ``own`` if it says more than the form can."""
    if not pattern:
        return PatternMeaning()
    own = PatternMeaning(own=True)
    try:
        read = json.loads(pattern)
    except ValueError:
        return own
    detail = read.get("detail") if isinstance(read, dict) else None
    if isinstance(read, dict) and read.get("detail-type") == [body.ALARM_DETAIL_TYPE]:
        named = read.get("resources", [])
        return PatternMeaning(
            machines=tuple(map(str, named)) if _pattern_texts(named) else (), alarms=True
        )
    if not isinstance(detail, dict) or set(read) - {"source", "detail-type", "detail"}:
        return own
    plain = read.get("source") == [body.SOURCE] and not set(detail) - {"status", "stateMachineArn"}
    values = [detail.get("status", []), detail.get("stateMachineArn", [])]
    kind = read.get("detail-type", [body.DETAIL_TYPE]) == [body.DETAIL_TYPE]
    if not plain or not kind or not all(_pattern_texts(value) for value in values):
        return own
    return PatternMeaning(tuple(values[0]), tuple(values[1]))


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
    order = ("schedule_group", "schedule_name", "name")
    page = list(rules.prefetch_related("targets").order_by(*order)[: PAGE + 1])
    made = {
        rule.pk: RuleRow(rule, pattern_meaning(rule.pattern), sent_targets(rule))
        for rule in page[:PAGE]
    }
    counted = Delivery.objects.filter(target__rule__in=list(made)).order_by()
    for rule, status, count in counted.values_list("target__rule", "status").annotate(Count("pk")):
        made[rule].counts[status] = count
    return list(made.values()), _page_key(page[PAGE - 1]) if len(page) > PAGE else ""


def counted_row(rule: EventRule) -> RuleRow:
    """Return a rule with the number of its deliveries by status."""
    counted = Delivery.objects.filter(target__rule=rule).order_by().values_list("status")
    counts = dict(counted.annotate(Count("pk")))
    return RuleRow(rule, pattern_meaning(rule.pattern), [], counts)


def _page_key(rule: EventRule) -> str:
    group = rule.schedule_group
    return f"{group}/{rule.schedule_name}" if group else rule.name


def _comes_after(key: str) -> Q:
    group, slash, name = key.partition("/")
    if not slash:  # the name of a rule, or the first page
        return Q(schedule_group="", name__gt=key) | Q(schedule_group__gt="")
    return Q(schedule_group__gt=group) | Q(schedule_group=group, schedule_name__gt=name)


def sent_targets(rule: EventRule) -> list[SentTarget]:
    """Return the targets of a rule, by id."""
    targets = sorted(rule.targets.all(), key=lambda target: target.target_id)
    return [
        SentTarget(
            target,
            addresses.KINDS[addresses.address_kind(target.address, universal=True)],
            _sent_target(target),
        )
        for target in targets
    ]


def _sent_target(target: EventTarget) -> str:
    """Return the part of an address that tells it from others."""
    address = target.address
    if address.startswith("arn:"):
        return address.split(":", 5)[5].removeprefix("stateMachine:").removeprefix("function:")
    return without_secrets(address).removeprefix("mailto:")


def machine_names(scope: Scope) -> list[StateMachine]:
    """Return the machines to choose from."""
    machines = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    return list(machines.only("name", "arn").order_by("name")[:_MACHINES])


def target_address(typed: str) -> str:
    """Return what was typed as a target as an address: a mail address needs no ``mailto:``."""
    typed = typed.strip()
    mail = "@" in typed and ":" not in typed and "/" not in typed
    return f"mailto:{typed}" if mail else typed
