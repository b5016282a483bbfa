"""Permitted users create rules on the pages, which show their dead letters."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import audit
from console.features.notifications.store import deliveries, routing, rules
from console.models import (
    AuditEntry,
    Delivery,
    EventRule,
    EventTarget,
    OutboxEvent,
)
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import MARKUP, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

NOTIFICATIONS, SCHEDULES = "/notifications/", "/schedules/"
REGION = "us-east-1"
_HIDDEN = re.compile(r'<span\s+class="visually-hidden">.*?</span>', re.DOTALL)
ASKED = {"name": "ends", "status": ["FAILED", "ABORTED"], "target": "ops@example.com"}


def rule(project: Project, name: str = "ends", **fields: Any) -> EventRule:
    """Make a rule that sends to a web address."""
    fields = fields or {"pattern": '{"source": ["aws.states"]}'}
    event_rule = rules.put_rule(project, REGION, name, **fields)
    rules.put_targets(project, REGION, name, [{"Id": "1", "Arn": "https://example.com/hook"}])
    return event_rule


def dead_letter(project: Project) -> Delivery:
    """Let a delivery have died."""
    if not EventRule.objects.filter(project=project).exists():
        rule(project)
    machine = create(project, PASS, f"m{OutboxEvent.objects.count()}")
    drain(start(machine, name="x"))
    routing.route_events()
    last = Delivery.objects.filter(project=project).latest("pk")
    Delivery.objects.filter(pk=last.pk).update(
        status="dead", attempts=3, ended_ms=1_700_000_000_000, last_error=f"refused {MARKUP}"
    )
    return last


def more_dead_letters(letter: Delivery, count: int) -> None:
    """Store so many more for the target of a dead letter."""
    for number in range(count):
        event = OutboxEvent.objects.create(
            event_id=f"more-{number}", project=letter.project, region=REGION, about="x", at_ms=1
        )
        Delivery.objects.create(
            event=event,
            target=letter.target,
            project=letter.project,
            status="dead",
            next_ms=1,
            created_ms=1,
            ended_ms=1,
        )


# -- notifications ---------------------------------------------------------------------------------


def test_a_rule_is_made_from_choices(project: Project, client: Client) -> None:
    """Statuses, a machine and an address become pattern and target; the list words them."""
    machine = create(project, PASS)
    answer = client.post(NOTIFICATIONS, ASKED | {"machine": machine.arn})
    assert (answer.status_code, answer["Location"]) == (302, NOTIFICATIONS)
    event_rule = EventRule.objects.get()
    assert json.loads(event_rule.pattern) == {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"status": ["FAILED", "ABORTED"], "stateMachineArn": [machine.arn]},
    }
    assert EventTarget.objects.get().address == "mailto:ops@example.com"
    shown = re.sub(r"<[^>]+>|\s+", " ", text(client.get(NOTIFICATIONS)))
    assert re.search(r"Failed ?, Aborted +machine", shown)
    assert "ops@example.com" in shown
    actions = AuditEntry.objects.order_by("pk").values_list("action", "actor")
    assert list(actions)[-2:] == [("events:PutRule", "editor"), ("events:PutTargets", "editor")]


def test_a_pattern_of_ones_own_stands_instead(project: Project, client: Client) -> None:
    """Kept as typed; the list says so."""
    own = '{"source": [{"prefix": "my."}]}'
    client.post(NOTIFICATIONS, ASKED | {"pattern": own})
    assert EventRule.objects.get().pattern == own
    assert "match a custom pattern" in text(client.get(NOTIFICATIONS))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "Name: 'a b' is not"),
        ({"pattern": '{"source": "x"}'}, "must be an object or an array"),
        ({"target": "somewhere"}, "'somewhere' is not a target. Enter the ARN of"),
        ({"target": "arn:aws:states:us-east-1:123456789012:stateMachine:no"}, "Does Not Exist"),
        ({"input": "{"}, "Input is not JSON"),
        ({"status": []}, "an empty array matches nothing"),
    ],
)
def test_a_wrong_form_comes_back_as_typed(
    project: Project, client: Client, change: dict[str, Any], words: str
) -> None:
    """With what is wrong, and nothing of it is stored."""
    shown = text(client.post(NOTIFICATIONS, ASKED | change), 422)
    assert words in shown
    for name in ("name", "target"):
        assert f'value="{(ASKED | change)[name]}"' in shown
    assert EventRule.objects.count() == EventTarget.objects.count() == 0


def test_a_name_is_not_taken_twice(project: Project, client: Client) -> None:
    """The form makes rules; changing one is its own page."""
    client.post(NOTIFICATIONS, ASKED)
    shown = text(client.post(NOTIFICATIONS, ASKED | {"target": "https://example.com"}), 422)
    assert "there is a rule 'ends' already" in shown
    assert EventTarget.objects.get().address == "mailto:ops@example.com"


def test_dead_letters_say_why_and_are_sent_again(project: Project, signed_in: SignIn) -> None:
    """By an operator; the event id stays, and the audit has who did it."""
    letter = dead_letter(project)
    path = f"/notifications/{letter.pk}/again/"
    viewer, operator = signed_in("viewer"), signed_in("operator")
    shown = viewer.get(NOTIFICATIONS)
    assert MARKUP not in shown.content.decode()
    assert f"refused {MARKUP}" in text(shown)
    assert letter.event.event_id in text(shown)
    assert "Send again" not in text(shown)
    assert viewer.post(path).status_code == 403
    assert "Send again" in text(operator.get(NOTIFICATIONS))
    operator.post(path)
    again = Delivery.objects.get(pk=letter.pk)
    assert (again.status, again.attempts, again.event_id) == ("waiting", 0, letter.event_id)
    assert AuditEntry.objects.get(action="events:SendAgain").actor == "operator"
    assert "no longer a dead letter" in text(operator.post(path, follow=True))


@pytest.mark.postgres_too
def test_the_dead_letters_of_a_rule_are_sent_again_at_once(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an operator: those of that rule and no other, with one entry in the audit."""
    letter = dead_letter(project)
    rule = letter.target.rule
    more_dead_letters(letter, 2)
    dead = Delivery.objects.filter(status="dead", target__rule=rule)
    viewer, operator = signed_in("viewer"), signed_in("operator")
    path = f"/notifications/rules/{rule.pk}/again/"
    overview = re.sub(r"\s+", " ", text(viewer.get(NOTIFICATIONS)))
    assert f"<h2>{dead.count()} dead letters</h2>" in overview
    assert path not in text(viewer.get(NOTIFICATIONS))
    assert viewer.post(path).status_code == viewer.get(path).status_code == 403
    assert path in text(operator.get(NOTIFICATIONS))
    assert operator.post("/notifications/rules/99999/again/").status_code == 404
    monkeypatch.setattr(deliveries, "MOST_AGAIN", 2)
    count = dead.count()
    operator.post(path)
    assert dead.count() == count - 2
    assert Delivery.objects.filter(pk=letter.pk, status="dead").exists()  # the newest come first
    entry = AuditEntry.objects.get(action="events:SendAgain")
    assert (entry.actor, entry.target, entry.reason) == ("operator", rule.arn, "2 dead letters")
    operator.post(path)
    assert not Delivery.objects.filter(pk=letter.pk, status="dead").exists()


