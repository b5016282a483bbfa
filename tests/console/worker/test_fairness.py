"""What one project waits for delays no other one: schedules, notifications, calls of Tasks."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.db.audit import Actor
from console.features.metrics import openmetrics
from console.features.notifications import relay as outbox_relay
from console.features.notifications.store import deliveries, manual_events, routing, rules
from console.features.notifications.web.target_health import health_of_targets
from console.models import (
    Delivery,
    EventRule,
    EventTarget,
    Execution,
    OutboxEvent,
    Project,
    TaskRow,
)
from console.store.events import outbox
from console.store.state import health
from console.store.tasks.call_targets import find_call_targets
from console.worker import Embedded, embedded
from console.worker.fair_pool import FairPool
from console.worker.fair_shares import FairQueue, FairShare, FairShares
from tests.console.store.helpers import PASS, create, drain, ended, function, one, start
from tests.features.notifications.relay import (
    REGION,
    Receiver,
    carry_all,
    claim_all,
    happened,
    rule_to,
)
from tests.silent_host import SilentHost
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.console.transition_rates import Clock


FLOOD = 40
TICK = json.dumps({"source": ["tick"]})
let_go = threading.Event()


def hang(event: object, context: object) -> None:
    """A function that hangs until the test ends."""
    del event, context
    let_go.wait(60)


def double(event: int, context: object) -> int:
    """A function of the tests."""
    del context
    return event * 2


@pytest.fixture
def silent() -> Iterator[SilentHost]:
    """A host that says nothing."""
    host = SilentHost()
    yield host
    host.close()


@pytest.fixture
def receiver(silent: SilentHost, settings: Any) -> Iterator[Receiver]:
    """A host that answers; the operator has named both."""
    host = Receiver()
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [host.url, silent.url]}}
    yield host
    host.server.shutdown()
    host.server.server_close()


@pytest.fixture
def other(project: Project) -> Project:
    """Another project."""
    del project
    return Project.objects.create(name="other", account_id="210987654321")


def flood(project: Project, *addresses: str, count: int = FLOOD) -> None:
    """Let so many events happen for targets of a rule."""
    rules.put_rule(project, REGION, "flood", pattern=TICK)
    targets = [{"Id": str(n), "Arn": address} for n, address in enumerate(addresses)]
    assert rules.put_targets(project, REGION, "flood", targets) == []
    text = json.dumps({"source": "tick", "detail": {}, "time": "2026-01-01T00:00:00Z"})
    for number in range(count):
        outbox.put_event(project.pk, f"tick-{number}", text, region=REGION, about="tick")


# -- deliveries ------------------------------------------------------------------------------------


def test_a_silent_target_delays_no_schedule_and_no_notification_of_others(
    project: Project, other: Project, receiver: Receiver, silent: SilentHost, worker: Any
) -> None:
    """Of 40 events for five silent targets, a third of the places is taken at once at most."""
    flood(other, *(f"{silent.url}/{number}" for number in range(5)))
    wait_until(lambda: len(silent.connections) > 8)
    machine = create(project, PASS)
    rules.put_rule(project, REGION, "every", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "every", [{"Id": "1", "Arn": machine.arn}])
    EventRule.objects.filter(name="every").update(next_ms=1)
    begun_ms = clock.now_ms()
    rule_to(project, f"{receiver.url}/hook")
    wait_until(lambda: receiver.got)
    assert Execution.objects.filter(state_machine=machine).count() == 1
    tried = Delivery.objects.filter(project=other, attempts__gt=0).exists()
    assert not tried or clock.now_ms() - begun_ms > outbox_relay.SILENT_S * 1000
    assert Delivery.objects.filter(project=other, status="sending").count() <= 24


@pytest.mark.slow
def test_a_silent_target_of_a_project_delays_no_other_target_of_it(
    project: Project, receiver: Receiver, silent: SilentHost, worker: Any
) -> None:
    """One webhook takes a third of the places at most, and starts need none of them."""
    machine = create(project, PASS)
    flood(project, f"{silent.url}/silent", f"{receiver.url}/hook", machine.arn)
    wait_until(lambda: len(receiver.got) == FLOOD)
    wait_until(lambda: Execution.objects.count() == FLOOD)
    quiet = Delivery.objects.filter(status="sending", target__address__startswith=silent.url)
    assert quiet.count() <= 16


@pytest.mark.slow
def test_nothing_of_a_flood_is_sent_twice_or_lost(
    project: Project, receiver: Receiver, worker: Any
) -> None:
    """Whatever the order in which projects and targets take turns."""
    flood(project, f"{receiver.url}/a", f"{receiver.url}/b", count=150)
    wait_until(lambda: Delivery.objects.filter(status="delivered").count() == 300)
    assert len(receiver.got) == 300


def test_a_target_that_times_out_gets_one_at_a_time_with_growing_pauses(
    project: Project, receiver: Receiver, silent: SilentHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts that were under way together count once; the next ones wait for the pause."""
    monkeypatch.setattr(outbox_relay, "SILENT_S", -1.0)  # each failure takes longer
    receiver.answers = [503] * 4
    flood(project, f"{receiver.url}/hook", count=4)
    routing.route_events()
    both = [deliveries.load_delivery(number) for number in claim_all(2)]
    for delivery in both:
        assert delivery is not None
        deliveries.mark_failed(delivery, "ReadTimeout", dead=False, timed_out=True)
    target = EventTarget.objects.get()
    assert target.timeouts == 1
    assert deliveries.due_targets() == []
    pauses = []
    for times in (2, 3, 4):
        EventTarget.objects.update(paused_until_ms=None)
        Delivery.objects.update(next_ms=1)
        (due,) = deliveries.due_targets()
        turns = list(outbox_relay._take_turns(FairShares(48), [due]))
        assert len(turns) == 1, "one at a time"
        begun_ms = clock.now_ms()
        for number in claim_all(1):
            outbox_relay.relay_delivery(number)
        target.refresh_from_db()
        assert target.timeouts == times
        pauses.append((target.paused_until_ms or 0) - begun_ms)
    assert pauses == sorted(pauses)
    assert pauses[0] >= 1_800
    shown = health_of_targets([target.pk])[target.pk]
    assert (shown.timeouts, shown.waiting) == (4, 4)


