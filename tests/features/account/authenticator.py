"""An authenticator app, and the page that sets it up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from allauth.mfa.totp.internal import auth

from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

RIGHT = "a long enough password"
PAGE = "/account/second-factor/"
SECRET = re.compile(r'class="totp-secret">([A-Z2-7 ]+)<')


class Phone:
    """An authenticator app, and the clock that it shares with the server."""

    def __init__(self) -> None:
        self.period = 60_000_000
        self.secret = ""

    def code(self, later: int = 0) -> str:
        """Return the code of a period of 30 seconds."""
        return str(auth.format_hotp_value(auth.hotp_value(self.secret, self.period + later)))

    def next_code(self) -> str:
        """Wait for the next period and return its code."""
        self.period += 1
        return self.code()


def set_up(client: Client, phone: Phone) -> list[str]:
    """Set a second factor up by its page, and return the recovery codes."""
    shown = SECRET.search(text(client.get(PAGE)))
    assert shown is not None
    phone.secret = shown[1].replace(" ", "")
    sent = {"act": "on", "code": phone.next_code(), "password": RIGHT}
    return codes_on(client.post(PAGE, sent))


def codes_on(answer: Any) -> list[str]:
    """Return the recovery codes of a page."""
    return text(answer).partition('<pre class="code" tabindex="0">')[2].partition("<")[0].split()
