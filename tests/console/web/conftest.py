"""People of a project, signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.config import quotas
from console.db import clock, project_settings
from console.features.roles import role_rehearsal
from console.integrations import mocks, permissions
from console.store.executions import retention

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project


@pytest.fixture(autouse=True)
def known_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no counted page measure the database's clock.

    On PostgreSQL whoever asks for the time first in each half minute takes one query more: a page
    whose queries are counted, now and then.
    """
    monkeypatch.setattr(clock, "_MEASURE_EVERY_S", float("inf"))


@pytest.fixture(autouse=True)
def known_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no counted page read the settings of the project, until a test changes one.

    They are read anew each second: by a page whose queries are counted, now and then.
    """
    forever = float("inf")
    kinds = (quotas.KIND, mocks.KIND, permissions.KIND, retention.KIND, role_rehearsal.KIND)
    used = {kind: project_settings.SettingsInUse(forever, (), (), frozenset()) for kind in kinds}
    monkeypatch.setattr(project_settings, "_used", used)
    monkeypatch.setattr(project_settings, "_remembered", {"default": (forever, {})})


@pytest.fixture
def signed_in(project: Project, django_user_model: Any) -> Callable[[str], Client]:
    """Return a function: role -> a client of a new member with that role."""
    from django.test import Client

    from console.models import Membership

    def make(role: str) -> Client:
        user = django_user_model.objects.create_user(role, password="a long enough password")
        Membership.objects.create(project=project, user=user, role=role)
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def client(signed_in: Callable[[str], Client]) -> Client:
    """Return the client of an editor."""
    return signed_in("editor")
