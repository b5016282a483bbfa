"""Do the store and the worker behave the same on PostgreSQL?"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.conftest import postgres_url, run_again

pytestmark = pytest.mark.postgres


@pytest.mark.skipif(
    "STEPYARD_DATABASE_URL" in os.environ, reason="this run is on PostgreSQL already"
)
def test_store_and_worker_on_postgresql() -> None:
    """The tests of store, worker and API pass on a real PostgreSQL, none of them skipped."""
    # not in pytest's own folder: another run that begins meanwhile shuts the server's user out
    folder = Path(tempfile.mkdtemp(prefix="stepyard-postgres-"))
    try:
        url = postgres_url(folder)
    except Exception as error:
        if os.environ.get("STEPYARD_REQUIRE_POSTGRES"):
            raise
        pytest.skip(f"no PostgreSQL can be started here: {error}")
    names = ("store", "worker", "awsapi", "logs", "metrics", "web", "test_invariants.py")
    places = [f"tests/console/{name}" for name in names]
    done = run_again(url, *places)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
    shutil.rmtree(folder, ignore_errors=True)
