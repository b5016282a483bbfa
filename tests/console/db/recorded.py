"""What changes would write, for tests that commit them themselves, with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.db import rows
from console.store.executions import start as start_module
from console.store.executions import step
from console.store.tasks import claim

if TYPE_CHECKING:
    from console.models import Execution, StateMachine


def recorded_step(execution: Execution) -> rows.WriteSet:
    """Return what the next step of an execution would write."""
    loaded = step.load_step(execution.pk)
    assert loaded is not None
    steps = step.advance_run(loaded)
    step.ask_ahead(loaded)
    change = rows.record(lambda: step.commit_step(loaded, steps))
    assert change is not None
    return change


def recorded_start(machine: StateMachine, name: str) -> rows.WriteSet:
    """Return what a start would write."""
    change = rows.record(start_module.pending_start(machine, name=name, ahead=True).write_rows)
    assert change is not None
    return change


def recorded_claim(activity: str, worker: str) -> rows.WriteSet:
    """Return what a poller's claim would write."""
    taking = claim.pending_activity_task(activity, worker)
    assert taking is not None
    change = rows.record(taking.write_rows)
    assert change is not None
    return change


def given_task(change: rows.WriteSet) -> claim.ClaimedTask | None:
    """Return which task a poller gets by its committed claim."""
    assert change.make is not None
    work: claim.ClaimedTask | None = change.make(change.returned)
    return work
