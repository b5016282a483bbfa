"""Store deliveries of events to targets: pending, delivered, or dead letter.

Each event is delivered at least once, with the same event id: a delivery in progress when the
process is killed is sent again.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Count, F, Min, Q

from console.db import audit, clock, signals
from console.db.rows import storable
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.events import addresses, body
from console.features.notifications.store import routing, rules
from console.models import Delivery, EventRule, EventTarget, OutboxEvent, SchedulePause
from console.statuses import AfterCompletion, DeliveryStatus, RuleState, Topic
from console.store.events import outbox

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.db.models import QuerySet

    from console.models import Project

MOST_ATTEMPTS = 185
MOST_AGE_MS = 24 * 3600 * 1000
_FIRST_PAUSE_MS = 1_000
_LONGEST_PAUSE_MS = 5 * 60 * 1000
_KEPT_MS = 7 * 24 * 3600 * 1000
AT_ONCE = 100
MOST_AGAIN = 500
"""The number of dead letters of a rule that one click sends again or deletes."""
DELETE_LETTERS = "events:DeleteDeadLetters"
_ERROR = 1_000
_NAME = 80


def execution_name(delivery: Delivery) -> str:
    """Return the name of a delivery's execution: the same for every attempt."""
    return f"{delivery.event.event_id}_{delivery.target_id}"[:_NAME]


def release_deliveries(carried: set[int]) -> int:
    """Release deliveries in progress that no thread has (``carried``); return their number.

    An earlier process was sending it when it ended, or its outcome could not be noted.
    """
    lost = Delivery.objects.filter(status=DeliveryStatus.SENDING).exclude(pk__in=carried)
    return write(lambda: lost.update(status=DeliveryStatus.WAITING)) if lost.exists() else 0


@dataclass(frozen=True, slots=True)
class DueTarget:
    """A target with due deliveries. ``timeouts``: as in ``EventTarget``."""

    target: int
    project: int
    address: str
    timeouts: int
    count: int
    oldest_ms: int

    @property
    def starts(self) -> bool:
        """Whether its deliveries start executions, without outside calls."""
        return starts_executions(self.address)


def starts_executions(address: str) -> bool:
    """Whether deliveries to an address start executions of this server."""
    return addresses.kind_of_row(address) == "machine"


def due_targets() -> list[DueTarget]:
    """Return the targets with due deliveries, except paused targets."""
    now_ms = clock.now_ms()
    due = _due_deliveries(now_ms).exclude(target__paused_until_ms__gt=now_ms)
    columns = ("target_id", "project_id", "target__address", "target__timeouts")
    grouped = due.order_by().values_list(*columns).annotate(Count("pk"), Min("next_ms"))
    return [DueTarget(*row) for row in grouped]


def _due_deliveries(now_ms: int) -> QuerySet[Delivery]:
    """Return the due deliveries, without deliveries that a pause of schedules holds back."""
    due = Delivery.objects.filter(status=DeliveryStatus.WAITING, next_ms__lte=now_ms)
    paused = list(SchedulePause.objects.values_list("project", flat=True))
    if not paused:
        return due
    # A run by hand has a sender, and what matched a pattern is about something else. A subquery,
    # so that a claim locks deliveries only.
    held = Delivery.objects.filter(
        project__in=paused, event__sent_by="", event__about=F("target__rule__arn")
    )
    return due.exclude(pk__in=held.values("pk"))