@pytest.mark.postgres_too
def test_dead_letters_of_one_cause_are_one_row(project: Project, client: Client) -> None:
    """Grouped by rule and cause, whose numbers and ids differ: how many, the first and the last."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 4)
    rows = list(Delivery.objects.order_by("pk"))
    for number, row in enumerate(rows):
        row.last_error = f"ConnectionError: port {4000 + number}" if number < 3 else "gone"
        row.ended_ms = 1_700_000_000_000 + number * 3_600_000
        row.save()
    other = rule(project, "other")
    Delivery.objects.filter(pk=rows[4].pk).update(target=other.targets.get())
    shown = text(client.get(NOTIFICATIONS))
    card = shown[shown.index('id="dead"') :]
    groups = card[: card.index("</section>")].split('<div class="letter-group">')[1:]
    words = [" ".join(re.sub(r"<[^>]+>", " ", group).split()) for group in groups]
    assert len(words) == 3
    assert words[0].startswith("ConnectionError: port 4002 3 events of ends to https://example.com")
    assert "2023-11-14 22:13:20 UTC to 2023-11-15 00:13:20 UTC" in words[0]
    assert "Send all 3 again" in words[0]
    assert "Delete all 3" in words[0]
    assert [word[:15] for word in words[1:]] == ["gone 1 event of", "gone 1 event of"]
    assert 'id="letters"' not in shown


@pytest.mark.postgres_too
def test_a_group_of_dead_letters_is_sent_again_after_one_question(
    project: Project, signed_in: SignIn
) -> None:
    """The question says how many go where and why they failed; those of other causes stay."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 2)
    Delivery.objects.exclude(pk=letter.pk).update(last_error="HTTP 503")
    operator = signed_in("operator")
    address = re.search(r'href="(/notifications/rules/[^"]+)"', text(operator.get(NOTIFICATIONS)))
    assert address is not None
    question = text(operator.get(address[1]))
    assert "Send 2 events again?" in question
    assert "HTTP 503" in question
    assert "https://example.com/hook" in question
    assert "refused" not in question
    assert Delivery.objects.filter(status="dead").count() == 3
    path, cause = address[1].split("?cause=")
    answer = text(operator.post(path, {"cause": cause}, follow=True))
    assert "2 events were sent again" in answer
    assert list(Delivery.objects.filter(status="dead")) == [letter]
    assert "Nothing to send again" in text(operator.get(address[1]))
    late = text(operator.post(path, {"cause": cause}, follow=True))
    assert "no longer dead letters" in late
    assert list(Delivery.objects.filter(status="dead")) == [letter]


