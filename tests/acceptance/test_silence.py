"""Processes notice that their database has fallen silent, say so, and go on or end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from console.config import settings
from console.db import postgres
from tests.acceptance.server import wait_for_end
from tests.chaos.silence import SilentProxy
from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]
NOTICED_S = 10.0
GOES_ON_S = 30.0
STANDS_STILL = 70


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-silence-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", migrated=True)
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def proxy(server: Postgres) -> SilentProxy:
    """What is between it and its clients."""
    return SilentProxy(server.socket)


@pytest.fixture
def yard(proxy: SilentProxy, tmp_path: Path) -> Iterator[TeamServer]:
    """A place for processes behind the proxy; none runs yet."""
    yard = TeamServer(tmp_path, proxy.url)
    yard.env["STATEYARD_SECRET"] = "0123456789abcdef" * 4  # one database for all tests
    yield yard
    yard.stop()


def connect(proxy: SilentProxy) -> postgres.WatchedConnection:
    """Return a connection through the proxy, as the server's pool makes them."""
    about = {"host": "127.0.0.1", "port": proxy.port, "user": "postgres", "dbname": "postgres"}
    return postgres.WatchedConnection.connect(**about, autocommit=True)


def ready(yard: TeamServer) -> tuple[int, dict[str, Any]]:
    """Return what ``/readyz`` says; fail if that takes its time."""
    begun = time.monotonic()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{yard.port}/readyz", timeout=20) as told:
            result = told.status, json.load(told)
    except urllib.error.HTTPError as error:
        result = error.code, json.load(error)
    assert time.monotonic() - begun < 10, result
    return result


# -- a connection ----------------------------------------------------------------------------------


def test_a_slow_statement_is_no_dead_connection(proxy: SilentProxy) -> None:
    """The server says that it works on it."""
    with connect(proxy) as own:
        assert own.execute("SELECT pg_sleep(6)").fetchall() == [("",)]


def test_a_server_without_a_free_connection_is_not_dead(server: Postgres) -> None:
    """A server that refuses a second connection has answered, so the first one is not cut."""
    server.ask("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1")
    address = {"host": str(server.folder), "user": "lonely", "dbname": "postgres"}
    with postgres.WatchedConnection.connect(**address, autocommit=True) as own:
        seconds = postgres.QUIET_S + 2 * postgres.GRACE_S + 1
        assert own.execute("SELECT pg_sleep(%s)", [seconds]).fetchall() == [("",)]


def test_a_busy_process_is_told_from_one_that_stands_still(server: Postgres) -> None:
    """Threads that wait in vain for a connection are load while others give theirs back."""
    pool: dict[str, Any] = {**settings._POOL, "min_size": 1, "max_size": 1, "timeout": 0.5}
    address = {"host": str(server.folder), "user": "postgres", "dbname": "postgres"}
    with ConnectionPool(kwargs=address, **pool) as connections:
        held = connections.getconn(timeout=10)
        before = postgres.given_back()
        for _ in range(2):
            with pytest.raises(PoolTimeout):
                connections.getconn()
        assert postgres.given_back() == before
        connections.putconn(held)
        wait_until(lambda: postgres.given_back() == before + 1)


def test_a_dead_connection_is_cut_and_its_locks_are_released(
    server: Postgres, proxy: SilentProxy
) -> None:
    """The session would hold its locks for hours, because the server hears of nothing."""
    server.ask("CREATE TABLE held (n int)")
    own = connect(proxy)
    own.execute("BEGIN")
    own.execute("LOCK TABLE held")
    proxy.blackhole()
    begun = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match="has not answered"):
        own.execute("INSERT INTO held VALUES (1)")
    assert time.monotonic() - begun < NOTICED_S
    assert own.closed
    locks = "SELECT 1 FROM pg_locks JOIN pg_class t ON t.oid = relation WHERE relname = 'held'"
    wait_until(lambda: server.ask(locks) == [])


def test_what_fell_silent_with_another_is_found_out_sooner(proxy: SilentProxy) -> None:
    """Else a thread would wait as long again for each connection of its pool."""
    first, second = connect(proxy), connect(proxy)
    proxy.blackhole()
    with pytest.raises(psycopg.OperationalError):
        first.execute("SELECT 1")
    begun = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        second.execute("SELECT 1")
    assert time.monotonic() - begun < postgres.QUIET_S - 1