def claim_due(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """Claim the oldest due deliveries of targets; the caller must record each outcome.

    ``counts``: target -> the maximum number of its deliveries. Return (delivery, target) pairs.
    """
    if not counts:
        return []
    due = _due_deliveries(clock.now_ms())

    def store() -> list[tuple[int, int]]:
        claimed: list[tuple[int, int]] = []
        for target, count in counts.items():
            oldest = due.filter(target=target).order_by("next_ms", "pk")
            locked = oldest.select_for_update(skip_locked=True)
            claimed += locked.values_list("pk", "target_id")[:count]
        numbers = [number for number, _ in claimed]
        Delivery.objects.filter(pk__in=numbers).update(status=DeliveryStatus.SENDING)
        return claimed

    return write(store)


def load_delivery(number: int) -> Delivery | None:
    """Return a delivery with its event, target and rule; None if removed meanwhile."""
    rows = Delivery.objects.select_related("event", "target__rule__project")
    return rows.filter(pk=number, status=DeliveryStatus.SENDING).first()


def mark_delivered(delivery: Delivery) -> None:
    """Record that a delivery was accepted."""
    now_ms = clock.now_ms()

    def store() -> None:
        Delivery.objects.filter(pk=delivery.pk).update(
            status=DeliveryStatus.DELIVERED,
            attempts=delivery.attempts + 1,
            ended_ms=now_ms,
            last_error="",
        )
        _note_answer(delivery)
        _delete_completed(delivery.target.rule)

    write(store)


def _delete_completed(schedule: EventRule) -> None:
    """Delete a finished schedule with ActionAfterCompletion (in the caller's transaction).

    Not while a delivery of it waits or is a dead letter: that would be deleted with it.
    """
    if schedule.after_completion != AfterCompletion.DELETE:
        return
    rows = EventRule.objects.select_for_update().filter(pk=schedule.pk, due_ms=None)
    rule = rows.filter(after_completion=AfterCompletion.DELETE, state=RuleState.ENABLED).first()
    undelivered = Delivery.objects.filter(target__rule=schedule).exclude(
        status=DeliveryStatus.DELIVERED
    )
    if rule is not None and not undelivered.exists():
        audit.record(rule.project, audit.NOBODY, "scheduler:DeleteSchedule", rule.arn)
        rule.delete()


def is_over(delivery: Delivery, policy: Mapping[str, Any]) -> bool:
    """Whether a failed delivery has reached its limit of attempts or age.

    ``policy``: the RetryPolicy of its target.
    """
    most = policy.get("MaximumRetryAttempts")
    return delivery.attempts >= (MOST_ATTEMPTS if most is None else int(most)) or _is_old(
        delivery, policy
    )


def is_too_old_to_send(delivery: Delivery, policy: Mapping[str, Any]) -> bool:
    """Whether a delivery has waited too long for a silent target."""
    return delivery.target.timeouts > 0 and _is_old(delivery, policy)


def _is_old(delivery: Delivery, policy: Mapping[str, Any]) -> bool:
    return clock.now_ms() - delivery.created_ms >= _most_age_ms(policy)


def _most_age_ms(policy: Mapping[str, Any]) -> int:
    return min(int(policy.get("MaximumEventAgeInSeconds") or 0) * 1000 or MOST_AGE_MS, MOST_AGE_MS)


def mark_expired(delivery: Delivery, problem: str) -> None:
    """Record that a delivery is not attempted any more."""
    fields = {"status": DeliveryStatus.DEAD, "ended_ms": clock.now_ms()}
    error_field = {"last_error": storable(problem[:_ERROR])}
    write(lambda: Delivery.objects.filter(pk=delivery.pk).update(**fields, **error_field))


def mark_failed(delivery: Delivery, problem: str, *, dead: bool, timed_out: bool = False) -> None:
    """Record a failed attempt: retried later, or a dead letter if ``dead``.

    ``timed_out``: nothing answered in time. The target then gets one delivery at a time, each after
    a pause that grows with every further such attempt, until something answers.
    """
    now_ms = clock.now_ms()
    attempts = delivery.attempts + 1
    fields = {"attempts": attempts, "last_error": storable(problem[:_ERROR])}
    if dead:
        fields |= {"status": DeliveryStatus.DEAD, "ended_ms": now_ms}
    else:
        fields |= {"status": DeliveryStatus.WAITING, "next_ms": now_ms + pause_ms(attempts)}

    def store() -> None:
        Delivery.objects.filter(pk=delivery.pk).update(**fields)
        if not timed_out:
            _note_answer(delivery)
            return
        # Those that were under way together count once: who began before the last one ended
        # has read a smaller number.
        timeouts = delivery.target.timeouts
        EventTarget.objects.filter(pk=delivery.target_id, timeouts=timeouts).update(
            timeouts=timeouts + 1, paused_until_ms=now_ms + pause_ms(timeouts + 1)
        )

    write(store)


def note_problem(delivery: Delivery, problem: str) -> None:
    """Record the final error of a delivery before its dead-letter queue is called."""
    error_field = {"last_error": storable(problem[:_ERROR])}
    write(lambda: Delivery.objects.filter(pk=delivery.pk).update(**error_field))


def _note_answer(delivery: Delivery) -> None:
    """Record that a target answers, whatever the answer (in the caller's transaction)."""
    silent = EventTarget.objects.filter(pk=delivery.target_id, timeouts__gt=0)
    silent.update(timeouts=0, paused_until_ms=None)


def end_pause(targets: Collection[int]) -> None:
    """Make the next delivery of targets due now (in the caller's transaction)."""
    paused = EventTarget.objects.filter(pk__in=targets, paused_until_ms__isnull=False)
    paused.update(paused_until_ms=None)


def end_pauses() -> None:
    """End the pause of targets whose next delivery has become too old."""
    now_ms = clock.now_ms()
    paused = EventTarget.objects.filter(paused_until_ms__gt=now_ms)
    due = Delivery.objects.filter(status=DeliveryStatus.WAITING, next_ms__lte=now_ms)
    for number, text in list(paused.values_list("pk", "settings")):
        before_ms = now_ms - _most_age_ms(json.loads(text).get("RetryPolicy") or {})
        oldest = due.filter(target=number).order_by("next_ms", "pk")
        created_ms = oldest.values_list("created_ms", flat=True).first()
        if created_ms is not None and created_ms <= before_ms:
            write(partial(end_pause, [number]))


def pause_ms(attempts: int) -> int:
    """Return the backoff after some attempts: 1, 2, 4... seconds, with jitter."""
    pause = min(_FIRST_PAUSE_MS * 2 ** min(attempts - 1, 20), _LONGEST_PAUSE_MS)
    return int(pause * random.uniform(0.9, 1.1))  # noqa: S311 - spread, no secret


def send_again(project: Project, number: int, actor: audit.Actor = audit.NOBODY) -> Delivery:
    """Retry a dead letter with the same event id; raise ResourceNotFound."""

    def store() -> Delivery:
        rows = Delivery.objects.select_for_update(of=("self",)).select_related("target__rule")
        row = rows.filter(pk=number, project=project, status=DeliveryStatus.DEAD).first()
        if row is None:
            raise ServiceError(
                ErrorCode.ResourceNotFound, "This delivery is no longer a dead letter"
            )
        _wait_again([number])
        audit.record(project, actor, "events:SendAgain", row.target.rule.arn, row.target.target_id)
        signals.publish((Topic.EVENT,))
        return row

    return write(store)


def send_all_again(
    project: Project,
    rule: EventRule,
    actor: audit.Actor = audit.NOBODY,
    errors: Collection[str] | None = None,
) -> int:
    """Retry a rule's latest ``MOST_AGAIN`` dead letters; return their number.

    ``errors``: only deliveries that failed with one of these, None for all. Each keeps its event
    id. The audit has one entry for all of them.
    """

    def store() -> int:
        numbers = _newest_dead(project, rule, errors)
        if numbers:
            _wait_again(numbers)
            audit.record(project, actor, "events:SendAgain", rule.arn, _letters(numbers))
            signals.publish((Topic.EVENT,))
        return len(numbers)

    return write(store)


def delete_dead_letters(
    project: Project,
    rule: EventRule,
    actor: audit.Actor = audit.NOBODY,
    errors: Collection[str] | None = None,
) -> int:
    """Delete a rule's latest ``MOST_AGAIN`` dead letters; return their number.

    ``errors``: see ``send_all_again``. The audit has one entry for all of them.
    """

    def store() -> int:
        numbers = _newest_dead(project, rule, errors)
        if numbers:
            Delivery.objects.filter(pk__in=numbers).delete()
            _delete_completed(rule)
            audit.record(project, actor, DELETE_LETTERS, rule.arn, _letters(numbers))
        return len(numbers)

    return write(store)


def _newest_dead(project: Project, rule: EventRule, errors: Collection[str] | None) -> list[int]:
    """Lock and return a rule's latest dead letters (inside a transaction)."""
    rows = Delivery.objects.select_for_update(of=("self",)).filter(
        project=project, status=DeliveryStatus.DEAD, target__rule=rule
    )
    if errors is not None:
        rows = rows.filter(last_error__in=errors)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:MOST_AGAIN])


