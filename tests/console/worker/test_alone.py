"""Is a process refused that must not work on a database?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from console.store import identity
from console.worker import Embedded, alone
from tests.console.store.helpers import PASS, create, ended, start

if TYPE_CHECKING:
    from console.models import Project


def test_another_secret_is_refused(project: Project, settings: Any) -> None:
    """The first secret stays the one, and the message says what to do."""
    del project
    identity.claim()
    identity.claim()
    settings.STEPYARD_TOKEN_KEY = b"another"
    with pytest.raises(identity.WrongSecret, match=r"STEPYARD_SECRET.*another secret.*Start with"):
        Embedded().start()


def test_tables_of_a_later_version_are_refused(project: Project) -> None:
    """This version would misread them; the message says what to do (G16)."""
    del project
    identity.claim()
    later = MigrationRecorder(connection)
    later.record_applied("console", "9999_lanes")
    later.record_applied("elsewhere", "9999_other")
    try:
        with pytest.raises(identity.NewerTables, match=r"9999_lanes\), wanted.*Start that version"):
            Embedded().start()
    finally:
        later.record_unapplied("console", "9999_lanes")
        later.record_unapplied("elsewhere", "9999_other")
    identity.claim()


def test_a_second_worker_is_refused(
    project: Project, worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first one lives; afterwards it may start."""
    if connection.vendor != "postgresql":
        return  # there the data folder is locked
    monkeypatch.setattr(alone, "_PATIENCE_S", 0.2)
    second = Embedded()
    with pytest.raises(alone.NotAlone, match=r"another worker is running on database.*stop"):
        second.start()
    worker.stop()
    second.start()
    try:
        assert ended(start(create(project, PASS))).status == "SUCCEEDED"
    finally:
        second.stop()


def test_who_lost_the_lock_to_another_ends(project: Project, worker: Embedded) -> None:
    """A worker whose session was cut takes the lock again, unless it is too late."""
    del project
    if connection.vendor != "postgresql":
        return  # no sessions to be cut
    other = alone.Alone()
    worker._alone.leave()
    other.take()
    try:
        deadline = time.monotonic() + 10
        while any(thread.is_alive() for thread in worker._threads):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        other.leave()
