"""A key is replaced in one press; the old and the new one work for a day."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from console import access
from console.db import clock
from console.db.audit import Actor
from console.errors import ServiceError, ValidationException
from console.features.access_keys import rotation
from console.models import AccessKey, AuditEntry, Membership, Role
from console.models.key_scope import ActionSet, KeyScope
from console.store.people import people
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

BY = Actor("owner", "", "test")
DAY = 24 * 3_600_000
SCOPE = KeyScope(ActionSet.START, machines=("orders-*",))


@pytest.fixture
def key(project: Project) -> AccessKey:
    """Return the key of a member, with a scope and an expiry date."""
    member = people.put_member(project, "robot", Role.OPERATOR, BY)
    ends_ms = clock.now_ms() + 90 * DAY
    return people.new_key(*(member.user, project, BY, None, "CI"), scope=SCOPE, expires_ms=ends_ms)[
        0
    ]


def test_the_new_key_is_as_the_old_one(project: Project, key: AccessKey) -> None:
    """Owner, description, scope and life time; the audit has both ids and no secret."""
    new, secret = rotation.rotate_key(project, key.key_id, BY)
    assert (new.user_id, new.description, new.scope) == (key.user_id, "CI", key.scope)
    assert new.expires_ms is not None
    assert key.expires_ms is not None
    life_ms = key.expires_ms - key.created_ms
    assert new.expires_ms - new.created_ms == pytest.approx(life_ms, abs=1000)
    assert secret == access.secret_for(new.key_id)
    entry = AuditEntry.objects.get(action="RotateAccessKey")
    assert (entry.target, entry.reason) == (key.key_id, f"replaced by {new.key_id}")


def test_both_keys_work_for_a_day(
    project: Project, key: AccessKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After that only the new one does."""
    new, _ = rotation.rotate_key(project, key.key_id, BY)
    now_ms = clock.now_ms()
    both = (key.key_id, new.key_id)
    assert [access.principal_of_key(each) is not None for each in both] == [True, True]
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + DAY)
    assert [access.principal_of_key(each) is not None for each in both] == [False, True]


@pytest.mark.postgres_too
def test_a_key_that_ends_within_a_day_ends_then(project: Project, key: AccessKey) -> None:
    """A rotation never lengthens the life of the old key."""
    ends_ms = clock.now_ms() + 60_000
    AccessKey.objects.update(expires_ms=ends_ms)
    rotation.rotate_key(project, key.key_id, BY)
    key.refresh_from_db()
    assert key.expires_ms == ends_ms


def test_a_key_is_rotated_once(project: Project, key: AccessKey) -> None:
    """A second press, or a reload, makes no third key; a disabled key is not rotated."""
    new, _ = rotation.rotate_key(project, key.key_id, BY)
    with pytest.raises(ValidationException) as caught:
        rotation.rotate_key(project, key.key_id, BY)
    assert f"{new.key_id} replaces it" in str(caught.value)
    people.switch_key(project, new.key_id, on=False, actor=BY)
    with pytest.raises(ValidationException, match="is disabled"):
        rotation.rotate_key(project, new.key_id, BY)
    assert AccessKey.objects.count() == 2


def test_a_rotated_key_counts_for_nothing(project: Project, key: AccessKey) -> None:
    """Neither does an expired one: who has ten keys rotates all of them."""
    for _ in range(9):
        people.new_key(key.user, project, BY)
    with pytest.raises(ValidationException, match="At most 10"):
        people.new_key(key.user, project, BY)
    rotation.rotate_key(project, key.key_id, BY)
    with pytest.raises(ValidationException, match="At most 10"):
        people.new_key(key.user, project, BY)


