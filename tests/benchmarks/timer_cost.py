"""Measure the processor time of a timer that fires, among many that are due together.

``python -m tests.benchmarks.timer_cost [--timers 10000] [--turns 3] [--database sqlite]`` lets one
execution wait, copies its rows by SQL that many times, lets all be due in one second, and prints
the milliseconds of processor time a timer: of the server's processes, and of PostgreSQL's.
``--pause``: print the numbers of the processes, and wait so many seconds, for a profiler. Processor
time says more than lateness, because other work on the machine makes timers late (Linux: reads
``/proc``).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.compared_servers import process_tree_s, running_server
from tests.benchmarks.restart_cost import Storage, one_waiting, server_processes
from tests.chaos.team_server import TeamServer
from tests.postgres import Postgres

_SETTLE_S = 3.0
_LIMIT_S = 180.0
_LEAD_MS = 8_000
_LEFT = "SELECT count(*) FROM console_timer"


class Used(NamedTuple):
    """Milliseconds of processor time a timer, and seconds from their time to the last."""

    server: float
    database: float
    lasted_s: float


def measure(
    folder: Path, timers: int, turns: int, database: Postgres | None, pause_s: float
) -> list[Used]:
    """Start a server, and let so many timers fire in each turn."""
    url = None if database is None else database.url
    storage = Storage(folder, url)
    yard = TeamServer(folder, url)
    with server_processes(yard, 2) as pids:
        with asyncio.Runner() as loop:
            loop.run(one_waiting(running_server(yard).client))
        if pause_s:
            print("processes:", *pids, flush=True)
            time.sleep(pause_s)
        postmaster = _postmaster(database)
        measurements = []
        for turn in range(turns):
            storage.copy_waiting(timers, first=(turn + 1) * 1_000_000_000)
            measurements.append(_turn(storage, timers, turn, pids, postmaster))
        return measurements


def _turn(
    storage: Storage, timers: int, turn: int, pids: tuple[int, ...], postmaster: tuple[int, ...]
) -> Used:
    time.sleep(_SETTLE_S)
    due_ms = time.time_ns() // 1_000_000 + _LEAD_MS
    first = (turn + 1) * 1_000_000_000
    storage.ask(
        f"UPDATE console_timer SET due_ms = {due_ms} + execution_id % 1000"
        f" WHERE execution_id > {first}"
    )
    time.sleep(_LEAD_MS / 2000)  # what setting them cost the database is over
    before = process_tree_s(pids), process_tree_s(postmaster)
    deadline = time.monotonic() + _LIMIT_S
    while storage.ask(_LEFT)[0][0] > 1:  # the one that the others are copies of
        if time.monotonic() > deadline:
            raise SystemExit("not all timers fired")
        time.sleep(0.5)
    lasted_s = time.time() - due_ms / 1000
    after = process_tree_s(pids), process_tree_s(postmaster)
    server, own = ((now - then) / timers * 1000 for now, then in zip(after, before, strict=True))
    return Used(server, own, lasted_s)


def _postmaster(database: Postgres | None) -> tuple[int, ...]:
    if database is None:
        return ()
    return (int((database.folder / "postmaster.pid").read_text().split("\n", 1)[0]),)


def main() -> None:
    """Print the turns and their median."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timers", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        database = Postgres(folder / "postgres") if options.database == "postgres" else None
        try:
            turns = measure(folder, options.timers, options.turns, database, options.pause)
        finally:
            if database is not None:
                database.stop()
    print("| turn | server, ms a timer | PostgreSQL, ms | all fired, s |\n|---|---|---|---|")
    for number, used in enumerate(turns, 1):
        print(f"| {number} | {used.server:.3f} | {used.database:.3f} | {used.lasted_s:.1f} |")
    middle = [statistics.median(figures) for figures in zip(*turns, strict=True)]
    print(f"| median | {middle[0]:.3f} | {middle[1]:.3f} | {middle[2]:.1f} |")


if __name__ == "__main__":
    main()
