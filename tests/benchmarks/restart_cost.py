"""Measure what many executions that wait cost a server: its start, its memory, its idle time.

``python -m tests.benchmarks.restart_cost [--executions 1000,1000000] [--database sqlite]`` lets one
execution wait for a far date, copies its rows by SQL that many times, starts the server anew and
prints: seconds until another execution has run to its end; memory of the processes; their processor
time a second and, on PostgreSQL, transactions a second, while nothing happens (Linux: ``/proc``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from tests.benchmarks.compared_servers import RunningServer, running_server
from tests.benchmarks.sfn_client import SigningClient
from tests.benchmarks.sfn_scenarios import chain
from tests.chaos.team_server import TeamServer
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT = {"Type": "Wait", "Timestamp": "2090-01-01T00:00:00Z", "End": True}
_WAITS = {"StartAt": "Wait", "States": {"Wait": _WAIT}}
_TABLES = ("runrow", "runvalue", "historyevent", "timer")
_SETTLE_S = 5.0
_IDLE_S = 10.0
_FIRST_COPY = 1_000_000_000  # ids that the server does not reach meanwhile


class Cost(NamedTuple):
    """What is printed of one size."""

    first_end_s: float
    memory_mb: float
    idle_processor_percent: float
    idle_transactions: float | None


class Storage:
    """The database of a server, asked beside it."""

    def __init__(self, folder: Path, url: str | None) -> None:
        """``url``: of PostgreSQL; None: the SQLite file in the folder."""
        self._file = folder / "data" / "stateyard.sqlite3"
        self._url = url

    def ask(self, *statements: str) -> list[Any]:
        """Run statements in one transaction and return the rows of the last."""
        opened: Any = (
            sqlite3.connect(self._file) if self._url is None else psycopg.connect(self._url)
        )
        with contextlib.closing(opened) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            rows: list[Any] = cursor.fetchall() if cursor.description else []
            connection.commit()
            return rows

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        if self._url is None:
            return [row[1] for row in self.ask(f"PRAGMA table_info({table})")]
        asked = f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"
        return [row[0] for row in self.ask(asked)]

    def copy_waiting(self, count: int, first: int = _FIRST_COPY) -> None:
        """Copy the rows of the one execution that waits so many times; ids are above ``first``."""
        numbers = (
            f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {count})"
            if self._url is None
            else f"WITH c(n) AS (SELECT generate_series(1, {count}))"
        )
        own = {
            "id": f"{first} + n",
            "execution_id": f"{first} + n",
            "arn": f"arn || '-' || ({first} + n)",
            "name": f"name || '-' || ({first} + n)",
        }
        statements = []
        for table in ("execution", *_TABLES):
            names = self.columns(f"console_{table}")
            if table != "execution":
                own["name"] = "name"  # of a timer
            chosen = ", ".join(own.get(name, name) for name in names)
            key = "id" if table == "execution" else "execution_id"
            statements.append(
                f"INSERT INTO console_{table} ({', '.join(names)}) {numbers} "
                f"SELECT {chosen} FROM console_{table}, c WHERE {key} < {_FIRST_COPY}"
            )
        self.ask(*statements, "ANALYZE")

    def transactions(self) -> int | None:
        """Return how many transactions there have been; None on SQLite."""
        if self._url is None:
            return None
        asked = (
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"
        )
        return int(self.ask(asked)[0][0])


def measure(folder: Path, executions: int, database: Postgres | None) -> Cost:
    """Fill a server's database, start the server anew, and look."""
    url = None if database is None else database.url
    storage = Storage(folder, url)
    yard = TeamServer(folder, url)
    yard.env["STATEYARD_QUOTAS"] = '{"open_executions": null}'
    with server_processes(yard, 1), asyncio.Runner() as loop:
        client = running_server(yard).client
        loop.run(one_waiting(client))
    storage.copy_waiting(executions - 1)
    begun = time.perf_counter()
    with server_processes(yard, 1) as pids, asyncio.Runner() as loop:
        client = SigningClient(client.endpoint, client.key_id, client.secret)
        loop.run(_one_to_its_end(client))
        first_end_s = time.perf_counter() - begun
        time.sleep(_SETTLE_S)
        server = RunningServer(client, pids)
        before, cpu_s = storage.transactions(), server.cpu_s()
        time.sleep(_IDLE_S)
        percent = 100 * (server.cpu_s() - cpu_s) / _IDLE_S
        after = storage.transactions()
        idle = None if before is None or after is None else (after - before) / _IDLE_S
        return Cost(first_end_s, sum(map(_resident_mb, pids)), percent, idle)


@contextlib.contextmanager
def server_processes(yard: TeamServer, workers: int) -> Iterator[tuple[int, ...]]:
    """Start the processes of a server; yield their numbers. ``workers``: on PostgreSQL."""
    try:
        yard.start_web()
        assert yard.web is not None
        if yard.url is None:
            yield (yard.web.pid,)
        else:
            yard.start_workers(workers)
            yield (yard.web.pid, *yard.worker_pids())
    finally:
        yard.stop()


async def one_waiting(client: SigningClient) -> None:
    """Start an execution and return when it waits."""
    machine = await client.create_machine(_WAITS)
    started = await client.call("StartExecution", stateMachineArn=machine)
    asked = {"executionArn": started["executionArn"], "reverseOrder": True, "maxResults": 1}
    while True:
        answer = await client.call("GetExecutionHistory", **asked)
        if answer["events"][0]["type"] == "WaitStateEntered":
            return
        await asyncio.sleep(0.05)


async def _one_to_its_end(client: SigningClient) -> None:
    machine = await client.create_machine(chain(1))
    await client.run(machine, pause_s=0.01)


def _resident_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return (
        int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS"))) / 1e3
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", default="1000,1000000")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    print("| waiting | first end, s | memory, MB | idle processor, % | idle transactions/s |")
    print("|---|---|---|---|---|")
    for size in map(int, options.executions.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            database = Postgres(folder / "postgres") if options.database == "postgres" else None
            try:
                cost = measure(folder, size, database)
            finally:
                if database is not None:
                    database.stop()
        cells = ["-" if figure is None else f"{figure:.1f}" for figure in cost]
        print(f"| {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
