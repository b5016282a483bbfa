"""A process that must not work on a database is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from console import migrations
from console.db import identity
from console.worker import Embedded, worker_lock
from tests.console.store.helpers import PASS, create, ended, start
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project


def test_another_secret_is_refused(project: Project, settings: Any) -> None:
    """The first secret stays the one, and the message says what to do."""
    del project
    identity.claim_database()
    identity.claim_database()
    settings.STATEYARD_TOKEN_KEY = b"another"
    with pytest.raises(identity.WrongSecret, match=r"STATEYARD_SECRET.*another secret.*Start with"):
        Embedded().start()


@pytest.fixture
def later(project: Project) -> Iterator[None]:
    """Migrate the database as a later version would, and forget it in the end."""
    del project
    identity.claim_database()
    recorder = MigrationRecorder(connection)
    recorder.record_applied("console", "9999_lanes")
    recorder.record_applied("elsewhere", "9999_other")
    yield
    recorder.record_unapplied("console", "9999_lanes")
    recorder.record_unapplied("elsewhere", "9999_other")


def test_tables_of_a_later_version_are_refused(later: None, monkeypatch: Any) -> None:
    """If it did more than to add to them, this version would misread them (G16)."""
    del later
    monkeypatch.setattr(migrations, "READABLE_SINCE", "9999_lanes")
    identity.claim_database()  # as that later version
    monkeypatch.undo()
    with pytest.raises(identity.NewerTables, match=r"9999_lanes\), wanted.*Start that version"):
        Embedded().start()


def test_tables_that_a_later_version_only_added_to_are_borne(later: None) -> None:
    """Two versions run beside each other while hosts are upgraded one by one (G16)."""
    del later
    identity.claim_database()


@pytest.mark.postgres_only  # SQLite: the data folder is locked
def test_a_second_worker_is_refused(
    project: Project, worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first one lives; afterwards it may start."""
    monkeypatch.setattr(worker_lock, "_PATIENCE_S", 0.2)
    second = Embedded()
    with pytest.raises(
        worker_lock.WorkerLockHeld, match=r"another worker is running on database.*stop"
    ):
        second.start()
    worker.stop()
    second.start()
    try:
        assert ended(start(create(project, PASS))).status == "SUCCEEDED"
    finally:
        second.stop()


@pytest.mark.postgres_only  # the lock is that of a session
def test_who_lost_the_lock_to_another_ends(project: Project, worker: Embedded) -> None:
    """A worker whose session was cut takes the lock again, unless it is too late."""
    del project
    other = worker_lock.WorkerLock()
    worker._worker_lock.release()
    other.acquire()
    try:
        wait_until(lambda: not any(thread.is_alive() for thread in worker._threads))
    finally:
        other.release()
