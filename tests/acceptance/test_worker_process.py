"""A worker process lives, ends and logs as those who run it expect."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from psycopg_pool import ConnectionPool

from console.db.postgres import WatchedConnection
from tests.acceptance.server import ROOT
from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]
RENEWED = "SELECT lease_until_ms - started_ms FROM console_worker WHERE pid = {}"
LEASE_MS = 10_000


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-worker-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", migrated=True)
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def yard(server: Postgres, tmp_path: Path) -> Iterator[TeamServer]:
    """A place for processes on it; none runs yet."""
    yard = TeamServer(tmp_path, server.url)
    yard.env["STATEYARD_SECRET"] = "0123456789abcdef" * 4  # one database for all tests
    yield yard
    yard.stop()


def runs(pid: int) -> bool:
    """Return whether a process is there, and is no zombie."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def has_renewed(server: Postgres, pid: int, by_ms: int) -> bool:
    """Return whether a worker has had its lease for so long."""
    return any(held >= LEASE_MS + by_ms for (held,) in server.ask(RENEWED.format(pid)))


def test_a_worker_outlives_the_shell_that_started_it(server: Postgres, yard: TeamServer) -> None:
    """``manage.py worker &`` works on when the shell is gone, and ends at SIGTERM."""
    log = yard.folder / "worker.log"
    log.touch()
    line = f"{sys.executable} manage.py worker > {log} 2>&1 & echo $!; exec sleep 600"
    shell = subprocess.Popen(
        ["sh", "-c", line], cwd=ROOT, env=yard.env, stdout=subprocess.PIPE, text=True
    )
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    try:
        wait_until(lambda: " works" in log.read_text())
        shell.kill()
        shell.wait()
        wait_until(lambda: has_renewed(server, pid, 6_000))
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not runs(pid))
    finally:
        shell.stdout.close()
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_forked_worker_ends_with_its_parent_and_says_why(yard: TeamServer) -> None:
    """Nobody else would end the workers of ``--processes`` when the parent was killed."""
    yard.start_workers(2)
    assert yard.workers is not None
    log = yard.folder / "workers.log"
    wait_until(lambda: log.read_text().count(" works") == 2)
    pids = yard.worker_pids()
    yard.workers.kill()
    yard.workers.wait()
    wait_until(lambda: not any(map(runs, pids)))
    assert log.read_text().count("the process that forked this worker is gone") == 2


# -- the database goes and comes -------------------------------------------------------------------


def test_a_worker_whose_connections_were_reset_ends_well(
    server: Postgres, yard: TeamServer
) -> None:
    """SIGTERM just after all sessions were ended: exit code 0, and the lease is given back."""
    worker = yard.other_worker()
    leases = f"SELECT count(*) FROM console_worker WHERE pid = {worker.pid}"
    assert server.ask(leases) == [(1,)]
    server.end_sessions()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    assert server.ask(leases) == [(0,)]
    assert "Traceback" not in (yard.folder / "other-0.log").read_text()


def test_a_pool_whose_connections_were_reset_connects_at_once(server: Postgres) -> None:
    """The first thread that meets a dead connection has the other idle ones replaced.

    psycopg's pool alone pauses between dead connections, for longer each time: with five of them
    it gives none within ten seconds.
    """
    pool = ConnectionPool(
        conninfo=f"host={server.folder} user=postgres dbname=postgres",
        connection_class=WatchedConnection,
        check=ConnectionPool.check_connection,
        min_size=1,
        max_size=12,
        open=True,
    )
    with pool:
        for idle in [pool.getconn() for _ in range(6)]:
            pool.putconn(idle)
        assert server.end_sessions() == 6
        connected = pool.getconn(timeout=PATIENCE_S)
        assert connected.execute("SELECT 1").fetchone() == (1,)
        pool.putconn(connected)


def test_an_outage_is_two_lines_in_the_log(server: Postgres, yard: TeamServer) -> None:
    """One when the database goes, one when it is back, and no traceback of any library.

    That the lease ended meanwhile is said as well.
    """
    yard.start_web()
    worker = yard.other_worker()
    yard.prepare()
    client = yard.client()
    arns = [run(client, "wait", number) for number in range(20)]
    server.stop("immediate")
    path = yard.folder / "other-0.log"
    wait_until(lambda: "out of reach" in path.read_text(), 20), path.read_text()
    refused = [call for call in range(3) if not lists(client)]
    assert refused == [0, 1, 2]
    server.start()
    for arn in arns:
        wait_until(lambda arn=arn: ends(client, arn))
    for name in ("other-0.log", "web.log"):
        path = yard.folder / name
        wait_until(lambda path=path: "is back" in path.read_text(), 30), path.read_text()
        lines = path.read_text().splitlines()
        assert sum("the database is" in line for line in lines) == 2, lines
        assert [line for line in lines if line.startswith("    ") or " error " in line] == []
        warned = [line for line in lines if " warning " in line]
        phrases = ("the database is", "the lease was lost", "workers are gone")
        assert [line for line in warned if not any(phrase in line for phrase in phrases)] == []
    assert worker.poll() is None


def run(client: Any, shape: str, number: int) -> str:
    """Start an execution of a shape."""
    answer = client.start_execution(stateMachineArn=machine_arn(shape), input=f'{{"n": {number}}}')
    arn: str = answer["executionArn"]
    return arn


def lists(client: Any) -> bool:
    """Return whether a call is answered."""
    try:
        client.list_state_machines()
    except client.exceptions.ClientError:
        return False
    return True


def ends(client: Any, arn: str) -> bool:
    """Return whether an execution has succeeded; False while nobody answers."""
    try:
        return bool(client.describe_execution(executionArn=arn)["status"] == "SUCCEEDED")
    except client.exceptions.ClientError:
        return False


def test_an_execution_outlives_a_change_of_workers(server: Postgres, yard: TeamServer) -> None:
    """A worker that was asked to stop gets no more signals; who starts later finds the rows."""
    yard.start_web()
    yard.prepare()
    client = yard.client()
    arns = [run(client, "chain", number) for number in range(3)]
    first = yard.other_worker()
    for arn in arns:
        wait_until(lambda arn=arn: ends(client, arn))
    first.send_signal(signal.SIGTERM)
    arns = [run(client, "chain", number) for number in range(3, 6)]
    yard.other_worker()
    for arn in arns:
        wait_until(lambda arn=arn: ends(client, arn))
    assert first.wait(PATIENCE_S) == 0


# -- a start that cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["up", "web", "worker"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STATEYARD_DATABASE_URL", "postgres://x:y@127.0.0.1:1/none", "Connection refused"),
        ("STATEYARD_DATABASE_URL", "{url}/none", 'database "none" does not exist'),
        ("STATEYARD_DATABASE_URL", "{password}", "password authentication failed"),
        ("STATEYARD_DATABASE_URL", "mysql://here", "wanted postgres://"),
        ("STATEYARD_SECRET", "weak", "STATEYARD_SECRET: got 4 characters, wanted 32 or more"),
    ],
    ids=["nobody-there", "no-database", "wrong-password", "wrong-scheme", "weak-secret"],
)
def test_a_start_that_cannot_be_is_one_line(
    server: Postgres, yard: TeamServer, command: str, name: str, value: str, said: str
) -> None:
    """The command says what is wrong in one line, without a traceback, and exits with 1."""
    if value == "{url}/none":
        value = f"postgres://postgres:@/none?host={server.folder}"
    elif value == "{password}":
        value = f"postgres://guarded:wrong@/postgres?host={server.folder}"
        guard(server)
    yard.env[name] = value
    complaint = yard.complaint(command, *(("--port", "0") if command != "worker" else ()))
    assert said in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint


def guard(server: Postgres) -> None:
    """Let the server ask for the password of one of its users."""
    path = server.folder / "pg_hba.conf"
    rule = "local all guarded scram-sha-256\n"
    if rule not in path.read_text():
        server.ask("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        path.write_text(rule + path.read_text())
        server.ask("SELECT pg_reload_conf()")


@pytest.mark.parametrize("command", ["up", "web"])
def test_a_used_port_is_one_line(yard: TeamServer, command: str) -> None:
    """The commands that listen say so, before they do anything else that lasts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        complaint = yard.complaint(command, "--port", str(port))
    assert f"--port {port}: something else is listening there" in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint


def test_a_line_that_is_not_used_is_kept_open(yard: TeamServer) -> None:
    """An idle connection stays open longer than proxies keep theirs (uvicorn's default: 5 s)."""
    yard.start_web()
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", yard.port), timeout=7) as line:
        line.sendall(ask)
        assert answered(line)
        with pytest.raises(TimeoutError):
            line.recv(4096)  # b"" would be its end
        line.sendall(ask)
        assert answered(line)


def answered(line: socket.socket) -> bool:
    """Read an answer to its end; tell whether it was well."""
    data = b""
    while not data.endswith(b"ok\n"):
        data += line.recv(4096)
    return b"200 OK" in data


def test_web_ends_well_at_sigterm(yard: TeamServer) -> None:
    """Exit code 0: nothing was wrong."""
    yard.start_web()
    assert yard.web is not None
    yard.web.send_signal(signal.SIGTERM)
    assert yard.web.wait(PATIENCE_S) == 0
