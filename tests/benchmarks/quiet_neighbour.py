"""Measure how much later a quiet project is served beside one whose receivers say nothing.

``python -m tests.benchmarks.quiet_neighbour [--count 60] [--noise 200] [--database DB]`` measures
HTTP Tasks, notifications and schedules of a project alone. Then another project starts so many
executions whose ends a silent webhook is told of, as many whose HTTP Task calls a silent host, and
puts ten events for five silent targets; the first project is measured again. It ends with 1 if the
99th percentile of any is more than two seconds later than alone. The client shares the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.team_load import percentiles
from tests.chaos.neighbours import Neighbours
from tests.chaos.team_server import TeamServer
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

BAR_S = 2.0
WORKERS = 2


@contextmanager
def neighbours(folder: Path, database: str) -> Iterator[Neighbours]:
    """Start a server with both projects."""
    server = Postgres(folder / "pg") if database == "postgres" else None
    yard = TeamServer(folder, None if server is None else server.url)
    both = Neighbours(yard)
    try:
        yard.start_web()
        if server is not None:
            yard.start_workers(WORKERS)
        both.prepare()
        yield both
    finally:
        yard.stop()
        both.close()
        if server is not None:
            server.stop("fast")


def measure(both: Neighbours, count: int, noise: int) -> bool:
    """Print what was measured; return whether the quiet project is served in time."""
    both.measure("warm", 5)
    alone = asdict(both.measure("alone", count))
    both.make_noise(noise)
    beside = asdict(both.measure("beside", count))
    in_time = True
    for kind, times in alone.items():
        later = _p99(beside[kind]) - _p99(times)
        in_time = in_time and later <= BAR_S
        print(f"{kind} alone:  {percentiles(times)}")
        print(f"{kind} beside: {percentiles(beside[kind])}; p99 {later:+.2f} s", flush=True)
    return in_time


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, round(len(times) * 0.99))]


def main() -> int:
    """Measure on each database in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--noise", type=int, default=200)
    parser.add_argument("--database", choices=("sqlite", "postgres", "all"), default="all")
    options = parser.parse_args()
    names = ("sqlite", "postgres") if options.database == "all" else (options.database,)
    in_time = True
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            print(f"\n## {name}")
            with neighbours(Path(folder), name) as both:
                in_time = measure(both, options.count, options.noise) and in_time
    return 0 if in_time else 1


if __name__ == "__main__":
    sys.exit(main())
