"""One real server for the tests that only talk to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running ``manage.py up`` with its samples."""
    server = Server(tmp_path_factory.mktemp("up") / "data").start()
    yield server
    server.stop()


@pytest.fixture
def sfn(up: Server) -> Any:
    """A boto3 client with the owner's key."""
    return up.client()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the home of somebody whose server keeps its data where ``up`` does by itself."""
    folder = tmp_path_factory.mktemp("home")
    server = Server(folder / ".local/share/stateyard")
    server.data.parent.mkdir(parents=True)
    server.start()
    yield folder
    server.stop()
