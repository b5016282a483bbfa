"""Chats get a message that a person reads at once: what failed, where, why, and the page."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import Actor
from console.features.notifications import notice_text
from console.features.notifications.store import manual_events, routing, rules
from console.integrations.redaction import without_secrets, without_url_secrets
from console.models import AuditEntry, Delivery, EventRule
from console.store.events import outbox
from tests.console.store.helpers import create, drain, start
from tests.features.notifications.relay import REGION, Receiver, carry_all, rule_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

FAILED = json.dumps({"source": ["aws.states"], "detail": {"status": ["FAILED"]}})
CAUSE = "<b>Card</b> & limit"
REJECTS = {
    "StartAt": "Reject",
    "States": {"Reject": {"Type": "Fail", "Error": "OrderRejected", "Cause": CAUSE}},
}
ANA = Actor("ana", "", "test")


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver whose origin the operator has named."""
    chat = Receiver()
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [chat.url]}}
    settings.STATEYARD_URL = "https://yard.example.com"
    yield chat
    chat.server.shutdown()
    chat.server.server_close()


def fail(project: Project) -> None:
    """Let an execution of ``orders`` fail, and carry what that tells."""
    drain(start(create(project, REJECTS, "orders"), name="order-7"))
    routing.route_events()
    carry_all()


def test_slack_gets_the_facts_and_a_link(project: Project, receiver: Receiver) -> None:
    """Characters that begin markup of Slack are escaped."""
    rule_to(project, f"slack+{receiver.url}/services/T0/secret", pattern=FAILED)
    fail(project)
    ((_, body),) = receiver.got
    lines = json.loads(body)["text"].split("\n")
    assert lines[0] == "*orders failed: OrderRejected*"
    assert "Failed state: Reject" in lines
    assert "Cause: &lt;b&gt;Card&lt;/b&gt; &amp; limit" in lines
    assert lines[-1].startswith("<https://yard.example.com/arn/arn:aws:states:")
    assert lines[-1].endswith(":execution:orders:order-7|Open the page>")
    assert Delivery.objects.get().status == "delivered"


