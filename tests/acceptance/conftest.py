"""One real server for the tests that only talk to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


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
