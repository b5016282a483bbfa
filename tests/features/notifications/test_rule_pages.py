"""The pages of rules show first how a rule fares: its targets, its matches, what they started."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.notifications.store import deliveries, routing, rules
from console.features.notifications.web import matches
from console.features.notifications.web.target_health import TargetHealth, health_of_targets
from console.models import (
    AuditEntry,
    Delivery,
    EventRule,
    EventTarget,
    Execution,
    OutboxEvent,
    StateMachine,
)
from console.store.events import outbox
from console.store.executions.start import start_execution
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import text
from tests.features.notifications.test_rules import (
    NOTIFICATIONS,
    REGION,
    SCHEDULES,
    dead_letter,
    more_dead_letters,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def words(response: Any) -> str:
    """Return what a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", text(response).partition("<main")[2]).split())


# -- how a target fares ----------------------------------------------------------------------------


def health(project: Project, *rows: dict[str, Any]) -> TargetHealth:
    """Return the state of a target after some deliveries."""
    event_rule = rule(project)
    target = event_rule.targets.get()
    for number, row in enumerate(rows):
        event_id = f"event-{number}"
        outbox.put_event(project.pk, event_id, "{}", region=REGION, about="x")
        event = OutboxEvent.objects.get(event_id=event_id)
        values = {"next_ms": 1, "created_ms": 1, "project": project, **row}
        Delivery.objects.create(event=event, target=target, **values)
    return health_of_targets([target.pk])[target.pk]


def dead(at_ms: int) -> dict[str, Any]:
    """Return a dead letter that was tried for the last time at a moment."""
    return {"status": "dead", "attempts": 1, "ended_ms": at_ms}


def delivered(at_ms: int) -> dict[str, Any]:
    """Return a delivery that was taken at a moment."""
    return {"status": "delivered", "attempts": 1, "ended_ms": at_ms}


def retried(since_ms: int) -> dict[str, Any]:
    """Return a delivery that is tried again."""
    return {"status": "waiting", "attempts": 2, "created_ms": since_ms}


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    ("rows", "word", "failing_ms", "delivered_ms"),
    [
        ([], "Nothing sent yet", None, None),
        ([{"status": "waiting"}], "Waiting", None, None),
        ([{"status": "waiting"}, {"status": "sending"}], "Sending", None, None),
        ([dead(3), delivered(5)], "Delivered", None, 5),
        ([dead(3), dead(4)], "Failing", 3, None),
        ([dead(3), delivered(5), dead(7), dead(9)], "Failing", 7, 5),
        ([delivered(5), retried(6)], "Failing", 6, 5),
        ([delivered(5), retried(4)], "Delivered", None, 5),
        ([delivered(5), retried(6), dead(8)], "Failing", 6, 5),
    ],
)
def test_a_target_fails_since_it_last_took_nothing(
    project: Project,
    rows: list[dict[str, Any]],
    word: str,
    failing_ms: int | None,
    delivered_ms: int | None,
) -> None:
    """From the first failure after the last delivery; one that is sent for the first time, not."""
    state = health(project, *rows)
    assert (state.status.word, state.failing_ms, state.delivered_ms) == (
        word,
        failing_ms,
        delivered_ms,
    )
    assert sum(state.counts.values()) == len(rows)


def test_the_list_of_rules_shows_how_targets_fare(project: Project, client: Client) -> None:
    """At a glance: the sign, since when, how many; a target that is a machine leads to it."""
    letter = dead_letter(project)
    machine = create(project, PASS, "target")
    rules.put_targets(project, REGION, "ends", [{"Id": "2", "Arn": machine.arn}])
    shown = words(client.get(NOTIFICATIONS))
    assert "Failing since 2023-11-14 22:13:20 UTC · 1 dead letter" in shown
    assert "State machine target Nothing sent yet" in shown
    assert 'href="/machines/target/"' in text(client.get(NOTIFICATIONS))
    assert "Failing since" in words(client.get(f"/rules/{letter.target.rule.name}/"))


# -- dead letters ----------------------------------------------------------------------------------


