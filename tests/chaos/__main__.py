"""``python -m tests.chaos CHECK [--db sqlite|postgres] [--n N] [--faults N] [--seed N]``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.database import Postgres
from tests.chaos.scenarios import SCENARIOS
from tests.chaos.stage import Size

_SIZES = {  # executions, faults, starts a second: the sizes that the README's figures are of
    "kill-workers": (5000, 500, 20.0),
    "zombies": (1500, 100, 10.0),
    "database": (1500, 60, 8.0),
    "kill-web": (10_000, 100, 0.0),
    "callbacks": (2000, 0, 0.0),
    "timers": (10_000, 0, 0.0),
    "poison": (200, 3, 20.0),
    "crash-points": (0, 0, 0.0),
    "mutate-checker": (0, 0, 0.0),
}


def main() -> int:
    """Run one check and print its line; 1 if it found a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("check", choices=SCENARIOS)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--n", type=int, help="executions")
    parser.add_argument("--faults", type=int, help="kills, stops or restarts")
    parser.add_argument("--per-second", type=float, help="starts a second; 0: as fast as it goes")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder, and print it")
    given = parser.parse_args()
    n, faults, per_s = _SIZES[given.check]
    size = Size(
        n=n if given.n is None else given.n,
        faults=faults if given.faults is None else given.faults,
        workers=given.workers,
        per_s=per_s if given.per_second is None else given.per_second,
        seed=given.seed,
    )
    folder = Path(tempfile.mkdtemp(prefix="stepyard-chaos-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg") if given.db == "postgres" else None
    try:
        report = SCENARIOS[given.check](folder, server, size)
    finally:
        if server is not None:
            server.stop("fast")
        if given.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    report.facts["db"] = given.db
    print(report.line(), flush=True)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
