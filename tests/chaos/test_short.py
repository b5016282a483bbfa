"""The chaos suite loses nothing in the small sizes that every test run can afford."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chaos.scenarios import SCENARIOS
from tests.chaos.stage import Size
from tests.pgbouncer import PROGRAM
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
SIZES = {
    ("kill-workers", "postgres"): Size(24, 3, workers=2, per_s=6),
    ("kill-workers", "sqlite"): Size(32, 2, per_s=6),
    ("zombies", "postgres"): Size(32, 4, workers=2, per_s=6),
    ("database", "postgres"): Size(24, 2, workers=2, per_s=4),
    ("mixed", "postgres"): Size(36, 4, workers=2, per_s=4),
    ("blackholed", "postgres"): Size(30, 2, workers=2, per_s=3),
    ("half-closed", "postgres"): Size(30, 2, workers=2, per_s=3),
    ("frozen", "postgres"): Size(30, 2, workers=2, per_s=3),
    ("silent-host", "postgres"): Size(30, 2, workers=2, per_s=3),
    ("silent-host", "sqlite"): Size(30, 1, per_s=3),
    ("read-only", "postgres"): Size(40, 1, workers=2, per_s=2),
    ("promote", "postgres"): Size(40, 1, workers=2, per_s=2),
    ("pooled", "postgres"): Size(40, 2, workers=2, per_s=3),
    ("connections", "postgres"): Size(40, 0, workers=2, per_s=4),
    ("refused", "postgres"): Size(40, 1, workers=2, per_s=2),
    ("kill-web", "postgres"): Size(120, 2, workers=2, per_s=0),
    ("kill-web", "sqlite"): Size(120, 2, per_s=0),
    ("callbacks", "postgres"): Size(25, 0, workers=2),
    ("pauses", "postgres"): Size(40, 3, workers=2, per_s=3),
    ("pauses", "sqlite"): Size(40, 3, per_s=3),
    ("breakpoints", "postgres"): Size(16, 4, workers=2),
    ("breakpoints", "sqlite"): Size(16, 4),
    ("faults", "postgres"): Size(16, 3, workers=2),
    ("faults", "sqlite"): Size(16, 3),
    ("next-starts", "postgres"): Size(60, 3, workers=2, per_s=4),
    ("next-starts", "sqlite"): Size(60, 3, per_s=4),
    ("timers", "postgres"): Size(60, 0, workers=2),
    ("freeze", "sqlite"): Size(2, 0),
    ("poison", "postgres"): Size(16, 1, workers=2, per_s=8),
    ("poison", "sqlite"): Size(16, 1, per_s=8),
    ("fuzz", "sqlite"): Size(100, 0),
    ("fuzz", "postgres"): Size(100, 0, workers=1),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user may enter."""
    path = Path(tempfile.mkdtemp(prefix="stateyard-chaos-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


_NO_POOLER = pytest.mark.skipif(PROGRAM is None, reason="no pgbouncer on this system")
CASES = [
    pytest.param(
        check,
        database,
        marks=[
            *([pytest.mark.postgres_only] if database == "postgres" else []),
            *([_NO_POOLER] if check == "pooled" else []),
        ],
    )
    for check, database in SIZES
]


# A parameter called "db" would count as the fixture: the checks on SQLite would run on both.
@pytest.mark.parametrize(("check", "database"), CASES)
def test_nothing_is_lost(folder: Path, check: str, database: str) -> None:
    """All that was accepted ends as it should, once, and every invariant holds."""
    server = Postgres(folder / "pg", migrated=True) if database == "postgres" else None
    try:
        report = SCENARIOS[check](folder, server, SIZES[check, database])
    finally:
        if server is not None:
            server.stop("fast")
    assert report.violations == [], report.line()
    assert report.n > 0
    if check == "database":
        assert report.facts["ambiguous_commits"] > 0
