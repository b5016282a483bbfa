"""What the tests of integrations share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from console.integrations import outbound

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _clients_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the HTTP clients that a test made: Python warns of open sockets that are dropped."""
    made: list[httpx.Client] = []

    class Client(httpx.Client):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(httpx, "Client", Client)
    yield
    for client in made:
        client.close()
    if made:
        outbound._client.cache_clear()
