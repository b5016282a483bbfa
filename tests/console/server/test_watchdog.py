"""The watchdog ends a process that stands still, and no process that waits for its database."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from console.db import postgres
from console.server import watchdog
from console.server.watchdog import EXIT_CODE, Watchdog


class Ended(Exception):
    """The process would have ended."""


class Yard:
    """A process with a lease of ten seconds, and a database that answers or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
        self.moved = 0.0
        self.answers = True
        settings.STATEYARD_LEASE_S = 10
        monkeypatch.setattr(watchdog, "server_parameters", dict)
        monkeypatch.setattr(postgres, "answer", self._answer)
        monkeypatch.setattr("os._exit", self._exit)
        self.watchdog = Watchdog(lambda: self.moved, "the lease")

    def look(self, seconds: int) -> None:
        """Let so many seconds pass, a look each."""
        for _ in range(seconds):
            self.watchdog._look()

    def _answer(self, *_: object) -> None:
        if not self.answers:
            raise psycopg.OperationalError("connection refused")

    @staticmethod
    def _exit(code: int) -> None:
        assert code == EXIT_CODE
        raise Ended


@pytest.fixture
def yard(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Yard:
    """A process that is watched."""
    return Yard(monkeypatch, settings)


def test_a_process_that_stands_still_ends_after_twice_its_lease(yard: Yard) -> None:
    """Nothing in the process can help it, and its database answers."""
    yard.look(19)
    with pytest.raises(Ended):
        yard.look(1)


def test_a_process_that_moves_goes_on(yard: Yard) -> None:
    """Each move begins the count anew."""
    for _ in range(10):
        yard.look(19)
        yard.moved += 1
        yard.look(1)


@pytest.mark.parametrize("outage_s", [5, 20, 300])
def test_an_outage_does_not_count(yard: Yard, outage_s: int) -> None:
    """The process has time to move after the return of the database, however long it was out."""
    yard.answers = False
    yard.look(outage_s)
    yard.answers = True
    yard.look(14)
    yard.moved += 1
    yard.look(1)
    yard.look(19)
    with pytest.raises(Ended):
        yard.look(1)


def test_a_process_that_does_not_come_back_after_an_outage_ends(yard: Yard) -> None:
    """One and a half leases after the database's return."""
    yard.answers = False
    yard.look(20)
    yard.answers = True
    yard.look(14)
    with pytest.raises(Ended):
        yard.look(1)
