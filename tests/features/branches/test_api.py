"""The HTTP API of branches: signed calls of members, each in the project of its key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console import access
from console.features.branches import store
from console.features.branches.models import Branch
from console.features.projects import store as projects
from console.models import AccessKey, AuditEntry, Project
from console.store.people import people
from tests.console.store.helpers import PASS, create, drain, one, start
from tests.features.branches.conftest import BY
from tests.features.projects.test_api import call, signed_headers

if TYPE_CHECKING:
    from collections.abc import Callable

FAIL = one("F", Type="Fail", Error="Broken", Cause="as meant")
FAIL["States"]["F"].pop("End")
X = {"branch": "feature/x"}
CALLS: list[tuple[str, str, Any, str]] = [
    ("GET", "/api/branches", None, "viewer"),
    ("POST", "/api/branches", {**X, "ttl": "1d"}, "editor"),
    ("POST", "/api/branches/key", X, "viewer"),
    ("POST", "/api/branches/failures", {**X, "since": "0"}, "viewer"),
    ("POST", "/api/branches/delete", X, "editor"),
]
"""Calls, and the least role that may make them."""


def test_the_life_of_a_branch(payments: Project, key_of: Callable[[str], str]) -> None:
    """An editor, who is no administrator, makes, lists, extends and deletes it."""
    key = key_of("ed")
    status, created = call(key, "POST", "/api/branches", {**X, "ttl": "3d"})
    assert status == 201
    project = Project.objects.get(name="payments~feature~x")
    assert created["project"] == project.name
    assert created["accountId"] == project.account_id
    assert created["parent"] == {"name": "payments", "accountId": "222222222222"}
    assert created["created"]
    assert created["expiresAt"] - created["createdAt"] == 3 * 86_400
    assert created["secretAccessKey"] == access.secret_for(created["accessKeyId"])
    own = AccessKey.objects.get(key_id=created["accessKeyId"])
    assert (own.project, own.user.get_username()) == (project, "ed")
    status, extended = call(key, "POST", "/api/branches", X)
    assert (status, extended["created"]) == (200, False)
    assert extended["accessKeyId"] == created["accessKeyId"]
    status, opened = call(key, "POST", "/api/branches/key", X)
    assert (status, opened["accessKeyId"]) == (200, created["accessKeyId"])
    listed = call(key, "GET", "/api/branches")[1]["branches"]
    assert [(each["branch"], each["createdBy"]) for each in listed] == [("feature/x", "ed")]
    assert "secretAccessKey" not in listed[0]
    assert call(key, "POST", "/api/branches/delete", X) == (202, X)
    assert call(key, "GET", "/api/branches")[1]["branches"][0]["deleting"]
    status, answer = call(key, "POST", "/api/branches", X)
    assert (status, answer["__type"]) == (409, "ConflictException")
    assert AuditEntry.objects.get(project=payments, action="DeleteBranch").actor == "ed"


def test_a_branch_serves_its_key(payments: Project, key_of: Callable[[str], str]) -> None:
    """The key says the branch is the project: there are no branches of it."""
    create(payments, PASS)
    created = call(key_of("ed"), "POST", "/api/branches", X)[1]
    status, answer = call(created["accessKeyId"], "POST", "/api/branches", {"branch": "y"})
    assert (status, answer["__type"]) == (400, "ValidationException")
    assert "is a branch itself" in answer["message"]
    assert call(created["accessKeyId"], "GET", "/api/branches") == (200, {"branches": []})


@pytest.mark.parametrize("name", ["olga", "ed", "otto", "vera"])
def test_each_role_may_what_it_may(
    payments: Project, key_of: Callable[[str], str], name: str
) -> None:
    """An editor makes and deletes branches, a viewer uses them; a refusal is in the audit."""
    roles = ["viewer", "operator", "editor", "owner"]
    own = payments.membership_set.get(user__username=name).role
    key = key_of(name)
    store.put_branch(payments, "feature/x", "3d", BY)
    for method, path, body, least in CALLS:
        status, answer = call(key, method, path, body)
        if roles.index(own) >= roles.index(least):
            assert status in (200, 202), path
        else:
            assert (status, answer["__type"]) == (403, "AccessDeniedException"), path
            assert AuditEntry.objects.filter(action="Refused", target=path, actor=name).exists()


def test_nobody_reaches_the_branches_of_another_project(
    payments: Project, key_of: Callable[[str], str], django_user_model: Any
) -> None:
    """The owner of another project finds none of them, not even an administrator does."""
    store.put_branch(payments, "feature/x", "3d", BY)
    django_user_model.objects.create_user("root", is_superuser=True)
    other = projects.create_project("other", "", "root", BY)
    user = other.membership_set.get().user
    key = people.new_key(user, other, BY)[0].key_id
    assert call(key, "GET", "/api/branches") == (200, {"branches": []})
    for method, path, body, _ in CALLS[2:]:
        assert call(key, method, path, body)[0] == 404, path
    created = call(key, "POST", "/api/branches", X)[1]
    assert created["project"] == "other~feature~x"
    assert created["accountId"] != Project.objects.get(name="payments~feature~x").account_id
    assert Branch.objects.count() == 2
    del key_of


def test_only_a_signature_counts(payments: Project, key_of: Callable[[str], str]) -> None:
    """Neither a session nor a key that is disabled, nor a signature of another body."""
    key = key_of("ed")
    client = Client()
    client.force_login(payments.membership_set.get(user__username="ed").user)
    for method, path, _, _ in CALLS:
        for caller in (Client(), client):
            answer = caller.generic(method, path, "{}", "application/json")
            assert answer.status_code == 401, path
    headers = signed_headers(key, "POST", "/api/branches", json.dumps(X))
    answer = Client().generic("POST", "/api/branches", '{"branch": "y"}', headers=headers)
    assert json.loads(answer.content)["__type"] == "InvalidSignatureException"
    people.switch_key(payments, key, on=False, actor=BY)
    assert call(key, "GET", "/api/branches")[0] == 401
    assert not Branch.objects.exists()


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("", {}, "branch: it is required"),
        ("", {"branch": "a b"}, "is not the name of a branch"),
        ("", {**X, "ttl": "soon"}, "is not a time such as 30m"),
        ("", {**X, "parent": "default"}, "parent: there is no such member"),
        ("/failures", {**X, "since": "soon"}, "since: it is not a number"),
        ("/failures", {**X, "since": "nan"}, "since: it is not a number"),
    ],
)
def test_errors_say_what_is_wrong(
    payments: Project, key_of: Callable[[str], str], path: str, body: Any, words: str
) -> None:
    """With the code and the member."""
    if path:
        store.put_branch(payments, "feature/x", "3d", BY)
    status, answer = call(key_of("ed"), "POST", f"/api/branches{path}", body)
    assert (status, answer["__type"]) == (400, "ValidationException")
    assert words in answer["message"]


def test_failures_are_those_since_a_moment(payments: Project, key_of: Callable[[str], str]) -> None:
    """By ARN and status, those of the branch only."""
    create(payments, FAIL)
    key = key_of("vera")
    drain(start(payments.statemachine_set.get()))
    branch = store.put_branch(payments, "feature/x", "3d", BY).branch.project
    since = str(call(key, "POST", "/api/branches/key", X)[1]["now"])
    failed = drain(start(branch.statemachine_set.get()))
    answer = call(key, "POST", "/api/branches/failures", {**X, "since": since})
    assert answer == (200, {"executions": [{"executionArn": failed.arn, "status": "FAILED"}]})
    later = str(failed.stop_ms / 1000 + 1)
    answer = call(key, "POST", "/api/branches/failures", {**X, "since": later})
    assert answer == (200, {"executions": []})


def test_a_server_that_takes_any_key_has_no_branches(payments: Project, settings: Any) -> None:
    """It cannot tell by the key which project is meant."""
    settings.STATEYARD_ACCEPT_ANY_KEY = True
    status, answer = call("AKIAANY", "POST", "/api/branches", X)
    assert status == 400
    assert "accepts any access key" in answer["message"]
    assert not Branch.objects.exists()
    del payments
