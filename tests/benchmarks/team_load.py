"""Measure what many clients at once see, and what a server answers that gets more than it can do.

``python -m tests.benchmarks.team_load [--clients 64] [--seconds 300] [--times 10] [--database DB]``
first keeps so many clients busy with five shapes in turns, each waiting for the end of what it
started, and prints how long an API call and an execution take, and the errors. Then calls of
StartExecution come at that multiple of the calls a second the server just answered, and on that
multiple of connections, for a tenth of the time. Each must be answered within a second, by an ARN
or by 429 or 503; each execution that was acknowledged must be there and end; and a single execution
must take as long as before within five seconds after the last call. The client shares the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.compared_servers import stateyard_on_postgres, stateyard_on_sqlite
from tests.benchmarks.sfn_client import CallFailed
from tests.benchmarks.sfn_scenarios import chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from tests.benchmarks.compared_servers import RunningServer
    from tests.benchmarks.sfn_client import SigningClient

_ECHO = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:echo"}
_EACH = {"StartAt": "Echo", "States": {"Echo": {**_ECHO, "End": True}}}
_MAP = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": _EACH, "End": True}
_PARALLEL = {"Type": "Parallel", "Branches": [chain(3), chain(3, "-b")], "End": True}
_WAIT = {"Type": "Wait", "Seconds": 1, "End": True}
SHAPES: dict[str, dict[str, Any]] = {
    "chain": chain(10),
    "function": _EACH,
    "map": {"StartAt": "Map", "States": {"Map": _MAP}},
    "parallel": {"StartAt": "Parallel", "States": {"Parallel": _PARALLEL}},
    "wait": {"StartAt": "Wait", "States": {"Wait": _WAIT}},
}
_INPUT = json.dumps({"items": [3, 1, 2, 5, 4]})
_TICK_S = 0.05
_RECOVERY_LIMIT_S = 120


@dataclass
class Seen:
    """What clients saw. ``calls_s``, ``executions_s``: times of each, in seconds."""

    calls_s: list[float] = field(default_factory=list)
    executions_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    started: list[str] = field(default_factory=list)


async def timed_call(client: SigningClient, seen: Seen, action: str, **params: Any) -> Any:
    """Make one call and note how long it took; return None for a refusal, which is noted, too."""
    begun = time.perf_counter()
    try:
        return await client.call(action, **params)
    except CallFailed as error:
        status = str(error).split(maxsplit=2)[1]
        seen.errors[status] += 1
    except OSError as error:
        seen.errors[type(error).__name__] += 1
    finally:
        seen.calls_s.append(time.perf_counter() - begun)
    return None


# -- many clients ----------------------------------------------------------------------------------


async def crowd(
    client: SigningClient, machines: Sequence[str], clients: int, seconds: float
) -> Seen:
    """Keep clients busy for so long; each waits for the end of one execution, then starts one."""
    seen = Seen()
    until = time.perf_counter() + seconds

    async def work(number: int) -> None:
        for machine in itertools.islice(itertools.cycle(machines), number, None):
            if time.perf_counter() > until:
                return
            await _one_execution(client, seen, machine)

    await asyncio.gather(*(work(number) for number in range(clients)))
    return seen


async def _one_execution(client: SigningClient, seen: Seen, machine: str) -> None:
    begun = time.perf_counter()
    started = await timed_call(
        client, seen, "StartExecution", stateMachineArn=machine, input=_INPUT
    )
    while started is not None:
        execution = await timed_call(
            client, seen, "DescribeExecution", executionArn=started["executionArn"]
        )
        if execution is None:
            return
        if execution["status"] == "SUCCEEDED":
            seen.executions_s.append(time.perf_counter() - begun)
            return
        if execution["status"] != "RUNNING":
            seen.errors[execution["status"]] += 1
            return
        await asyncio.sleep(_TICK_S)


# -- overload --------------------------------------------------------------------------------------


async def overload(
    client: SigningClient, machine: str, rate: float, most: int, seconds: float
) -> Seen:
    """Send starts at a fixed rate, whether they are answered or not; return when all are.

    ``most``: so many at a time, each on a connection of its own.
    """
    seen = Seen()
    under_way: set[asyncio.Task[None]] = set()

    async def start() -> None:
        answer = await timed_call(
            client, seen, "StartExecution", stateMachineArn=machine, input=_INPUT
        )
        if answer is not None:
            seen.started.append(answer["executionArn"])

    begun, sent = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        due = int(passed * rate) - sent
        for _ in range(min(due, most - len(under_way))):
            task = asyncio.create_task(start())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        sent += due
        await asyncio.sleep(0.01)
    await asyncio.gather(*under_way)
    return seen


async def recovery_s(client: SigningClient, machine: str, usual_s: float) -> float:
    """Return after how many seconds an execution takes at most twice as long as usual."""
    begun = time.perf_counter()
    while (passed := time.perf_counter() - begun) < _RECOVERY_LIMIT_S:
        started = time.perf_counter()
        with contextlib.suppress(CallFailed):
            await client.run(machine, pause_s=0.005, text=_INPUT)
            if time.perf_counter() - started <= 2 * usual_s + _TICK_S:
                return passed
    return _RECOVERY_LIMIT_S


async def unfinished(client: SigningClient, started: Sequence[str]) -> Counter[str]:
    """Wait until all that was acknowledged has ended; return what has not succeeded, by status."""
    counts: Counter[str] = Counter()
    for arn in started:
        deadline = time.perf_counter() + _RECOVERY_LIMIT_S
        status = "RUNNING"
        while status == "RUNNING" and time.perf_counter() < deadline:
            try:
                status = (await client.call("DescribeExecution", executionArn=arn))["status"]
            except CallFailed as error:
                status = str(error)
            if status == "RUNNING":
                await asyncio.sleep(_TICK_S)
        counts[status] += status != "SUCCEEDED"
    return +counts


# -- the report ------------------------------------------------------------------------------------


def percentiles(times: Sequence[float]) -> str:
    """Return p50, p99 and the longest of some times, in milliseconds."""
    if len(times) < 2:
        return "-"
    cuts = statistics.quantiles(times, n=100)
    return f"p50 {cuts[49] * 1e3:.0f}, p99 {cuts[98] * 1e3:.0f}, longest {max(times) * 1e3:.0f} ms"


async def measure(server: RunningServer, options: argparse.Namespace) -> None:
    """Put both loads on one server and print what was seen."""
    client = server.client
    client.attempts = 1  # what an SDK would try again is counted
    machines = [await client.create_machine(shape) for shape in SHAPES.values()]
    begun, cpu = time.perf_counter(), server.cpu_s()
    seen = await crowd(client, machines, options.clients, options.seconds)
    took = time.perf_counter() - begun
    rate = len(seen.calls_s) / took
    print(f"{options.clients} clients, {took:.0f} s: {len(seen.executions_s)} executions,")
    print(f"  {rate:.0f} calls/s; processor {100 * (server.cpu_s() - cpu) / took:.0f} %")
    print(f"  a call: {percentiles(seen.calls_s)}")
    print(f"  an execution: {percentiles(seen.executions_s)}")
    print(f"  errors: {dict(seen.errors)}", flush=True)
    machine = machines[list(SHAPES).index("function")]
    usual = [await _one_run(client, machine) for _ in range(20)]
    asked = options.times * rate
    begun = time.perf_counter()
    most = round(options.times * options.clients)
    seen = await overload(client, machine, asked, most, options.seconds / 10)
    took = time.perf_counter() - begun
    print(f"overload, {took:.0f} s: {len(seen.calls_s)} calls, {len(seen.calls_s) / took:.0f}/s")
    print(f"  of {asked:.0f}/s asked; {len(seen.started)} acknowledged, {dict(seen.errors)}")
    print(f"  a call: {percentiles(seen.calls_s)}", flush=True)
    print(f"  recovered after {await recovery_s(client, machine, statistics.median(usual)):.1f} s")
    print(f"  not succeeded: {dict(await unfinished(client, seen.started))}", flush=True)


async def _one_run(client: SigningClient, machine: str) -> float:
    begun = time.perf_counter()
    await client.run(machine, pause_s=0.005, text=_INPUT)
    return time.perf_counter() - begun


def servers(database: str, folder: Path) -> Iterator[tuple[str, AbstractContextManager[Any]]]:
    """Yield the names of the servers to measure, and what starts each."""
    if database in ("sqlite", "all"):
        (folder / "sqlite").mkdir()
        yield "up on SQLite", stateyard_on_sqlite(folder / "sqlite")
    if database in ("postgres", "all"):
        (folder / "team").mkdir()
        yield "1 web, 2 workers on PostgreSQL", stateyard_on_postgres(folder / "team")


def main() -> None:
    """Measure each server in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--times", type=float, default=10)
    parser.add_argument("--database", choices=("sqlite", "postgres", "all"), default="all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, server in servers(options.database, Path(folder)):
            print(f"\n## {name}")
            with server as running, asyncio.Runner() as loop:
                loop.run(measure(running, options))


if __name__ == "__main__":
    main()
