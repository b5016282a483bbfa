"""Changes in the editor have everything that a save would change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import markup

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_changes_have_the_role(project: Project, client: Client) -> None:
    """It is saved with the text; what is the same is called that."""
    machine = create(project, PASS)
    text, other = json.dumps(PASS, indent=2), "arn:aws:iam::123456789012:role/other"

    def changes(**sent: str) -> str:
        saved = {"text": machine.definition.text, "role": machine.role_arn}
        return markup(client.post("/machines/machine/edit/_changes", saved | sent))

    assert "No changes." in changes()
    shown = changes(role=other)
    assert f"{other}" in shown
    assert machine.role_arn in shown
    assert "The definition has no changes." in shown
    assert "line" in changes(text=text.replace("Pass", "Succeed"))
