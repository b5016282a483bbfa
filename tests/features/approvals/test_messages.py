"""What a message asks somebody to approve is a text, whatever an execution puts into it."""

from __future__ import annotations

import json

import pytest

from console.features.approvals.messages import ApprovalMessage, slack_message, teams_card
from console.features.notifications.notice_text import CHATS

QUESTION = "[Approve](https://evil.example) @channel\n# *Paid* <https://evil.example|Approve>"
MESSAGE = ApprovalMessage(QUESTION, "Ask", "orders", "e-1", "ana", "http://stateyard/approve/x")


@pytest.mark.parametrize(
    ("chat", "body"), [("slack", slack_message(MESSAGE)), ("teams", teams_card(MESSAGE))]
)
def test_a_question_is_no_markup_of_a_chat(chat: str, body: str) -> None:
    """A link that it has, or a mention, is not one of the message."""
    content = json.loads(body)
    shown = content.get("text") or json.dumps(content, ensure_ascii=False)
    quoted = CHATS[chat](QUESTION)
    assert (quoted if chat == "slack" else json.dumps(quoted, ensure_ascii=False)) in shown
    assert "](" not in shown
    assert "@channel" not in shown
