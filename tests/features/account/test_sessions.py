"""Where a person is signed in, and how sessions end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from console.db import clock
from console.db.audit import Actor
from console.features.account import sessions
from console.features.account.models import BrowserSession
from console.models import AuditEntry, Membership
from console.store.people import people
from console.web.people.login_views import SIGNED_IN
from tests.console.web.helpers import MARKUP, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

    SignIn = Callable[[str], Client]

RIGHT = "a long enough password"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
EDGE = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0"
)


@pytest.fixture(autouse=True)
def _nothing_noted() -> None:
    sessions._noted.clear()


def elsewhere(name: str = "owner", agent: str = FIREFOX, address: str = "203.0.113.9") -> Client:
    """Sign a person in in another browser, which opens a page."""
    client = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    form = {"username": name, "password": RIGHT}
    assert client.post("/login/", form).status_code == 302
    assert is_signed_in(client)
    return client


def is_signed_in(client: Client) -> bool:
    """Return whether a browser still has its session."""
    return client.get("/account/").status_code == 200


def numbers() -> list[int]:
    """Return the numbers of sessions, the oldest first."""
    return list(BrowserSession.objects.order_by("pk").values_list("pk", flat=True))


def test_the_page_shows_each_browser(signed_in: SignIn) -> None:
    """With its address, and which one asks; of nobody else."""
    signed_in("viewer")
    signed_in("owner")
    elsewhere("viewer", address="198.51.100.1")
    elsewhere(agent=EDGE)
    shown = text(elsewhere().get("/account/"))
    assert "Firefox on Linux" in shown
    assert "Edge on Windows" in shown
    assert shown.count("203.0.113.9") == 2
    assert shown.count("(this one)") == 1
    assert "198.51.100.1" not in shown
    assert "End all others" in shown


def test_no_page_has_the_key_of_a_session(signed_in: SignIn) -> None:
    """Whoever reads it could be the person; what a browser calls itself is no markup."""
    signed_in("owner")
    here = elsewhere(agent=MARKUP)
    elsewhere()
    shown = here.get("/account/").content.decode()
    assert MARKUP not in shown
    for session in Session.objects.all():
        assert session.session_key not in shown


@pytest.mark.postgres_too
def test_one_session_ends_at_once(signed_in: SignIn) -> None:
    """The other ones stay; the audit has it; a second press finds that it has ended."""
    signed_in("owner")
    lost, here = elsewhere(agent=EDGE), elsewhere()
    number = numbers()[0]
    answer = here.post(f"/account/sessions/{number}/end/", follow=True)
    assert "That session has ended." in text(answer)
    assert not is_signed_in(lost)
    assert is_signed_in(here)
    entry = AuditEntry.objects.get(action="EndSession")
    assert (entry.actor, entry.target) == ("owner", "owner")
    assert entry.reason == "Edge on Windows, last seen at 203.0.113.9"
    answer = here.post(f"/account/sessions/{number}/end/", follow=True)
    assert "had ended already" in text(answer)
    here.post(f"/account/sessions/{numbers()[-1]}/end/")
    assert is_signed_in(here), "its own session ends by signing out"
    assert AuditEntry.objects.filter(action="EndSession").count() == 1


def test_nobody_ends_a_session_of_somebody_else(signed_in: SignIn) -> None:
    """Its number is as unknown as any."""
    signed_in("owner")
    signed_in("viewer")
    owner, viewer = elsewhere(), elsewhere("viewer")
    answer = viewer.post(f"/account/sessions/{numbers()[0]}/end/", follow=True)
    assert "had ended already" in text(answer)
    assert is_signed_in(owner)
    assert Client().post(f"/account/sessions/{numbers()[0]}/end/").status_code == 302
    assert is_signed_in(owner)


def test_all_others_end_at_once(signed_in: SignIn) -> None:
    """Also those of before an upgrade, of which nothing is known; other people stay."""
    old = signed_in("owner")
    signed_in("viewer")
    viewer, lost, here = elsewhere("viewer"), elsewhere(), elsewhere()
    assert "2 other sessions have ended" in text(here.post("/account/sessions/end/", follow=True))
    assert not is_signed_in(old)
    assert not is_signed_in(lost)
    assert is_signed_in(here)
    assert is_signed_in(viewer)
    assert AuditEntry.objects.get(action="EndSessions").reason == "2 sessions"
    assert "no other session" in text(here.post("/account/sessions/end/", follow=True))


def test_a_request_under_way_does_not_bring_a_session_back(signed_in: SignIn) -> None:
    """Django saves no session whose row is gone."""
    signed_in("owner")
    lost = elsewhere()
    under_way = lost.session
    under_way["more"] = 1
    elsewhere().post("/account/sessions/end/")
    with pytest.raises(UpdateError):
        under_way.save()
    assert not is_signed_in(lost)


def test_a_new_password_ends_the_others(signed_in: SignIn) -> None:
    """The page shows them no more, and this one keeps when it began."""
    signed_in("owner")
    lost, here = elsewhere(agent=EDGE), elsewhere()
    began_ms = here.session[SIGNED_IN]
    form = {"old_password": RIGHT, "new_password1": "seven red bicycles"}
    here.post("/password/", {**form, "new_password2": "seven red bicycles"})
    assert not is_signed_in(lost)
    shown = text(here.get("/account/"))
    assert "Edge" not in shown
    assert shown.count("Firefox on Linux") == 1
    assert BrowserSession.objects.latest("pk").since_ms == began_ms


def test_a_removed_person_is_signed_out(project: Project, signed_in: SignIn) -> None:
    """If they belong to no other project; else they see that one only."""
    signed_in("owner")
    signed_in("viewer")
    viewer = elsewhere("viewer")
    people.remove_member(project, "viewer", Actor("owner"))
    assert not is_signed_in(viewer)
    assert not Membership.objects.filter(user__username="viewer").exists()


def test_a_session_is_written_once_a_minute(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page would else be a write."""
    signed_in("owner")
    now = 1_800_000_000_000
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    here = elsewhere()
    row = BrowserSession.objects.get()
    assert row.last_seen_ms == now
    monkeypatch.setattr(clock, "now_ms", lambda: now + 59_000)
    is_signed_in(here)
    assert BrowserSession.objects.get().last_seen_ms == now
    monkeypatch.setattr(clock, "now_ms", lambda: now + 61_000)
    is_signed_in(here)
    row.refresh_from_db()
    assert (row.last_seen_ms, row.since_ms) == (now + 61_000, now)


