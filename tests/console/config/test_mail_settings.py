"""The setting of the mail server takes an address and refuses anything else."""

from __future__ import annotations

from typing import Any

import pytest

from console.config.settings import _mail


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "smtp://yard%40example.com:p%2Fw@mail.example.com/?from=yard@example.com",
            {"port": 587, "user": "yard@example.com", "password": "p/w", "secure": False},
        ),
        ("smtps://mail.example.com", {"port": 465, "user": "", "secure": True}),
        ("smtp://localhost:1025", {"port": 1025, "sender": "stateyard@localhost"}),
    ],
)
def test_a_mail_server_is_an_address(url: str, expected: dict[str, Any]) -> None:
    """With what may stand in it, and what is assumed without."""
    assert _mail(url).items() >= expected.items()


@pytest.mark.parametrize("url", ["mail.example.com", "http://mail.example.com", "smtp://"])
def test_anything_else_is_refused(url: str) -> None:
    """At the start, not at the first mail."""
    with pytest.raises(ValueError, match="STATEYARD_MAIL"):
        _mail(url)
