"""The HTTP API of projects: signed calls of administrators, answered in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.test import Client

from console import access
from console.db.audit import Actor
from console.features.projects import deletion, store
from console.models import AuditEntry, Membership, Project
from console.store.people import people

BY = Actor("manage.py")
HOST = "127.0.0.1:8083"


def signed_headers(key_id: str, method: str, path: str, body: str) -> dict[str, str]:
    """Return the headers of a call that is signed with a key."""
    request = AWSRequest(method, f"http://{HOST}{path}", data=body.encode(), headers={"Host": HOST})
    credentials = Credentials(key_id, access.secret_for(key_id))
    SigV4Auth(credentials, "stateyard", "us-east-1").add_auth(request)
    return dict(request.headers.items())


def call(key_id: str, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Make a signed call; return status and answer."""
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    headers = signed_headers(key_id, method, path, text)
    client = Client(enforce_csrf_checks=True)
    answer = client.generic(method, path, text, "application/json", headers=headers)
    assert answer["Content-Type"] == "application/json", answer.content
    return answer.status_code, json.loads(answer.content)


@pytest.fixture
def key(project: Project) -> str:
    """Return a key of an administrator who is a viewer of the default project."""
    people.set_administrator("grace", administers=True, actor=BY)
    member = people.put_member(project, "grace", "viewer", BY)
    return people.new_key(member.user, project, BY)[0].key_id


def test_the_life_of_a_project(key: str) -> None:
    """It is created, renamed, archived, unarchived and deleted, each with an audit entry."""
    status, created = call(key, "POST", "/api/projects", {"name": "payments", "owner": "ana"})
    assert status == 201
    assert created == {
        "name": "payments",
        "accountId": Project.objects.get(name="payments").account_id,
        "members": 1,
        "owners": 1,
        "runningExecutions": 0,
        "archivedAt": None,
        "deletion": None,
    }
    assert call(key, "GET", "/api/projects/payments") == (200, created)
    listed = call(key, "GET", "/api/projects")[1]["projects"]
    assert [each["name"] for each in listed] == ["default", "payments"]
    renamed = call(key, "POST", "/api/projects/payments/rename", {"newName": "billing"})
    assert renamed == (200, {**created, "name": "billing"})
    status, archived = call(key, "POST", "/api/projects/billing/archive")
    assert (status, archived["archivedAt"] is None) == (200, False)
    assert call(key, "POST", "/api/projects/billing/unarchive")[1]["archivedAt"] is None
    call(key, "POST", "/api/projects/billing/archive")
    status, deleting = call(key, "POST", "/api/projects/billing/delete", {"confirm": "billing"})
    assert (status, deleting["deletion"]) == (202, {"executions": 0, "removed": 0})
    deletion.continue_deletions()
    status, answer = call(key, "GET", "/api/projects/billing")
    assert (status, answer["__type"]) == (404, "ResourceNotFound")
    entries = AuditEntry.objects.filter(project=None, action="DeleteProject")
    assert {(entry.actor, entry.target) for entry in entries} == {("grace", "billing")}


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "words"),
    [
        ("", {"name": "a b"}, 400, "ValidationException", "is not a name of 1 to 64 letters"),
        ("", {}, 400, "ValidationException", "name: it is required"),
        ("", {"name": 1}, 400, "ValidationException", "name must be a text, not int"),
        (
            "",
            {"name": "x", "colour": "red"},
            400,
            "ValidationException",
            "colour: there is no such",
        ),
        ("", "[]", 400, "SerializationException", "must be a JSON object, not list"),
        ("", "{", 400, "SerializationException", "is not JSON"),
        (
            "",
            '{"name": "a", "name": "b"}',
            400,
            "SerializationException",
            "the key 'name' stands twice",
        ),
        ("", {"name": "default"}, 409, "ConflictException", "is taken"),
        ("", {"name": "x", "owner": "anna"}, 400, "ValidationException", "nobody called 'anna'"),
        ("/nothing/archive", None, 404, "ResourceNotFound", "no project 'nothing'"),
        ("/default/archive", None, 400, "ValidationException", "belongs to the server"),
        ("/default/delete", {"confirm": "default"}, 400, "ValidationException", "to the server"),
        ("/payments/delete", {"confirm": "payments"}, 409, "ConflictException", "archive it first"),
        ("/payments/delete", {"confirm": "x"}, 400, "ValidationException", "Type the name"),
        ("/payments/rename", {"newName": "default"}, 409, "ConflictException", "is taken"),
    ],
)
def test_errors_say_what_is_wrong(
    key: str, path: str, body: Any, status: int, code: str, words: str
) -> None:
    """With the code, the status and the member."""
    store.create_project("payments", "", "ana", BY)
    answer = call(key, "POST", f"/api/projects{path}", body)
    assert (answer[0], answer[1]["__type"]) == (status, code)
    assert words in answer[1]["message"]
    assert Project.objects.count() == 2