def test_dead_letters_of_a_group_are_deleted_after_one_question(
    project: Project, signed_in: SignIn
) -> None:
    """By an editor, with one entry in the audit; those of other reasons stay."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 2)
    Delivery.objects.exclude(pk=letter.pk).update(last_error="HTTP 503")
    operator, editor = signed_in("operator"), signed_in("editor")
    assert "Delete all 2" not in words(operator.get(NOTIFICATIONS))
    shown = text(editor.get(NOTIFICATIONS))
    address = re.search(r'href="(/notifications/rules/\d+/delete/\?cause=\w+)"', shown)
    assert address is not None
    assert operator.get(address[1]).status_code == 403
    question = words(editor.get(address[1]))
    assert "Delete 2 dead letters?" in question
    assert "HTTP 503" in question
    path, cause = address[1].split("?cause=")
    answer = editor.post(path, {"cause": cause}, follow=True)
    assert "2 dead letters were deleted" in words(answer)
    assert list(Delivery.objects.all()) == [letter]
    entry = AuditEntry.objects.get(action=deliveries.DELETE_LETTERS)
    assert (entry.actor, entry.reason) == ("editor", "2 dead letters")
    late = editor.post(path, {"cause": cause}, follow=True)
    assert "no longer dead letters" in words(late)
    assert list(Delivery.objects.all()) == [letter]


@pytest.mark.postgres_too
def test_only_the_newest_dead_letters_are_deleted_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are sent again at once; what is on its way stays."""
    letter = dead_letter(project)
    more_dead_letters(letter, 3)
    waiting = Delivery.objects.filter(status="waiting").count()
    monkeypatch.setattr(deliveries, "MOST_AGAIN", 2)
    assert deliveries.delete_dead_letters(project, letter.target.rule) == 2
    assert Delivery.objects.filter(pk=letter.pk).exists()
    assert Delivery.objects.filter(status="waiting").count() == waiting


def test_without_dead_letters_the_page_does_not_speak_of_them(
    project: Project, client: Client
) -> None:
    """Nothing is to be done."""
    rule(project)
    assert "dead letter" not in words(client.get(NOTIFICATIONS)).lower()


# -- forms open when they are asked for ------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "query"), [(NOTIFICATIONS, "create"), (SCHEDULES, "create"), ("/rules/ends/", "edit")]
)
def test_a_form_opens_by_its_button(
    project: Project, signed_in: SignIn, page: str, query: str
) -> None:
    """A link that works without JavaScript; who may not use the form does not get it."""
    rule(project)
    editor, viewer = signed_in("editor"), signed_in("viewer")
    field = 'name="revision"' if query == "edit" else 'id="name"'
    assert field not in text(editor.get(page))
    link = re.search(rf'href="({page}\?{query}=1)#\w+"', text(editor.get(page)))
    assert link is not None
    assert field in text(editor.get(link[1]))
    assert field not in text(viewer.get(link[1]))


# -- matches ---------------------------------------------------------------------------------------


@pytest.fixture
def twice(project: Project) -> EventRule:
    """Return a rule whose one event went to a web address in vain, and started a machine."""
    machine, target = create(project, PASS, "orders"), create(project, PASS, "report")
    event_rule = rule(project, pattern=json.dumps({"detail": {"stateMachineArn": [machine.arn]}}))
    rules.put_targets(project, REGION, "ends", [{"Id": "2", "Arn": f"{target.arn}"}])
    drain(start(machine, name="order-1"))
    routing.route_events()
    for row in Delivery.objects.filter(target__target_id="2"):
        start_execution(target, name=deliveries.execution_name(row), input="{}")
        deliveries.mark_delivered(row)
    hook = Delivery.objects.filter(target__target_id="1")
    hook.update(status="dead", attempts=1, ended_ms=1, last_error="HTTP 503")
    return event_rule


@pytest.mark.postgres_too
def test_an_event_is_listed_once_with_what_it_started(
    project: Project, client: Client, twice: EventRule
) -> None:
    """All its targets in one row; the execution that it tells of and the one that it started."""
    del twice
    shown = text(client.get("/rules/ends/"))
    events = Delivery.objects.values("event").distinct().count()
    table = shown.split('id="deliveries"')[1].split("</section>")[0]
    assert table.count("<tr>") == events + 1
    started = Execution.objects.filter(project=project, state_machine__name="report")
    assert started.count() == events
    for execution in started:
        assert f'href="/arn/{execution.arn}"' in table
    source = Execution.objects.get(name="order-1")
    assert f'href="/arn/{source.arn}"' in table
    said = " ".join(re.sub(r"<[^>]+>", " ", table).split())
    assert "Delivered State machine report" in said
    assert said.count("Dead letter Webhook") == events
    assert said.count("HTTP 503") == 1  # the events below say the same
    assert "Same reason" in said


