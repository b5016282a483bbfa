"""Model how long steps wait for the database and for workers at 10 and 100 times the load.

A model, not a measurement: executions arrive at random (Poisson), each needs some commits, one
after another. A commit is one visit at the partition of the database its execution lives on (one
server, an exponential time of service around what was measured) after one at the workers. It says
where the limit is, and how many partitions and workers move it.

``python -m tests.benchmarks.queue_model --commit-ms 0.9 --step-ms 1.2 --per-second 100``
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from dataclasses import dataclass

COMMITS = 3  # of an execution with one task: its start, the task's outcome, the end
_SIMULATED = 20_000  # executions of a run


@dataclass(frozen=True, slots=True)
class Yard:
    """So many partitions of the database and workers, and what each takes in milliseconds."""

    partitions: int
    workers: int
    commit_ms: float
    step_ms: float

    @property
    def most(self) -> float:
        """Return the executions a second at which something is busy all the time."""
        return 1000 / COMMITS * min(self.partitions / self.commit_ms, self.workers / self.step_ms)


def simulate(yard: Yard, per_second: float, seed: int = 1) -> dict[str, float]:
    """Return the delay beyond the work itself of executions: median and p99, in milliseconds."""
    dice = random.Random(seed)
    free_partition = [0.0] * yard.partitions
    free_workers = [0.0] * yard.workers
    heapq.heapify(free_workers)
    now, events = 0.0, []
    for number in range(_SIMULATED):
        now += dice.expovariate(per_second / 1000)
        events.append((now, number, 0, now, 0.0))
    heapq.heapify(events)
    delays = []
    while events:
        at, number, done, begun, work = heapq.heappop(events)
        if done == COMMITS:
            delays.append(at - begun - work)
            continue
        step, commit = dice.expovariate(1 / yard.step_ms), dice.expovariate(1 / yard.commit_ms)
        stepped = max(at, heapq.heappop(free_workers)) + step
        heapq.heappush(free_workers, stepped)
        place = number % yard.partitions
        ended = free_partition[place] = max(stepped, free_partition[place]) + commit
        heapq.heappush(events, (ended, number, done + 1, begun, work + step + commit))
    delays.sort()
    return {
        "p50_ms": round(delays[len(delays) // 2], 1),
        "p99_ms": round(delays[int(len(delays) * 0.99)], 1),
    }


def main() -> None:
    """Print one JSON line for each load and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit-ms", type=float, required=True, help="of one partition, measured")
    parser.add_argument("--step-ms", type=float, required=True, help="of a worker, measured")
    parser.add_argument("--per-second", type=float, required=True, help="executions, measured")
    given = parser.parse_args()
    for times in (1, 10, 100):
        load = given.per_second * times
        for partitions in (1, 4, 16, 64):
            workers = 2 * partitions
            yard = Yard(partitions, workers, given.commit_ms, given.step_ms)
            found = simulate(yard, load) if load < yard.most else {"overloaded": True}
            about = {"load": times, "per_second": load, "partitions": partitions}
            print(json.dumps({**about, "workers": workers, "most": round(yard.most), **found}))


if __name__ == "__main__":
    main()