def test_an_answer_ends_the_pause(
    project: Project, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says; so does another address, a test and a dead letter that is sent again."""
    rule = rule_to(project, f"{receiver.url}/hook")
    happened(project)
    paused_ms = clock.now_ms() + 60_000

    def pause() -> None:
        EventTarget.objects.update(timeouts=5, paused_until_ms=paused_ms)

    def paused() -> list[tuple[int, int | None]]:
        return list(EventTarget.objects.values_list("timeouts", "paused_until_ms"))

    receiver.answers = [500]
    EventTarget.objects.update(timeouts=5)
    carry_all()
    assert paused() == [(0, None)]
    pause()
    manual_events.send_test(rule, "1", Actor("ana"))
    assert paused() == [(5, None)]
    pause()
    rules.put_targets(project, REGION, "rule", [{"Id": "1", "Arn": f"{receiver.url}/other"}])
    assert paused() == [(0, None)]
    EventTarget.objects.update(timeouts=5)
    Delivery.objects.update(next_ms=1)
    carry_all()
    assert paused() == [(0, None)]
    Delivery.objects.update(status="dead")
    pause()
    deliveries.send_all_again(project, rule)
    assert paused() == [(5, None)]


def test_a_dead_letter_of_a_start_is_sent_in_the_lane_of_the_web(
    project: Project, silent: SilentHost, settings: Any, worker: Any
) -> None:
    """Its queue may be silent, and starts go on meanwhile."""
    keys = {"access_key_id": "x", "secret_access_key": "y", "region": REGION}
    settings.STATEYARD_TARGETS = {"sqs": {"endpoint_url": silent.url, **keys}}
    machine = create(project, PASS)
    queue = {"Arn": "arn:aws:sqs:us-east-1:123456789012:dead"}
    gone = {"Id": "1", "Arn": create(project, PASS, "gone").arn, "DeadLetterConfig": queue}
    rules.put_rule(project, REGION, "r", pattern=TICK)
    assert rules.put_targets(project, REGION, "r", [gone]) == []
    EventTarget.objects.update(address=gone["Arn"] + "-no-more")
    flood(project, machine.arn, count=20)
    wait_until(lambda: Execution.objects.count() == 20)
    wait_until(lambda: silent.connections)
    assert Delivery.objects.filter(target__target_id="1", status="sending").exists()


def test_projects_take_turns_as_schedules_fire_and_events_are_routed(
    project: Project, other: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has one of each does not wait for who has very many."""
    monkeypatch.setattr(deliveries, "AT_ONCE", 2)
    monkeypatch.setattr(routing, "_AT_ONCE", 2)
    for number in range(5):
        rules.put_rule(other, REGION, f"r{number}", schedule="rate(1 minute)")
    rules.put_rule(project, REGION, "mine", schedule="rate(1 minute)")
    EventRule.objects.update(next_ms=1)
    assert deliveries.fire_due() == 2
    assert (EventRule.objects.get(name="mine").next_ms or 0) > 1
    flood(other, "https://example.com", count=5)
    happened_before = OutboxEvent.objects.filter(project=project).count()
    rule_to(project, "https://example.com")
    drain(start(create(project, PASS), name="x"))
    assert OutboxEvent.objects.filter(project=project).count() == happened_before + 2
    assert routing.route_events()
    assert Delivery.objects.filter(project=other).count() == 1


# -- late schedules --------------------------------------------------------------------------------


def test_a_late_schedule_is_seen(
    project: Project, other: Project, now: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By readyz and Prometheus; what goes to a silent webhook is not late for the server."""
    monkeypatch.setattr(health, "_clock_offset", lambda: 0)  # the test's clock stands still
    machine = create(project, PASS)
    rules.put_rule(project, REGION, "every", schedule="rate(1 minute)")
    rules.put_targets(project, REGION, "every", [{"Id": "1", "Arn": machine.arn}])
    rules.put_rule(other, REGION, "web", schedule="rate(1 minute)")
    rules.put_targets(other, REGION, "web", [{"Id": "1", "Arn": "https://example.com"}])
    assert health.check_health().ready
    EventRule.objects.filter(name="every").update(next_ms=now.now_ms - 40_000)
    EventRule.objects.filter(name="web").update(next_ms=1)
    assert health.check_health().schedule_delay_ms >= 40_000
    deliveries.fire_due()
    assert health.check_health().ready, "the delivery was made just now"
    Delivery.objects.update(next_ms=now.now_ms - 50_000)
    state = health.check_health()
    assert not state.ready
    assert state.reasons[0].startswith("a schedule is late: 50")
    text = openmetrics.render_metrics(next(iter(openmetrics.RENDERERS))).decode()
    delays = [line for line in text.splitlines() if line.startswith("stateyard_schedule_delay")]
    assert [line.partition("}")[2].strip().partition(".")[0] for line in delays] == ["50", "0"]
    Delivery.objects.filter(project=project).update(last_error="it is sent to a queue")
    assert health.check_health().ready
    late = Delivery.objects.filter(project=project)
    late.update(last_error="")
    done = Delivery.objects.create(
        event=OutboxEvent.objects.filter(project=other).get(),
        target=EventTarget.objects.get(rule__name="every"),
        project=project,
        status="delivered",
        next_ms=1,
        created_ms=1,
        ended_ms=clock.now_ms(),
    )
    assert health.check_health().ready, "its starts go through: there are too many of them"
    done.delete()
    assert not health.check_health().ready
    late.update(attempts=1)  # a limit holds it back
    assert health.check_health().ready


# -- calls of Tasks --------------------------------------------------------------------------------


def test_calls_of_a_project_that_hang_leave_places_for_others(
    project: Project, other: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own other functions have places, too, and everything ends once they go on."""
    here = "tests.console.worker.test_fairness"
    settings.STATEYARD_FUNCTIONS = {name: f"{here}:{name}" for name in ("hang", "double")}
    monkeypatch.setattr(embedded, "TASK_THREADS", 24)
    let_go.clear()
    worker = Embedded()
    worker.start()
    try:
        machine = create(other, one("T", **function("hang")), "hangs")
        hanging = [start(machine) for _ in range(40)]
        wait_until(lambda: len(worker._calls.lasting(0)) >= 8)
        assert ended(start(create(project, one("T", **function("double"))), 2)).output == "4"
        assert ended(start(create(other, one("T", **function("double"))), 3)).output == "6"
        assert len(worker._calls.lasting(0)) <= 9
        let_go.set()
        assert {ended(execution).status for execution in hanging} == {"SUCCEEDED"}
    finally:
        let_go.set()
        worker.stop()


def test_what_a_task_calls_is_read_from_its_row(project: Project) -> None:
    """A function by its ARN or name, a web address by its host, anything else by its service."""
    connection = "arn:aws:events:us-east-1:123456789012:connection/c/1"
    http = {"ApiEndpoint": "https://api.example.com/a", "Method": "GET"}
    http |= {"Authentication": {"ConnectionArn": connection}}
    invoke = {"FunctionName": "price", "Payload": {}}
    tasks = {
        "plain": function("double"),
        "http": {"Type": "Task", "Resource": "arn:aws:states:::http:invoke", "Parameters": http},
        "call": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": invoke,
        },
        "queue": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": "https://sqs/q", "MessageBody": "x"},
        },
    }
    executions = {
        name: drain(start(create(project, one("T", **task), name))) for name, task in tasks.items()
    }
    rows = {row.execution_id: row.task for row in TaskRow.objects.all()}
    call_targets = find_call_targets(list(rows.items()))
    targets = {name: call_targets[each.pk, rows[each.pk]] for name, each in executions.items()}
    assert targets == {
        "plain": (project.pk, tasks["plain"]["Resource"]),
        "http": (project.pk, "http api.example.com"),
        "call": (project.pk, "lambda price"),
        "queue": (project.pk, "sqs"),
    }