def test_the_execution_of_an_express_machine_is_linked_with_its_status(
    project: Project, client: Client, django_assert_max_num_queries: Any
) -> None:
    """On the page of the rule and in the list of schedules, as that of a Standard machine is."""
    machine = create(project, PASS, "quick-quote")
    StateMachine.objects.filter(pk=machine.pk).update(type="EXPRESS")
    machine.refresh_from_db()
    rule(project, "often", schedule="rate(1 minute)")
    EventTarget.objects.update(address=machine.arn)
    outbox.put_event(project.pk, "tick", "{}", region=REGION, about="")
    row = Delivery.objects.create(
        event=OutboxEvent.objects.get(event_id="tick"),
        target=EventTarget.objects.get(),
        project=project,
        next_ms=1,
        created_ms=clock.now_ms(),
    )
    execution = drain(start(machine, name=deliveries.execution_name(row)))
    assert ":express:" in execution.arn
    deliveries.mark_delivered(row)
    link = f'href="/arn/{execution.arn}"'
    with django_assert_max_num_queries(22):
        shown = text(client.get("/rules/often/"))
    assert link in shown
    assert re.search(
        r"Delivered State machine quick-quote execution tick_\d+ Succeeded",
        words(client.get("/rules/often/")),
    )
    assert '<a href="/machines/quick-quote/">' in shown.partition('id="deliveries"')[2]
    assert link in text(client.get("/schedules/"))


def test_an_event_says_what_the_execution_was_then(twice: EventRule) -> None:
    """Not what it is now: the start of one that has succeeded since says that it ran."""
    told = [match.status and match.status.word for match in matches.list_matches(twice).matches]
    assert told == ["Succeeded", "Running"]


def test_older_matches_are_a_page_further(
    client: Client, twice: EventRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None twice, none missing."""
    monkeypatch.setattr(matches, "PAGE", 1)
    expected = set(Delivery.objects.values_list("event__event_id", flat=True))
    seen, address = [], f"/rules/{twice.name}/"
    while address:
        shown = text(client.get(address)).split('id="deliveries"')[1]
        seen += re.findall(r'class="muted long">([\w-]+)</code>', shown)
        older = re.search(r'rel="next" href="([^"]+)"', shown)
        address = f"/rules/{twice.name}/{older[1]}" if older else ""
    assert len(seen) == len(expected)
    assert set(seen) == expected


@pytest.mark.parametrize(
    ("settings", "started"),
    [
        ('{"StateMachineArn": "arn:aws:states:r:1:stateMachine:m:7", "Name": "x"}', "m:x"),
        ('{"StateMachineArn": "arn:aws:states:r:1:stateMachine:m"}', "m:event_7"),
        ("[]", ""),
        ("{", ""),
    ],
)
def test_a_universal_target_names_what_it_starts(settings: str, started: str) -> None:
    """The parameters of StartExecution are its input; what cannot be read links nowhere."""
    target = EventTarget(
        pk=7,
        address="arn:aws:scheduler:::aws-sdk:sfn:startExecution",
        settings=json.dumps({"Input": settings}),
    )
    delivery = Delivery(event=OutboxEvent(event_id="event"), target=target)
    arn = matches.started_arn(delivery)
    assert arn == (f"arn:aws:states:r:1:execution:{started}" if started else "")


def test_a_rule_says_when_it_fires_before_anything_else(project: Project, client: Client) -> None:
    """The next five times of a schedule, and in how long; a disabled one says why there is none."""
    rule(project, "nightly", schedule="rate(10 minutes)")
    shown = words(client.get("/rules/nightly/"))
    assert shown.index("Next five times") < shown.index("Targets") < shown.index("Last runs")
    times = shown.partition("Next five times")[2].partition("Deliveries of")[0]
    assert re.findall(r" in (?:(\d+) min|1 h)", times)[0] in ("9", "10")
    assert len(re.findall(r" in \d+ (?:min|h) ", times)) == 5
    client.post("/rules/nightly/switch/", {"act": "disable"})
    assert "never: the rule is disabled" in words(client.get("/rules/nightly/"))


@pytest.mark.postgres_too
def test_each_reason_is_said_once_among_all_events(project: Project, client: Client) -> None:
    """Events of two targets that fail in turn stand by their target within a page."""
    letter = dead_letter(project)
    rules.put_targets(project, REGION, "ends", [{"Id": "2", "Arn": "https://example.com/two"}])
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 7)
    second = letter.target.rule.targets.get(target_id="2")
    odd = [row.pk for row in Delivery.objects.order_by("pk") if row.pk % 2]
    Delivery.objects.update(last_error="HTTP 503")
    Delivery.objects.filter(pk__in=odd).update(target=second)
    shown = text(client.get(NOTIFICATIONS, {"letters": "all"}))
    card = shown.split('id="letters"')[1].partition("<h2>Rules</h2>")[0]
    heads = re.findall(r'scope="rowgroup".*?</th>', card, re.DOTALL)
    assert len(heads) == card.count("HTTP 503") == 2
