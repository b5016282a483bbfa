"""``python -m tests.chaos CHECK [--db sqlite|postgres] [--n N] [--faults N] [--seed N]``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tests import run_folder
from tests.chaos.hosts import small_disk
from tests.chaos.scenarios import SCENARIOS
from tests.chaos.stage import Size
from tests.postgres import Postgres

if TYPE_CHECKING:
    from tests.chaos.load import Report

_SIZES = {  # executions, faults, starts a second: the sizes of a full run
    "kill-workers": (5000, 500, 20.0),
    "zombies": (1500, 100, 10.0),
    "database": (1500, 60, 8.0),
    "kill-web": (10_000, 100, 0.0),
    "callbacks": (2000, 0, 0.0),
    "stops": (2000, 0, 0.0),
    "sessions": (1000, 100, 10.0),
    "mixed": (2000, 40, 10.0),
    "blackholed": (600, 8, 6.0),
    "half-closed": (600, 8, 6.0),
    "frozen": (600, 8, 6.0),
    "silent-host": (200, 6, 6.0),
    "read-only": (600, 8, 6.0),
    "promote": (600, 1, 6.0),
    "pooled": (1000, 60, 8.0),
    "connections": (400, 0, 0.0),
    "refused": (400, 3, 4.0),
    "pauses": (1000, 60, 8.0),
    "breakpoints": (600, 60, 0.0),
    "faults": (1000, 60, 0.0),
    "next-starts": (1200, 60, 8.0),
    "sigterm": (600, 50, 8.0),
    "upgrade": (600, 0, 8.0),
    "restore": (200, 3, 10.0),
    "disk-full": (300, 3, 6.0),
    "data-disk-full": (300, 0, 10.0),
    "clock-skew": (500, 20, 8.0),
    "timers": (10_000, 0, 0.0),
    "poison": (200, 3, 20.0),
    "freeze": (20, 0, 0.0),
    "crash-points": (0, 0, 0.0),
    "mutate-checker": (0, 0, 0.0),
    "guards": (0, 0, 0.0),
    "fuzz": (5000, 0, 0.0),
}

_ON_SQLITE = (
    *(
        "kill-workers",
        "kill-web",
        "callbacks",
        "stops",
        "pauses",
        "breakpoints",
        "faults",
        "next-starts",
        "disk-full",
        "timers",
        "poison",
        "freeze",
    ),
    *("crash-points", "mutate-checker", "guards", "fuzz", "silent-host"),
)
"""The others harm workers beside the web process, or the connection to the database."""


def main() -> int:
    """Run one check and print its line; 1 if it found a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("check", choices=SCENARIOS)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--n", "--calls", type=int, help="executions; of fuzz: calls")
    parser.add_argument("--faults", type=int, help="kills, stops or restarts")
    parser.add_argument("--per-second", type=float, help="starts a second; 0: as fast as it goes")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", default="HEAD~1", dest="revision", help="what upgrade begins at")
    parser.add_argument("--keep", action="store_true", help="keep the folder, and print it")
    options = parser.parse_args()
    if options.db == "sqlite" and options.check not in _ON_SQLITE:
        parser.error(
            f"{options.check}: got --db sqlite, wanted --db postgres: it is of a team server"
        )
    n, faults, per_s = _SIZES[options.check]
    size = Size(
        n=n if options.n is None else options.n,
        faults=faults if options.faults is None else options.faults,
        workers=options.workers,
        per_s=per_s if options.per_second is None else options.per_second,
        seed=options.seed,
        revision=options.revision,
    )
    folder = Path(tempfile.mkdtemp(prefix="stateyard-chaos-"))
    folder.chmod(0o755)
    run_folder.begin()
    try:
        with _disk(folder, options.check, options.db):
            report = _run(folder, options.check, options.db, size)
    finally:
        if options.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    report.facts["db"] = options.db
    print(report.line(), flush=True)
    return 1 if report.violations else 0


def _disk(folder: Path, check: str, db: str) -> AbstractContextManager[None]:
    """A small disk for the database or the data folder, if it is to become full."""
    if check == "data-disk-full":
        return small_disk(folder / "data", 8)
    if check != "disk-full":
        return nullcontext()
    return small_disk(folder / "pg", 320) if db == "postgres" else small_disk(folder / "data", 24)


def _run(folder: Path, check: str, db: str, size: Size) -> Report:
    server = Postgres(folder / "pg") if db == "postgres" else None
    try:
        return SCENARIOS[check](folder, server, size)
    finally:
        if server is not None:
            server.stop("fast")


if __name__ == "__main__":
    sys.exit(main())
