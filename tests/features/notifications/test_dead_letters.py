"""The list of dead letters: what each event says, and the anchors that lead to a group of them."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest

from console.models import Delivery, EventTarget, Execution, OutboxEvent
from console.web.core.formatting import EXECUTION, clock_text
from tests.console.web.helpers import markup, text
from tests.features.notifications.test_rules import (
    NOTIFICATIONS,
    dead_letter,
    more_dead_letters,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def test_the_events_of_a_group_are_listed(project: Project, client: Client) -> None:
    """Only those, behind *Show*; all of them behind *Show each event*."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 2)
    group = re.search(r"\?cause=\w+#letters", text(client.get(NOTIFICATIONS)))
    assert group is not None
    shown = text(client.get(NOTIFICATIONS + group[0].removesuffix("#letters")))
    assert "more-0" in shown
    assert "more-1" in shown
    assert letter.event.event_id not in shown
    assert letter.event.event_id in text(client.get(NOTIFICATIONS, {"letters": "all"}))


@pytest.mark.postgres_too
def test_rules_stand_first_and_more_than_three_letters_are_folded(
    project: Project, client: Client
) -> None:
    """A group of three shows its events at once; a larger one says how many there are."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 5)
    Delivery.objects.update(last_error="HTTP 503")
    later = Delivery.objects.filter(event__event_id__in=("more-2", "more-3", "more-4"))
    later.update(status="waiting")
    shown = text(client.get(NOTIFICATIONS))
    assert shown.index("<h2>Rules</h2>") < shown.index("<h2>3 dead letters</h2>")
    assert 'href="#dead">3 dead letters below</a>' in shown
    assert letter.event.event_id in shown
    later.update(status="dead")
    shown = text(client.get(NOTIFICATIONS))
    assert "6 events of" in shown
    assert letter.event.event_id not in shown
    assert "#letters" in shown


@pytest.mark.postgres_too
def test_a_dead_letter_says_what_it_tells_of_its_execution(
    project: Project, client: Client
) -> None:
    """The status of the event, which is not that of the execution by now."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    event = OutboxEvent.objects.get(pk=letter.event_id)
    status = json.loads(event.body)["detail"]["status"]
    Execution.objects.update(status="RUNNING" if status == "SUCCEEDED" else "SUCCEEDED")
    for query in ({}, {"letters": "all"}):
        shown = markup(client.get(NOTIFICATIONS, query))
        row = shown[shown.index('class="letters"') :]
        named = EXECUTION[status].word
        assert f"{named}</span></span>" in row[: row.index("</tr></tbody>")], query


def test_the_anchor_of_a_group_shows_its_reason(project: Project, client: Client) -> None:
    """The reason stands above the events: an anchor at these would hide it under the header."""
    letter = dead_letter(project)
    more_dead_letters(letter, 2)
    Delivery.objects.exclude(pk=letter.pk).update(last_error="HTTP 503")
    link = re.search(r"\?(cause=\w+)#letters", text(client.get(NOTIFICATIONS)))
    assert link is not None
    shown = markup(client.get(f"{NOTIFICATIONS}?{link[1]}"))
    assert '<div class="letter-group" id="letters"><div class="letter-group-head">' in shown
    assert shown.count('id="letters"') == 1


