"""The database's clock counts, where it has one, and not the clock of the host."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from django.db import connection

from console.db import clock
from tests.loops import looped, threaded

if TYPE_CHECKING:
    import pytest

    from console.models import Project


def test_a_jump_of_the_local_clock_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the database has a clock of its own, only that one and the time gone by count."""
    del project
    before = clock.now_ms()
    hour_ago = SimpleNamespace(
        time=lambda: time.time() - 3600, monotonic=time.monotonic, time_ns=time.time_ns
    )
    monkeypatch.setattr(clock, "time", hour_ago)
    assert 0 <= clock.now_ms() - before < 1000
    if connection.vendor == "postgresql":
        monkeypatch.setattr(clock, "_offset", None)
        assert abs(clock.now_ms() - before) < 1000


def test_an_event_loop_gets_the_last_measured_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query there is SynchronousOnlyOperation; the next thread that asks measures."""
    measured: list[float] = []

    def measure() -> float:
        measured.append(5.0)
        return 5.0

    async def ask() -> float:
        return clock.offset_s()

    monkeypatch.setattr(clock, "_measure_offset", measure)
    monkeypatch.setattr(clock, "_offset", (3.0, float("-inf")))
    assert looped(ask) == 3.0
    assert measured == []
    assert threaded(clock.offset_s) == 5.0
    assert measured == [5.0]
