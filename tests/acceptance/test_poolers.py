"""A pooler gives each connection a session of its own, and clears it, or no process starts."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from console.management import team
from tests.acceptance.server import wait_for_end
from tests.chaos.team_server import TeamServer, machine_arn
from tests.pgbouncer import PROGRAM, PgBouncer
from tests.postgres import FAST, Postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.postgres_only,
    pytest.mark.skipif(PROGRAM is None, reason="no pgbouncer on this system"),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user may enter."""
    path = Path(tempfile.mkdtemp(prefix="stateyard-pooler-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL."""
    server = Postgres(folder / "pg", *FAST)
    yield server
    server.stop()


@pytest.mark.parametrize("command", ["web", "worker"])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pool_mode": "transaction"}, team.NO_SESSIONS),
        ({"pool_mode": "statement"}, team.NO_SESSIONS),
        (
            {"pool_mode": "transaction", "server_round_robin": 1, "min_pool_size": 5},
            team.NO_SESSIONS,
        ),
        ({"pool_mode": "transaction", "default_pool_size": 1}, team.NO_SESSIONS),
        ({"pool_mode": "session", "server_reset_query": ""}, team.NOT_RESET),
        ({"pool_mode": "session", "server_reset_query": "DEALLOCATE ALL"}, team.NOT_RESET),
        ({"pool_mode": "session", "default_pool_size": 1}, team.TOO_FEW),
    ],
    ids=["transaction", "statement", "in-turn", "one", "not-reset", "half-reset", "too-few"],
)
def test_a_pooler_without_sessions_is_refused_in_one_line(
    server: Postgres, tmp_path: Path, command: str, settings: dict[str, object], said: str
) -> None:
    """The process neither hangs nor shows a traceback: it says which setting is wrong."""
    own = PgBouncer(server.folder.parent / tmp_path.name, server, **settings)
    try:
        yard = TeamServer(tmp_path, own.url)
        complaint = yard.complaint(command, *(("--port", "0") if command != "worker" else ()))
    finally:
        own.kill()
    assert said in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint


def test_sessions_of_a_pooler_work_like_the_servers(server: Postgres, tmp_path: Path) -> None:
    """Without a setting of ours; a worker that is killed leaves neither a lock nor a session."""
    own = PgBouncer(server.folder.parent / tmp_path.name, server, pool_mode="session")
    yard = TeamServer(tmp_path, own.url)
    try:
        yard.start_web()
        yard.start_workers(1)
        yard.prepare()
        client = yard.client()
        arn = machine_arn("chain")
        first = client.start_execution(stateMachineArn=arn, input='{"n": 1}')["executionArn"]
        assert wait_for_end(client, first)["status"] == "SUCCEEDED"
        for pid in yard.worker_pids():
            os.kill(pid, signal.SIGKILL)
        second = client.start_execution(stateMachineArn=arn, input='{"n": 2}')["executionArn"]
        assert wait_for_end(client, second)["status"] == "SUCCEEDED"
        yard.end_workers()
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        wait_until(lambda: server.ask(locks) == [(0,)])
        assert "Traceback" not in (tmp_path / "workers.log").read_text()
        assert "Traceback" not in (tmp_path / "web.log").read_text()
    finally:
        yard.stop()
        own.kill()