@pytest.mark.postgres_too
def test_an_owner_rotates_the_key_of_a_program_only(
    project: Project, key: AccessKey, signed_in: SignIn, django_user_model: Any
) -> None:
    """What a person's key does is theirs in the audit, so nobody else learns its secret."""
    owner, viewer = signed_in("owner"), signed_in("viewer")
    viewer.post("/keys/")
    own = AccessKey.objects.get(user__username="viewer")
    person = django_user_model.objects.get(username="viewer")
    person.set_password("x")
    person.save()
    shown = text(owner.get("/keys/"))
    assert f"/keys/{key.key_id}/rotate/" in shown
    assert f"/keys/{own.key_id}/rotate/" not in shown
    refused = text(owner.post(f"/keys/{own.key_id}/rotate/"), 422)
    assert "is the key of a person" in refused
    editor = signed_in("editor")
    assert "no owner" in text(editor.post(f"/keys/{key.key_id}/rotate/"), 422)
    assert AccessKey.objects.filter(replaced_by="").count() == 2
    shown = text(owner.post(f"/keys/{key.key_id}/rotate/"))
    key.refresh_from_db()
    assert access.secret_for(key.replaced_by) in shown
    assert "works for another day" in shown
    assert access.secret_for(key.replaced_by) not in text(owner.get("/keys/"))
    assert f"replaced by {key.replaced_by}" in text(owner.get("/keys/"))
    assert "was rotated already" in text(owner.post(f"/keys/{key.key_id}/rotate/"), 422)


def test_a_key_of_another_project_is_not_there(key: AccessKey, django_user_model: Any) -> None:
    """As missing as a key that nobody has."""
    from console.models import Project

    other = Project.objects.create(name="other", account_id="999999999999")
    user = django_user_model.objects.create_user("ana")
    Membership.objects.create(project=other, user=user, role=Role.OWNER)
    for key_id in (key.key_id, "AKIANOBODY"):
        with pytest.raises(ServiceError, match="There is no access key"):
            rotation.rotate_key(other, key_id, BY, user)


# -- the command -----------------------------------------------------------------------------------


def run(*words: str) -> str:
    """Return what ``manage.py key`` prints."""
    printed = StringIO()
    call_command("key", *words, stdout=printed, stderr=StringIO())
    return printed.getvalue()


@pytest.mark.postgres_too
def test_the_command_leads_a_key_through_its_life(project: Project) -> None:
    """It is created, listed, rotated, disabled, enabled and deleted."""
    people.put_member(project, "robot", Role.OPERATOR, BY)
    profile = run(
        *("create", "robot", "--actions", "start", "--machines", "orders-*,refunds"),
        *("--until", "2030-12-31", "--description", "CI"),
    )
    key = AccessKey.objects.get()
    assert f"aws_access_key_id = {key.key_id}" in profile
    assert access.secret_for(key.key_id) in profile
    assert KeyScope.of_text(key.scope) == KeyScope(
        ActionSet.START, machines=("orders-*", "refunds")
    )
    assert key.expires_ms == 1_924_991_999_999
    listed = run("list")
    assert re.search(rf"{key.key_id}  robot +active +never used  until 2030-12-31T23:59", listed)
    assert "read and start, state machines orders-*, refunds" in listed
    run("rotate", key.key_id)
    key.refresh_from_db()
    assert '"replacedBy": "' + key.replaced_by in run("list", "--json")
    for act, disabled in (("disable", True), ("enable", False)):
        run(act, key.key_id)
        key.refresh_from_db()
        assert (key.disabled_ms is not None) == disabled
    run("delete", key.key_id)
    assert AccessKey.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "nobody"), "'nobody' is no member of 'default'"),
        (("create", "robot", "--actions", "StartExecutions"), "no action 'StartExecutions'"),
        (("create", "robot", "--until", "soon"), "a day such as 2030-12-31"),
        (("create", "robot", "--until", "2020-01-01"), "must be in the future"),
        (("rotate", "AKIANOBODY"), "no access key 'AKIANOBODY'"),
        (("list", "--project", "other"), "no project 'other'"),
    ],
)
def test_the_command_says_what_is_wrong(
    project: Project, words: tuple[str, ...], problem: str
) -> None:
    """In one line, and nothing is made."""
    people.put_member(project, "robot", Role.OPERATOR, BY)
    with pytest.raises(CommandError, match=re.escape(problem)):
        run(*words)
    assert not AccessKey.objects.exists()
