"""The operator's commands do what their help says."""

from __future__ import annotations

import configparser
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from console import access
from console.config import public_address
from console.management import addresses
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
    """The key comes as a profile that works as it is pasted; its secret is the one that signs."""
    address = "https://yard.example.com"
    options = {"role": "operator", "key": True, "project": project.name}
    printed = said("member", "robot", address=f"{address}/", **options)
    key = AccessKey.objects.get(user__username="robot")
    profiles = configparser.RawConfigParser()
    profiles.read_string(printed.partition("\n")[2])
    assert dict(profiles["stateyard"]) == {
        "aws_access_key_id": key.key_id,
        "aws_secret_access_key": access.secret_for(key.key_id),
        "region": settings.STATEYARD_REGION,
        "endpoint_url": address,
        "disable_host_prefix_injection": "true",
    }
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
    before = {machine.name: machine.definition_id for machine in StateMachine.objects.all()}
    StateMachine.objects.all().delete()
    Tag.objects.all().delete()
    printed = said("import_machines", str(file), project=project.name)
    assert printed.count("created") == 2
    assert {machine.name: machine.definition_id for machine in StateMachine.objects.all()} == before
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


@pytest.mark.parametrize(
    ("listening", "configured", "address"),
    [
        (("0.0.0.0", 8083), {}, "http://127.0.0.1:8083"),
        (("::1", 80), {}, "http://[::1]:80"),
        (
            ("0.0.0.0", 8083),
            {"HTTPS": True, "HOSTS": ["web", ".example.com", "yard.example.com"]},
            "https://yard.example.com",
        ),
        (("10.1.1.1", 8083), {"HTTPS": True, "HOSTS": ["web"]}, "http://10.1.1.1:8083"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(
    listening: tuple[str, int],
    configured: dict[str, Any],
    address: str,
    settings: Any,
) -> None:
    """Behind a proxy it is the public name; of a socket on all interfaces it is the loopback."""
    settings.STATEYARD_URL = "http://web:8083"
    settings.STATEYARD_HTTPS = configured.get("HTTPS", False)
    settings.STATEYARD_HOSTS = configured.get("HOSTS", [])
    assert addresses.public_address(*listening) == address


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_database_is_prepared_as_a_step_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As each process of a team does first; twice is as good as once."""
    monkeypatch.setattr("console.management.capacity.fit_pool", lambda _: None)
    for _ in range(2):
        assert said("prepare_database") == "the database is prepared\n"


@pytest.mark.sqlite_only
def test_only_a_postgresql_is_prepared() -> None:
    """`up` migrates its own database."""
    with pytest.raises(CommandError, match="STATEYARD_DATABASE_URL: got none"):
        said("prepare_database")


@pytest.mark.parametrize(
    ("url", "https", "hosts", "address"),
    [
        ("http://web:8083", True, ["web", "yard.example.com"], "https://yard.example.com"),
        ("http://web:8083", True, ["web"], "http://web:8083"),
        ("http://web:8083", False, ["web", "yard.example.com"], "http://web:8083"),
        (
            "https://a.example.com",
            True,
            ["a.example.com", "b.example.com"],
            "https://a.example.com",
        ),
        ("", True, [], ""),
    ],
)
def test_links_in_messages_lead_people_to_the_proxy(
    url: str, https: bool, hosts: list[str], address: str, settings: Any
) -> None:
    """An address inside the network, as Compose sets it, is for workers alone."""
    settings.STATEYARD_URL, settings.STATEYARD_HTTPS, settings.STATEYARD_HOSTS = url, https, hosts
    assert public_address.page_address() == address
