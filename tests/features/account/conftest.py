"""An authenticator app that shares the clock of the server."""

from __future__ import annotations

import pytest
from allauth.mfa.totp.internal import auth

from tests.features.account.authenticator import Phone


@pytest.fixture
def phone(monkeypatch: pytest.MonkeyPatch) -> Phone:
    """Return a phone that has no secret yet."""
    phone = Phone()

    def now() -> float:
        return phone.period * 30.0

    class Time:
        time = staticmethod(now)

    monkeypatch.setattr(auth, "time", Time)
    assert len(list(auth.yield_hotp_counters_from_time())) == 3, "before and after count, too"
    return phone
