"""Administrators read the audit of the server, and nothing of projects in it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console import access
from console.db import audit, refusals
from console.models import AuditEntry
from console.store.people import login_attempts, people
from tests.console.store.helpers import PASS, create, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from console.models import Project


@pytest.fixture
def administrator(project: Project, django_user_model: Any) -> Client:
    """Return the browser of an administrator without a project."""
    del project
    access.forget_principals()
    client = Client()
    client.force_login(django_user_model.objects.create_user("root", is_superuser=True))
    AuditEntry.objects.all().delete()
    return client


def shown(answer: Any) -> list[tuple[str, str]]:
    """Return actor and target of the rows of a page."""
    rows = [row for day in answer.context["days"] for row in day.rows]
    return [(row.entry.actor, row.entry.target) for row in rows]


@pytest.mark.postgres_too
def test_entries_of_no_project_are_shown_newest_first(
    administrator: Client, project: Project
) -> None:
    """Those of projects are not, which members read."""
    audit.record(None, audit.Actor("ana"), "CreateProject", "payments", "account 1")
    audit.record(project, audit.Actor("ben"), "PutMember", "secret")
    refusals.record_refused_sign_in("ana", "192.0.2.7", "r1", "wrong password")
    page = administrator.get("/server-audit/")
    assert shown(page) == [("ana", "ana"), ("ana", "payments")]
    assert "secret" not in text(page)
    assert "wrong password" in text(page)
    assert page.context["actors"] == ["ana"]


def test_it_has_the_filters_and_the_file_of_a_projects_audit(
    administrator: Client, project: Project
) -> None:
    """The file has what the filters choose, and refuses a parameter that it does not read."""
    audit.record(None, audit.Actor("ana"), "CreateProject", "payments")
    audit.record(None, audit.Actor("ben"), "CreateProject", "=shop")
    audit.record(project, audit.Actor("ben"), "CreateProject", "hidden")
    page = administrator.get("/server-audit/", {"who": "ben", "act": "CreateProject"})
    assert shown(page) == [("ben", "=shop")]
    address = page.context["csv_address"]
    answer = administrator.get(address)
    assert 'filename="server-audit.csv"' in answer["Content-Disposition"]
    _, *rows = csv.reader(io.StringIO(answer.content.decode()))
    assert [row[1:4] for row in rows] == [["ben", "CreateProject", "'=shop"]]
    assert administrator.get("/server-audit.csv?whom=ben").status_code == 400
    assert administrator.get("/server-audit/?from=someday").status_code == 422


def test_a_row_does_not_say_whether_an_object_of_a_project_exists(
    administrator: Client, project: Project
) -> None:
    """An administrator sees nothing of a project without being its member."""
    existing = start(create(project, PASS), "1").arn
    for arn in (existing, existing + "gone"):
        audit.record(None, audit.Actor("AKIA"), "Refused", arn)
    page = administrator.get("/server-audit/")
    assert "(deleted)" not in text(page)
    assert "/arn/" not in text(page)


def test_an_owner_does_not_see_it(
    administrator: Client, project: Project, django_user_model: Any
) -> None:
    """It has the names of people of other projects. The menu of administrators leads there."""
    people.put_member(project, "ada", "owner", audit.NOBODY)
    owner = Client()
    owner.force_login(django_user_model.objects.get(username="ada"))
    for path in ("/server-audit/", "/server-audit.csv"):
        assert owner.get(path).status_code == 403
    assert "/server-audit/" not in text(owner.get("/"))
    assert 'href="/server-audit/"' in text(administrator.get("/projects/"))


def test_the_sign_in_of_an_administrator_without_a_project_is_there(
    administrator: Client, project: Project
) -> None:
    """A member's is in the audit of each of their projects."""
    people.put_member(project, "ada", "viewer", audit.NOBODY)
    AuditEntry.objects.all().delete()
    login_attempts.record_sign_in("root", "password", "192.0.2.7")
    login_attempts.record_sign_in("ada", "password", "192.0.2.7")
    assert shown(administrator.get("/server-audit/")) == [("root", "root")]
    assert AuditEntry.objects.get(project=project).actor == "ada"