# -- the rule --------------------------------------------------------------------------------------


def test_shares_of_projects_and_targets() -> None:
    """One target has a third of the places, one project half, the next one half of the rest."""
    shares = FairShares(48)
    queue: FairQueue[int] = FairQueue(shares)

    def taken() -> list[FairShare]:
        turns = []
        while (turn := queue.take()) is not None:
            turns.append(turn[0])
        return turns

    for number in range(100):
        queue.put(FairShare(1, "a"), number)
    assert len(taken()) == 16
    for target in range(50):
        queue.put(FairShare(1, f"b{target}"), 0)
    taken()
    assert shares.of_project(1) == 24
    for number in range(100):
        queue.put(FairShare(2, "a"), number)
    assert len(taken()) == 8
    queue.put(FairShare(3, "a"), 0)
    assert taken() == [FairShare(3, "a")]
    for _ in range(16):
        shares.end(FairShare(1, "a"))
    assert FairShare(2, "a") in taken()


def test_projects_and_targets_take_turns() -> None:
    """A long queue of one is not worked off before the others'."""
    queue: FairQueue[int] = FairQueue(FairShares(1000))
    for project, target, count in ((1, "a", 4), (1, "b", 1), (2, "a", 2)):
        for number in range(count):
            queue.put(FairShare(project, target), number)
    turns = [queue.take() for _ in range(7)]
    order = [(turn[0].project, turn[0].target) for turn in turns if turn is not None]
    assert order == [(1, "a"), (2, "a"), (1, "b"), (2, "a"), (1, "a"), (1, "a"), (1, "a")]
    assert queue.take() is None
    assert len(queue) == 0


def test_every_job_of_a_pool_runs_once() -> None:
    """Those that begin before they are sorted, those that wait, and those nobody knows."""
    done: list[int] = []
    pool = FairPool(16, "test", lambda abouts: {n: FairShare(n % 3, "") for n in abouts if n % 5})
    for number in range(300):
        pool.submit(lambda number=number: done.append(number), about=number + 1)
    wait_until(lambda: len(done) == 300)
    assert sorted(done) == list(range(300))
    wait_until(lambda: pool.shares.free == 16)
    pool.stop(1)
