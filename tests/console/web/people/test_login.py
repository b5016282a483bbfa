"""The login limits attempts at passwords and does not lock out rightful users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from console import access
from console.db import clock
from console.models import AuditEntry, LoginAttempts, Membership
from console.store.people import login_attempts
from tests.console.store.helpers import crowd
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

    SignIn = Callable[[str], Client]

RIGHT = "a long enough password"
MOST = login_attempts.MOST_OF_ACCOUNT


@pytest.fixture(autouse=True)
def _quick(settings: Any) -> None:
    """Check passwords in no time: what is counted is how often."""
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    ]


def tried(name: str, password: str, address: str = "203.0.113.9", by: Client | None = None) -> int:
    """Try a password and return the status of the answer."""
    form = {"username": name, "password": password}
    return (by or Client()).post("/login/", form, REMOTE_ADDR=address).status_code


@pytest.mark.postgres_too
def test_after_ten_wrong_passwords_the_right_one_is_refused(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from other addresses, until the time is up; the audit says so."""
    signed_in("owner")
    assert [tried("owner", "wrong") for _ in range(MOST)] == [422] * MOST
    for number in range(20):
        assert tried("owner", RIGHT, f"198.51.100.{number}") == 429
    entry = AuditEntry.objects.get(action="LockLogin")
    assert (entry.target, entry.reason) == (
        "owner",
        "wrong passwords, the last one from 203.0.113.9",
    )
    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now + login_attempts.WINDOW_MS + 1000)
    assert tried("owner", RIGHT) == 302
    assert LoginAttempts.objects.filter(count__gt=0).count() == 0


def test_one_account_under_many_spellings_has_one_count(signed_in: SignIn) -> None:
    """Spaces around the name and full-width letters are the same name to the form."""
    signed_in("owner")
    spelled = ["owner", " owner", "owner ", "\u00a0owner", "\uff4fwner"]
    for number in range(MOST):
        assert tried(spelled[number % len(spelled)], "wrong", f"203.0.113.{number}") == 422
    assert tried("owner", RIGHT) == 429


def test_the_last_attempt_may_be_the_right_one(signed_in: SignIn) -> None:
    """And everything is counted anew after it."""
    signed_in("owner")
    for _ in range(3):
        for _ in range(MOST - 1):
            tried("owner", "wrong")
        assert tried("owner", RIGHT) == 302


def test_one_address_tries_fifty_names(signed_in: SignIn) -> None:
    """After that none is tried from there, nor from its network of IPv6; from elsewhere one is.

    A browser that is known from before comes in from there, too: many may share an address.
    """
    signed_in("owner")
    home = Client()
    assert tried("owner", RIGHT, by=home) == 302
    for number in range(login_attempts.MOST_OF_ADDRESS):
        assert tried(f"name-{number}", "wrong", f"2001:db8::{number:x}") == 422
    assert tried("owner", RIGHT, "2001:db8::ffff") == 429
    assert tried("owner", RIGHT, "2001:db8:0:1::1") == 302
    assert tried("owner", RIGHT, "2001:db8::ffff", by=home) == 302


def test_an_owner_whose_name_is_locked_by_others_comes_in(
    project: Project, signed_in: SignIn
) -> None:
    """By a login link, and by password in a browser that is known from before."""
    signed_in("owner")
    home = Client()
    assert tried("owner", RIGHT, by=home) == 302
    home.post("/logout/")
    for _ in range(MOST + 1):
        tried("owner", "wrong")
    assert tried("owner", RIGHT) == 429
    assert tried("owner", RIGHT, by=home) == 302
    user, _, _ = access.first_owner()
    assert Client().post(f"/login/{access.create_login_link(user)}/").status_code == 302


def test_a_known_browser_has_ten_attempts_of_its_own(signed_in: SignIn) -> None:
    """Its cookie is for one name, and nobody can make one."""
    signed_in("owner")
    signed_in("viewer")
    home = Client()
    tried("viewer", RIGHT, by=home)
    for _ in range(MOST):
        tried("owner", "wrong")
    assert tried("owner", RIGHT, by=home) == 429
    for _ in range(MOST):
        assert tried("viewer", "wrong", by=home) == 422
    assert tried("viewer", RIGHT, by=home) == 429
    forged = Client()
    forged.cookies["stateyard_device"] = '["owner", "x"]:1:forged'
    assert tried("owner", RIGHT, by=forged) == 429


