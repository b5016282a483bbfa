"""Measure how many executions a team's server takes a second, by its number of workers.

``python -m tests.benchmarks.team_rate [--executions 1000] [--workers 1,2,4]`` starts ``up`` on its
embedded database, then PostgreSQL with one web process and the workers, and gives each the same
load: executions that call a registered function five times, started by 16 clients at once. All of
them share this machine with the client, so the ratios of one run say more than the figures.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.chaos.team_server import TeamServer, machine_arn
from tests.postgres import Postgres

CLIENTS = 16
MACHINE = "map"
LIMIT_S = 300


def rates(yard: TeamServer, executions: int) -> tuple[float, float]:
    """Return how many were started a second, and how many came to their end a second."""
    client = yard.client(CLIENTS)
    _run(client, 50)  # what is slow the first time
    begun = time.perf_counter()
    _start(client, executions)
    started = time.perf_counter()
    _until_done(client)
    return executions / (started - begun), executions / (time.perf_counter() - begun)


def _run(client: Any, executions: int) -> None:
    _start(client, executions)
    _until_done(client)


def _start(client: Any, executions: int) -> None:
    def one(number: int) -> None:
        client.start_execution(stateMachineArn=machine_arn(MACHINE), input=f'{{"n": {number}}}')

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, range(executions)))


def _until_done(client: Any) -> None:
    wanted = {"stateMachineArn": machine_arn(MACHINE), "statusFilter": "RUNNING", "maxResults": 1}
    deadline = time.monotonic() + LIMIT_S
    while client.list_executions(**wanted)["executions"]:
        if time.monotonic() > deadline:
            raise SystemExit("not all executions ended")
        time.sleep(0.02)


def measure(url: str | None, workers: int, executions: int) -> None:
    """Start a server of its own and print a line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        yard = TeamServer(Path(folder), url)
        try:
            yard.start_web()
            yard.prepare()
            if url is not None:
                yard.start_workers(workers)
            started, ended = rates(yard, executions)
        finally:
            yard.stop()
    name = "`up`, SQLite" if url is None else f"web, {workers} worker{'s' * (workers > 1)}"
    print(f"| {name} | {started:.0f} | {ended:.0f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument("--workers", default="1,2,4")
    given = parser.parse_args()
    print("| server | started a second | ended a second |\n|---|---|---|")
    measure(None, 0, given.executions)
    for workers in map(int, given.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            server = Postgres(Path(folder) / "postgres")
            measure(server.url, workers, given.executions)
            server.stop()


if __name__ == "__main__":
    main()
