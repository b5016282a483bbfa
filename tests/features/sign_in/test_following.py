"""People are followed at their provider, and their access waits for it; no provider is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.db import clock
from console.db.audit import Actor
from console.features.sign_in import following
from console.features.sign_in.models import FollowedPerson, ProviderSession, SpentLogoutToken
from console.features.sign_in.ways import PROVIDER
from console.models import AuditEntry
from console.store.people import people
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

BY = Actor("ana")
HOUR_MS = 3_600_000


class Ana:
    """An editor whom the provider ``corp`` signed in, with an access key."""

    def __init__(self, client: Client, user: Any, project: Project) -> None:
        self.client, self.user = client, user
        self.key = people.new_key(user, project, BY)[0].key_id
        session = client.session
        session[PROVIDER] = "corp"
        session.save()
        self.sign_in("first token", sid="s1")

    def sign_in(self, token: str, sid: str = "") -> None:
        """Begin to follow the session."""
        key = self.client.session.session_key
        session = ProviderSession(session_key=key, user=self.user, provider_id="corp", sid=sid)
        following.begin(session, token, by_userinfo=False)
        access.forget_principals()

    def row(self) -> FollowedPerson:
        """Return the row of the person."""
        return FollowedPerson.objects.get(user=self.user)

    def change(self, **values: Any) -> None:
        """Change the row, as time or another process does."""
        FollowedPerson.objects.filter(user=self.user).update(**values)
        access.forget_principals()

    def may(self) -> tuple[int, bool]:
        """Return the status of a page, and whether the key is accepted."""
        access.forget_principals()
        return self.client.get("/machines/").status_code, bool(access.principal_of_key(self.key))


@pytest.fixture
def ana(
    signed_in: Callable[[str], Client], django_user_model: Any, project: Project, settings: Any
) -> Ana:
    """Return a followed person."""
    settings.STATEYARD_OIDC = {"corp": {"name": "Corp SSO", "issuer": "i", "client_id": "c"}}
    client = signed_in("editor")
    return Ana(client, django_user_model.objects.get(username="editor"), project)


@pytest.mark.postgres_too
def test_a_silent_provider_pauses_access(ana: Ana) -> None:
    """After a quarter of an hour; signing in or out still works, and an answer ends the pause."""
    late_ms = clock.now_ms() - following.SILENT_MS
    ana.change(confirmed_ms=late_ms + 60_000)
    assert ana.may() == (200, True)
    ana.change(confirmed_ms=late_ms - 1)
    assert ana.may() == (403, False)
    assert "Corp SSO has not confirmed your access" in text(ana.client.get("/machines/"), 403)
    assert ana.client.get("/machines/", headers={"HX-Request": "true"}).status_code == 401
    assert ana.client.get("/login/").status_code == 200
    following.confirm(ana.row(), "next token", clock.now_ms(), lambda: "")
    assert ana.may() == (200, True)
    ana.change(confirmed_ms=late_ms - 1)
    assert ana.client.post("/logout/").status_code == 302
    assert ana.client.get("/machines/").status_code == 302


def test_without_a_refresh_token_nobody_is_paused(ana: Ana) -> None:
    """There is nothing to ask with."""
    ana.sign_in("")
    ana.change(confirmed_ms=0)
    assert ana.may() == (200, True)
    assert following.take_due(9, {"corp"}) == []
    assert following.count_people() == {"corp": (0, 1)}


@pytest.mark.postgres_too
def test_a_refused_token_ends_sessions_until_the_next_sign_in(ana: Ana) -> None:
    """The key is the same one afterwards; the audit says why it was refused."""
    following.stop(ana.row(), "the provider refused the refresh token")
    assert ana.may() == (302, False)
    entry = AuditEntry.objects.get(action="EndSignIn")
    assert (entry.actor, entry.target) == ("provider corp", "editor")
    ana.client.force_login(ana.user)
    ana.sign_in("another token")
    assert ana.may() == (200, True)


@pytest.mark.postgres_too
def test_one_process_asks_at_a_time(ana: Ana) -> None:
    """A person who is due is taken once, and again when the process has died."""
    assert following.take_due(9, {"corp"}) == []
    ana.change(due_ms=0)
    assert following.take_due(9, {"other"}) == []
    (person,) = following.take_due(9, {"corp"})
    assert following.open_token(person) == "first token"
    assert "first token" not in person.token
    assert following.take_due(9, {"corp"}) == []
    ana.change(due_ms=clock.now_ms() - 1)
    assert len(following.take_due(9, {"corp"})) == 1


@pytest.mark.postgres_too
def test_an_answer_about_an_earlier_sign_in_counts_for_nothing(ana: Ana) -> None:
    """The person signed in again while the provider was asked."""
    asked = ana.row()
    ana.sign_in("second token")
    called: list[str] = []

    def follow() -> str:
        called.append("follow")
        return "no group with access"

    following.confirm(asked, "rotated token", clock.now_ms(), follow)
    following.stop(asked, "refused")
    following.postpone(asked)
    following.unfollow(asked)
    assert called == []
    assert following.open_token(ana.row()) == "second token"
    assert ana.may() == (200, True)


def test_a_person_without_a_group_is_asked_about_no_more(ana: Ana) -> None:
    """What the roles lost stays lost; the token is forgotten."""
    following.confirm(ana.row(), "rotated", clock.now_ms(), lambda: "no group with access")
    assert ana.row().token == ""
    assert ana.may() == (302, False)


@pytest.mark.postgres_too
@pytest.mark.parametrize(("sid", "names_person"), [("s1", False), ("s1", True), ("", True)])
def test_a_logout_token_ends_sessions_once(ana: Ana, sid: str, names_person: bool) -> None:
    """By session, by person or by both; the key goes on, and the provider is asked at once."""
    user_id = ana.user.pk if names_person else None
    until_ms = clock.now_ms() + HOUR_MS
    assert following.end_sessions("corp", "other session", user_id, "j1", until_ms)
    assert following.end_sessions("other", sid, user_id, "j2", until_ms)
    assert ana.may() == (200, True)
    assert following.end_sessions("corp", sid, user_id, "j2", until_ms)
    assert ana.may() == (302, True)
    assert ana.row().due_ms == 0
    ana.client.force_login(ana.user)
    ana.sign_in("another token", sid=sid)
    assert not following.end_sessions("corp", sid, user_id, "j2", until_ms)
    assert ana.may() == (200, True)


@pytest.mark.postgres_too
def test_what_has_expired_is_forgotten(ana: Ana, project: Project) -> None:
    """A person with a key is followed without a session, and no longer than the key lasts."""
    old_ms = clock.now_ms() - following.SESSION_MS - 1
    SpentLogoutToken.objects.create(digest="d", until_ms=old_ms)
    following.prune()
    assert ProviderSession.objects.exists()
    assert not SpentLogoutToken.objects.exists()
    ProviderSession.objects.update(began_ms=old_ms)
    following.prune()
    assert not ProviderSession.objects.exists()
    assert ana.row().token
    people.delete_key(project, ana.key, BY)
    following.prune()
    assert not ana.row().token
