"""The database's clock counts, where it has one, and not the clock of the host."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from django.db import connection

from console import clock

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
