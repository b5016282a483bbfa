"""Does each event reach its targets, whatever goes wrong on the way?"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail

from console.integrations import notices
from console.models import Delivery, EventRule, EventTarget, Execution, OutboxEvent
from console.store import deliveries, outbox, rules
from console.worker import couriers
from tests.console.store.helpers import PASS, create, drain, ended, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

REGION = "us-east-1"
SUCCEEDED = json.dumps({"source": ["aws.states"], "detail": {"status": ["SUCCEEDED"]}})


noted: list[tuple[Any, str]] = []


def note(event: Any, context: Any) -> None:
    """Remember a call, as a registered function."""
    noted.append((event, context.idempotency_key))


class Receiver:
    """A web address that answers what it is told to, and remembers what it got."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                receiver.got.append((dict(self.headers), body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver whose origin the operator has named."""
    one = Receiver()
    settings.STEPYARD_TARGETS = {"http": {"endpoints": [one.url]}}
    yield one
    one.server.shutdown()
    one.server.server_close()


def rule_to(project: Project, *addresses: str, pattern: str = SUCCEEDED, **more: Any) -> EventRule:
    """Make a rule with targets 1, 2..."""
    rule = rules.put(project, REGION, "rule", pattern=pattern)
    targets = [{"Id": str(n), "Arn": one, **more} for n, one in enumerate(addresses, 1)]
    assert rules.put_targets(project, REGION, "rule", targets) == []
    return rule


def happened(project: Project) -> str:
    """Let an execution succeed; return its event's id once it is routed."""
    drain(start(create(project, PASS), name="x"))
    outbox.route()
    return OutboxEvent.objects.get().event_id


def carry_all() -> None:
    """Carry whatever is due, in this thread."""
    for number in deliveries.claim(100):
        couriers.carry(number)


def until(check: Any, seconds: float = 10) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, Delivery.objects.values()
        time.sleep(0.02)


def test_a_webhook_gets_the_signed_event(project: Project, receiver: Receiver) -> None:
    """Its signature is that of time and body with the target's secret."""
    rule = rule_to(project, f"{receiver.url}/hook")
    event_id = happened(project)
    carry_all()
    ((headers, body),) = receiver.got
    assert json.loads(body)["id"] == event_id == headers["X-Stepyard-Event-Id"]
    moment, _, given = headers["X-Stepyard-Signature"].partition(",")
    secret = notices.secret_for(rule.arn, "1")
    message = f"{moment.removeprefix('t=')}.{body}".encode()
    assert given == "v1=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    assert Delivery.objects.get().status == "delivered"


def test_the_worker_delivers_by_itself(project: Project, receiver: Receiver, worker: Any) -> None:
    """From the start of an execution to the request, nobody else has to do anything."""
    rule_to(project, f"{receiver.url}/hook")
    ended(start(create(project, PASS), name="x"))
    until(lambda: receiver.got)
    until(lambda: Delivery.objects.get().status == "delivered")


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
    assert len({headers["X-Stepyard-Event-Id"] for headers, _ in receiver.got}) == 1


