"""The crash journal blames exactly the executions that were in a step when a process died."""

from __future__ import annotations

import errno
import os
import signal
import threading
from typing import TYPE_CHECKING

from console.store.executions import engine_failures, step
from console.store.state import health
from console.worker import crash_journal
from console.worker.crash_journal import CrashJournal
from tests.console.store.helpers import PASS, create, drain, start

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def test_a_full_disk_leaves_a_process_without_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works, says why, and makes the file once there is room; a sparse file would be SIGBUS."""
    room = False

    def allocate(descriptor: int, start: int, size: int) -> None:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.truncate(descriptor, start + size)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    monkeypatch.setattr(crash_journal, "_RETRY_S", 0.0)
    journal = CrashJournal(tmp_path)
    journal.begin()
    with journal.of(5):
        assert journal.problem == f"no crash journal in {tmp_path}: No space left on device"
    assert journal.dead() == []
    assert list(tmp_path.iterdir()) == []
    room = True
    journal.retry()
    assert journal.problem == ""
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_a_problem_too(tmp_path: Path) -> None:
    """A file stands where the folder would be: the process works all the same."""
    (tmp_path / "journal").touch()
    journal = CrashJournal(tmp_path / "journal")
    journal.begin()
    with journal.of(5):
        assert journal.problem.startswith("no crash journal in")
    journal.end()


def test_what_a_worker_lacks_is_said_by_readyz(transactional_db: None) -> None:
    """The server stays ready: executions go on without a journal."""
    del transactional_db
    health.note_worker_problem("no crash journal in /data: No space left on device")
    try:
        state = health.check_health()
    finally:
        health.note_worker_problem("")
    assert state.warnings == ("no crash journal in /data: No space left on device",)
    assert state.facts()["warnings"] == state.warnings


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
