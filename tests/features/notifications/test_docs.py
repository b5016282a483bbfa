"""The page on notifications documents every action, operator and kind of target."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from pathlib import Path
from typing import Any

import pytest

from console.events import addresses
from console.features.notifications import notices, operators
from console.features.notifications.operations import events

DOCS = (Path(__file__).parents[3] / "docs/how-to/notifications.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [*events.HANDLERS, *operators._MAKERS, *addresses.KINDS.values(), notices.SIGNATURE],
)
def test_what_there_is_is_documented(name: str) -> None:
    """By its name."""
    assert name in DOCS


def test_the_documented_check_accepts_what_is_sent_and_nothing_else() -> None:
    """The code that receivers copy is run here."""
    code = re.search(r"```python\n(.*?)```", DOCS, re.DOTALL)
    assert code is not None
    namespace: dict[str, Any] = {}
    exec(code[1], namespace)  # noqa: S102 - our own documentation
    genuine, now = namespace["genuine"], int(time.time())
    header = notices.sign_body("secret", now, '{"ü": 1}')
    assert genuine("secret", header, '{"ü": 1}'.encode())
    assert not genuine("secret", header, b"{}")
    assert not genuine("other", header, '{"ü": 1}'.encode())
    assert not genuine("secret", notices.sign_body("secret", now - 999, "x"), b"x")
    assert hmac.new(b"secret", f"{now}.x".encode(), hashlib.sha256).hexdigest() in (
        notices.sign_body("secret", now, "x")
    )
