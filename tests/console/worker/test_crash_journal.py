"""The crash journal blames exactly the executions that were in a step when a process died."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from console.store.executions import engine_failures, step
from console.worker.crash_journal import CrashJournal
from tests.console.store.helpers import PASS, create, drain, start

if TYPE_CHECKING:
    from pathlib import Path

    from console.models import Project


def child_that_dies_stepping(folder: Path, *numbers: int) -> None:
    """Let a process die while it steps some executions and another is done."""
    child = os.fork()
    if child == 0:
        journal = CrashJournal(folder)
        journal.begin()
        with journal.of(99):
            pass
        for number in numbers:
            entered = threading.Event()

            def step(number: int = number, entered: threading.Event = entered) -> None:
                with journal.of(number):
                    entered.set()
                    threading.Event().wait()

            threading.Thread(target=step, daemon=True).start()
            entered.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_the_dead_are_told_once(tmp_path: Path) -> None:
    """What two threads were stepping, not what was done before."""
    child_that_dies_stepping(tmp_path, 7, 8)
    journal = CrashJournal(tmp_path)
    assert sorted(journal.dead()) == [(7, 0), (8, 0)]
    assert journal.dead() == []


def test_the_living_are_not_accused(tmp_path: Path) -> None:
    """A process that goes on is let alone; one that ends well leaves nothing."""
    journal = CrashJournal(tmp_path)
    journal.begin()
    with journal.of(5):
        assert CrashJournal(tmp_path).dead() == []
    journal.end()
    assert list(tmp_path.iterdir()) == []


def test_the_third_death_ends_the_execution(project: Project) -> None:
    """Two are forgiven by a good step."""
    machine = create(project, PASS)
    good, bad = start(machine), start(machine)
    for _ in range(2):
        engine_failures.record_crash(good.pk)
        engine_failures.record_crash(bad.pk)
    assert drain(good).status == "SUCCEEDED"
    engine_failures.record_crash(bad.pk)
    bad.refresh_from_db()
    assert (bad.status, bad.error) == ("FAILED", "States.Runtime")
    assert not step.step_execution(bad.pk)
