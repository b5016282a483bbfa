"""Each kind of target gets its input, and a schedule fires as often as it should."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail

from console.features.notifications import relay as outbox_relay
from console.features.notifications.store import deliveries, routing, rules
from console.models import Delivery, EventRule, Execution, OutboxEvent
from tests.console.store.helpers import PASS, create, drain, start
from tests.features.notifications.relay import REGION, carry_all, happened, rule_to
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project

noted: list[tuple[Any, str]] = []


def note(event: Any, context: Any) -> None:
    """Remember a call, as a registered function."""
    noted.append((event, context.idempotency_key))


def test_an_e_mail_names_what_happened(project: Project, settings: Any) -> None:
    """In its subject; its id is the event's."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    rule_to(project, "mailto:ops@example.com")
    event_id = happened(project)
    carry_all()
    (message,) = mail.outbox
    assert message.to == ["ops@example.com"]
    assert message.subject == "machine succeeded: x"
    assert message.extra_headers["Message-ID"] == f"<{event_id}@stateyard>"
    assert '"status": "SUCCEEDED"' in message.body


def test_an_e_mail_of_a_failure_says_what_one_needs_to_know(
    project: Project, settings: Any
) -> None:
    """Machine and error in its subject; failed state, cause and the page's address in its text."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    settings.STATEYARD_URL = "http://yard.example.com:8083"
    rule_to(project, "mailto:ops@example.com", pattern='{"source": ["aws.states"]}')
    rejects = {"Type": "Fail", "Error": "OrderRejected", "Cause": "The card is too old"}
    first = {"Type": "Pass", "Next": "Check the order"}
    definition = {"StartAt": "First", "States": {"First": first, "Check the order": rejects}}
    execution = drain(start(create(project, definition, "orders"), name="order-17"))
    routing.route_events()
    carry_all()
    message = mail.outbox[-1]
    assert message.subject == "orders failed: OrderRejected"
    for line in (
        "State machine: orders",
        "Execution: order-17",
        "Status: FAILED",
        "Error: OrderRejected",
        "Failed state: Check the order",
        "Cause: The card is too old",
        f"Page: http://yard.example.com:8083/arn/{execution.arn}",
    ):
        assert line in message.body.splitlines()
    assert '"status": "FAILED"' in message.body


def test_an_e_mail_with_a_text_of_its_own_has_nothing_else(project: Project, settings: Any) -> None:
    """What ``InputPath`` chose is all that is sent."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    rule_to(project, "mailto:ops@example.com", InputPath="$.detail.status")
    happened(project)
    carry_all()
    assert mail.outbox[-1].body == '"SUCCEEDED"'


def test_without_a_mail_server_an_e_mail_is_a_dead_letter(project: Project) -> None:
    """Which says what is missing."""
    rule_to(project, "mailto:ops@example.com")
    happened(project)
    carry_all()
    assert "STATEYARD_MAIL" in Delivery.objects.get().last_error
    assert mail.outbox == []


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_a_machine_is_started_once_however_often_it_is_tried(project: Project, kind: str) -> None:
    """With the event, or what the target wants of it, as its input."""
    second = create(project, PASS, "second")
    type(second).objects.filter(pk=second.pk).update(type=kind)
    pattern = json.dumps({"detail": {"stateMachineArn": [{"suffix": ":machine"}]}})
    rule_to(project, second.arn, pattern=pattern, InputPath="$.detail.status")
    drain(start(create(project, PASS), name="x"))
    routing.route_events()
    for _ in range(2):
        carry_all()
        Delivery.objects.update(status="waiting")
    started = Execution.objects.filter(state_machine=second)
    assert sorted(execution.input for execution in started) == ['"RUNNING"', '"SUCCEEDED"']
    assert {execution.started_by for execution in started} == {"rule rule"}
    told = OutboxEvent.objects.filter(routed=True)  # and not yet what it says of the second
    ids = set(told.values_list("event_id", flat=True))
    assert {execution.name.partition("_")[0] for execution in started} == ids


