"""The audit tells truly where an act came from: page, API, link, command or the server itself."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.db import audit
from console.features.audit.views import audit_row
from console.models import AuditEntry, Membership, Role
from tests.console.store.helpers import WAIT, create, start
from tests.console.web.helpers import markup, page, text
from tests.security.test_signed_calls import request, send

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_a_call_whose_key_nobody_checked_is_of_the_api(
    project: Project, client: Client, django_user_model: Any, settings: Any
) -> None:
    """With ``--insecure-accept-any-key`` no call has a key of the server; pages still differ."""
    settings.STATEYARD_ACCEPT_ANY_KEY = True
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
        ("stateyard", "LockLogin", "Server"),
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


@pytest.mark.postgres_too
def test_what_people_did_is_apart_from_what_runs_by_itself(
    project: Project, client: Client
) -> None:
    """Starts of rules and schedules, and what tasks of executions do, are no acts of people."""
    arn = create(project, WAIT).arn
    AuditEntry.objects.all().delete()
    for actor in ("ada", "link shop", "Bo, by a link of ada", "rule nightly", "schedule g/s", ""):
        audit.record(project, audit.Actor(actor), "StartExecution", arn)
    audit.record(project, audit.Actor("ada", execution=f"{arn}:x"), "StartExecution", arn)

    def actors(by: str) -> list[str]:
        answer = client.get("/audit/", {"by": by})
        return [row.entry.actor for day in answer.context["days"] for row in day.rows]

    assert actors("people") == ["Bo, by a link of ada", "link shop", "ada"]
    assert actors("server") == ["ada", "", "schedule g/s", "rule nightly"]
    assert len(actors("")) == len(actors("anything")) == 7
    assert 'href="?by=people"' in text(client.get("/audit/"))


@pytest.mark.postgres_too
def test_the_audit_is_exported_as_it_is_filtered(project: Project, client: Client) -> None:
    """As comma-separated values, which no spreadsheet takes for formulas."""
    AuditEntry.objects.all().delete()
    audit.record(project, audit.Actor("ada"), "PutMember", "bob", "=1+1")
    audit.record(project, audit.Actor("rule nightly"), "StartExecution", "x")
    page = client.get("/audit/", {"by": "people", "act": "PutMember"})
    address = page.context["csv_address"]
    assert f'href="{address}"' in text(page)
    answer = client.get(address)
    assert answer["Content-Type"].startswith("text/csv")
    head, *rows = csv.reader(io.StringIO(answer.content.decode()))
    assert head[:5] == ["time", "who", "action", "object", "reason"]
    assert [row[1:5] for row in rows] == [["ada", "PutMember", "bob", "'=1+1"]]
    assert client.get("/audit.csv", {"from": "someday"}).status_code == 422


@pytest.mark.postgres_too
def test_the_whole_name_of_an_object_is_that_one_alone(project: Project, client: Client) -> None:
    """As the page of a rule leads to its changes; a part of a name finds all that contain it."""
    rule = "arn:aws:events:us-east-1:123456789012:rule/night"
    for target in (rule, f"{rule}ly"):
        audit.record(project, audit.Actor("ada"), "events:PutRule", target)

    def targets(what: str) -> list[str]:
        answer = client.get("/audit/", {"what": what})
        return [row.entry.target for day in answer.context["days"] for row in day.rows]

    assert targets(rule) == [rule]
    assert targets("rule/NIGHT") == [f"{rule}ly", rule]
    assert targets(rule.removesuffix("t")) == [f"{rule}ly", rule]


def test_the_audit_leads_to_no_page_that_is_left_out(
    project: Project, client: Client, settings: Any
) -> None:
    """It still says which rule, schedule or bulk job acted while the server had them."""
    target = create(project, WAIT).arn
    for actor, job in (("rule nightly", ""), ("schedule g/s", ""), ("ada", "bulk/7")):
        audit.record(project, audit.Actor(actor, request_id=job), "StartExecution", target)
    links = ('href="/rules/nightly/"', 'href="/schedules/g/s/"', 'href="/executions/bulk/7/"')
    shown = text(client.get("/audit/"))
    assert [link in shown for link in links] == [True] * 3
    settings.STATEYARD_FEATURES = []
    shown = text(client.get("/audit/"))
    assert [link in shown for link in links] == [False] * 3
    for words in ("rule nightly", "schedule g/s", "Bulk job 7"):
        assert words in shown
