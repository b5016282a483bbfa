"""The limits of an existing key change by page and command, at once, by who may make such a key."""

from __future__ import annotations

import html
import re
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from console import access
from console.db import clock
from console.db.audit import Actor
from console.errors import ServiceError, ValidationException
from console.features.access_keys import accounts, limits, rotation
from console.models import AccessKey, AuditEntry, Role
from console.models.key_scope import EVERYTHING, ActionSet, KeyScope
from console.store.people import people
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

BY = Actor("owner", "", "test")
DAY = 24 * 3_600_000
ORDERS = KeyScope(ActionSet.START, machines=("orders-*",))
READ = KeyScope(ActionSet.READ)
NARROW = {"until": "", "actions": "read", "listed": "", "machines": "orders-*"}


@pytest.fixture
def key(project: Project) -> AccessKey:
    """Return the key of a service account, without limits."""
    account = accounts.create_account(project, "ci", Role.OPERATOR, "", BY)
    return people.new_key(account.user, project, BY)[0]


def scope_now(key: AccessKey) -> KeyScope:
    """Return the scope that the next call of a key has."""
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    return principal.scope


@pytest.mark.postgres_too
def test_a_narrower_scope_counts_for_the_next_call(project: Project, key: AccessKey) -> None:
    """Though the process remembers who the key is; id and secret stay; the audit has both."""
    assert scope_now(key) == EVERYTHING
    ends_ms = clock.now_ms() + DAY
    limits.change_limits(project, key.key_id, ORDERS, ends_ms, BY)
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    assert (principal.scope, principal.expires_ms) == (ORDERS, ends_ms)
    with pytest.raises(access.Denied, match="scope of access key"):
        access.authorize(principal, "StopExecution")
    limits.change_limits(project, key.key_id, READ, None, BY)
    assert scope_now(key) == READ
    first, second = AuditEntry.objects.filter(action="LimitAccessKey").order_by("pk")
    assert (first.actor, first.target) == ("owner", key.key_id)
    assert first.reason.startswith("read and start, state machines orders-*, until ")
    assert first.reason.endswith(" UTC; before: no limits")
    assert second.reason.startswith("read only; before: read and start")


@pytest.mark.postgres_too
def test_an_expiry_is_announced_anew_after_a_change(project: Project, key: AccessKey) -> None:
    """A change of the scope alone announces nothing again."""
    ends_ms = clock.now_ms() + DAY
    limits.change_limits(project, key.key_id, READ, ends_ms, BY)
    AccessKey.objects.update(warned_ms=1)
    limits.change_limits(project, key.key_id, ORDERS, ends_ms, BY)
    assert AccessKey.objects.get().warned_ms == 1
    limits.change_limits(project, key.key_id, ORDERS, ends_ms + 1, BY)
    assert AccessKey.objects.get().warned_ms is None


@pytest.mark.postgres_too
def test_a_key_that_has_ended_keeps_its_limits(project: Project, key: AccessKey) -> None:
    """A rotated key must not outlive its day, and an expired one does not come back."""
    with pytest.raises(ValidationException, match="must be in the future"):
        limits.change_limits(project, key.key_id, READ, clock.now_ms() - 1, BY)
    new, _ = rotation.rotate_key(project, key.key_id, BY)
    with pytest.raises(ValidationException, match=f"change {new.key_id}, which replaces it"):
        limits.change_limits(project, key.key_id, READ, None, BY)
    AccessKey.objects.update(expires_ms=1, replaced_by="")
    with pytest.raises(ValidationException, match="has expired: create another key"):
        limits.change_limits(project, key.key_id, READ, None, BY)


