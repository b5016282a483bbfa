"""An owner who is signed in, and nothing that is remembered of another test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import project_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client
    from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def _nothing_is_remembered(settings: Settings) -> Iterator[None]:
    """Begin without targets in files, and read the rows anew."""
    settings.STATEYARD_TARGETS, settings.STATEYARD_FUNCTIONS = {}, {}
    project_settings.forget_settings()
    yield
    project_settings.forget_settings()


@pytest.fixture
def owner(signed_in: Callable[[str], Client]) -> Client:
    """Return the client of an owner."""
    return signed_in("owner")
