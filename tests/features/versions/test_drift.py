"""A machine's page gives its definition to other tools, and shows what a deployment did not."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from console.db.audit import Actor
from console.features.deploy.machine_formats import FORMATS
from console.models import Tag
from console.store.machines import machines
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

COMMENTED = {**PASS, "Comment": "by ana"}


@pytest.mark.parametrize("tool", FORMATS)
def test_the_export_of_each_tool_is_a_download(project: Project, client: Client, tool: str) -> None:
    """With a name that the tool knows, and the definition as it is now."""
    create(project, COMMENTED)
    assert f"/machines/machine/export/{tool}" in text(client.get("/machines/machine/definition/"))
    response = client.get(f"/machines/machine/export/{tool}")
    shown = text(response)
    assert "by ana" in shown
    ending = FORMATS[tool].ending
    assert response["Content-Disposition"] == f"attachment; filename*=UTF-8''machine.{ending}"
    assert response["X-Content-Type-Options"] == "nosniff"
    if tool in ("sam", "cloudformation"):
        assert list(yaml.safe_load(shown)["Resources"]) == ["Machine"]
    if tool == "asl":
        assert json.loads(shown) == COMMENTED


def test_there_is_no_other_export(project: Project, client: Client) -> None:
    """A tool that nobody knows is no page."""
    create(project, PASS)
    assert client.get("/machines/machine/export/pulumi").status_code == 404


def test_drift_says_who_changed_what(project: Project, client: Client) -> None:
    """From the deployed revision on, with the difference; the same JSON is none."""
    machine = create(project, PASS)
    page = "/machines/machine/definition/"
    assert "deploy" not in text(client.get(page))
    Tag.objects.create(arn=machine.arn, key="stateyard:deployed", value=machine.definition_id)
    assert "Unchanged since <code>stateyard deploy</code>" in text(client.get(page))
    laid_out = json.dumps(PASS, indent=4)
    machines.update_machine(machine, definition=laid_out, actor=Actor("bob"))
    assert "Changed since" not in text(client.get(page))
    machines.update_machine(
        machine, definition=json.dumps(COMMENTED), actor=Actor("ana<b>"), note="a hot fix"
    )
    for address in (page, "/machines/machine/versions/"):
        shown = text(client.get(address))
        assert "Changed since the deployment" in shown
        assert "from=rev:1" in shown
        assert "a hot fix" in shown
        assert "bob" in shown
    assert b"ana<b>" not in client.get(page).content
    assert "by ana" in text(client.get("/machines/machine/diff/?from=rev:1"))
    assert "was pulled from" not in shown
    source = "arn:aws:states:eu-west-1:999999999999:stateMachine:machine"
    Tag.objects.create(arn=machine.arn, key="stateyard:source", value=source)
    assert f"was pulled from {source}." in re.sub(r"<[^>]+>", "", text(client.get(page)))
    tag = Tag.objects.get(arn=machine.arn, key="stateyard:deployed")
    tag.value = "0" * 64
    tag.save()
    assert "is no longer stored" in text(client.get(page))
