"""Measure the memory of a web process and a worker on PostgreSQL, idle and under load.

``python -m tests.benchmarks.memory_use [--executions 2000]`` starts both with one pool of
processes for functions, and gives them the load of ``team_rate``. It prints a line for each:
resident memory of the idle process, its peak, and that of the processes it has started for
functions, together.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from pathlib import Path

from tests.benchmarks.compared_servers import process_tree, stateyard_on_postgres
from tests.benchmarks.team_rate import rates

_MB = 1024


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    """Return a figure of ``/proc/PID/status`` in MB; ``VmHWM`` is the peak."""
    match = re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    return int(match[1]) / _MB if match else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executions", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with stateyard_on_postgres(Path(folder), 1) as server, asyncio.Runner() as loop:
            pids = dict(zip(("web", "worker"), server.pids, strict=False))
            idle = {name: resident_mb(pid) for name, pid in pids.items()}
            loop.run(rates(server, options.executions))
            print(
                "| process | idle, MB | peak, MB | processes of functions, MB |\n|---|---|---|---|"
            )
            for name, pid in pids.items():
                children = process_tree([pid]) - {pid}
                functions = sum(resident_mb(child) for child in children)
                peak = resident_mb(pid, "VmHWM")
                print(f"| {name} | {idle[name]:.0f} | {peak:.0f} | {functions:.0f} |", flush=True)


if __name__ == "__main__":
    main()
