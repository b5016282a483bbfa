"""The fixtures of the core's tests, for the tests of features."""

from __future__ import annotations

from tests.console.awsapi.conftest import known, web, world
from tests.console.store.conftest import limit, now, own_connection
from tests.console.web.conftest import client, known_clock, signed_in

__all__ = [
    "client",
    "known",
    "known_clock",
    "limit",
    "now",
    "own_connection",
    "signed_in",
    "web",
    "world",
]
