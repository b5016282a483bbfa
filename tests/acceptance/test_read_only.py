"""A server that takes no writes any more is an outage: its connections are left."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import utils

from console.db import postgres
from console.db.pipeline import run_together
from console.db.writer import is_outage
from tests.chaos.team_server import TeamServer
from tests.postgres import FAST, Postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-read-only-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", *FAST, migrated=True)
    server.ask("CREATE TABLE written (n int)")
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def demoted(server: Postgres) -> Iterator[Callable[[], None]]:
    """Return what demotes the server, until the test is over."""

    def demote() -> None:
        server.read_only(on=True)
        wait_until(lambda: server.ask("SHOW transaction_read_only") == [("on",)])

    yield demote
    server.read_only(on=False)
    wait_until(lambda: server.ask("SHOW transaction_read_only") == [("off",)])


def connect(server: Postgres) -> postgres.WatchedConnection:
    """Return a connection as the server's pool makes them."""
    about = {"host": str(server.folder), "user": "postgres", "dbname": "postgres"}
    return postgres.WatchedConnection.connect(**about, autocommit=True)


def write(own: postgres.WatchedConnection) -> None:
    """Write one row by itself."""
    own.execute("INSERT INTO written VALUES (1)")


def write_by_pipeline(own: postgres.WatchedConnection) -> None:
    """Write a row as the thread does that commits for many."""
    insert = ("INSERT INTO written VALUES ($1)", ["1"])
    run_together(own, [("BEGIN", []), insert, ("COMMIT", [])])


@pytest.mark.parametrize("writes", [write, write_by_pipeline, postgres.require_writes])
def test_a_connection_to_a_demoted_primary_is_left(
    server: Postgres,
    demoted: Callable[[], None],
    writes: Callable[[postgres.WatchedConnection], None],
) -> None:
    """A new one may find the new primary; the error is an outage, and no fault of the work."""
    with connect(server) as own:
        writes(own)
        demoted()
        with pytest.raises(psycopg.OperationalError, match="takes no writes") as caught:
            writes(own)
        assert own.closed
    assert caught.value.sqlstate == "25006"
    error = utils.OperationalError(str(caught.value))
    error.__cause__ = caught.value
    assert is_outage(error)


def test_connections_that_only_read_are_left_with_it(
    server: Postgres, demoted: Callable[[], None]
) -> None:
    """They would never be refused, and read on from the old primary for ever."""
    with connect(server) as reading, connect(server) as own:
        demoted()
        assert reading.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(postgres.TakesNoWrites):
            write(own)
        with pytest.raises(postgres.TakesNoWrites):
            reading.execute("SELECT 1")
        assert reading.closed
    with connect(server) as new:
        assert new.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("command", ["up", "web", "worker"])
def test_no_process_starts_on_it(
    server: Postgres, demoted: Callable[[], None], tmp_path: Path, command: str
) -> None:
    """The command says so in one line; a service manager starts it again."""
    demoted()
    yard = TeamServer(tmp_path, server.url)
    complaint = yard.complaint(command, *(("--port", "0") if command != "worker" else ()))
    assert "the database takes no writes: the server is read-only" in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint
