"""Does a worker process live, end and speak as those who run it expect?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import ROOT
from tests.chaos.database import Postgres, wait_until
from tests.chaos.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres]
RENEWED = "SELECT lease_until_ms - started_ms FROM console_worker WHERE pid = {}"
LEASE_MS = 10_000


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="stepyard-worker-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg")
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def yard(server: Postgres, tmp_path: Path) -> Iterator[Yard]:
    """A place for processes on it; none runs yet."""
    yard = Yard(tmp_path, server.url)
    yard.env["STEPYARD_SECRET"] = "0123456789abcdef" * 4  # one database for all tests
    yield yard
    yard.stop()


def runs(pid: int) -> bool:
    """Tell whether a process is there, and is no zombie."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def has_renewed(server: Postgres, pid: int, by_ms: int) -> bool:
    """Tell whether a worker has had its lease for so long."""
    return any(held >= LEASE_MS + by_ms for (held,) in server.ask(RENEWED.format(pid)))


def test_a_worker_outlives_the_shell_that_started_it(server: Postgres, yard: Yard) -> None:
    """``manage.py worker &`` works on when the shell is gone, and ends at SIGTERM."""
    log = yard.folder / "worker.log"
    line = f"{sys.executable} manage.py worker > {log} 2>&1 & echo $!; exec sleep 600"
    shell = subprocess.Popen(
        ["sh", "-c", line], cwd=ROOT, env=yard.env, stdout=subprocess.PIPE, text=True
    )
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    try:
        assert wait_until(lambda: " works" in log.read_text(), 60), log.read_text()
        shell.kill()
        shell.wait()
        assert wait_until(lambda: has_renewed(server, pid, 6_000), 30), log.read_text()
        os.kill(pid, signal.SIGTERM)
        assert wait_until(lambda: not runs(pid), 10)
    finally:
        shell.stdout.close()
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_forked_worker_ends_with_its_parent_and_says_why(yard: Yard) -> None:
    """Nobody else would end the workers of ``--processes`` when the parent was killed."""
    yard.start_workers(2)
    assert yard.workers is not None
    log = yard.folder / "workers.log"
    assert wait_until(lambda: log.read_text().count(" works") == 2, 60), log.read_text()
    pids = yard.worker_pids()
    yard.workers.kill()
    yard.workers.wait()
    assert wait_until(lambda: not any(map(runs, pids)), 15)
    assert log.read_text().count("the process that forked this worker is gone") == 2
