"""Write events to the outbox, in the transaction of the change that they report, and route them.

A project without an enabled rule writes none; this is cached for a second, so an execution without
rules costs nothing more. ``route_events`` turns events into deliveries later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from console import arns
from console.db import audit, clock, rows, signals
from console.db.rows import Statement, storable
from console.db.writer import write
from console.events import body
from console.events.patterns import Pattern, PatternError, load_event, parse_pattern
from console.feature import has_feature
from console.models import Delivery, EventRule, EventTarget, Execution, OutboxEvent
from console.statuses import RuleState, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

log = structlog.get_logger(__name__)
_KEPT_S = 1.0
_AT_ONCE = 100
_IN_MEMORY = 10
_ABOUT = 512
_SENDER = 150
_INTO = (
    "INSERT INTO console_outboxevent"
    " (event_id, project_id, region, about, body, at_ms, routed, sent_by)"
)
PUT = "events:PutEvents"
_PUT = Statement(
    65,
    f"{_INTO} VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (event_id) DO NOTHING",
    ("text", "bigint", "text", "text", "text", "bigint", "boolean", "text"),
    merged=f"{_INTO} SELECT * FROM {{given}} ON CONFLICT (event_id) DO NOTHING",
)
_listening: tuple[float, frozenset[int]] = (0.0, frozenset())


# -- writing ---------------------------------------------------------------------------------------


def has_rules(project_id: int) -> bool:
    """Return whether a rule may match a project's events.

    False on a server without notifications, where events would wait for ever.
    """
    global _listening  # noqa: PLW0603 - one memory a process
    until, projects = _listening
    if time.monotonic() >= until:
        rules = _listening_rules()
        numbers = rules.values_list("project_id", flat=True).distinct()
        projects = frozenset(numbers) if has_feature("notifications") else frozenset()
        _listening = (time.monotonic() + _KEPT_S, projects)
    return project_id in projects


def _listening_rules() -> QuerySet[EventRule]:
    """Return the enabled rules with a pattern, without those of archived projects."""
    rules = EventRule.objects.filter(state=RuleState.ENABLED, project__archived_ms=None)
    return rules.exclude(pattern="")


def forget_rules() -> None:
    """Clear the cache of rules, now and after this transaction's commit."""
    _forget()
    transaction.on_commit(_forget)


def _forget() -> None:
    global _listening  # noqa: PLW0603 - see above
    _listening = (0.0, frozenset())


def put_status_change(execution: Execution) -> None:
    """Write the event of an execution's status change, inside its transaction."""
    if not has_rules(execution.project_id):
        return
    if arns.is_express(execution.arn) and not settings.STATEYARD_EXPRESS_EVENTS:
        return
    change = body.StatusChange(
        execution_arn=execution.arn,
        state_machine_arn=execution.state_machine_arn,
        name=execution.name,
        status=execution.status,
        start_ms=execution.start_ms,
        stop_ms=execution.stop_ms,
        input=execution.input,
        output=execution.output,
        error=execution.error,
        cause=execution.cause,
        version_arn=execution.version_arn,
        alias_arn=execution.alias_arn,
        redrive_count=execution.redrive_count,
        redrive_ms=execution.redrive_ms,
        child_of_map=execution.map_run_id is not None,
    )
    text = body.status_change_event(change)
    region = execution.arn.split(":", 4)[3]
    put_event(execution.project_id, change.event_id, text, region=region, about=execution.arn)


def row_for_end(execution_id: int, project_id: int) -> Execution | None:
    """Return the row for the event of an execution's end, None if no rule waits for it.

    Called before the transaction, because a change that queries the database is not merged. The
    row does not change until the execution ends.
    """
    return rows.fetch_one(Execution, "id = %s", [execution_id]) if has_rules(project_id) else None


def put_execution_ended(execution_id: int, project_id: int, row: Execution | None) -> None:
    """Write the event of an execution's end, inside its transaction.

    ``row``: the execution with its end; it is read if it is not given.
    """
    if has_rules(project_id):
        execution = row or rows.fetch_one(Execution, "id = %s", [execution_id])
        if execution is not None:
            put_status_change(execution)