def test_dead_letters_come_by_the_page(project: Project, client: Client) -> None:
    """Ten at a time, none twice and none missing; what they share is said once."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    Delivery.objects.update(last_error="HTTP 503")
    more_dead_letters(letter, 24)
    Delivery.objects.update(last_error="HTTP 503")
    cause = re.search(r"\?cause=(\w+)#letters", text(client.get(NOTIFICATIONS)))
    assert cause is not None
    for query in ({"letters": "all"}, {"cause": cause[1]}):
        ids: list[str] = []
        before: list[str] = []
        for _ in range(3):
            asked = query | ({"before": before[0]} if before else {})
            shown = text(client.get(NOTIFICATIONS, asked))
            card = shown[shown.index('id="dead"') : shown.index("</main>")]
            visible = re.sub(
                r'<span\s+class="visually-hidden">.*?</span>', "", card, flags=re.DOTALL
            )
            assert visible.count("HTTP 503") == visible.count("https://example.com/hook") == 1
            before = re.findall(r"before=(\d+)", card)
            ids += re.findall(r'class="muted long">([\w-]+)</code>', card)
        assert (len(ids), len(set(ids)), before) == (25, 25, [])


def test_a_rule_that_somebody_else_changed_is_not_overwritten(
    project: Project, client: Client
) -> None:
    """The second save is told of the first, has both patterns, and may replace what it saw."""
    rule(project)
    form = text(client.get("/rules/ends/?edit=1"))
    opened = re.search(r'name="revision" value="([^"]+)"', form)
    assert opened is not None
    rules.put_rule(
        project, REGION, "ends", pattern='{"source": ["theirs"]}', actor=audit.Actor("ann")
    )
    mine = {"pattern": '{"source": ["mine"]}', "revision": opened[1]}
    shown = text(client.post("/rules/ends/", mine), 409)
    for said in ('{"source": ["mine"]}', '{"source": ["theirs"]}', ">ann<", "this rule after you"):
        assert said in shown
    assert "theirs" in EventRule.objects.get(name="ends").pattern
    over = re.search(r'name="over" value="([^"]+)"', shown)
    assert over is not None
    assert client.post("/rules/ends/", mine | {"over": over[1]}).status_code == 302
    assert "mine" in EventRule.objects.get(name="ends").pattern


def test_nothing_of_another_project_is_seen_or_changed(project: Project, client: Client) -> None:
    """Neither its rules, nor its dead letters."""
    other = type(project).objects.create(name="other", account_id="999999999999")
    rule(other, "theirs")
    letter = dead_letter(other)
    assert "theirs" not in text(client.get(NOTIFICATIONS))
    for path in ("", "delete/"):
        assert client.get(f"/rules/theirs/{path}").status_code == 404
    for path in ("", "switch/", "delete/", "targets/", "targets/remove/"):
        assert client.post(f"/rules/theirs/{path}").status_code == 404
    client.post(f"/notifications/{letter.pk}/again/")
    assert Delivery.objects.get(pk=letter.pk).status == "dead"
    assert EventRule.objects.get(name="theirs").state == "ENABLED"


# -- what rules and schedules share ----------------------------------------------------------------


def test_deliveries_are_listed_with_their_status(project: Project, client: Client) -> None:
    """And a link to the execution they tell of."""
    letter = dead_letter(project)
    shown = text(client.get("/rules/ends/"))
    assert "Dead letter" in shown
    assert "Waiting" in shown
    assert f"/arn/{letter.event.about}" in shown


def test_pages_stay_in_their_region(project: Project, client: Client) -> None:
    """Links and answers keep ?region=, and rules of elsewhere are not shown."""
    rules.put_rule(project, "eu-west-1", "there", pattern='{"source": ["x"]}')
    assert "there" not in text(client.get(NOTIFICATIONS)).partition("<main")[2]
    assert client.get("/rules/there/").status_code == 404
    query = "?region=eu-west-1"
    assert f"/rules/there/{query}" in text(client.get(f"{NOTIFICATIONS}{query}"))
    answer = client.post(f"/rules/there/switch/{query}", {"act": "disable"})
    assert answer["Location"] == f"/rules/there/{query}"


def queries(client: Client, path: str) -> int:
    """Count the queries of a page."""
    with CaptureQueriesContext(connection) as seen:
        text(client.get(path))
    return len(seen)


@pytest.mark.slow
def test_pages_cost_the_same_for_many_rows(project: Project, client: Client) -> None:
    """At most fifteen queries, for one rule or sixty."""
    machine = create(project, PASS)
    rule(project)
    rule(project, "at-0", schedule="rate(1 day)")
    dead_letter(project)
    every_letter = f"{NOTIFICATIONS}?letters=all"
    paths = (every_letter, SCHEDULES, "/rules/ends/", f"/machines/{machine.name}/triggers/")
    before = {path: queries(client, path) for path in paths}
    for number in range(1, 30):
        rule(project, f"ends-{number}")
        rule(project, f"at-{number}", schedule="rate(1 day)")
    dead_letter(project)
    routing.route_events()
    assert {path: queries(client, path) for path in paths} == before
    assert max(before.values()) <= 15, before
