"""The HTTP API of a project's settings: signed calls of owners, each in the project of its key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from console import access
from console.db.audit import Actor
from console.features.access_keys.key_scopes import read_scope
from console.features.project_settings import sections
from console.features.projects import store as projects
from console.models import AuditEntry, Project, ProjectSetting
from console.store.people import people
from tests.features.projects.test_api import signed_headers

if TYPE_CHECKING:
    from django.http import HttpResponse

PATH = "/api/settings"
BY = Actor("manage.py")
SENT = "quotas: {open_executions: 500}\ndeny: {orders-role: ['sqs:SendMessage']}\n"
CHANGES = ["+ quotas: open_executions: 500", "+ deny: orders-role: sqs:SendMessage"]


def call(key_id: str, method: str = "GET", text: str = "", query: str = "") -> HttpResponse:
    """Make a signed call; return the answer."""
    headers = signed_headers(key_id, method, PATH + query, text)
    return Client(enforce_csrf_checks=True).generic(  # type: ignore[return-value]
        method, PATH + query, text, "application/yaml", headers=headers
    )


def refused(answer: HttpResponse, status: int, code: str) -> str:
    """Return the message of a refusal; nothing was imported."""
    body = json.loads(answer.content)
    assert (answer.status_code, body["__type"]) == (status, code)
    assert not ProjectSetting.objects.exists()
    return str(body["message"])


def new_key(project: Project, role: str, scope: str | None = "all", *listed: str) -> str:
    """Return a key of a new member."""
    access.forget_principals()
    user = people.put_member(project, role, role, BY).user
    key, _ = people.new_key(user, project, BY, scope=read_scope(scope, listed, ()))
    return key.key_id


@pytest.fixture(autouse=True)
def persons(db: None, django_user_model: type) -> None:
    """Add a person for each role."""
    del db
    for role in ("viewer", "operator", "editor", "owner"):
        django_user_model.objects.create_user(role)  # type: ignore[attr-defined]


def test_a_key_of_an_owner_exports_and_imports(project: Project) -> None:
    """After a dry run that changes nothing; the audit names the key."""
    key = new_key(project, "owner")
    expected = {"changes": CHANGES, "secrets": []}
    for query, count in (("?dryRun=true", 0), ("", 2)):
        answer = call(key, "POST", SENT, query)
        assert (answer.status_code, json.loads(answer.content)) == (200, expected)
        assert ProjectSetting.objects.count() == count
    entry = AuditEntry.objects.filter(action="PutProjectSetting").latest("pk")
    assert (entry.actor, entry.key_id) == ("owner", key)
    exported = call(key)
    assert exported["Content-Type"] == "application/yaml; charset=utf-8"
    assert exported.content.decode() == sections.export_settings(project)
    assert json.loads(call(key, "POST", exported.content.decode()).content)["changes"] == []


def test_a_repeated_parameter_is_refused(project: Project) -> None:
    """``?dryRun=true&dryRun=false`` would import."""
    answer = call(new_key(project, "owner"), "POST", SENT, "?dryRun=true&dryRun=false")
    assert answer.status_code == 400
    assert answer.content == b"dryRun is given 2 times in this URL. Accepted: once\n"
    assert not ProjectSetting.objects.exists()


def test_a_key_reaches_the_settings_of_its_project_only(project: Project) -> None:
    """A call cannot name another project: the key decides."""
    key = new_key(project, "owner")
    other = projects.create_project("payments", "", "owner", BY)
    assert call(key, "POST", SENT).status_code == 200
    assert not ProjectSetting.objects.filter(project=other).exists()
    assert b"open_executions: 500" not in call(new_key(other, "owner")).content


def test_only_a_signature_with_the_secret_counts(project: Project) -> None:
    """Of this body and this query, and of a key that is enabled; a session is no signature."""
    key = new_key(project, "owner")
    missing = Client().generic("POST", PATH, SENT, "application/yaml")
    refused(missing, 401, "MissingAuthenticationTokenException")  # type: ignore[arg-type]
    headers = signed_headers(key, "POST", f"{PATH}?dryRun=true", SENT)
    for path, text in ((f"{PATH}?dryRun=true", "quotas: {}"), (PATH, SENT)):
        answer = Client().generic("POST", path, text, "application/yaml", headers=headers)
        refused(answer, 401, "InvalidSignatureException")  # type: ignore[arg-type]
    user = project.membership_set.get(role="owner").user
    people.switch_key(project, key, on=False, actor=BY, by=user)
    refused(call(key), 401, "UnrecognizedClientException")
    signed_in = Client()
    signed_in.force_login(user)
    assert signed_in.get(PATH).status_code == 401


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
def test_a_key_without_the_role_is_refused(project: Project, role: str) -> None:
    """And each refusal is in the audit with the action."""
    key = new_key(project, role)
    for method, action in (("GET", "ExportProjectSettings"), ("POST", "PutProjectSetting")):
        words = refused(call(key, method, SENT), 403, "AccessDeniedException")
        assert f"User: {role} is not authorized to perform: states:{action}" in words
        entry = AuditEntry.objects.filter(action="Refused", target=PATH).latest("pk")
        assert (entry.actor, entry.key_id) == (role, key)
        assert entry.reason == action


def test_an_archived_project_is_read_only(project: Project) -> None:
    """Its keys neither change nor export its settings."""
    del project
    payments = projects.create_project("payments", "", "owner", BY)
    key = new_key(payments, "owner")
    projects.archive_project("payments", BY)
    access.forget_principals()
    words = refused(call(key, "POST", SENT), 403, "AccessDeniedException")
    assert words.startswith("The project 'payments' is archived: it is read-only")
    assert refused(call(key), 403, "AccessDeniedException") == words
    projects.unarchive_project("payments", BY)
    access.forget_principals()
    assert call(key).status_code == 200


@pytest.mark.parametrize(
    ("scope", "listed"), [("read", ()), ("start", ()), (None, ("StartExecution",))]
)
def test_the_scope_of_a_key_counts(
    project: Project, scope: str | None, listed: tuple[str, ...]
) -> None:
    """A key of an owner that is limited does not reach the settings."""
    key = new_key(project, "owner", scope, *listed)
    for method in ("GET", "POST"):
        words = refused(call(key, method, SENT), 403, "AccessDeniedException")
        assert f"the scope of access key {key} does not allow it" in words


def test_what_a_call_may_not_have_is_refused(project: Project) -> None:
    """With the place in the file, or the name of the parameter."""
    key = new_key(project, "owner")
    for text, query, message in (
        ("quotas: 1", "", "line 1: quotas: this section must have settings by name"),
        (SENT, "?dryRun=yes", "dryRun: got 'yes', wanted true or false"),
    ):
        words = refused(call(key, "POST", text, query), 400, "ValidationException")
        assert words == message