def test_a_function_is_called_with_the_event(project: Project, settings: Any) -> None:
    """A registered one; one that nobody registered is a dead letter."""
    settings.STATEYARD_FUNCTIONS = {"note": "tests.features.notifications.test_rule_targets:note"}
    place = "arn:aws:lambda:us-east-1:123456789012:function"
    rule_to(project, f"{place}:note", f"{place}:nobody", InputPath="$.detail.name")
    event_id = happened(project)
    noted.clear()
    carry_all()
    assert noted == [("x", event_id)]
    dead = Delivery.objects.get(status="dead")
    assert "Function not found" in dead.last_error
    assert dead.target.target_id == "2"


@pytest.mark.postgres_too
def test_a_rule_does_not_go_round(project: Project) -> None:
    """It starts the machine for what others started, not for what it started itself."""
    machine = create(project, PASS, "machine")
    rule_to(project, machine.arn, pattern=json.dumps({"source": ["aws.states"]}))
    drain(start(machine, name="x"))
    for _ in range(5):
        routing.route_events()
        carry_all()
        for execution in Execution.objects.filter(status="RUNNING"):
            drain(execution)
    assert Execution.objects.filter(started_by="rule rule").count() == 2
    dead = Delivery.objects.filter(status="dead")
    assert dead.count() == 4
    assert {delivery.last_error for delivery in dead} == {outbox_relay._ROUND}


def test_a_machine_that_is_full_is_tried_again(project: Project, settings: Any) -> None:
    """A quota passes; the delivery waits for it."""
    second = create(project, PASS, "second")
    rule_to(project, second.arn)
    happened(project)
    settings.STATEYARD_QUOTAS = {"open_executions": 0}
    carry_all()
    assert Delivery.objects.get().status == "waiting"
    settings.STATEYARD_QUOTAS = {}
    Delivery.objects.update(next_ms=0)
    carry_all()
    assert Execution.objects.filter(state_machine=second).count() == 1


def test_a_machine_that_is_gone_is_a_dead_letter(project: Project) -> None:
    """The rule outlives it."""
    second = create(project, PASS, "second")
    rule_to(project, second.arn)
    happened(project)
    type(second).objects.filter(pk=second.pk).delete()
    carry_all()
    assert "Does Not Exist" in Delivery.objects.get(status="dead").last_error


# -- schedules -------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_schedule_fires_once_each_time(project: Project) -> None:
    """Also when two look at once, and once for all moments that nobody was there."""
    machine = create(project, PASS)
    rules.put_rule(project, REGION, "tick", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "tick", [{"Id": "1", "Arn": machine.arn}])
    assert deliveries.fire_due() == 0
    due = EventRule.objects.get().next_ms or 0
    EventRule.objects.update(created_ms=due - 600_000, next_ms=due - 300_000)
    assert deliveries.fire_due() == 1
    assert deliveries.fire_due() == 0
    carry_all()
    execution = Execution.objects.get()
    event = json.loads(execution.input)
    assert (event["source"], event["detail-type"]) == ("aws.events", "Scheduled Event")
    assert event["resources"] == [EventRule.objects.get().arn]
    assert (EventRule.objects.get().next_ms or 0) > due - 60_000


def test_the_worker_fires_a_schedule_by_itself(project: Project, worker: Any) -> None:
    """Once, at its moment, and then waits for the next."""
    machine = create(project, PASS)
    rules.put_rule(project, REGION, "tick", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "tick", [{"Id": "1", "Arn": machine.arn, "Input": "7"}])
    due = EventRule.objects.get().next_ms or 0
    begun = EventRule.objects.get().created_ms
    EventRule.objects.update(created_ms=begun - 58_500, next_ms=due - 58_500)
    assert Execution.objects.count() == 0
    wait_until(Execution.objects.exists)
    execution = Execution.objects.get()
    assert execution.input == "7"
    assert 0 <= execution.start_ms - (due - 58_500) < 5_000
    assert (EventRule.objects.get().next_ms or 0) == due + 1_500


@pytest.mark.postgres_too
def test_a_disabled_schedule_does_not_fire(project: Project) -> None:
    """Enabled again it is due at its next moment, not at those it missed."""
    rules.put_rule(project, REGION, "tick", schedule="rate(1 minute)", state="DISABLED")
    assert EventRule.objects.get().next_ms is None
    assert deliveries.fire_due() == 0
    rules.set_rule_state(project, REGION, "tick", on=True)
    assert EventRule.objects.get().next_ms is not None
    assert deliveries.fire_due() == 0
