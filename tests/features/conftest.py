"""The fixtures of the core's tests, for the tests of features."""

from __future__ import annotations

from tests.console.awsapi.conftest import samples, web, world
from tests.console.conftest import limit, now, own_connection
from tests.console.web.conftest import client, known_clock, known_settings, signed_in

__all__ = [
    "client",
    "known_clock",
    "known_settings",
    "limit",
    "now",
    "own_connection",
    "samples",
    "signed_in",
    "web",
    "world",
]
