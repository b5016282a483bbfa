"""The plugin of pytest: fixtures that are there wherever Stateyard is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.testing.server import StateyardServer


@pytest.fixture(scope="session")
def stateyard_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's data folder. Override it to put ``targets.json`` or other files there."""
    return tmp_path_factory.mktemp("stateyard")


@pytest.fixture(scope="session")
def stateyard(stateyard_data: Path) -> Iterator[StateyardServer]:
    """A server on a free port, for all tests of a session (of a worker, with pytest-xdist)."""
    from console.testing.server import StateyardServer

    server = StateyardServer(stateyard_data)
    server.start()
    yield server
    server.stop()
