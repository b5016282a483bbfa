"""A service account is a program of one project: owners make it, and nobody signs in as it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from console import access
from console.awsapi import services
from console.db.audit import Actor
from console.errors import ErrorCode, ServiceError
from console.features.access_keys import accounts
from console.features.access_keys.models import ServiceAccount
from console.features.members import store as invitations
from console.models import AccessKey, AuditEntry, Execution, Membership, Project, Role
from console.store.people import people
from console.store.people.reset import reset_server
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text
from tests.refusals import raises_code
from tests.security.test_rights import send

if TYPE_CHECKING:
    from collections.abc import Callable

    SignIn = Callable[[str], Client]

BY = Actor("owner", "", "test")
PAGE = "/service-accounts/"
CI = "ci/123456789012"


@pytest.mark.postgres_too
def test_an_owner_leads_one_through_its_life(project: Project, signed_in: SignIn) -> None:
    """It is created, gets a key on the page of keys, is changed and deleted; all is audited."""
    owner = signed_in("owner")
    sent = {"act": "create", "name": "ci", "role": "operator", "description": "GitHub Actions"}
    assert owner.post(PAGE, sent).status_code == 302
    assert "GitHub Actions" in text(owner.get(PAGE))
    assert f'<option value="{CI}" selected>' in text(owner.get(f"/keys/?member={CI}"))
    owner.post("/keys/", {"member": CI, "actions": "start", "machines": "orders-*"})
    key = AccessKey.objects.get()
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    assert (principal.user.get_username(), principal.role) == (CI, Role.OPERATOR)
    owner.post(PAGE, {"act": "change", "name": "ci", "role": "viewer", "description": ""})
    changed = access.principal_of_key(key.key_id)
    assert changed is not None
    assert changed.role == Role.VIEWER
    owner.post(PAGE, {"act": "delete", "name": "ci"})
    assert access.principal_of_key(key.key_id) is None
    left = (ServiceAccount.objects, AccessKey.objects, get_user_model().objects.filter(username=CI))
    assert [rows.count() for rows in left] == [0, 0, 0]
    entries = AuditEntry.objects.filter(action__endswith="ServiceAccount").order_by("pk")
    assert [(entry.action, entry.target, entry.actor) for entry in entries] == [
        (f"{act}ServiceAccount", "ci", "owner") for act in ("Create", "Update", "Delete")
    ]


def test_only_an_owner_sees_and_changes_them(project: Project, signed_in: SignIn) -> None:
    """The tab is there for an owner alone."""
    for role in ("viewer", "operator", "editor"):
        client = signed_in(role)
        assert client.get(PAGE).status_code == 403
        assert client.post(PAGE, {"act": "create", "name": "ci"}).status_code == 403
        assert PAGE not in text(client.get("/keys/"))
    assert PAGE in text(signed_in("owner").get("/keys/"))
    assert not ServiceAccount.objects.exists()


def test_what_it_starts_is_its_own(project: Project) -> None:
    """The execution and the audit name it; its role bounds the execution's rights."""
    account = accounts.create_account(project, "ci", "operator", "", BY)
    key, _ = people.new_key(account.user, project, BY)
    arn = create(project, PASS).arn
    send(services.STATES, "StartExecution", key.key_id, stateMachineArn=arn).result()
    assert Execution.objects.get().started_by == CI
    assert AuditEntry.objects.filter(action="StartExecution", actor=CI, key_id=key.key_id)


def test_nobody_signs_in_as_it(project: Project) -> None:
    """Neither by a session, however it came to be, nor by a link or an invitation."""
    account = accounts.create_account(project, "ci", "operator", "", BY)
    client = Client()
    client.force_login(account.user)
    for path in ("/", "/machines/", "/keys/"):
        assert client.get(path).status_code == 403, path
    with pytest.raises(CommandError, match="active user's name"):
        call_command("login_url", "--user", CI, stdout=StringIO())
    for refused in (
        lambda: invitations.create_invitation(project, CI, "viewer", 1, BY),
        lambda: people.put_member(project, CI, "owner", BY),
    ):
        with pytest.raises(ServiceError, match="is not a name"):
            refused()


@pytest.mark.postgres_too
def test_two_projects_have_accounts_of_one_name(project: Project) -> None:
    """Each is a member of its own project only, and goes alone."""
    other = Project.objects.create(name="other", account_id="999999999999")
    for each in (project, other):
        account = accounts.create_account(each, "ci", "operator", "", BY)
        assert Membership.objects.get(user=account.user).project == each
    accounts.delete_account(project, "ci", BY)
    assert ServiceAccount.objects.get().project == other
    with raises_code(ErrorCode.ResourceNotFound):
        accounts.change_account(project, "ci", "viewer", "", BY)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"name": "a b", "role": "viewer"}, "is not a name of 1 to 40"),
        ({"name": "ci/x", "role": "viewer"}, "is not a name of 1 to 40"),
        ({"name": "new", "role": "owner"}, "role must be one of viewer, operator, editor"),
        ({"name": "CI", "role": "viewer"}, "exists already"),
        ({"name": "new", "role": "viewer", "description": "x" * 201}, "at most 200 characters"),
        ({"act": "change", "name": "none", "role": "viewer"}, "has no service account"),
        ({"act": "delete", "name": "none"}, "has no service account"),
        ({"act": "burn", "name": "ci"}, "There is no action"),
    ],
)
def test_the_page_says_what_is_wrong(
    project: Project, signed_in: SignIn, sent: dict[str, str], words: str
) -> None:
    """With what was typed, and nothing is made."""
    accounts.create_account(project, "ci", "operator", "", BY)
    assert words in text(signed_in("owner").post(PAGE, sent), 422)
    assert ServiceAccount.objects.count() == 1


@pytest.mark.postgres_too
def test_it_is_no_owner_and_no_person_among_the_members(
    project: Project, signed_in: SignIn
) -> None:
    """The page of members lists people; a reset keeps the account."""
    owner = signed_in("owner")
    accounts.create_account(project, "ci", "editor", "", BY)
    assert CI not in text(owner.get("/members/"))
    reset_server(BY)
    assert ServiceAccount.objects.exists()
    people.remove_member(project, CI, BY)
    assert not ServiceAccount.objects.exists()


def test_the_command_makes_lists_changes_and_deletes_them(project: Project) -> None:
    """As the page does."""

    def run(*words: str) -> str:
        printed = StringIO()
        call_command("service_account", *words, stdout=printed)
        return printed.getvalue()

    assert "is editor of default" in run("create", "ci", "--role", "editor")
    call_command("key", "create", CI, stdout=StringIO())
    assert f"{CI:<40}editor    1 key" in run("list")
    assert "is viewer of default" in run("change", "ci", "--role", "viewer", "--description", "x")
    assert "deleted" in run("delete", "ci")
    with pytest.raises(CommandError, match="no service account"):
        run("delete", "ci")
