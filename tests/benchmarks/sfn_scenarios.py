"""What a benchmark asks of a Step Functions server: eight scenarios, one figure each.

All times are wall times seen by the client, and every execution must succeed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
import uuid
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.benchmarks.sfn_client import SigningClient

CLIENTS = 16
_TURNS = 1000
_LOOP: dict[str, Any] = {
    "StartAt": "More",
    "States": {
        "More": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericLessThan": _TURNS, "Next": "Add"}],
            "Default": "Done",
        },
        "Add": {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "More"},
        "Done": {"Type": "Succeed"},
    },
}
_LOOP_TRANSITIONS = 2 * _TURNS + 2


@dataclass(frozen=True)
class Scenario:
    """One thing to measure. ``run``: returns its figure, in ``unit``."""

    name: str
    title: str
    unit: str
    run: Callable[[SigningClient], Awaitable[float]]
    less_is_better: bool = False


def chain(length: int, label: str = "") -> dict[str, Any]:
    """Return a definition of so many Pass states. ``label``: ends their names."""
    names = [f"Pass{number}{label}" for number in range(length)]
    states: dict[str, Any] = {
        name: {"Type": "Pass", "Next": after} for name, after in pairwise(names)
    }
    states[names[-1]] = {"Type": "Pass", "End": True}
    return {"StartAt": names[0], "States": states}


async def spread(job: Callable[[], Awaitable[Any]], count: int, clients: int) -> None:
    """Do something so many times, by so many clients at once."""
    numbers = iter(range(count))

    async def work() -> None:
        for _ in numbers:
            await job()

    await asyncio.gather(*(work() for _ in range(clients)))


async def latency(client: SigningClient) -> float:
    """One Pass, one execution after another: from the start until it is seen to have ended."""
    machine = await client.create_machine(chain(1))
    times = []
    for _ in range(110):
        begun = time.perf_counter()
        await client.run(machine, pause_s=0.001)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[10:]) * 1e3


async def chains(client: SigningClient, count: int = 500) -> float:
    """Executions of ten Pass states."""
    machine = await client.create_machine(chain(10))
    await spread(lambda: client.run(machine, pause_s=0.01), 20, CLIENTS)
    begun = time.perf_counter()
    await spread(lambda: client.run(machine, pause_s=0.02), count, CLIENTS)
    return count / (time.perf_counter() - begun)


async def loop(client: SigningClient) -> float:
    """A Choice and a Pass in turns, a thousand times, in one execution."""
    machine = await client.create_machine(_LOOP)
    begun = time.perf_counter()
    await client.run(machine, text='{"n": 0}', pause_s=0.005)
    return _LOOP_TRANSITIONS / (time.perf_counter() - begun)


async def inline_map(client: SigningClient, items: int = 1000) -> float:
    """An inline Map with two Pass states an item."""
    state = {"Type": "Map", "ItemsPath": "$", "ItemProcessor": chain(2), "End": True}
    machine = await client.create_machine({"StartAt": "Map", "States": {"Map": state}})
    begun = time.perf_counter()
    await client.run(machine, text=json.dumps(list(range(items))), pause_s=0.005)
    return items / (time.perf_counter() - begun)


async def parallel(client: SigningClient) -> float:
    """A Parallel state with forty branches of five Pass states."""
    branches = [chain(5, f"-{number}") for number in range(40)]
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    machine = await client.create_machine({"StartAt": "Parallel", "States": {"Parallel": state}})
    begun = time.perf_counter()
    await client.run(machine, pause_s=0.002)
    return (time.perf_counter() - begun) * 1e3


async def waits(client: SigningClient, count: int = 500) -> float:
    """Many executions that wait for three seconds at once."""
    state = {"Type": "Wait", "Seconds": 3, "End": True}
    machine = await client.create_machine({"StartAt": "Wait", "States": {"Wait": state}})
    begun = time.perf_counter()
    await spread(lambda: client.run(machine, pause_s=0.2), count, count)
    return time.perf_counter() - begun


async def activities(client: SigningClient, count: int = 200) -> float:
    """Executions of one activity task, served by four workers."""
    answer = await client.call("CreateActivity", name=f"bench-{uuid.uuid4().hex[:10]}")
    activity = answer["activityArn"]
    state = {"Type": "Task", "Resource": activity, "End": True}
    machine = await client.create_machine({"StartAt": "Task", "States": {"Task": state}})

    async def work() -> None:
        while True:
            task = await client.call("GetActivityTask", activityArn=activity)
            if task.get("taskToken"):
                await client.call("SendTaskSuccess", taskToken=task["taskToken"], output="{}")

    workers = [asyncio.create_task(work()) for _ in range(4)]
    try:
        begun = time.perf_counter()
        await spread(lambda: client.run(machine, pause_s=0.02), count, CLIENTS)
        return count / (time.perf_counter() - begun)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def history(client: SigningClient) -> float:
    """The history of the loop, in pages of 1,000 events, read five times."""
    machine = await client.create_machine(_LOOP)
    execution = await client.run(machine, text='{"n": 0}', pause_s=0.005)
    begun, count = time.perf_counter(), 0
    for _ in range(5):
        count += await _read_history(client, execution)
    return count / (time.perf_counter() - begun)


async def _read_history(client: SigningClient, execution: str) -> int:
    """Read a whole history and return its length."""
    asked: dict[str, Any] = {"executionArn": execution, "maxResults": 1000}
    count = 0
    while True:
        page = await client.call("GetExecutionHistory", **asked)
        count += len(page["events"])
        if not page.get("nextToken"):
            return count
        asked["nextToken"] = page["nextToken"]


SCENARIOS = (
    Scenario("latency", "one Pass, p50", "ms", latency, less_is_better=True),
    Scenario("chain", "chain of 10 Pass, 16 clients", "executions/s", chains),
    Scenario("loop", "loop of 2,000 transitions", "transitions/s", loop),
    Scenario("history", "history read", "events/s", history),
    Scenario("map", "inline Map of 1,000", "iterations/s", inline_map),
    Scenario("parallel", "Parallel of 40 x 5", "ms", parallel, less_is_better=True),
    Scenario("wait", "500 waits of 3 s, all done", "s", waits, less_is_better=True),
    Scenario("activity", "activity tasks, 4 workers", "round trips/s", activities),
)
