"""The operator's commands do what their help says."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from console import access
from console.models import AccessKey, Membership, StateMachine, Tag
from console.store.machines import tags
from tests.console.store.helpers import PASS, WAIT, create

if TYPE_CHECKING:
    from pathlib import Path

    from console.models import Project


def said(command: str, *args: str, **options: Any) -> str:
    """Run a command and return what it printed."""
    out = io.StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue()


def test_a_member_gets_a_role_and_a_key(project: Project) -> None:
    """The printed secret is the one that signs."""
    printed = said("member", "robot", role="operator", key=True, project=project.name)
    key = AccessKey.objects.get(user__username="robot")
    assert f"aws_secret_access_key = {access.secret_for(key.key_id)}" in printed
    assert Membership.objects.get(user__username="robot").role == "operator"
    said("member", "robot", remove=True, project=project.name)
    assert not AccessKey.objects.filter(pk=key.pk).exists()


def test_a_project_that_is_none_is_told(project: Project) -> None:
    """The message names those there are."""
    with pytest.raises(CommandError, match=f"wanted one of: .*{project.name}"):
        said("member", "robot", project="nothing")


def test_what_is_exported_can_be_imported(project: Project, tmp_path: Path) -> None:
    """Definition, type, role and tags come back; a second import updates."""
    machine = create(project, PASS, "one")
    create(project, WAIT, "two")
    tags.put_tags(machine.arn, {"team": "a"})
    file = tmp_path / "machines.json"
    file.write_text(said("export_machines", project=project.name))
    before = {one.name: one.definition_id for one in StateMachine.objects.all()}
    StateMachine.objects.all().delete()
    Tag.objects.all().delete()
    printed = said("import_machines", str(file), project=project.name)
    assert printed.count("created") == 2
    assert {one.name: one.definition_id for one in StateMachine.objects.all()} == before
    assert Tag.objects.get(arn=machine.arn).value == "a"
    assert said("import_machines", str(file), project=project.name).count("updated") == 2


def test_what_cannot_be_imported_is_told_and_the_rest_is_done(
    project: Project, tmp_path: Path
) -> None:
    """A definition with errors stops nobody else's."""
    role = "arn:aws:iam::123456789012:role/x"
    good = {"name": "good", "roleArn": role, "definition": json.dumps(PASS)}
    bad = {"name": "bad", "roleArn": role, "definition": "{}"}
    file = tmp_path / "machines.json"
    file.write_text(json.dumps([bad, good]))
    with pytest.raises(CommandError, match=r"\[0\] bad: Invalid State Machine Definition"):
        said("import_machines", str(file), project=project.name)
    assert StateMachine.objects.filter(name="good").exists()
    file.write_text('{"not": "an array"}')
    with pytest.raises(CommandError, match="wanted what export_machines printed"):
        said("import_machines", str(file), project=project.name)
