"""Each event reaches its targets, also after failures on the way."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.notifications import notices
from console.features.notifications.store import deliveries, rules
from console.models import Delivery, EventTarget, OutboxEvent
from tests.console.store.helpers import PASS, create, ended, start
from tests.features.notifications.relay import (
    REGION,
    Receiver,
    carry,
    carry_all,
    claim_all,
    happened,
    rule_to,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver whose origin the operator has named."""
    server = Receiver()
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [server.url]}}
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_a_webhook_gets_the_signed_event(project: Project, receiver: Receiver) -> None:
    """Its signature is that of time and body with the target's secret."""
    rule = rule_to(project, f"{receiver.url}/hook")
    event_id = happened(project)
    carry_all()
    ((headers, body),) = receiver.got
    assert json.loads(body)["id"] == event_id == headers["X-Stateyard-Event-Id"]
    moment, _, signature = headers["X-Stateyard-Signature"].partition(",")
    secret = notices.target_secret(rule.arn, "1")
    message = f"{moment.removeprefix('t=')}.{body}".encode()
    assert signature == "v1=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    assert Delivery.objects.get().status == "delivered"


def test_the_worker_delivers_by_itself(project: Project, receiver: Receiver, worker: Any) -> None:
    """From the start of an execution to the request, nobody else has to do anything."""
    rule_to(project, f"{receiver.url}/hook")
    ended(start(create(project, PASS), name="x"))
    wait_until(lambda: receiver.got)
    wait_until(lambda: Delivery.objects.get().status == "delivered")


def test_a_failed_attempt_is_made_again_with_the_same_id(
    project: Project, receiver: Receiver
) -> None:
    """Later each time; the error is kept until it arrives."""
    receiver.answers = [503, 429]
    rule_to(project, f"{receiver.url}/hook")
    happened(project)
    for _ in range(3):
        Delivery.objects.filter(status="waiting").update(next_ms=0)
        carry_all()
    row = Delivery.objects.get()
    assert (row.status, row.attempts, row.last_error) == ("delivered", 3, "")
    assert len({headers["X-Stateyard-Event-Id"] for headers, _ in receiver.got}) == 1


def test_pauses_grow_to_five_minutes() -> None:
    """One, two, four seconds, give or take a tenth."""
    for attempts, seconds in ((1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (185, 300)):
        assert abs(deliveries.pause_ms(attempts) - seconds * 1000) <= seconds * 100


@pytest.mark.postgres_too
def test_what_is_refused_for_good_is_a_dead_letter_at_once(
    project: Project, receiver: Receiver
) -> None:
    """And is sent again on demand, with the same id."""
    receiver.answers = [404]
    rule_to(project, f"{receiver.url}/hook")
    event_id = happened(project)
    carry_all()
    row = Delivery.objects.get()
    assert (row.status, row.attempts, row.last_error) == ("dead", 1, "The address answered 404")
    carry_all()
    assert len(receiver.got) == 1
    deliveries.send_again(project, row.pk)
    carry_all()
    assert Delivery.objects.get().status == "delivered"
    assert receiver.got[1][0]["X-Stateyard-Event-Id"] == event_id


@pytest.mark.postgres_too
def test_a_retry_policy_ends_it(project: Project, receiver: Receiver) -> None:
    """After so many further attempts it is a dead letter."""
    receiver.answers = [500] * 5
    rule_to(project, f"{receiver.url}/hook", RetryPolicy={"MaximumRetryAttempts": 1})
    happened(project)
    for _ in range(4):
        Delivery.objects.filter(status="waiting").update(next_ms=0)
        carry_all()
    assert Delivery.objects.get().status == "dead"
    assert len(receiver.got) == 2


@pytest.mark.postgres_too
def test_what_waits_too_long_for_a_silent_target_ends(project: Project, receiver: Receiver) -> None:
    """Without a call, though the target is paused; what is younger waits on."""
    policy = {"MaximumEventAgeInSeconds": 60}
    rule_to(project, f"{receiver.url}/hook", f"{receiver.url}/young", RetryPolicy=policy)
    happened(project)
    later_ms = clock.now_ms() + 300_000
    EventTarget.objects.update(timeouts=3, paused_until_ms=later_ms)
    Delivery.objects.filter(target__target_id="1").update(created_ms=clock.now_ms() - 60_000)
    deliveries.end_pauses()
    carry_all()
    old, young = Delivery.objects.order_by("target__target_id")
    assert (old.status, old.attempts, young.status) == ("dead", 0, "waiting")
    assert old.last_error == "The event expired while its target did not answer."
    assert receiver.got == []
    assert list(
        EventTarget.objects.order_by("target_id").values_list("timeouts", "paused_until_ms")
    ) == [(3, None), (3, later_ms)]


def test_an_address_nobody_named_is_not_called(project: Project, receiver: Receiver) -> None:
    """The dead letter says what the operator has to do."""
    rule_to(project, receiver.url.replace("127.0.0.1", "localhost"))
    happened(project)
    carry_all()
    assert receiver.got == []
    row = Delivery.objects.get()
    assert row.status == "dead"
    assert "not among the endpoints of targets.json" in row.last_error


@pytest.mark.postgres_too
def test_what_was_being_sent_when_the_process_died_is_sent_again(
    project: Project, receiver: Receiver
) -> None:
    """By the next one; what is in somebody's hands stays there."""
    rule_to(project, f"{receiver.url}/hook", f"{receiver.url}/second")
    happened(project)
    lost, held = claim_all()
    assert deliveries.release_deliveries({held}) == 1
    assert claim_all() == [lost]


def test_a_slow_receiver_does_not_keep_others_waiting(
    project: Project, receiver: Receiver, worker: Any, settings: Any
) -> None:
    """One that nobody listens at is retried, the other has its notice meanwhile."""
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [receiver.url, "http://127.0.0.1:9"]}}
    rule_to(project, "http://127.0.0.1:9/closed", f"{receiver.url}/hook")
    ended(start(create(project, PASS), name="x"))
    wait_until(lambda: receiver.got)
    wait_until(lambda: Delivery.objects.filter(attempts__gt=0, status="waiting").exists())


@pytest.mark.postgres_too
def test_old_events_are_removed_but_not_what_is_on_its_way(
    project: Project, receiver: Receiver
) -> None:
    """A week after the last of their deliveries has ended."""
    rule_to(project, f"{receiver.url}/a")
    happened(project)
    OutboxEvent.objects.update(at_ms=1)
    deliveries.remove_old_events()
    assert OutboxEvent.objects.count() == 1
    carry_all()
    deliveries.remove_old_events()
    assert OutboxEvent.objects.count() == 1
    Delivery.objects.update(ended_ms=1)
    deliveries.remove_old_events()
    assert OutboxEvent.objects.count() == 0


def test_removing_a_target_ends_what_is_on_its_way(project: Project) -> None:
    """A courier who comes for it finds nothing."""
    rule_to(project, "mailto:ops@example.com")
    happened(project)
    (number,) = claim_all()
    rules.remove_targets(project, REGION, "rule", ["1"])
    carry(number)
    assert EventTarget.objects.count() == Delivery.objects.count() == 0
