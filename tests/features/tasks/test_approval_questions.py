"""An approver sees what is asked, on the page and in the message that leads there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail
from django.test import Client

from console.features.approvals import messages as approval_messages
from console.features.notifications import notices
from console.integrations import web
from console.models import EventRule, EventTarget, Project, TaskRow
from tests.console.store.helpers import ACTIVITY, REGION, one
from tests.console.web.helpers import markup, text
from tests.features.approvals.test_approvals import make_link
from tests.features.tasks.test_tasks import form, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    SignIn = Callable[[str], Client]

ASKED = "Refund the customer?"
COMMENTED = one("Review", Type="Task", Resource=ACTIVITY, Comment=ASKED)


def target(project: Project, address: str) -> EventTarget:
    """Return a target of a notification."""
    rule = EventRule.objects.create(
        project=project,
        region=REGION,
        name="told",
        arn=f"arn:{address[:40]}",
        pattern="{}",
        created_ms=0,
    )
    return EventTarget.objects.create(rule=rule, target_id="1", address=address)


def test_the_question_and_the_input_are_shown_by_default(project: Project, client: Client) -> None:
    """The Comment of the state is the question, and the form has both preset."""
    execution = waiting(project, COMMENTED)
    shown = markup(client.get(form(execution)))
    assert f'id="question">{ASKED}' in shown
    link_form = shown.split('id="approver-link"')[1].split("</form>")[0]
    assert f">{ASKED}</textarea>" in link_form
    assert 'name="show" value="1" autocomplete="off" checked' in link_form
    link_page = text(
        client.post(f"{form(execution)}link/", {"hours": "24", "note": "", "show": "1"})
    )
    assert 'aria-label="Copy link"' in link_page
    path = make_link(client, execution, note="", show="1")
    opened = markup(Client().get(path))
    assert ASKED in opened.split('id="question"')[1].split("</blockquote>")[0]
    assert "Input of the task" in opened


def test_a_field_of_the_input_is_the_question(project: Project, client: Client) -> None:
    """Where the state has no Comment; what the project hides is none, and no link shows it."""
    execution = waiting(project, one("Review", Type="Task", Resource=ACTIVITY))
    question = json.dumps({"question": "Ship it?", "card": "4711"})
    TaskRow.objects.filter(execution=execution).update(input=question)
    assert 'id="question">Ship it?' in markup(client.get(form(execution)))
    path = make_link(client, execution, note="")
    assert "Ship it?" not in text(Client().get(path))
    Project.objects.filter(pk=project.pk).update(masked="$.question")
    assert "Ship it?" not in text(client.get(form(execution)))


def test_links_of_a_message_ask_once_more(project: Project, client: Client) -> None:
    """A scanner that opens them answers nothing; a confirmation does."""
    execution = waiting(project, COMMENTED)
    path = make_link(client, execution)
    for answer, other in (("approve", "reject"), ("reject", "approve")):
        shown = markup(Client().get(f"{path}?answer={answer}"))
        assert f'name="act" value="{answer}"' in shown
        assert f'name="act" value="{other}"' not in shown
        assert 'id="unread-parameters"' not in shown
    assert Client().head(f"{path}?answer=approve").status_code == 200
    assert TaskRow.objects.exclude(status="closed").filter(execution=execution).exists()
    both = markup(Client().get(f"{path}?answer=nonsense"))
    assert 'value="approve"' in both
    done = Client().post(f"{path}?answer=approve", {"act": "approve", "name": "Bea"})
    assert done.status_code == 200
    assert not TaskRow.objects.exclude(status="closed").filter(execution=execution).exists()


def test_a_mail_has_the_question_and_both_links(
    project: Project, client: Client, settings: Any
) -> None:
    """It goes to the address of a notification that the editor chooses."""
    settings.STATEYARD_MAIL = "smtp://localhost"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    execution = waiting(project, COMMENTED)
    to = target(project, "mailto:bea@example.com")
    assert "bea@example.com (rule told)" in text(client.get(form(execution)))
    fields = {"hours": "24", "note": ASKED, "show": "1", "send": str(to.pk)}
    shown = text(client.post(f"{form(execution)}link/", fields))
    assert "Sent to bea@example.com (rule told)." in shown
    [message] = mail.outbox
    assert message.subject == "Approval needed: Review of machine"
    link = shown.split('id="approval-link">')[1].split("<")[0]
    for line in (f"Question: {ASKED}", f"Approve: {link}?answer=approve", "for confirmation"):
        assert line in message.body


def test_a_server_without_notifications_sends_nothing(
    project: Project, client: Client, settings: Any
) -> None:
    """Targets of an earlier time are no choice; the link is made and shown."""
    execution = waiting(project, COMMENTED)
    to = target(project, "mailto:bea@example.com")
    features = [name for name in settings.STATEYARD_FEATURES if name != "notifications"]
    settings.STATEYARD_FEATURES = features
    shown = text(client.get(form(execution)))
    assert 'id="make-link"' in shown
    assert "bea@example.com" not in shown
    shown = text(client.post(f"{form(execution)}link/", {"hours": "24", "send": str(to.pk)}))
    assert 'id="approval-link"' in shown
    assert "Sent to" not in shown
    assert mail.outbox == []


@pytest.mark.parametrize("kind", ["slack", "teams"])
def test_a_chat_message_has_both_links(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nothing that is asked becomes a mention or a link; the chat's address is shown nowhere."""
    posted: list[Any] = []

    def post(url: str, body: bytes, *_: Any) -> int:
        posted.append((url, json.loads(body)))
        return 200

    monkeypatch.setattr(web, "post_request", post)
    execution = waiting(project, COMMENTED)
    to = target(project, f"{kind}+https://hooks.example.com/secret")
    asked = "Pay @channel [here](https://evil.example)?"
    fields = {"hours": "24", "note": asked, "send": str(to.pk)}
    shown = text(client.post(f"{form(execution)}link/", fields))
    assert "Sent to" in shown
    assert "hooks.example.com" not in shown
    [(url, body)] = posted
    assert url == "https://hooks.example.com/secret"
    whole = json.dumps(body)
    assert "?answer=approve" in whole
    assert "?answer=reject" in whole
    assert "@channel" not in whole if kind == "slack" else "[here](" not in whole


def test_a_message_that_is_not_sent_says_so(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is shown all the same; targets of others are no choice."""
    execution = waiting(project, COMMENTED)
    to = target(project, "slack+https://hooks.example.com/secret")
    editor = signed_in("editor")

    def refuse(*_: Any) -> None:
        raise notices.Undelivered("The address answered 500")

    monkeypatch.setattr(approval_messages, "send_approval", refuse)
    fields = {"hours": "24", "note": "", "send": str(to.pk)}
    shown = text(editor.post(f"{form(execution)}link/", fields))
    assert "The link was not sent: The address answered 500" in shown
    assert 'id="approval-link"' in shown
    other = Project.objects.create(name="other", account_id="222222222222")
    EventRule.objects.update(project=other)
    shown = text(editor.post(f"{form(execution)}link/", fields))
    assert "This notification was deleted." in shown
