"""A few hundred short lives, in any order of events, the same each time: the invariants hold.

``python -m tests.simulation`` runs many more, and longer ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from django.db import IntegrityError, connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from console.db import clock, writer
from console.store.executions import step
from console.store.state import caches
from console.store.tasks import activities
from tests.console.store.helpers import REGION
from tests.simulation.machine import Simulation
from tests.simulation.world import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

pytestmark = pytest.mark.sqlite_only  # it is about the order of commits, which SQLite has, too
SMALL = settings(
    max_examples=40,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def simulation(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Simulation]]:
    """Return a simulation that has the database, the clock and the writer to itself."""
    monkeypatch.setattr(clock, "now_ms", clock.now_ms)
    monkeypatch.setattr(writer._writer, "put", writer._writer.put)
    activities.create_activity(project, REGION, "work")
    Simulation.machines = prepare(project, monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous=OFF")
        yield Simulation
        cursor.execute("PRAGMA synchronous=FULL")
    caches.kept_runs.__init__(1_000, 32_000_000)


def test_any_order(simulation: type[Simulation]) -> None:
    """The invariants hold in any order of events, and each execution ends as it would alone."""
    run_state_machine_as_test(simulation, settings=SMALL)
    assert simulation.fenced > 0, "late workers were fenced off"
    assert simulation.released > 0, "lines of control stood at breakpoints and went on"
    assert simulation.resumed > 0, "executions were paused and resumed"
    assert simulation.struck > 0, "faults struck"
    assert simulation.placed > 0, "starts took places of the next starts"


def test_it_can_fail(simulation: type[Simulation], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lives fail without the fence that keeps late workers out."""
    text = step._GUARD.text.replace("version = %s", "version <> -1 - %s")
    assert text != step._GUARD.text
    monkeypatch.setattr(step, "_GUARD", replace(step._GUARD, text=text))
    with pytest.raises((AssertionError, IntegrityError)):
        run_state_machine_as_test(simulation, settings=settings(SMALL, phases=[Phase.generate]))
