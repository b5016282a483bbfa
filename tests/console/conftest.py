"""A clock that goes when it is told to, a limit of state transitions, and a connection to close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from console.config import quotas
from console.db import clock
from tests.console.transition_rates import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django.fixtures import Settings


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for everything that asks for the time."""
    fake_clock = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: fake_clock.now_ms)
    return fake_clock


@pytest.fixture
def limit(settings: Settings) -> Iterator[Callable[[float, float], None]]:
    """Return a function that sets the limit."""

    def put(bucket: float, refill: float) -> None:
        settings.STATEYARD_QUOTAS = {"state_transition": {"bucket": bucket, "refill": refill}}
        quotas.forget()

    yield put
    quotas.forget()


@pytest.fixture
def own_connection() -> Iterator[None]:
    """Leave no connection in a state of its own behind."""
    yield
    connection.close()
