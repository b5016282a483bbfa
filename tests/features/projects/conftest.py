"""The people of these tests, and an administrator of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

if TYPE_CHECKING:
    from console.models import Project


@pytest.fixture(autouse=True)
def persons(db: None, django_user_model: Any) -> None:
    """Add two people who belong to no project yet."""
    del db
    for name in ("ana", "ben"):
        django_user_model.objects.create_user(name)


@pytest.fixture
def administrator(project: Project, django_user_model: Any) -> Client:
    """Return the client of an administrator who belongs to no project."""
    del project
    user = django_user_model.objects.create_user("root", is_superuser=True)
    client = Client()
    client.force_login(user)
    return client
