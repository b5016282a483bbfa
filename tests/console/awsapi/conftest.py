"""What the tests of the API share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console import quotas
from tests.console.awsapi.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project


@pytest.fixture
def world(project: Project, django_user_model: Any, settings: Any) -> Iterator[World]:
    """Return a project with something of each kind."""
    settings.STEPYARD_QUOTAS = {}
    quotas.forget()
    yield World(project, django_user_model.objects.create_user("ana"))
    quotas.forget()
