"""The pytest plugin: fixtures for tests with a Stateyard server, and plugins of features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.feature import Hook, hooked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from console.testing.server import StateyardServer


class _ServerHooks:
    """Hooks of this plugin, for plugins of features."""

    def pytest_stateyard_stopping(self, server: StateyardServer, config: pytest.Config) -> None:
        """Read from the server of a session before it stops."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks of this plugin."""
    pluginmanager.add_hookspecs(_ServerHooks)


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugins of features, which add their options."""
    try:
        plugins = hooked(Hook.PYTEST_PLUGIN)
    except ValueError as error:  # a wrong STATEYARD_FEATURES
        raise pytest.UsageError(str(error)) from None
    for plugin in plugins:
        pluginmanager.register(plugin())


@pytest.fixture(scope="session")
def stateyard_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's data folder. Override it to add ``targets.json`` or other files."""
    return tmp_path_factory.mktemp("stateyard")


@pytest.fixture(scope="session")
def stateyard(stateyard_data: Path, pytestconfig: pytest.Config) -> Iterator[StateyardServer]:
    """A server on a free port for a test session (with pytest-xdist, for a worker)."""
    from console.testing.server import StateyardServer

    server = StateyardServer(stateyard_data)
    server.start()
    yield server
    try:
        pytestconfig.hook.pytest_stateyard_stopping(server=server, config=pytestconfig)
    finally:
        server.stop()