def test_teams_gets_a_card(project: Project, receiver: Receiver) -> None:
    """With the same facts, and a button that opens the page."""
    rule_to(project, f"teams+{receiver.url}/workflows/1", pattern=FAILED)
    fail(project)
    message = json.loads(receiver.got[0][1])
    card = message["attachments"][0]["content"]
    assert message["attachments"][0]["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["body"][0]["text"] == "orders failed: OrderRejected"
    facts = {fact["title"]: fact["value"] for fact in card["body"][1]["facts"]}
    assert (facts["Failed state"], facts["Cause"]) == ("Reject", CAUSE)
    assert card["actions"][0]["url"].endswith(":execution:orders:order-7")


LEAKY = {
    "StartAt": "Reject",
    "States": {"Reject": {"Type": "Fail", "Error": "Declined", "CausePath": "$.said"}},
}
CARD = {"card": {"number": "4929-1111"}, "said": "card 4929-1111 is stolen"}
CHOSEN = {"cause": "$.detail.cause", "input": "$.detail.input"}


TRANSFORMED = {"InputTransformer": {"InputPathsMap": CHOSEN, "InputTemplate": "<cause> <input>"}}


@pytest.mark.parametrize("told", [{}, TRANSFORMED])
def test_people_read_no_masked_value_in_a_chat_or_a_mail(
    project: Project, receiver: Receiver, mailoutbox: Any, settings: Any, told: dict[str, Any]
) -> None:
    """Nobody signs in to read these; a webhook is a program's, and gets the event as it is."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    project.masked = "$.card.number"
    project.save()
    chats = (f"slack+{receiver.url}/a", f"teams+{receiver.url}/b", "mailto:ops@example.com")
    rule_to(project, *chats, f"{receiver.url}/program", pattern=FAILED, **told)
    drain(start(create(project, LEAKY, "orders"), CARD, name="order-7"))
    routing.route_events()
    carry_all()
    *worded, program = [body for _, body in receiver.got]
    assert "card 4929-1111 is stolen" in program
    texts = [*worded, *(mail.body for mail in mailoutbox)]
    assert len(texts) == 3
    for text in texts:
        assert "card (masked) is stolen" in text
        assert "4929" not in text


def test_a_text_of_ones_own_is_sent_as_it_is(project: Project, receiver: Receiver) -> None:
    """``Input`` and ``InputTransformer`` say what a chat reads."""
    rule_to(project, f"slack+{receiver.url}/x", pattern=FAILED, Input='"Look at orders"')
    fail(project)
    assert json.loads(receiver.got[0][1]) == {"text": "Look at orders"}


def test_the_path_of_a_chat_is_no_ones_to_read() -> None:
    """It is the whole secret of such an address, and the key in it that of a plain webhook."""
    url = "https://hooks.slack.com/services/T0/B0/secret"
    assert without_secrets(f"slack+{url}") == "slack+https://hooks.slack.com/(masked)"
    said = without_url_secrets(f"ConnectError: {url} is away", f"slack+{url}")
    assert "secret" not in said
    assert "secret" not in without_url_secrets(f"sent to slack+{url} at last")
    assert without_secrets(url) == "https://hooks.slack.com/services/(masked)"


def test_an_origin_that_nobody_named_gets_nothing(project: Project, settings: Any) -> None:
    """A chat's prefix opens no door; the dead letter does not show the path."""
    settings.STATEYARD_TARGETS = {"http": {"endpoints": ["https://hooks.example.com"]}}
    rule_to(project, "slack+https://elsewhere.example.com/secret", pattern=FAILED)
    fail(project)
    row = Delivery.objects.get()
    assert row.status == "dead"
    assert "not among the endpoints" in row.last_error
    assert "secret" not in row.last_error


# -- events made by hand ---------------------------------------------------------------------------


def test_a_test_reaches_one_target_and_says_that_it_is_one(
    project: Project, receiver: Receiver
) -> None:
    """It has the first status that the rule waits for; other targets hear nothing."""
    rule = rule_to(project, f"slack+{receiver.url}/a", f"{receiver.url}/b", pattern=FAILED)
    manual_events.send_test(rule, "1", ANA)
    carry_all()
    ((_, body),) = receiver.got
    assert json.loads(body)["text"].startswith("*[test] example failed: Stateyard.Test*")
    assert Delivery.objects.get().status == "delivered"
    assert AuditEntry.objects.get(action="events:SendTest").actor == "ana"


def test_a_test_of_alarms_is_an_alarm(project: Project, receiver: Receiver) -> None:
    """A rule for alarms is tested by the event of one."""
    pattern = {"source": ["aws.cloudwatch"], "detail-type": ["CloudWatch Alarm State Change"]}
    rule = rule_to(project, f"{receiver.url}/a", pattern=json.dumps(pattern))
    manual_events.send_test(rule, "1", ANA)
    carry_all()
    event = json.loads(receiver.got[0][1])
    assert event["stateyard"] == {"testedBy": "ana"}
    assert notice_text.subject_of(receiver.got[0][1]).startswith("[test] example is in alarm: a ")


@pytest.mark.postgres_too
def test_a_schedule_runs_by_hand_as_often_as_asked(project: Project, receiver: Receiver) -> None:
    """Also where it is off; when it is due next stays as it is."""
    rules.put_rule(project, REGION, "nightly", schedule="cron(0 2 * * ? *)", state="DISABLED")
    rules.put_targets(project, REGION, "nightly", [{"Id": "1", "Arn": f"{receiver.url}/a"}])
    rule = EventRule.objects.get()
    for _ in range(2):
        manual_events.run_schedule(rule, ANA)
    carry_all()
    events = [json.loads(body) for _, body in receiver.got]
    assert [event["detail-type"] for event in events] == ["Scheduled Event"] * 2
    assert len({event["id"] for event in events}) == 2
    assert EventRule.objects.get().next_ms is None
    assert AuditEntry.objects.filter(action="events:RunSchedule", actor="ana").count() == 2


# -- what is no markup -----------------------------------------------------------------------------

LOUD = "@channel *now* [pay](https://evil.example) <!here> `x` ~y~\n# big\n> quote\n| a |"
SHOUTS = {
    "StartAt": "Reject",
    "States": {"Reject": {"Type": "Fail", "Error": "@all", "Cause": LOUD}},
}
QUIET = re.compile(r"(?<!\w)@(?=\w)|\]\(|\*now\*|`x`|~y~|^[#>|]", re.MULTILINE)
QUOTED = {
    "InputTransformer": {
        "InputPathsMap": {"cause": "$.detail.cause"},
        "InputTemplate": '"*Look:* <cause>"',
    }
}


@pytest.mark.parametrize("told", [{}, QUOTED, {"InputPath": "$.detail.cause"}])
def test_a_cause_is_no_markup_of_a_chat(
    project: Project, receiver: Receiver, told: dict[str, Any]
) -> None:
    """It calls nobody and hides no link; what the rule's editor wrote stays markup."""
    chats = (f"slack+{receiver.url}/a", f"teams+{receiver.url}/b")
    rule_to(project, *chats, pattern=FAILED, **told)
    drain(start(create(project, SHOUTS, "orders"), name="order-7"))
    routing.route_events()
    carry_all()
    slack, teams = (json.loads(body) for _, body in receiver.got)
    card = teams["attachments"][0]["content"]["body"]
    facts = card[1]["facts"] if len(card) > 1 else []
    for text in (slack["text"], card[0]["text"], *(fact["value"] for fact in facts)):
        assert QUIET.findall(text) == []
    assert "<!here>" not in slack["text"]
    assert ("*Look:*" in slack["text"]) == (told is QUOTED)
    said = slack["text"] + card[0]["text"]
    assert "pay" in said or not told


@pytest.mark.parametrize("name", ["my_order_7", "ana@example.com", "a-b.c", "order #", "2 > 1"])
def test_usual_names_stay_as_they_are(name: str) -> None:
    """So they can be copied and searched for."""
    assert notice_text.without_markup(name) == name


@pytest.mark.parametrize("text", ["\n", "\n ", "\r\n", "\n\t1"])
def test_a_text_of_many_lines_is_changed_in_linear_time(text: str) -> None:
    """Each line end looks at its own line only: this would take minutes otherwise."""
    assert notice_text.without_markup(text * 100_000) == text * 100_000


@pytest.mark.parametrize("line", ["# pay", " \t> pay", "12) pay", "- pay"])
def test_a_line_after_empty_ones_is_no_markup(line: str) -> None:
    """A heading or a list may begin after any number of line ends."""
    assert notice_text.without_markup(f"a\n\n \n{line}") == f"a\n\n \n\u200b{line}"


# -- events of others ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["$.card.number", "$.detail.card.number", "$..number"])
@pytest.mark.parametrize(
    "told", [{}, {"InputPath": "$.detail"}, {"Input": '{"card": {"number": "4929-1111"}}'}]
)
def test_people_read_no_masked_value_of_an_event_that_was_put(
    project: Project,
    receiver: Receiver,
    mailoutbox: Any,
    settings: Any,
    path: str,
    told: dict[str, Any],
) -> None:
    """Its detail is a payload, as it is for the execution that a rule starts with it."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    project.masked = path
    project.save()
    if "Input" in told and path == "$.detail.card.number":
        told = {"Input": '{"detail": {"card": {"number": "4929-1111"}}}'}
    chats = (f"slack+{receiver.url}/a", f"teams+{receiver.url}/b", "mailto:ops@example.com")
    shop = json.dumps({"source": ["shop"]})
    rule_to(project, *chats, f"{receiver.url}/program", pattern=shop, **told)
    event = {"source": "shop", "detail-type": "Order", "time": "2026-01-01T00:00:00Z"}
    event |= {"detail": CARD, "resources": ["card 4929-1111"]}
    text = json.dumps(event)
    outbox.put_event(project.pk, "e1", text, region=REGION, about="shop", sent_by="ana")
    routing.route_events()
    carry_all()
    *worded, program = [body for _, body in receiver.got]
    assert "4929-1111" in program
    texts = [*worded, *(mail.body for mail in mailoutbox)]
    assert len(texts) == 3
    for shown in texts:
        assert "4929" not in shown
    assert "(masked)" in mailoutbox[0].body