def test_many_requests_at_once_get_ten_guesses(project: Project) -> None:
    """The attempt is counted before anything is checked."""

    def guess(number: int) -> str:
        login_attempts.begin_attempt("owner", f"203.0.113.{number}")
        return "checked"

    results = crowd(24, guess)
    assert results.count("checked") == MOST
    others = [result for result in results if result != "checked"]
    assert all(isinstance(result, login_attempts.TooManyAttempts) for result in others)


@pytest.mark.postgres_too
def test_the_table_holds_no_name_and_forgets(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sometimes a password is typed as a name; what is over is removed."""
    tried("my secret passphrase", "wrong")
    rows = str(list(LoginAttempts.objects.values()))
    assert "secret" not in rows
    assert "203.0.113.9" not in rows
    now = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now + login_attempts.WINDOW_MS + 1)
    login_attempts.begin_attempt("another", "198.51.100.1")
    assert LoginAttempts.objects.count() == 2


def test_nobody_learns_which_names_there_are(
    project: Project, signed_in: SignIn, django_user_model: Any, settings: Any
) -> None:
    """Unknown, known, without a password, switched off: the same text after the same work."""
    settings.PASSWORD_HASHERS = ["tests.console.web.people.test_login.Counting"]
    signed_in("known")
    access.first_owner()
    django_user_model.objects.create_user("off", password=RIGHT, is_active=False)
    seen: dict[str, Any] = {}
    for name in ("known", "unknown", "owner", "off"):
        Counting.count = 0
        form = {"username": name, "password": "wrong"}
        page = text(Client().post("/login/", form, REMOTE_ADDR=f"203.0.113.{len(seen)}"), 422)
        seen[name] = Counting.count, page.partition("<main")[2].replace(f'value="{name}"', "")
    plain = {
        name: (count, page.replace(page.partition("csrfmiddlewaretoken")[2][:90], ""))
        for name, (count, page) in seen.items()
    }
    assert len(set(plain.values())) == 1, plain
    assert plain["known"][0] == 1
    for name in ("known", "unknown"):
        for _ in range(MOST):
            tried(name, "wrong")
        assert tried(name, RIGHT) == 429


class Counting(PBKDF2PasswordHasher):
    """Counts how often a password is hashed, which is what takes the time."""

    iterations = 1
    count = 0

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Hash and count."""
        Counting.count += 1
        return super().encode(password, salt, iterations)


def test_what_cannot_be_a_name_is_refused_like_any_other(project: Project) -> None:
    """Nothing, and more than a name may have; a NUL is no request at all."""
    for name, status in (("", 422), ("x" * 1000, 422), ("a\0b", 400)):
        assert tried(name, "wrong") == status


def test_a_sign_in_is_in_the_audit_of_each_project(project: Project) -> None:
    """With what let the person in and from where; a wrong password is no sign-in."""
    user, _, _ = access.first_owner()
    user.set_password(RIGHT)
    user.save()
    other = type(project).objects.create(name="other", account_id="999999999999")
    Membership.objects.create(project=other, user=user, role="viewer")
    tried("owner", "wrong")
    assert not AuditEntry.objects.filter(action="SignIn").exists()
    assert tried("owner", RIGHT) == 302
    link = f"/login/{access.create_login_link(user)}/"
    assert Client().post(link, REMOTE_ADDR="198.51.100.7").status_code == 302
    for of in (project, other):
        rows = AuditEntry.objects.filter(project=of, action="SignIn").order_by("pk")
        assert [(row.actor, row.target, row.reason) for row in rows] == [
            ("owner", "owner", "by password, from 203.0.113.9"),
            ("owner", "owner", "by login link, from 198.51.100.7"),
        ]
        assert all(row.request_id for row in rows)


def test_a_login_link_is_pressed_by_one_of_eight(project: Project) -> None:
    """All press at once; one is in, the others see that it was used."""
    user, _, _ = access.first_owner()
    token = access.create_login_link(user)
    results = crowd(8, lambda _: Client().post(f"/login/{token}/").status_code)
    assert sorted(results) == [302] + [410] * 7


def test_a_login_link_needs_the_form_of_its_page(project: Project) -> None:
    """Another site cannot sign somebody in as somebody else."""
    user, _, _ = access.first_owner()
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(f"/login/{access.create_login_link(user)}/").status_code == 403
