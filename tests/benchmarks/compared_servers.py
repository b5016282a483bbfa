"""The servers that a comparison starts: Stateyard on both databases, and MiniStack.

Each is started anew for each round, with empty data, and is alone on the machine then. Stateyard
writes every acknowledged start to the disk (``synchronous=FULL``, ``fsync=on``); MiniStack keeps
everything in memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.server import START_S, free_port
from tests.benchmarks.sfn_client import SigningClient
from tests.chaos.team_server import TeamServer
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WORKERS = 2
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RunningServer:
    """A server that answers. ``pids``: its processes; those they start belong to it, too."""

    client: SigningClient
    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Return the processor time of all its processes until now, in seconds."""
        return process_tree_s(self.pids)


def process_tree_s(pids: Iterable[int]) -> float:
    """Return the processor time of processes and of those they have started, in seconds."""
    times = _process_times()
    return sum(times[pid][1] for pid in _with_children(pids, times))


def process_tree(pids: Iterable[int]) -> set[int]:
    """Return processes and those they have started."""
    return _with_children(pids, _process_times())


def _with_children(pids: Iterable[int], times: dict[int, tuple[int, float]]) -> set[int]:
    family = set(pids)
    for pid in sorted(times):  # parents have smaller numbers, but for those of another round
        if times[pid][0] in family:
            family.add(pid)
    return family.intersection(times)


def _process_times() -> dict[int, tuple[int, float]]:
    """Return, of each process: its parent, and its processor time with that of ended children."""
    times = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            ticks = sum(int(field) for field in fields[11:15])
            times[int(path.parent.name)] = (int(fields[1]), ticks / _TICKS)
    return times


# -- Stateyard -------------------------------------------------------------------------------------


@contextmanager
def stateyard_on_sqlite(folder: Path) -> Iterator[RunningServer]:
    """``up`` on SQLite: one process."""
    yard = TeamServer(folder, None)
    try:
        yard.start_web()
        yield running_server(yard)
    finally:
        yard.stop()


@contextmanager
def stateyard_on_postgres(folder: Path, workers: int = WORKERS) -> Iterator[RunningServer]:
    """One web process and so many workers on PostgreSQL."""
    database = Postgres(folder / "postgres")
    try:
        yard = TeamServer(folder, database.url)
        try:
            yard.start_web()
            yard.start_workers(workers)
            postmaster = (folder / "postgres" / "postmaster.pid").read_text().split()[0]
            yield running_server(yard, int(postmaster))
        finally:
            yard.stop()
    finally:
        database.stop()


def running_server(yard: TeamServer, *others: int) -> RunningServer:
    """Return a team's server with a client that may do everything. ``others``: more processes."""
    processes = [process.pid for process in (yard.web, yard.workers) if process is not None]
    printed = yard.manage("member", "benchmark", "--role", "owner", "--key")
    words = dict(line.split(" = ") for line in printed.splitlines() if " = " in line)
    endpoint = f"http://127.0.0.1:{yard.port}"
    client = SigningClient(endpoint, words["aws_access_key_id"], words["aws_secret_access_key"])
    return RunningServer(client, (*processes, *others))


# -- MiniStack -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MiniStack:
    """MiniStack from PyPI, in an environment of its own. ``python``: its interpreter."""

    python: Path

    @classmethod
    def installed(cls, folder: Path) -> MiniStack:
        """Make an environment in a folder and install the newest release."""
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = folder / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "ministack"], check=True)
        return cls(python)

    @property
    def version(self) -> str:
        """Return its version."""
        asked = "import importlib.metadata as m; print(m.version('ministack'))"
        done = subprocess.run(
            [self.python, "-c", asked], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Serve on a free port."""
        port = free_port()
        with (folder / "ministack.log").open("wb") as log:
            process = subprocess.Popen(
                [self.python.with_name("ministack")],
                cwd=folder,
                env={**os.environ, "GATEWAY_PORT": str(port)},
                stdout=log,
                stderr=log,
            )
        try:
            client = SigningClient(f"http://127.0.0.1:{port}")
            _until_it_answers(client.endpoint, process, folder / "ministack.log")
            yield RunningServer(client, (process.pid,))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _until_it_answers(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(endpoint, timeout=2).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(log.read_text()[-3000:])
