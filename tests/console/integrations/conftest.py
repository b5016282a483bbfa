"""What the tests of integrations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import project_settings
from console.integrations import outbound

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _connections_are_closed() -> Iterator[None]:
    """Close the idle connections of a test.

    Python warns of an open socket that is dropped, and pytest fails the test that runs just then.
    """
    yield
    outbound.close_idle()


@pytest.fixture(autouse=True)
def _no_settings_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no project have settings of pages, so that a test needs no database for them."""
    monkeypatch.setattr(project_settings, "_rows_of", lambda _: {})
