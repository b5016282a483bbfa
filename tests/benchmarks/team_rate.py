"""Measure what a team's server does a second and what it costs, by its number of workers.

``python -m tests.benchmarks.team_rate [--executions 1000] [--workers 1,2,4,8]`` starts ``up`` on
SQLite, then PostgreSQL with one web process and the workers, and gives each the same load:
executions of an inline Map of five calls of a registered function, started by 16 clients at once.
All of them share this machine with the client. The processor time of an execution, of all processes
together, says what a further worker costs; the rates say more where there are cores for all.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.compared_servers import stateyard_on_postgres, stateyard_on_sqlite
from tests.benchmarks.sfn_scenarios import CLIENTS, spread

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.benchmarks.compared_servers import RunningServer

_ECHO = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:echo"}
_EACH = {"StartAt": "Echo", "States": {"Echo": {**_ECHO, "End": True}}}
_MAP = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": _EACH, "End": True}
_WARM = 50
_LIMIT_S = 300


async def rates(server: RunningServer, executions: int) -> tuple[float, float, float]:
    """Return executions started and ended a second, and milliseconds of processor time of each."""
    machine = await server.client.create_machine({"StartAt": "Map", "States": {"Map": _MAP}})
    await _start(server, machine, _WARM)  # what is slow the first time
    await _until_all_succeeded(server, machine, _WARM)
    begun, cpu = time.perf_counter(), server.cpu_s()
    await _start(server, machine, executions)
    started = time.perf_counter() - begun
    await _until_all_succeeded(server, machine, _WARM + executions)
    ended = time.perf_counter() - begun
    cost_ms = 1000 * (server.cpu_s() - cpu) / executions
    return executions / started, executions / ended, cost_ms


async def _start(server: RunningServer, machine: str, count: int) -> None:
    async def start() -> None:
        await server.client.call("StartExecution", stateMachineArn=machine, input="[3, 1, 2, 5, 4]")

    await spread(start, count, CLIENTS)


async def _until_all_succeeded(server: RunningServer, machine: str, count: int) -> None:
    deadline = time.monotonic() + _LIMIT_S
    asked: dict[str, Any] = {"stateMachineArn": machine, "statusFilter": "RUNNING", "maxResults": 1}
    while (await server.client.call("ListExecutions", **asked))["executions"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"not all of {count} executions ended within {_LIMIT_S} s")
        await asyncio.sleep(0.02)
    asked["statusFilter"] = "FAILED"
    if (await server.client.call("ListExecutions", **asked))["executions"]:
        raise SystemExit("an execution failed")


def measure(name: str, server: AbstractContextManager[RunningServer], executions: int) -> None:
    """Start a server and print a line of the table."""
    with server as running, asyncio.Runner() as loop:
        started, ended, cost_ms = loop.run(rates(running, executions))
    print(f"| {name} | {started:.0f} | {ended:.0f} | {cost_ms:.1f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument("--workers", default="1,2,4,8")
    options = parser.parse_args()
    print("| server | started a second | ended a second | processor time, ms |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        measure("`up`, SQLite", stateyard_on_sqlite(Path(folder)), options.executions)
    for workers in map(int, options.workers.split(",")):
        name = f"web, {workers} worker{'s' * (workers > 1)}"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            measure(name, stateyard_on_postgres(Path(folder), workers), options.executions)


if __name__ == "__main__":
    main()