def test_pauses_grow_to_five_minutes() -> None:
    """One, two, four seconds, give or take a tenth."""
    for attempts, seconds in ((1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (185, 300)):
        assert abs(deliveries.pause_ms(attempts) - seconds * 1000) <= seconds * 100


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
    assert receiver.got[1][0]["X-Stepyard-Event-Id"] == event_id


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


def test_an_address_nobody_named_is_not_called(project: Project, receiver: Receiver) -> None:
    """The dead letter says what the operator has to do."""
    rule_to(project, receiver.url.replace("127.0.0.1", "localhost"))
    happened(project)
    carry_all()
    assert receiver.got == []
    row = Delivery.objects.get()
    assert row.status == "dead"
    assert "not among the endpoints of targets.json" in row.last_error


def test_what_was_being_sent_when_the_process_died_is_sent_again(
    project: Project, receiver: Receiver
) -> None:
    """By the next one; what is in somebody's hands stays there."""
    rule_to(project, f"{receiver.url}/hook", f"{receiver.url}/second")
    happened(project)
    lost, held = deliveries.claim(2)
    assert deliveries.release({held}) == 1
    assert deliveries.claim(2) == [lost]


def test_a_slow_receiver_does_not_keep_others_waiting(
    project: Project, receiver: Receiver, worker: Any, settings: Any
) -> None:
    """One that nobody listens at is retried, the other has its notice meanwhile."""
    settings.STEPYARD_TARGETS = {"http": {"endpoints": [receiver.url, "http://127.0.0.1:9"]}}
    rule_to(project, "http://127.0.0.1:9/closed", f"{receiver.url}/hook")
    ended(start(create(project, PASS), name="x"))
    until(lambda: receiver.got)
    until(lambda: Delivery.objects.filter(attempts__gt=0, status="waiting").exists())


def test_an_e_mail_names_what_happened(project: Project, settings: Any) -> None:
    """In its subject; its id is the event's."""
    settings.STEPYARD_MAIL = "smtp://mail.example.com"
    rule_to(project, "mailto:ops@example.com")
    event_id = happened(project)
    carry_all()
    (message,) = mail.outbox
    assert message.to == ["ops@example.com"]
    assert message.subject == "x is SUCCEEDED"
    assert message.extra_headers["Message-ID"] == f"<{event_id}@stepyard>"
    assert '"status": "SUCCEEDED"' in message.body


def test_without_a_mail_server_an_e_mail_is_a_dead_letter(project: Project) -> None:
    """Which says what is missing."""
    rule_to(project, "mailto:ops@example.com")
    happened(project)
    carry_all()
    assert "STEPYARD_MAIL" in Delivery.objects.get().last_error
    assert mail.outbox == []


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_a_machine_is_started_once_however_often_it_is_tried(project: Project, kind: str) -> None:
    """With the event, or what the target wants of it, as its input."""
    second = create(project, PASS, "second")
    type(second).objects.filter(pk=second.pk).update(type=kind)
    pattern = json.dumps({"detail": {"stateMachineArn": [{"suffix": ":machine"}]}})
    rule_to(project, second.arn, pattern=pattern, InputPath="$.detail.status")
    drain(start(create(project, PASS), name="x"))
    outbox.route()
    for _ in range(2):
        carry_all()
        Delivery.objects.update(status="waiting")
    started = Execution.objects.filter(state_machine=second)
    assert sorted(one.input for one in started) == ['"RUNNING"', '"SUCCEEDED"']
    assert {one.started_by for one in started} == {"rule rule"}
    told = OutboxEvent.objects.filter(routed=True)  # and not yet what it says of the second
    ids = set(told.values_list("event_id", flat=True))
    assert {one.name.partition("_")[0] for one in started} == ids


def test_a_function_is_called_with_the_event(project: Project, settings: Any) -> None:
    """A registered one; one that nobody registered is a dead letter."""
    settings.STEPYARD_FUNCTIONS = {"note": "tests.console.worker.test_couriers:note"}
    place = "arn:aws:lambda:us-east-1:123456789012:function"
    rule_to(project, f"{place}:note", f"{place}:nobody", InputPath="$.detail.name")
    event_id = happened(project)
    noted.clear()
    carry_all()
    assert noted == [("x", event_id)]
    dead = Delivery.objects.get(status="dead")
    assert "Function not found" in dead.last_error
    assert dead.target.target_id == "2"


def test_a_machine_that_is_full_is_tried_again(project: Project, settings: Any) -> None:
    """A quota passes; the delivery waits for it."""
    second = create(project, PASS, "second")
    rule_to(project, second.arn)
    happened(project)
    settings.STEPYARD_QUOTAS = {"open_executions": 0}
    carry_all()
    assert Delivery.objects.get().status == "waiting"
    settings.STEPYARD_QUOTAS = {}
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


def test_a_schedule_fires_once_each_time(project: Project) -> None:
    """Also when two look at once, and once for all moments that nobody was there."""
    machine = create(project, PASS)
    rules.put(project, REGION, "tick", schedule="rate(1 minute)")
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
    rules.put(project, REGION, "tick", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "tick", [{"Id": "1", "Arn": machine.arn, "Input": "7"}])
    due = EventRule.objects.get().next_ms or 0
    begun = EventRule.objects.get().created_ms
    EventRule.objects.update(created_ms=begun - 58_500, next_ms=due - 58_500)
    assert Execution.objects.count() == 0
    until(Execution.objects.exists)
    execution = Execution.objects.get()
    assert execution.input == "7"
    assert 0 <= execution.start_ms - (due - 58_500) < 5_000
    assert (EventRule.objects.get().next_ms or 0) == due + 1_500


def test_a_disabled_schedule_does_not_fire(project: Project) -> None:
    """Enabled again it is due at its next moment, not at those it missed."""
    rules.put(project, REGION, "tick", schedule="rate(1 minute)", state="DISABLED")
    assert EventRule.objects.get().next_ms is None
    assert deliveries.fire_due() == 0
    rules.switch(project, REGION, "tick", on=True)
    assert EventRule.objects.get().next_ms is not None
    assert deliveries.fire_due() == 0


def test_old_events_are_removed_but_not_what_is_on_its_way(
    project: Project, receiver: Receiver
) -> None:
    """A week after the last of their deliveries has ended."""
    rule_to(project, f"{receiver.url}/a")
    happened(project)
    OutboxEvent.objects.update(at_ms=1)
    deliveries.clean()
    assert OutboxEvent.objects.count() == 1
    carry_all()
    deliveries.clean()
    assert OutboxEvent.objects.count() == 1
    Delivery.objects.update(ended_ms=1)
    deliveries.clean()
    assert OutboxEvent.objects.count() == 0


def test_removing_a_target_ends_what_is_on_its_way(project: Project) -> None:
    """A courier who comes for it finds nothing."""
    rule_to(project, "mailto:ops@example.com")
    happened(project)
    (number,) = deliveries.claim(1)
    rules.remove_targets(project, REGION, "rule", ["1"])
    couriers.carry(number)
    assert EventTarget.objects.count() == Delivery.objects.count() == 0