@pytest.mark.postgres_too
def test_expired_sessions_are_removed(signed_in: SignIn) -> None:
    """And what is known of those that have ended; open ones stay."""
    signed_in("owner")
    gone, expired, here = elsewhere(), elsewhere(), elsewhere()
    Session.objects.filter(pk=gone.session.session_key).delete()
    past = timezone.now() - timedelta(seconds=1)
    Session.objects.filter(pk=expired.session.session_key).update(expire_date=past)
    sessions.remove_expired()
    assert is_signed_in(here)
    key = here.session.session_key
    assert [row.session_key for row in BrowserSession.objects.all()] == [key]
    assert not Session.objects.filter(expire_date__lt=timezone.now()).exists()


def test_an_administrator_without_a_project_has_the_page(project: Project) -> None:
    """Their acts are in the audit of ``default``."""
    user = get_user_model().objects.create_user("ada", password=RIGHT, is_superuser=True)
    lost, here = elsewhere("ada"), elsewhere("ada")
    here.post("/account/sessions/end/")
    assert not is_signed_in(lost)
    assert AuditEntry.objects.get(action="EndSessions").project == project
    assert sessions.list_sessions(user, None)


IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
)


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (EDGE, "Edge on Windows"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
        (IPHONE, "Safari on iPhone"),
    ],
)
def test_a_browser_has_a_name(agent: str, name: str) -> None:
    """As people know it."""
    assert sessions.name_browser(agent) == name


def test_a_broken_database_fails_no_page(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a session was seen is not worth an error."""

    def refuse(_change: Any) -> None:
        raise DatabaseError("read-only")

    owner = signed_in("owner")
    monkeypatch.setattr(sessions, "write", refuse)
    assert owner.get("/account/").status_code == 200