def _letters(numbers: list[int]) -> str:
    return f"{len(numbers)} dead letter{'' if len(numbers) == 1 else 's'}"


def _wait_again(numbers: list[int]) -> None:
    now_ms = clock.now_ms()
    letters = Delivery.objects.filter(pk__in=numbers)
    end_pause(set(letters.values_list("target_id", flat=True)))
    letters.update(
        status=DeliveryStatus.WAITING, attempts=0, next_ms=now_ms, created_ms=now_ms, ended_ms=None
    )


def remove_old_events() -> None:
    """Delete events whose deliveries all ended over a week ago."""
    limit = clock.now_ms() - _KEPT_MS
    old = OutboxEvent.objects.filter(routed=True, at_ms__lt=limit)
    waiting = Delivery.objects.filter(event__at_ms__lt=limit).exclude(ended_ms__lt=limit)
    while True:
        removable = old.exclude(deliveries__in=waiting).values_list("pk", flat=True)[:AT_ONCE]
        if not (numbers := list(removable)):
            return
        _remove(numbers)


def _remove(numbers: list[int]) -> None:
    write(lambda: OutboxEvent.objects.filter(pk__in=numbers).delete())


# -- schedules -------------------------------------------------------------------------------------


def fire_due() -> int:
    """Create the events of up to ``AT_ONCE`` due schedules, once each; return their number.

    If several times passed while no server ran, the schedule fires once. If the project is archived
    or its schedules are paused, a due time passes without an event. Projects take turns: a project
    with very many schedules delays only its own schedules.
    """
    due = EventRule.objects.filter(_is_due()).annotate(turn=routing.turn_of_project("pk"))
    numbers = list(due.order_by("turn", "pk").values_list("pk", flat=True)[:AT_ONCE])
    return write(lambda: sum(_fire(number) for number in numbers)) if numbers else 0


