"""Projects are created with an owner and an account of their own, listed and renamed."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from console import access
from console.db.audit import Actor
from console.errors import ServiceError
from console.features.projects import store
from console.models import AuditEntry, Membership, Project, StateMachine
from console.store.people import people
from tests.console.store.helpers import PASS, create

BY = Actor("manage.py")


def printed(*words: str, **options: Any) -> str:
    """Run ``project`` and return its output."""
    out = io.StringIO()
    call_command("project", *words, stdout=out, **options)
    return out.getvalue()


def test_a_project_has_an_owner_and_an_account(project: Project) -> None:
    """A drawn account is free and has 12 digits; the audit of the project has its creation."""
    payments = store.create_project("payments", "", "ana", BY)
    assert re.fullmatch(r"[1-9]\d{11}", payments.account_id)
    assert payments.account_id != project.account_id
    member = Membership.objects.get(project=payments)
    assert (member.user.get_username(), member.role) == ("ana", "owner")
    actions = AuditEntry.objects.filter(project=payments).values_list("action", flat=True)
    assert sorted(actions) == ["CreateProject", "PutMember"]
    shipping = store.create_project("shipping", "222222222222", "ana", BY)
    assert shipping.account_id == "222222222222"


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    ("name", "account", "owner", "code"),
    [
        ("", "", "ana", "ValidationException"),
        ("-payments", "", "ana", "ValidationException"),
        ("pay ments", "", "ana", "ValidationException"),
        ("päyments", "", "ana", "ValidationException"),
        ("p" * 65, "", "ana", "ValidationException"),
        ("payments\n", "", "ana", "ValidationException"),
        ("payments", "12345678901", "ana", "ValidationException"),
        ("payments", "\uff1122222222222", "ana", "ValidationException"),
        ("payments", "", "a b", "ValidationException"),
        ("payments", "", "anna", "ValidationException"),
        ("Shipping", "", "ana", "ConflictException"),
        ("SAMPLES", "", "ana", "ConflictException"),
        ("default", "", "ana", "ConflictException"),
        ("payments", "222222222222", "ana", "ConflictException"),
        ("payments", "111111111111", "ana", "ConflictException"),
        ("payments", "123456789012", "ana", "ConflictException"),
    ],
)
def test_a_project_that_cannot_be_is_refused(
    project: Project, name: str, account: str, owner: str, code: str
) -> None:
    """The name and the account are well-formed, free, and not needed by the server itself."""
    store.create_project("shipping", "222222222222", "ben", BY)
    rows = Project.objects.count(), Membership.objects.count(), AuditEntry.objects.count()
    with pytest.raises(ServiceError) as caught:
        store.create_project(name, account, owner, BY)
    assert caught.value.code == code
    after = Project.objects.count(), Membership.objects.count(), AuditEntry.objects.count()
    assert after == rows


def test_a_renamed_project_keeps_what_it_has(project: Project) -> None:
    """Machines, ARNs, members and keys stay; a key of the project works at once."""
    payments = store.create_project("payments", "", "ana", BY)
    machine = create(payments, PASS)
    member = Membership.objects.get(project=payments)
    key, _ = people.new_key(member.user, payments, BY)
    assert access.principal_of_key(key.key_id) is not None
    renamed = store.rename_project("payments", "Payments", BY)
    assert (renamed.pk, renamed.account_id) == (payments.pk, payments.account_id)
    assert StateMachine.objects.get(project=renamed).arn == machine.arn
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    assert principal.project.name == "Payments"
    entry = AuditEntry.objects.get(project=payments, action="RenameProject")
    assert (entry.target, entry.reason) == ("Payments", "was payments")


@pytest.mark.parametrize(
    ("name", "new_name", "code"),
    [
        ("default", "payments", "ValidationException"),
        ("samples", "payments", "ValidationException"),
        ("shipping", "pay ments", "ValidationException"),
        ("nothing", "payments", "ResourceNotFound"),
        ("shipping", "default", "ConflictException"),
        ("shipping", "Returns", "ConflictException"),
    ],
)
def test_a_rename_that_cannot_be_is_refused(
    project: Project, name: str, new_name: str, code: str
) -> None:
    """Projects that the server finds by name keep it; names stay unique."""
    for each in ("shipping", "returns"):
        store.create_project(each, "", "ana", BY)
    with pytest.raises(ServiceError) as caught:
        store.rename_project(name, new_name, BY)
    assert caught.value.code == code
    assert not Project.objects.filter(name=new_name).exclude(pk=project.pk).exists()


def test_the_command_creates_renames_and_lists(project: Project) -> None:
    """Each action prints one line; ``list --json`` is for programs."""
    words = ("create", "payments", "--account", "222222222222", "--owner", "ana")
    assert printed(*words) == "payments has account 222222222222 and owner ana\n"
    assert printed("rename", "payments", "billing") == "payments is now called billing\n"
    lines = printed("list").splitlines()
    assert [line.split()[0] for line in lines] == [project.name, "billing"]
    assert lines[1].split()[1:] == ["222222222222", "1", "member"]
    assert json.loads(printed("list", "--json"))[1] == {
        "pk": Project.objects.get(name="billing").pk,
        "name": "billing",
        "account_id": "222222222222",
        "members": 1,
        "owners": 1,
        "archived_ms": None,
        "deleted": None,
        "to_delete": None,
        "running": 0,
    }
    with pytest.raises(CommandError, match=r"nobody called 'anna'\. Add .* stateyard member anna"):
        printed("create", "returns", "--owner", "anna")
    with pytest.raises(CommandError, match="is taken"):
        printed("create", "Billing")
