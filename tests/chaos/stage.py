"""The size of a scenario, and the steps at its beginning and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.load import Load, Report, count_calls, invariants
from tests.chaos.team_server import TeamServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres import Postgres


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it: executions, faults, workers, starts a second; what to upgrade from."""

    n: int
    faults: int
    workers: int = 4
    per_s: float = 20.0
    seed: int = 1
    revision: str = "HEAD~1"


def begin(
    folder: Path,
    server: Postgres | None,
    size: Size,
    *,
    lease_s: float = 10.0,
    url: str | None = None,
) -> TeamServer:
    """Start the processes and create the state machines."""
    own = url or (None if server is None else server.url)
    yard = TeamServer(folder, own, lease_s=lease_s)
    yard.start_web()
    if own is not None:
        yard.start_workers(size.workers)
    yard.prepare()
    return yard


def close(yard: TeamServer, load: Load | None, report: Report) -> Report:
    """Judge what the executions came to, ask the checker, and end the processes."""
    try:
        if load is not None:
            load.judge(report)
            count_calls(yard, report, None)
            load.end()
        invariants(yard, report)
    finally:
        report.violations += yard.crashes()
        yard.stop()
    return report