@pytest.mark.postgres_too
def test_the_count_of_a_rule_leads_to_its_own_dead_letters(
    project: Project, client: Client
) -> None:
    """Not to those of all rules; a rule that is none narrows nothing."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 2)
    other = rule(project, "other")
    Delivery.objects.filter(pk=letter.pk).update(target=other.targets.get())
    shown = text(client.get("/rules/ends/"))
    link = re.search(r'href="(/notifications/\?rule=\d+)#dead"[^>]*>.*?(\d+) not delivered', shown)
    assert link is not None
    assert link[2] == "2"
    letters = markup(client.get(link[1]))
    assert '<h2>2 dead letters of<a href="/rules/ends/">' in letters
    assert letter.event.event_id not in letters
    every = re.search(
        r'href="(/notifications/\?letters=all[^"#]*)', markup(client.get(NOTIFICATIONS))
    )
    assert every is not None
    assert letter.event.event_id in text(client.get(every[1]))
    answer = text(client.get(f"{link[1]}&letters=all"))
    assert letter.event.event_id not in answer
    assert "more-1" in answer
    assert "<h2>3 dead letters</h2>" in text(client.get(f"{NOTIFICATIONS}?rule=999999"))


def test_all_events_keep_the_actions_of_their_groups(project: Project, client: Client) -> None:
    """Once for each group; a link to the reasons only stands where these differ."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    more_dead_letters(letter, 2)
    Delivery.objects.update(last_error="HTTP 503")
    shown = text(client.get(NOTIFICATIONS, {"letters": "all"}))
    assert len(re.findall(r"Send all 3 again", shown)) == 1
    assert len(re.findall(r"Delete all 3", shown)) == 1
    assert "Show the reasons only" not in shown
    Delivery.objects.filter(pk=letter.pk).update(last_error="Refused")
    shown = text(client.get(NOTIFICATIONS, {"letters": "all"}))
    assert "Send it again" in shown
    assert "Send all 2 again" in shown
    assert "Show the reasons only" in shown


def test_a_refused_origin_comes_with_the_line_that_names_it(
    project: Project, client: Client
) -> None:
    """As it stands in targets.json, in both views; other reasons have none."""
    letter = dead_letter(project)
    Delivery.objects.exclude(pk=letter.pk).delete()
    refused = "'https://hooks.example.com' is not among the endpoints of targets.json"
    line = '"http": {"endpoints": ["https://hooks.example.com"]}'
    for error in (refused, "HTTP 503"):
        Delivery.objects.update(last_error=error)
        for query in ({}, {"letters": "all"}):
            shown = html.unescape(text(client.get(NOTIFICATIONS, query)))
            assert (line in shown) is (error == refused), query


@pytest.mark.postgres_too
def test_the_key_in_the_path_of_a_webhook_is_masked(project: Project, signed_in: SignIn) -> None:
    """In lists, on the rule's page, in the question and the audit; an editor opens it there."""
    letter = dead_letter(project)
    target, whole = letter.target, "https://hooks.example.com/services/T000/B000/XXXX"
    EventTarget.objects.filter(pk=target.pk).update(address=whole)
    Delivery.objects.update(last_error=f"ConnectError: {whole} is away")
    rule_page = f"/rules/{target.rule.name}/"
    deletion = f"/notifications/rules/{target.rule_id}/delete/"
    editor, viewer = signed_in("editor"), signed_in("viewer")
    pages = [NOTIFICATIONS, f"{NOTIFICATIONS}?letters=all", rule_page, "/audit/"]
    shown = [text(viewer.get(page)) for page in pages] + [text(editor.get(deletion))]
    assert not [page for page in shown if "B000" in page]
    for page in shown[:3]:
        assert "https://hooks.example.com/services/(masked)" in page
    assert f"<code>{whole}</code>" in text(editor.get(rule_page))


@pytest.mark.postgres_too
def test_an_execution_with_a_generated_name_is_named_by_machine_and_time(
    project: Project, client: Client
) -> None:
    """A UUID says nothing; it stands below. A name that somebody gave stays."""
    letter = dead_letter(project)
    event, generated = letter.event, "5b0c6d7e-8a3f-4f61-9d2c-1e7a40b95c33"
    machine = event.about.split(":")[6]
    shown = markup(client.get(NOTIFICATIONS, {"letters": "all"}))
    assert "</time>" not in shown.partition(f'href="/arn/{event.about}">')[2].partition("</a>")[0]
    about = event.about.rpartition(":")[0] + f":{generated}"
    OutboxEvent.objects.filter(pk=event.pk).update(about=about)
    shown = markup(client.get(NOTIFICATIONS, {"letters": "all"}))
    link = shown.partition(f'href="/arn/{about}">')[2].partition("</a>")[0]
    assert f"<bdi>{machine}</bdi>" in link
    assert f"{clock_text(event.at_ms)} UTC</time>" in link
    assert f">{generated}</code>" in shown
