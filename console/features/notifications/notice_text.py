"""Word an event for people: subject and text of a mail, message for Slack or Teams.

Slack and services with its format (Mattermost, Rocket.Chat) get ``text`` in Slack's mrkdwn, Teams
gets a message with an Adaptive Card.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from console.config.public_address import page_address
from console.events.body import ALARM_DETAIL_TYPE, ALARM_SOURCE, DETAIL_TYPE, SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SUBJECT = 150
_CAUSE = 1_500
_VERBS = {
    "RUNNING": "started",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "ABORTED": "was aborted",
}
_PAGE = "Page"
FAILED_STATE, SUMMARY = "Failed state", "Summary"
"""The names of facts that an event does not have."""


def subject_of(event: str) -> str:
    """Return a one-line subject: ``orders failed: OrderRejected``."""
    content = json.loads(event)
    change = _status_change(content)
    words = _alarm_words(content) or str(content.get("detail-type", "Event"))
    if change:
        verb = _VERBS.get(str(change.get("status")), f"is {change.get('status')}")
        words = f"{_machine_of(change)} {verb}: {change.get('error') or change.get('name')}"
    mark = "[test] " if _is_test(content) else ""
    return mark + " ".join(words.split())[:_SUBJECT]


def mail_text(event: str, body: str, further: Mapping[str, str]) -> str:
    """Return the facts of an event and the event itself; a target's own text unchanged.

    ``body``: the target's input; ``further``: facts by name that the event does not have.
    """
    content = json.loads(event) if body == event else {}
    facts = _facts(content, further)
    if not facts:
        return _readable(body)
    head = [_alarm_words(content)] if _alarm_words(content) else []
    lines = [*head, *(f"{name}: {value}" for name, value in facts)]
    return "\n".join([*lines, "", "The event:", "", _readable(body)])


def slack_message(event: str, body: str, further: Mapping[str, str]) -> str:
    """Return the JSON of a message in Slack's format."""
    if body != event:
        return _dumps({"text": _own_text(body)})
    lines = [f"*{slack_text(subject_of(event))}*"]
    for name, value in _facts(json.loads(event), further):
        line = f"<{value}|Open the page>" if name == _PAGE else f"{name}: {slack_text(value)}"
        lines.append(line)
    return _dumps({"text": "\n".join(lines)})


def teams_card(event: str, body: str, further: Mapping[str, str]) -> str:
    """Return the JSON of a message with an Adaptive Card for Teams workflows."""
    own = body != event
    title = _own_text(body) if own else without_markup(subject_of(event))
    facts = [] if own else _facts(json.loads(event), further)
    page = next((value for name, value in facts if name == _PAGE), "")
    rows = [
        {"title": name, "value": without_markup(value)} for name, value in facts if name != _PAGE
    ]
    heading = {"type": "TextBlock", "text": title, "wrap": True}
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [heading if own else {**heading, "weight": "Bolder", "size": "Medium"}],
    }
    if rows:
        card["body"].append({"type": "FactSet", "facts": rows})
    if page:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open the page", "url": page}]
    kind = "application/vnd.microsoft.card.adaptive"
    return _dumps({"type": "message", "attachments": [{"contentType": kind, "content": card}]})


# -- what an event tells ---------------------------------------------------------------------------


def _facts(content: dict[str, Any], further: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names and values of the most important facts, none for foreign events."""
    change = _status_change(content)
    facts: dict[str, Any] = {}
    if _alarm_words(content):
        machine = "".join(map(str, content.get("resources", [])[1:2]))
        facts = {"State machine": machine.rpartition(":")[2], _PAGE: _page_of(machine)}
    elif change:
        facts = {
            "State machine": _machine_of(change),
            "Execution": change.get("name"),
            SUMMARY: further.get(SUMMARY, ""),
            "Status": change.get("status"),
            "Error": change.get("error"),
            FAILED_STATE: further.get(FAILED_STATE, ""),
            "Cause": str(change.get("cause") or "")[:_CAUSE],
            _PAGE: _page_of(str(change.get("executionArn") or "")),
        }
    return [(name, str(value)) for name, value in facts.items() if value]


def _page_of(arn: str) -> str:
    """Return the URL of an ARN's page, "" if the server does not know its own URL."""
    address = page_address()
    return f"{address}/arn/{quote(arn, safe=':/')}" if address and arn else ""


def _is_test(content: dict[str, Any]) -> bool:
    mark = content.get("stateyard")
    return isinstance(mark, dict) and "testedBy" in mark


def _status_change(event: dict[str, Any]) -> dict[str, Any]:
    """Return the detail of an execution's status change, {} for other events."""
    detail = event.get("detail")
    of_execution = event.get("source") == SOURCE and event.get("detail-type") == DETAIL_TYPE
    return detail if of_execution and isinstance(detail, dict) else {}


def _alarm_words(event: dict[str, Any]) -> str:
    """Return an alarm's change in one line, "" for other events."""
    detail = event.get("detail")
    of_alarm = event.get("source") == ALARM_SOURCE and event.get("detail-type") == ALARM_DETAIL_TYPE
    if not of_alarm or not isinstance(detail, dict) or not isinstance(detail.get("state"), dict):
        return ""
    state = detail["state"]
    words = {"ALARM": "is in alarm", "OK": "is OK"}.get(str(state.get("value")), "cannot tell")
    return f"{detail.get('alarmName')} {words}: {state.get('reason')}"


def _machine_of(change: dict[str, Any]) -> str:
    return str(change.get("stateMachineArn") or "").rpartition(":")[2] or "An execution"


# -- forms of text ---------------------------------------------------------------------------------


def _own_text(body: str) -> str:
    """Return a target's own text: a JSON string as text, other values as JSON."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return value if isinstance(value, str) else _readable(body)


def slack_text(text: str) -> str:
    """Escape a text for Slack's mrkdwn, and for Mattermost's Markdown."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return without_markup(escaped)


def without_markup(text: str) -> str:
    """Add an invisible character after each one that would start Markdown or a mention.

    Neither Slack nor Adaptive Cards have an escape for these. A name such as ``my_order`` or an
    e-mail address has none of them and can be copied.
    """
    return _MARKUP.sub(lambda match: match[0] + _UNSEEN, text)


_UNSEEN = "\u200b"
_MARKUP = re.compile(
    r"(?<!\w)[@#](?=\w)"  # mentions of people and channels, hashtags
    r"|[*`~]"
    r"|(?<!\w)_|_(?!\w)"
    r"|\](?=[\[(:])"  # links and images
    # headings, lists, quotes, tables, rules; of blanks those of one line only, to stay linear
    r"|[\r\n](?=[ \t]*(?:[#>|=+-]|&gt;|\d+[.)]))"
)
CHATS: dict[str, Callable[[str], str]] = {"slack": slack_text, "teams": without_markup}
"""Kind of address -> how a value from an event becomes a text of that chat."""


def _readable(body: str) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except ValueError:
        return body


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