def _is_due() -> Q:
    now_ms = clock.now_ms()
    return Q(next_ms__lte=now_ms) | Q(due_ms__lte=now_ms)


def _fire(number: int) -> bool:
    rows = EventRule.objects.select_for_update(of=("self",))
    rows = rows.select_related("project__schedulepause")
    rule = rows.filter(_is_due(), pk=number, state=RuleState.ENABLED).first()
    column = "due_ms" if rule is not None and rule.schedule_group else "next_ms"
    moment_ms = getattr(rule, column, None)
    if rule is None or moment_ms is None:
        return False
    if rule.project.archived_ms is None and not hasattr(rule.project, "schedulepause"):
        put_schedule_event(rule, moment_ms, rule.window_minutes * 60_000)
    EventRule.objects.filter(pk=number).update(**{column: rules.next_ms(rule)})
    return True


def put_schedule_event(rule: EventRule, moment_ms: int, window_ms: int) -> None:
    """Write a schedule's event with its deliveries (inside a transaction).

    ``window_ms``: the period over which the deliveries are spread, so that few start at once.
    """
    event_id = body.stable_id(rule.arn, rule.created_ms, moment_ms)
    text = schedule_event(rule, event_id, moment_ms)
    outbox.put_event(rule.project_id, event_id, text, region=rule.region, about=rule.arn)
    event = OutboxEvent.objects.defer("body").get(event_id=event_id)
    delay_ms = random.randrange(window_ms + 1)  # noqa: S311 - no secret
    if not routing.create_deliveries(event, [rule.pk], delay_ms):
        event.delete()


def schedule_event(rule: EventRule, event_id: str, at_ms: int) -> str:
    """Return the event text of a schedule for a time (epoch ms)."""
    return body.event_text(
        event_id,
        rule.project.account_id,
        rule.region,
        source="aws.scheduler" if rule.schedule_group else "aws.events",
        detail_type="Scheduled Event",
        at_ms=at_ms,
        resources=[rule.arn],
        detail={},
    )