CALLS = [
    ("GET", "/api/projects"),
    ("POST", "/api/projects"),
    ("GET", "/api/projects/payments"),
    *(("POST", f"/api/projects/payments/{act}") for act in ("rename", "archive", "unarchive")),
    ("POST", "/api/projects/payments/delete"),
]
BODY = {"name": "mine", "newName": "mine", "confirm": "payments"}


@pytest.mark.postgres_too
@pytest.mark.parametrize("role", ["viewer", "operator", "editor", "owner"])
def test_no_role_of_a_project_may_call(project: Project, role: str) -> None:
    """An owner neither sees nor changes a project here; each refusal is in the audit."""
    store.create_project("payments", "", "ana", BY)
    member = people.put_member(project, "clara", role, BY)
    key = people.new_key(member.user, project, BY)[0].key_id
    for method, path in CALLS:
        status, answer = call(key, method, path, BODY if method == "POST" else None)
        assert (status, answer["__type"]) == (403, "AccessDeniedException"), path
        assert AuditEntry.objects.filter(action="Refused", target=path, actor="clara").exists()
    assert {*Project.objects.values_list("name", flat=True)} == {"default", "payments"}
    assert Project.objects.filter(archived_ms=None).count() == 2


@pytest.mark.postgres_too
def test_only_a_signature_counts(key: str, administrator: Client) -> None:
    """Neither a session nor a key that is wrong, disabled or signs something else."""
    for method, path in CALLS:
        for client in (Client(), administrator):
            answer = client.generic(method, path, "{}", "application/json")
            assert answer.status_code == 401, path
            assert json.loads(answer.content)["__type"] == "MissingAuthenticationTokenException"
    headers = signed_headers(key, "POST", "/api/projects", '{"name": "payments"}')
    body = '{"name": "stolen"}'
    answer = Client().generic("POST", "/api/projects", body, "application/json", headers=headers)
    assert json.loads(answer.content)["__type"] == "InvalidSignatureException"
    assert answer.status_code == 401
    user = Membership.objects.get(user__username="grace").user
    people.switch_key(Project.objects.get(), key, on=False, actor=BY, by=user)
    assert call(key, "GET", "/api/projects")[0] == 401
    assert Project.objects.count() == 1


def test_a_form_in_parts_is_refused() -> None:
    """It is read before anybody asks for the signature of its bytes."""
    answer = Client().post("/api/projects", {"name": "payments"})
    assert answer.status_code == 400
    assert json.loads(answer.content)["__type"] == "SerializationException"


def test_the_right_ends_with_the_administrator(key: str) -> None:
    """The key stays, and does what its role in its project allows."""
    assert call(key, "GET", "/api/projects")[0] == 200
    people.set_administrator("grace", administers=False, actor=BY)
    assert call(key, "GET", "/api/projects")[0] == 403


def test_an_unknown_parameter_is_refused(key: str) -> None:
    """As on every address that programs read."""
    path = "/api/projects?all=1"
    headers = signed_headers(key, "GET", path, "")
    answer = Client().generic("GET", path, headers=headers)
    assert answer.status_code == 400
