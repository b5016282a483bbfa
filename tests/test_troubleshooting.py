"""The page of troubleshooting has messages that the code really writes."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.architecture import survey

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
OF_CLIENTS = {'Could not connect to the endpoint URL: "http://sync-'}
"""What botocore writes, for a call that never reached a server."""


@lru_cache(maxsize=1)
def written() -> str:
    """Return all texts of the code and the templates, each with single spaces."""
    texts = []
    for module in survey().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    texts += [file.read_text(encoding="utf-8") for file in (ROOT / "templates").rglob("*.html")]
    return "\n".join(" ".join(text.split()) for text in texts)


def test_the_messages_are_found() -> None:
    """The page has a row for each."""
    assert len(MESSAGES) >= 25


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_written_by_the_code(message: str) -> None:
    """Whoever rewords it rewords the page."""
    assert message in OF_CLIENTS or message in written()
