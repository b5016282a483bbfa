"""List the latest events of a rule, with the outcome at each target."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db.models import Q

from console import arns
from console.events import addresses
from console.features.notifications.store.deliveries import execution_name
from console.features.notifications.store.rules import MOST_TARGETS
from console.features.notifications.web import rule_display
from console.models import Delivery, Execution, OutboxEvent, StateMachine
from console.statuses import DeliveryStatus, MachineType
from console.web.core.formatting import EXECUTION, StatusLabel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from console.models import EventRule, Project

PAGE = 10
_FRESH = 5
"""The number of attempts after which the page stops polling for a delivery: its pauses are long."""
_PENDING = (DeliveryStatus.WAITING, DeliveryStatus.SENDING)
_CLOCKS_MS = 5_000
"""The maximum difference between the clocks of two servers of a team."""
_NAMED = 7
"""Parts of the ARN of a state machine, without a version or an alias."""


@dataclass(frozen=True, slots=True)
class LinkedExecution:
    """An execution for a link."""

    arn: str
    status: StatusLabel


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an event at one target. ``started``: the started execution.

    ``error``: why it was not delivered; ``repeated``: as the newer event above says of the target.
    """

    delivery: Delivery
    status: StatusLabel
    sent: rule_display.SentTarget
    started: LinkedExecution | None
    error: str
    repeated: bool


@dataclass(slots=True)
class MatchedEvent:
    """One event of a rule. ``status``: of the execution at the time of the event."""

    event: OutboxEvent
    status: StatusLabel | None = None
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MatchPage:
    """The latest events, newest first. ``older``: the key of the next page.

    ``under_way``: a delivery is about to change, so the list polls.
    """

    matches: list[MatchedEvent]
    older: int | None
    under_way: bool


def list_matches(rule: EventRule, before: int | None = None) -> MatchPage:
    """Return a page of events sent to the targets of a rule. ``before``: its key."""
    rows = Delivery.objects.filter(target__rule=rule)
    if before is not None:
        rows = rows.filter(event__lt=before)
    newest = rows.select_related("target", "event").defer("event__body")
    deliveries = list(newest.order_by("-event", "pk")[: (PAGE + 1) * MOST_TARGETS])
    events = list(dict.fromkeys(row.event_id for row in deliveries))
    page = [row for row in deliveries if row.event_id in events[:PAGE]]
    executions = _executions(rule.project, page)
    statuses = statuses_of_events({row.event_id for row in page if row.event.about in executions})
    matches: dict[int, MatchedEvent] = {}
    above: dict[int, str] = {}  # target -> its error at the newer event above
    for row in page:
        matched = MatchedEvent(row.event, statuses.get(row.event_id))
        sent = rule_display.sent_target(row.target)
        status = rule_display.DELIVERY[row.status]
        repeated = above.get(row.target_id) == row.last_error
        above[row.target_id] = row.last_error
        started = executions.get(started_arn(row))
        matches.setdefault(row.event_id, matched).outcomes.append(
            Outcome(row, status, sent, started, row.last_error, repeated)
        )
    under_way = any(row.status in _PENDING and row.attempts < _FRESH for row in page)
    return MatchPage(list(matches.values()), _older(events), under_way)


def last_outcomes(project: Project, rows: Iterable[rule_display.RuleRow]) -> dict[int, Outcome]:
    """Return target id -> outcome of its last event, for the targets of some rules.

    It takes at most four queries for any number of rules.
    """
    sent = {each.target.pk: each for row in rows for each in row.targets}
    numbers = [each.health.newest for each in sent.values() if each.health.newest is not None]
    if not numbers:
        return {}
    newest = Delivery.objects.filter(pk__in=numbers).select_related("target", "event")
    deliveries = list(newest.defer("event__body"))
    executions = _executions(project, deliveries)
    return {
        row.target_id: Outcome(
            *(row, rule_display.DELIVERY[row.status], sent[row.target_id]),
            *(executions.get(started_arn(row)), row.last_error),
            repeated=False,
        )
        for row in deliveries
    }


def _older(events: list[int]) -> int | None:
    return events[PAGE - 1] if len(events) > PAGE else None


def statuses_of_events(events: Collection[int]) -> dict[int, StatusLabel]:
    """Return event id -> the execution status in it."""
    bodies = OutboxEvent.objects.filter(pk__in=events).values_list("pk", "body")
    statuses = {number: _status_of(body) for number, body in bodies}
    return {number: EXECUTION[status] for number, status in statuses.items() if status in EXECUTION}


def _status_of(body: str) -> str:
    try:
        return str(json.loads(body)["detail"]["status"])
    except (ValueError, KeyError, TypeError):
        return ""


def _executions(project: Project, deliveries: Iterable[Delivery]) -> dict[str, LinkedExecution]:
    """Return ARN -> execution, for executions in events or started by deliveries, in one query."""
    deliveries = list(deliveries)
    arns = {arn for row in deliveries for arn in (row.event.about, started_arn(row)) if arn}
    rows = Execution.objects.filter(project=project, arn__in=arns).values_list("arn", "status")
    executions = {arn: LinkedExecution(arn, EXECUTION[status]) for arn, status in rows}
    return executions | _express_executions(
        project, [row for row in deliveries if started_arn(row) not in executions]
    )


def _express_executions(project: Project, deliveries: list[Delivery]) -> dict[str, LinkedExecution]:
    """Return Express executions started by deliveries, by ``started_arn``.

    The ARN of a run of an Express machine ends in an id that only the run has, and no index knows
    names: they are looked for among the runs that began while the event was delivered.
    """
    began: dict[str, list[tuple[str, Delivery]]] = {}
    for row in deliveries:
        machine, _, name = started_arn(row).rpartition(":")
        if name and row.status == DeliveryStatus.DELIVERED:
            began.setdefault(machine.replace(":execution:", ":stateMachine:", 1), []).append(
                (name, row)
            )
    if not began:
        return {}
    machines = StateMachine.objects.filter(project=project, arn__in=began, type=MachineType.EXPRESS)
    conditions = Q()
    for number, arn in machines.values_list("pk", "arn"):
        for name, row in began[arn]:
            since, until = row.created_ms - _CLOCKS_MS, (row.ended_ms or 0) + _CLOCKS_MS
            conditions |= Q(state_machine=number, name=name, start_ms__range=(since, until))
    if not conditions:
        return {}
    rows = Execution.objects.filter(conditions).values_list(
        "state_machine_arn", "name", "arn", "status"
    )
    return {
        arns.execution_arn(machine, name): LinkedExecution(arn, EXECUTION[status])
        for machine, name, arn, status in rows
    }


def started_arn(delivery: Delivery) -> str:
    """Return the ARN of the execution that a delivery starts, "" if none.

    The ARN has the form of a Standard execution; that of an Express execution would have a unique
    id.
    """
    address, name = delivery.target.address, execution_name(delivery)
    if addresses.is_universal(address):
        try:
            params = json.loads(json.loads(delivery.target.settings)["Input"])
            address, name = str(params["StateMachineArn"]), str(params.get("Name") or name)
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""
    machine = ":".join(address.split(":")[:_NAMED])
    return arns.execution_arn(machine, name) if ":stateMachine:" in machine else ""
