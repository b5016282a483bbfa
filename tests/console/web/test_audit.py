"""The audit tells truly where an act came from: page, API, link, command or the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.models import AuditEntry, Membership, Role
from console.store.db import audit
from console.web.people.audit_rows import audit_row
from tests.console.store.helpers import WAIT, create, start
from tests.console.web.helpers import markup, page
from tests.security.test_signed_calls import request, send

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_a_call_whose_key_nobody_checked_is_of_the_api(
    project: Project, client: Client, django_user_model: Any, settings: Any
) -> None:
    """With ``--insecure-accept-any-key`` no call has a key of the server; pages still differ."""
    settings.STEPYARD_ACCEPT_ANY_KEY = True
    access.forget_principals()
    owner = django_user_model.objects.create_user("first")
    Membership.objects.create(project=project, user=owner, role=Role.OWNER)
    execution = start(create(project, WAIT), name="x")
    send(request("StopExecution", executionArn=execution.arn))
    stopped = AuditEntry.objects.get(action="StopExecution")
    assert audit_row(stopped).origin == "API, key not checked"
    assert "API, key not checked</td>" in markup(client.get("/audit/"))
    assert ">key not checked</span>" in markup(client.get(page(execution)))
    client.post("/machines/machine/start/", {"input": "{}"})
    assert audit_row(AuditEntry.objects.latest("pk")).origin == "Console"


@pytest.mark.parametrize(
    ("actor", "action", "origin"),
    [
        ("Bo, by a link of ada", "SendTaskSuccess", "Approval link"),
        ("link Bo, by a link of ada", "SendTaskFailure", "Approval link"),
        ("link shop, by a link of ada", "StartExecution", "Start link"),
        ("link shop", "StartExecution", "Start link"),
        ("manage.py", "PutMember", "Command line"),
        ("rule nightly", "StartExecution", "Server"),
        ("stepyard", "LockLogin", "Server"),
    ],
)
def test_who_came_by_a_link_or_a_command_is_not_the_server(
    project: Project, actor: str, action: str, origin: str
) -> None:
    """Readers of links choose their names, so that the action tells two kinds of links apart."""
    audit.record(project, audit.Actor(actor), action, "target")
    assert audit_row(AuditEntry.objects.get()).origin == origin


def test_the_targets_of_a_rule_are_named_as_such(project: Project, client: Client) -> None:
    """Their ids alone would say nothing."""
    for ids, action in (("1", "PutTargets"), ("1, mail", "RemoveTargets")):
        audit.record(project, audit.Actor("ada"), f"events:{action}", "target", ids)
    shown = markup(client.get("/audit/"))
    assert "<bdi>Target 1</bdi>" in shown
    assert "<bdi>Targets 1, mail</bdi>" in shown
