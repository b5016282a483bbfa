"""Measure what an item of a distributed Map costs, and whether that grows with their number.

``python -m tests.benchmarks.map_cost [--items 1000,10000] [--postgres]`` runs distributed Maps of
one Pass on ``up`` with SQLite, or on one web process and one worker with PostgreSQL, and beside
them executions of the same Pass that a client starts one by one. It prints for each: items a
second, processor time of all processes of the server an item, what the database has grown an item,
what its log was given an item (the write-ahead log; of SQLite all that the process has written),
and how much memory the process with the parent took at most, above what it had before (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from tests.benchmarks.compared_servers import (
    process_tree,
    stateyard_on_postgres,
    stateyard_on_sqlite,
)
from tests.benchmarks.sfn_scenarios import CLIENTS, spread
from tests.postgres import address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.benchmarks.compared_servers import RunningServer

_CHILD = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
_DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **_CHILD}
_MAP = {"Type": "Map", "ItemProcessor": _DISTRIBUTED, "End": True}
_PLAIN = 2_000
_LIMIT_S = 1_800.0


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds, seconds of processor time, bytes, and bytes of memory."""

    items: int
    lasted_s: float
    cpu_s: float
    grown: int
    logged: int
    peak: int

    def __str__(self) -> str:
        return (
            f"{self.items / self.lasted_s:8.0f} /s {self.cpu_s / self.items * 1e3:8.2f} ms"
            f" {self.grown / self.items:8.0f} B grown {self.logged / self.items:8.0f} B logged"
            f" {self.peak / 1e6:8.1f} MB of memory"
        )


class Gauge:
    """Reads what a server has used. ``sizes``: of its database, and of what its log was given."""

    def __init__(self, server: RunningServer, pids: tuple[int, ...], sizes: Any) -> None:
        """``pids``: the processes that may have the parent."""
        self.server = server
        self._pids = pids
        self._sizes: Callable[[], tuple[int, int]] = sizes

    async def measure(self, items: int, job: Any) -> Cost:
        """Return what a job costs."""
        own = process_tree(self._pids)
        before = {pid: _memory(pid, "VmRSS") for pid in own}
        _forget_peaks(own)
        cpu, (size, log), begun = self.server.cpu_s(), self._sizes(), time.monotonic()
        await job
        lasted, cpu = time.monotonic() - begun, self.server.cpu_s() - cpu
        size_after, log_after = self._sizes()
        peak = max(_memory(pid, "VmHWM") - base for pid, base in before.items())
        return Cost(items, lasted, cpu, size_after - size, log_after - log, peak)


def _forget_peaks(pids: Iterable[int]) -> None:
    """Let the most memory that processes have had be what they have now."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _memory(pid: int, name: str) -> int:
    """Return a line of a process's status in bytes; 0 of one that has ended."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return 1024 * int(dict(line.split(":") for line in text.splitlines())[name].split()[0])
    return 0


def sizes_of_sqlite(data: Path, pid: int) -> tuple[int, int]:
    """Return the size of the database with its log, and what its process has written."""
    with contextlib.closing(sqlite3.connect(data / "stateyard.sqlite3")) as own:
        (pages,) = own.execute("PRAGMA page_count").fetchone()
        (page,) = own.execute("PRAGMA page_size").fetchone()
    text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return pages * page, int(dict(line.split(": ") for line in text.splitlines())["wchar"])


def sizes_of_postgres(url: str) -> tuple[int, int]:
    """Return the size of the database, and the place in its log."""
    asked = "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn"
    with psycopg.connect(url, autocommit=True) as own:
        size, place = own.execute(asked).fetchone() or (0, 0)
    return int(size), int(place)


async def compare(gauge: Gauge, sizes: list[int]) -> None:
    """Print a line for executions that a client starts, and one for each Map."""
    client = gauge.server.client
    plain = await client.create_machine(_CHILD)

    async def start() -> None:
        await client.call("StartExecution", stateMachineArn=plain, input="0")

    await spread(start, 100, CLIENTS)  # what is slow the first time
    cost = await gauge.measure(_PLAIN, spread(start, _PLAIN, CLIENTS))
    print(f"{_PLAIN:>8,} executions {cost}", flush=True)
    machine = await client.create_machine({"StartAt": "M", "States": {"M": _MAP}})
    await client.run(machine, pause_s=0.1, text="[0,0]", limit_s=_LIMIT_S)
    for items in sizes:
        text = f"[{','.join('0' * items)}]"
        job = client.run(machine, pause_s=0.1, text=text, limit_s=_LIMIT_S)
        print(f"{items:>8,} items      {await gauge.measure(items, job)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", default="1000,10000")
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    sizes = [int(size) for size in options.items.split(",")]
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        folder = Path(name)
        folder.chmod(0o755)
        if options.postgres:
            with stateyard_on_postgres(folder, workers=1) as server:
                url = address(folder / "postgres")
                gauge = Gauge(server, server.pids[1:2], lambda: sizes_of_postgres(url))
                loop.run(compare(gauge, sizes))
        else:
            with stateyard_on_sqlite(folder) as server:
                pid = server.pids[0]
                gauge = Gauge(server, (pid,), lambda: sizes_of_sqlite(folder / "data", pid))
                loop.run(compare(gauge, sizes))


if __name__ == "__main__":
    main()
