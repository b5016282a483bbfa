"""A PostgreSQL with too few connections is named as such, and each process takes its share."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from console.db import postgres
from console.management import capacity
from console.management.capacity import Capacity
from tests.chaos.team_server import TeamServer
from tests.postgres import FAST, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL with 20 connections, of which a role that is no superuser gets 17."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-capacity-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", *FAST, "max_connections=20", migrated=True)
    server.ask("CREATE ROLE yard LOGIN")
    server.ask("CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("allowed", "others", "processes", "more", "share"),
    [
        (97, 0, 1, 0, 12),
        (17, 0, 1, 0, 3),
        (17, 0, 3, 0, 3),
        (30, 0, 1, 0, 7),
        (97, 60, 1, 0, 9),
        (97, 0, 4, 3, 11),
        (3, 0, 1, 0, 2),
    ],
)
def test_a_process_takes_what_it_is_set_to_or_its_share(
    allowed: int, others: int, processes: int, more: int, share: int
) -> None:
    """The others get as many, and those of each process beside its pool are counted."""
    assert Capacity(allowed, others, processes).share(12, more) == share


@pytest.mark.parametrize(
    ("role", "allowed"), [("yard", 17), ("narrow", 1), ("postgres", 20)], ids=str
)
def test_what_the_server_allows_the_role_is_counted(
    server: Postgres, monkeypatch: pytest.MonkeyPatch, role: str, allowed: int
) -> None:
    """Also what the role may have, and without what is kept for superusers."""
    address = {"host": str(server.folder), "user": role, "dbname": "postgres"}
    monkeypatch.setattr(capacity, "server_parameters", lambda: address)
    with psycopg.connect(host=str(server.folder), user="postgres", dbname="postgres"):
        result = capacity.count_capacity()
    assert (result.allowed, result.others, result.processes) == (allowed, 1, 1)


def test_the_check_for_deployment_compares_them(server: Postgres, tmp_path: Path) -> None:
    """By numbers, when a web process and a worker could take more than there are."""
    yard = TeamServer(tmp_path, server.url.replace("postgres:@", "yard:@"))
    done = yard._run("check", "--deploy")
    said = re.sub(r"\s+", " ", done.stderr)
    assert "PostgreSQL allows 17 connections (max_connections); a process takes up to 14." in said
    yard.env["STATEYARD_DATABASE_CONNECTIONS"] = "5"
    assert "max_connections" not in yard._run("check", "--deploy").stderr


def test_the_error_is_named(server: Postgres) -> None:
    """And remembered for threads that wait for the pool in vain."""
    address: dict[str, Any] = {"host": str(server.folder), "user": "narrow"}
    with (
        psycopg.connect(**address, dbname="postgres"),
        pytest.raises(psycopg.OperationalError) as caught,
    ):
        postgres.WatchedConnection.connect(**address, dbname="postgres")
    assert postgres.lacks_connections(caught.value)
    assert postgres.is_scarce()
    assert not postgres.lacks_connections(psycopg.OperationalError("connection refused"))
