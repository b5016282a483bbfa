"""What each page says of how this server was started."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django.fixtures import Settings


def test_every_page_says_that_pauses_are_scaled(client: Client, settings: Settings) -> None:
    """With the factor; by default there is nothing to say."""
    assert "Wait states and retry delays take" not in client.get("/").content.decode()
    settings.STATEYARD_WAIT_TIME_SCALE = 0.01
    assert "take 0.01 times as long" in " ".join(client.get("/").content.decode().split())
    settings.STATEYARD_WAIT_TIME_SCALE = 0.0
    assert "take 0 times as long" in " ".join(client.get("/tasks/").content.decode().split())
