"""Messages that ask a person to approve: by mail, Slack or Teams, with two links.

The links open a page that asks for confirmation. So mail scanners that open links answer nothing:
an answer is a POST of that page.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.events import addresses
from console.features.notifications import notices
from console.features.notifications.notice_text import slack_text, without_markup

if TYPE_CHECKING:
    from collections.abc import Callable

CHANNELS = ("email", "slack", "teams")
"""The kinds of addresses of notifications that a person reads."""
_QUESTION = 1_500


@dataclass(frozen=True, slots=True)
class ApprovalMessage:
    """The question, step and sender; ``page``: the URL of the approver's page."""

    question: str
    step: str
    machine: str
    execution: str
    maker: str
    page: str

    @property
    def subject(self) -> str:
        """Return a one-line subject."""
        return " ".join(f"Approval needed: {self.step} of {self.machine}".split())

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Return names and values of the most important facts."""
        facts = (
            ("Question", self.question[:_QUESTION]),
            ("Step", self.step),
            ("State machine", self.machine),
            ("Execution", self.execution),
            ("Asked by", self.maker),
        )
        return [(name, value) for name, value in facts if value]

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return labels and URLs: of each answer, and of the page."""
        return [
            ("Approve", f"{self.page}?answer=approve"),
            ("Reject", f"{self.page}?answer=reject"),
            ("View the request", self.page),
        ]


def send_approval(message: ApprovalMessage, address: str, project: str) -> None:
    """Send a message to a notification address; raise ``notices.Undelivered``."""
    notice = notices.Notice(str(uuid.uuid4()), "", "", address, "", "", project)
    kind = addresses.address_kind(address)
    if kind == "email":
        notices.send_mail(notice, message.subject, mail_text(message))
    else:
        notices.post_body(notice, _BODIES[kind](message))


def mail_text(message: ApprovalMessage) -> str:
    """Return the text of a mail."""
    facts = [f"{name}: {value}" for name, value in message.facts]
    links = [f"{word}: {address}" for word, address in message.links]
    note = "Each link opens a page for confirmation."
    return "\n".join([*facts, "", *links, "", note])


def slack_message(message: ApprovalMessage) -> str:
    """Return the JSON of a message in Slack's format."""
    facts = [f"{name}: {slack_text(value)}" for name, value in message.facts]
    links = " · ".join(f"<{address}|{word}>" for word, address in message.links)
    return _dumps({"text": "\n".join([f"*{slack_text(message.subject)}*", *facts, links])})


def teams_card(message: ApprovalMessage) -> str:
    """Return the JSON of a message with an Adaptive Card."""
    facts = [{"title": name, "value": without_markup(value)} for name, value in message.facts]
    heading = {"type": "TextBlock", "wrap": True, "weight": "Bolder", "size": "Medium"}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            heading | {"text": without_markup(message.subject)},
            {"type": "FactSet", "facts": facts},
        ],
        "actions": [
            {"type": "Action.OpenUrl", "title": word, "url": address}
            for word, address in message.links
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return _dumps({"type": "message", "attachments": [{"contentType": kind, "content": card}]})


_BODIES: dict[str, Callable[[ApprovalMessage], str]] = {
    "slack": slack_message,
    "teams": teams_card,
}


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
