"""Route events: turn each event of the outbox into deliveries to the targets of matching rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from console.db import audit, clock, signals
from console.db.writer import write
from console.features.notifications.patterns import (
    Pattern,
    PatternError,
    load_event,
    parse_pattern,
)
from console.models import Delivery, EventRule, EventTarget, OutboxEvent
from console.statuses import Topic
from console.store.events import outbox

if TYPE_CHECKING:
    from collections.abc import Iterable

log = structlog.get_logger(__name__)
_AT_ONCE = 100
_IN_MEMORY = 10
_PUT = "events:PutEvents"


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
    rules = outbox.listening_rules()
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
        audit.record(event.project, actor, _PUT, arn, f"event {event.event_id}")


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