def test_a_process_that_serves_bounds_its_statements(proxy: SilentProxy) -> None:
    """A session that is frozen looks as if it worked; patient threads wait for it."""
    postgres.limit_statements(1.0)
    try:
        with connect(proxy) as own, postgres.patient_statements():
            own.execute("SELECT pg_sleep(2)")
        with pytest.raises(psycopg.OperationalError, match="has lasted"):
            connect(proxy).execute("SELECT pg_sleep(60)")
    finally:
        postgres.limit_statements(None)


# -- processes -------------------------------------------------------------------------------------


def test_work_goes_on_when_existing_connections_go_silent(
    yard: TeamServer, proxy: SilentProxy
) -> None:
    """Web and workers find it out, tell it, and connect anew; the kernel tells them nothing."""
    yard.start_web()
    yard.start_workers(2)
    yard.prepare()
    client = yard.client()
    wait_until(lambda: ready(yard)[0] == 200)
    proxy.blackhole()
    begun = time.monotonic()
    told = ready(yard)
    if told[0] != 200:  # else the look had a new connection
        assert "the database does not answer" in told[1]["reasons"][0]
    execution = start(client, begun)
    assert wait_for_end(client, execution, GOES_ON_S)["status"] == "SUCCEEDED"
    assert time.monotonic() - begun < GOES_ON_S
    wait_until(lambda: ready(yard)[0] == 200)


def start(client: Any, begun: float) -> str:
    """Start an execution, again and again until it is taken."""
    while True:
        try:
            arn: str = client.start_execution(
                stateMachineArn=machine_arn("chain"), name="silent", input='{"n": 1}'
            )["executionArn"]
        except client.exceptions.ClientError:
            assert time.monotonic() - begun < GOES_ON_S
        else:
            return arn


def test_a_database_that_does_not_answer_at_all(yard: TeamServer, proxy: SilentProxy) -> None:
    """Readiness and the workers' health are red meanwhile, and SIGTERM ends all within 10 s."""
    yard.env["STATEYARD_LEASE_S"] = "3"
    yard.start_web()
    worker = yard.other_worker()
    wait_until(lambda: ready(yard)[0] == 200)
    assert yard.manage("worker_health") == "1 well\n"
    frozen = threading.Thread(target=proxy.pause, args=(60,), daemon=True)
    frozen.start()
    wait_until(lambda: ready(yard)[0] == 503, NOTICED_S)
    with urllib.request.urlopen(f"http://127.0.0.1:{yard.port}/healthz", timeout=5) as alive:
        assert alive.status == 200
    wait_until(lambda: "lease of 3 s: process" in health(yard))
    assert yard.web is not None
    for process in (worker, yard.web):
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 10
    proxy.end_pause()


def health(yard: TeamServer) -> str:
    """Return what ``worker_health`` complains of, "" if it does not."""
    done = yard._run("worker_health")
    return done.stderr if done.returncode else ""


def test_a_worker_that_stands_still_ends_itself(server: Postgres, yard: TeamServer) -> None:
    """A worker that cannot renew its lease ends itself, for another one to replace it."""
    yard.env["STATEYARD_LEASE_S"] = "2"
    worker = yard.other_worker()
    with psycopg.connect(server.url) as own:
        own.execute("LOCK TABLE console_worker IN ACCESS EXCLUSIVE MODE")
        assert worker.wait(40) == STANDS_STILL
    assert "made no progress and exits" in (yard.folder / "other-0.log").read_text()


def test_a_web_process_that_stands_still_ends_itself(server: Postgres, yard: TeamServer) -> None:
    """Requests have taken all its connections and wait for what does not come."""
    yard.env |= {"STATEYARD_LEASE_S": "2", "STATEYARD_DATABASE_CONNECTIONS": "2"}
    yard.start_web()
    client = yard.client()
    assert yard.web is not None
    with psycopg.connect(server.url) as own, ThreadPoolExecutor(4) as pool:
        own.execute("LOCK TABLE console_accesskey IN ACCESS EXCLUSIVE MODE")
        for _ in range(4):
            pool.submit(client.list_state_machines)
        assert yard.web.wait(60) == STANDS_STILL
        own.rollback()
    assert "made no progress and exits" in (yard.folder / "web.log").read_text()


def test_health_knows_processes_that_are_gone(yard: TeamServer) -> None:
    """A worker that was killed leaves its file; it is not asked for again."""
    assert "no worker runs here" in health(yard)
    worker = yard.other_worker()
    wait_until(lambda: health(yard) == "")
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    assert "no worker runs here" in health(yard)
