"""The lines to connect with stay after the first state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_the_connect_page_stays(project: Project, client: Client) -> None:
    """After the first state machine, a button of the overview leads to it."""
    create(project, PASS)
    assert 'href="/connect/"' in text(client.get("/"))
    shown = text(client.get("/connect/"))
    assert "Use it from your shell and your code" in shown
    assert "AWS_ENDPOINT_URL=" in shown
