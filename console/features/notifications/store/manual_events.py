"""Create events by hand: run a schedule now, or test one target.

They are processed like all events: outbox, relay, list of deliveries, retries and dead letters.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from console import arns
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.events import body
from console.features.notifications.store import deliveries, routing
from console.models import Delivery, EventRule, EventTarget, OutboxEvent
from console.statuses import ExecutionStatus, Topic
from console.store.events import outbox

RUN = "events:RunSchedule"
TEST = "events:SendTest"
_EXAMPLE = "example"


def run_schedule(rule: EventRule, actor: audit.Actor) -> None:
    """Create a schedule's event now, whether it is enabled or not.

    Its next due time does not change. Raise ServiceError for a deleted schedule and for one without
    a target.
    """

    def store() -> None:
        row = _locked(rule.pk, rule.name)
        now_ms = clock.now_ms()
        event_id = body.stable_id(row.arn, "by hand", uuid.uuid4())
        text = deliveries.schedule_event(row, event_id, now_ms)
        event = _put_event(row, event_id, text, actor)
        if not routing.create_deliveries(event, [row.pk]):
            raise ServiceError(ErrorCode.ValidationException, "The rule has no target")
        audit.record(row.project, actor, RUN, row.arn)

    write(store)


def send_test(rule: EventRule, target_id: str, actor: audit.Actor) -> None:
    """Send a test event to one target of a rule; raise ServiceError for a deleted target."""

    def store() -> None:
        row = _locked(rule.pk, rule.name)
        target = EventTarget.objects.filter(rule=row, target_id=target_id).first()
        if target is None:
            raise ServiceError(ErrorCode.ResourceNotFoundException, "This target was removed")
        event_id = body.stable_id(row.arn, "test", uuid.uuid4())
        now_ms = clock.now_ms()
        text = _test_event(row, event_id, now_ms, actor.name)
        event = _put_event(row, event_id, text, actor)
        Delivery.objects.create(
            event=event,
            target=target,
            project_id=row.project_id,
            next_ms=now_ms,
            created_ms=now_ms,
        )
        OutboxEvent.objects.filter(pk=event.pk).update(routed=True)
        deliveries.end_pause([target.pk])
        audit.record(row.project, actor, TEST, row.arn, target_id)

    write(store)


def _locked(number: int, name: str) -> EventRule:
    rows = EventRule.objects.select_for_update(of=("self",)).select_related("project")
    rule = rows.filter(pk=number).first()
    if rule is None:
        raise ServiceError(ErrorCode.ResourceNotFoundException, f"Rule {name} does not exist.")
    return rule


def _put_event(rule: EventRule, event_id: str, text: str, actor: audit.Actor) -> OutboxEvent:
    where = {"region": rule.region, "about": rule.arn}
    outbox.put_event(rule.project_id, event_id, text, **where, sent_by=actor.name)
    signals.publish((Topic.EVENT,))
    return OutboxEvent.objects.defer("body").get(event_id=event_id)


# -- what a test tells -----------------------------------------------------------------------------


def _test_event(rule: EventRule, event_id: str, now_ms: int, person: str) -> str:
    """Return an event that the rule's pattern matches, marked as a person's test."""
    if rule.schedule:
        text = deliveries.schedule_event(rule, event_id, now_ms)
    else:
        pattern = json.loads(rule.pattern)
        alarms = body.ALARM_DETAIL_TYPE in _texts(pattern.get("detail-type"))
        build_event = _alarm_event if alarms else _change_event
        text = build_event(rule, pattern, event_id, now_ms)
    return json.dumps(
        {**json.loads(text), "stateyard": {"testedBy": person}},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _change_event(rule: EventRule, pattern: dict[str, Any], event_id: str, now_ms: int) -> str:
    detail = pattern.get("detail")
    detail = detail if isinstance(detail, dict) else {}
    statuses = [text for text in _texts(detail.get("status")) if text in list(ExecutionStatus)]
    status = statuses[0] if statuses else ExecutionStatus.FAILED
    machine = next(iter(_texts(detail.get("stateMachineArn"))), _example_machine(rule))
    failed = status in (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
    change = body.StatusChange(
        execution_arn=f"{_execution_of(machine)}:test",
        state_machine_arn=machine,
        name="test",
        status=str(status),
        start_ms=now_ms - 1_000,
        stop_ms=None if status == ExecutionStatus.RUNNING else now_ms,
        input="{}",
        output="{}" if status == ExecutionStatus.SUCCEEDED else None,
        error="Stateyard.Test" if failed else None,
        cause=f"A test of the rule {rule.name}: no execution failed" if failed else None,
    )
    return json.dumps({**json.loads(body.status_change_event(change)), "id": event_id})


def _alarm_event(rule: EventRule, _pattern: dict[str, Any], event_id: str, now_ms: int) -> str:
    reason = f"a test of the rule {rule.name}, nothing happened"
    detail = {
        "alarmName": _EXAMPLE,
        "state": {"value": "ALARM", "reason": reason, "timestamp": body.time_text(now_ms)},
        "previousState": {"value": "OK"},
    }
    return body.event_text(
        event_id,
        rule.project.account_id,
        rule.region,
        source=body.ALARM_SOURCE,
        detail_type=body.ALARM_DETAIL_TYPE,
        at_ms=now_ms,
        resources=[rule.arn, _example_machine(rule)],
        detail=detail,
    )


def _texts(values: Any) -> list[str]:
    """Return the plain texts in a part of a pattern."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _example_machine(rule: EventRule) -> str:
    place = f"{rule.region}:{rule.project.account_id}"
    return f"arn:{arns.partition_of(rule.region)}:states:{place}:stateMachine:{_EXAMPLE}"


def _execution_of(machine_arn: str) -> str:
    return machine_arn.replace(":stateMachine:", ":execution:", 1)