def put_event(  # the arguments are the columns
    project_id: int, event_id: str, text: str, *, region: str, about: str, sent_by: str = ""
) -> None:
    """Write an event unless it exists, inside the caller's transaction.

    ``about``: its resource; ``sent_by``: the caller of PutEvents, "" for this server's own events.
    """
    texts = [storable(about[:_ABOUT]), storable(text)]
    sender = storable(sent_by[:_SENDER])
    rows.change(_PUT, [(event_id, project_id, region, *texts, clock.now_ms(), False, sender)])
    signals.publish((Topic.EVENT,))


# -- routing ---------------------------------------------------------------------------------------


def route_events() -> bool:
    """Write the deliveries of some events; return whether there may be more.

    Events are matched before the transaction, which must be short. Projects take turns.
    """
    waiting = OutboxEvent.objects.filter(routed=False).annotate(turn=turn_of_project("pk"))
    waiting = waiting.order_by("turn", "pk")
    numbers = list(waiting.values_list("pk", flat=True)[:_AT_ONCE])
    if numbers:
        rules = _rules()
        events = OutboxEvent.objects.filter(pk__in=numbers).iterator(chunk_size=_IN_MEMORY)
        matched = {event.pk: _matching_rules(event, rules) for event in events}
        write(lambda: _store(matched))
    return len(numbers) == _AT_ONCE


def turn_of_project(order: str) -> Window:
    """Return the rank of a row in its project, so that projects take turns."""
    return Window(RowNumber(), partition_by=F("project_id"), order_by=F(order).asc())


def _rules() -> list[tuple[EventRule, Pattern]]:
    rules = _listening_rules()
    return [(rule, pattern) for rule in rules if (pattern := _pattern(rule)) is not None]


def _pattern(rule: EventRule) -> Pattern | None:
    try:
        return parse_pattern(rule.pattern)
    except PatternError:
        log.exception("a stored event pattern cannot be read", rule=rule.arn)
        return None


def _matching_rules(event: OutboxEvent, rules: Iterable[tuple[EventRule, Pattern]]) -> list[int]:
    """Return the rules of its project and region that an event matches."""
    place = (event.project_id, event.region)
    candidates = [
        (rule, pattern) for rule, pattern in rules if (rule.project_id, rule.region) == place
    ]
    if not candidates:
        return []
    value = load_event(event.body)
    return [rule.pk for rule, pattern in candidates if pattern.fits(value)]


def _store(matched: dict[int, list[int]]) -> None:
    """Write a delivery for each target; delete events without a match."""
    events = OutboxEvent.objects.select_for_update(of=("self",)).select_related("project")
    waiting = events.filter(pk__in=list(matched), routed=False).order_by("pk")  # as they happened
    for event in waiting.defer("body"):
        if event.sent_by and matched[event.pk]:
            _record_match(event, matched[event.pk])
        if create_deliveries(event, matched[event.pk]):
            signals.publish((Topic.EVENT,))
        else:
            event.delete()


def _record_match(event: OutboxEvent, rules: list[int]) -> None:
    """Write an audit entry for an event that rules matched.

    (Inside the caller's transaction.)
    """
    actor = audit.Actor(event.sent_by)
    for arn in EventRule.objects.filter(pk__in=rules).order_by("pk").values_list("arn", flat=True):
        audit.record(event.project, actor, PUT, arn, f"event {event.event_id}")


def create_deliveries(event: OutboxEvent, rules: list[int], delay_ms: int = 0) -> int:
    """Write the deliveries of an event to the current targets of rules; return the count.

    ``delay_ms``: after which they are due, and get older. (Inside the caller's transaction.)
    """
    now_ms = clock.now_ms() + delay_ms
    deliveries = [
        Delivery(
            event=event,
            target=target,
            project_id=event.project_id,
            next_ms=now_ms,
            created_ms=now_ms,
        )
        for target in EventTarget.objects.filter(rule__in=rules).order_by("pk")
    ]
    Delivery.objects.bulk_create(deliveries, ignore_conflicts=True)
    if deliveries:
        OutboxEvent.objects.filter(pk=event.pk).update(routed=True)
    return len(deliveries)