def test_only_who_may_make_such_a_key_changes_it(
    project: Project, key: AccessKey, signed_in: SignIn
) -> None:
    """People their own, an owner those of programs; the page has links for no others."""
    owner, editor = signed_in("owner"), signed_in("editor")
    editor.post("/keys/")
    own = AccessKey.objects.get(user__username="editor")
    own.user.set_password("x")
    own.user.save()
    editor.force_login(own.user)
    for client, mine, other in ((owner, key, own), (editor, own, key)):
        assert f"/keys/{mine.key_id}/limits/" in text(client.get("/keys/"))
        assert f"/keys/{other.key_id}/limits/" not in text(client.get("/keys/"))
        for answer in (
            client.get(f"/keys/{other.key_id}/limits/", follow=True),
            client.post(f"/keys/{other.key_id}/limits/", NARROW, follow=True),
        ):
            assert "is the key of a person" in text(answer)
        assert client.post(f"/keys/{mine.key_id}/limits/", NARROW).status_code == 302
    assert {key.scope for key in AccessKey.objects.all()} == {
        '{"actions": "read", "machines": ["orders-*"]}'
    }
    user = people.put_member(project, "editor", Role.EDITOR, BY).user
    with pytest.raises(ServiceError, match="no owner"):
        limits.change_limits(project, key.key_id, EVERYTHING, None, BY, user)
    missing = owner.get("/keys/AKIANOTHING/limits/", follow=True)
    assert "There is no access key" in text(missing)


def test_the_form_has_the_limits_and_says_what_is_wrong(
    project: Project, key: AccessKey, signed_in: SignIn
) -> None:
    """At its field; the day on display leaves the expiry as it is."""
    owner = signed_in("owner")
    address = f"/keys/{key.key_id}/limits/"
    ends_ms = clock.now_ms() + 5 * DAY
    listed = KeyScope(None, frozenset({"StartExecution", "events:PutEvents"}), ("orders-*",))
    limits.change_limits(project, key.key_id, listed, ends_ms, BY)
    shown = text(owner.get(address))
    day = re.search(r'name="until" id="until" value="([^"]+)"', shown)
    assert day is not None
    assert '<option value="list" selected>' in shown
    assert 'value="StartExecution events:PutEvents"' in shown
    sent = {"until": day[1], "actions": "list", "listed": "StartExecution", "machines": "a b*"}
    assert owner.post(address, sent).status_code == 302
    changed = AccessKey.objects.get()
    assert changed.expires_ms == ends_ms
    assert KeyScope.of_text(changed.scope) == KeyScope(
        None, frozenset({"StartExecution"}), ("a", "b*")
    )
    for field, value, words in (
        ("until", "2001-01-01", "must be in the future"),
        ("until", "soon", "must be a day such as"),
        ("actions", "everything", "'everything' is not a set of actions (read, start, all)"),
        ("listed", "StartEverything", "there is no action 'StartEverything'"),
        ("listed", "", "name at least one action"),
        ("machines", "a?", "'a?' is no name of a state machine"),
    ):
        shown = html.unescape(text(owner.post(address, {**sent, field: value}), 422))
        problem = shown.partition(f'id="{field}-error" role="alert">')[2].partition("</p>")[0]
        assert words in problem
        assert shown.count('aria-invalid="true"') == 1
    assert AccessKey.objects.get() == changed


def test_the_command_changes_what_it_names(project: Project, key: AccessKey) -> None:
    """An option that is left out leaves the limit as it is."""
    out = StringIO()

    def run(*options: str) -> str:
        out.truncate(0)
        call_command("key", "limit", key.key_id, *options, stdout=out)
        return out.getvalue().replace("\0", "")

    words = run("--actions", "StartExecution", "--until", "2031-03-31")
    assert words == f"{key.key_id} has now: StartExecution, until 2031-03-31 23:59 UTC\n"
    assert "state machines orders-*, until 2031" in run("--machines", "orders-*")
    assert "read only, state machines orders-*, until 2031" in run("--actions", "read")
    assert run("--until", "").endswith("read only, state machines orders-*\n")
    assert run("--machines", "", "--actions", "all").endswith("no limits\n")
    assert scope_now(key) == EVERYTHING
    entry = AuditEntry.objects.filter(action="LimitAccessKey").latest("pk")
    assert (entry.actor, entry.project) == ("manage.py", project)
    with pytest.raises(CommandError, match="there is no action 'Fly'"):
        run("--actions", "Fly")
