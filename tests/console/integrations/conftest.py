"""What the tests of integrations share."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from console.db import project_settings
from console.integrations import outbound

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _clients_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a test HTTP clients of its own, and close them.

    Python warns of an open socket that is dropped, and pytest fails the test that runs just then.
    """
    clients: list[httpx.Client] = []

    class Client(httpx.Client):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            clients.append(self)

    monkeypatch.setattr(httpx, "Client", Client)
    monkeypatch.setattr(outbound, "_client", lru_cache(32)(outbound._client.__wrapped__))
    yield
    for client in clients:
        client.close()


@pytest.fixture(autouse=True)
def _no_settings_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no project have settings of pages, so that a test needs no database for them."""
    monkeypatch.setattr(project_settings, "_rows_of", lambda _: {})
