"""An administrator of the server is the first owner, or whoever the operator appoints."""

from __future__ import annotations

import importlib
import io
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from console import access
from console.db.audit import Actor
from console.models import AuditEntry, Membership, Project
from console.store.people import people

BY = Actor("manage.py")
MIGRATION = "console.migrations.0058_first_administrator"


def administrators() -> set[str]:
    """Return the names of the administrators."""
    rows = get_user_model().objects.filter(is_superuser=True)
    return set(rows.values_list("username", flat=True))


def upgrade() -> None:
    """Run the migration on the rows as they are."""
    editor: Any = connection.schema_editor()
    importlib.import_module(MIGRATION).appoint(apps, editor)


def test_the_first_owner_administers_the_server(db: None) -> None:
    """The person of the first start, also after the next start."""
    for _ in range(2):
        assert access.first_owner()[0].get_username() == "owner"
        assert administrators() == {"owner"}


def test_a_later_owner_of_default_does_not(project: Project) -> None:
    """A start that makes an owner anew leaves the administrator there is."""
    people.set_administrator("root", administers=True, actor=BY)
    Membership.objects.filter(project__name="default").delete()
    access.first_owner()
    assert administrators() == {"root"}


def test_an_upgrade_appoints_the_oldest_owner_of_default(project: Project) -> None:
    """Neither an older member of another role, nor one who may not sign in, nor other owners."""
    other = Project.objects.create(name="other", account_id="999999999999")
    people.put_member(other, "stranger", "owner", BY)
    for name, role in (("eve", "editor"), ("gone", "owner"), ("ana", "owner"), ("ben", "owner")):
        people.put_member(project, name, role, BY)
    get_user_model().objects.filter(username="gone").update(is_active=False)
    upgrade()
    assert administrators() == {"ana"}
    Membership.objects.filter(user__username="ana").delete()
    upgrade()
    assert administrators() == {"ana"}


def test_an_upgrade_without_such_an_owner_appoints_nobody(project: Project) -> None:
    """The operator's command does then."""
    people.put_member(project, "ana", "editor", BY)
    upgrade()
    assert administrators() == set()


def test_the_command_appoints_and_ends(project: Project) -> None:
    """The audit of default has both; memberships stay, and an account of no project is closed."""
    out = io.StringIO()
    people.put_member(project, "ana", "owner", BY)
    for name in ("ana", "root"):
        call_command("administrator", name, stdout=out)
    root = get_user_model().objects.get(username="root")
    root.set_password("a long enough password")
    root.save()
    assert administrators() == {"ana", "root"}
    for name in ("ana", "root"):
        call_command("administrator", name, remove=True, stdout=out)
    assert administrators() == set()
    assert Membership.objects.filter(user__username="ana").exists()
    root.refresh_from_db()
    assert not root.has_usable_password()
    entries = AuditEntry.objects.filter(action__endswith="Administrator").order_by("pk")
    assert list(entries.values_list("action", "target")) == [
        ("PutAdministrator", "ana"),
        ("PutAdministrator", "root"),
        ("RemoveAdministrator", "ana"),
        ("RemoveAdministrator", "root"),
    ]
    for words in (("nobody",), ("a b",)):
        with pytest.raises(CommandError):
            call_command("administrator", *words, remove=True, stdout=out)


def test_an_administrator_keeps_the_account_without_a_project(project: Project) -> None:
    """Removal from the last project ends the keys there, and neither password nor sessions."""
    people.put_member(project, "ben", "owner", BY)
    user = people.put_member(project, "ana", "owner", BY).user
    user.set_password("a long enough password")
    user.save()
    people.set_administrator("ana", administers=True, actor=BY)
    key, _ = people.new_key(user, project, BY)
    people.remove_member(project, "ana", BY)
    user.refresh_from_db()
    assert user.has_usable_password()
    assert access.principal_of_key(key.key_id) is None
