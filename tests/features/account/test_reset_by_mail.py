"""A new password by mail: for who has the address, and nobody learns who has an account."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from smtplib import SMTPRecipientsRefused, SMTPServerDisconnected
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.tokens import default_token_generator
from django.core import mail
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.db import audit, clock
from console.features.account import mails
from console.features.account.models import AccountMail
from console.models import AuditEntry, Project
from console.store.people import people
from tests.console.web.helpers import text
from tests.features.account.authenticator import set_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    from tests.features.account.authenticator import Phone

    SignIn = Callable[[str], Client]

RIGHT = "a long enough password"
NEW = "three brown foxes jump"
ADDRESS = "owner@example.com"
_LINK = re.compile(r"https://yard\.example\.com(/\S+)")


@pytest.fixture(autouse=True)
def _mail_server(settings: Any) -> None:
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    settings.STATEYARD_URL = "https://yard.example.com"


@pytest.fixture
def owner(signed_in: SignIn) -> Client:
    """Return the browser of an owner who has an address."""
    client = signed_in("owner")
    get_user_model().objects.filter(username="owner").update(email=ADDRESS)
    return client


def user_of(name: str = "owner") -> User:
    """Return a person."""
    return get_user_model().objects.get(username=name)


def ask(address: str = ADDRESS, client: str = "192.0.2.7", **headers: str) -> Any:
    """Ask for a new password and return the answer."""
    browser = Client(REMOTE_ADDR=client, headers=headers)
    return browser.post("/password-reset/", {"email": address})


def link() -> str:
    """Send the mails that wait; return the path of the link in the newest."""
    mails.send_waiting()
    match = _LINK.search(str(mail.outbox[-1].body))
    assert match is not None
    return match[1]


def opened(path: str) -> tuple[Client, str]:
    """Open a link in a new browser; return it and the address of the form."""
    browser = Client()
    answer = browser.get(path)
    assert answer.status_code == 302
    return browser, str(answer["Location"])


def set_password(browser: Client, form: str, password: str = NEW) -> Any:
    """Send the form with a new password."""
    return browser.post(form, {"new_password1": password, "new_password2": password})


def sign_in(password: str) -> int:
    """Return the status of a sign-in of the owner."""
    return Client().post("/login/", {"username": "owner", "password": password}).status_code


def test_a_link_sets_a_new_password_once(owner: Client) -> None:
    """Sessions end, the password before does not count, and the audit has both steps."""
    assert ask()["Location"] == "/login/"
    path = link()
    message = mail.outbox[0]
    assert message.to == [ADDRESS]
    assert "within 60 minutes" in message.body
    browser, form = opened(path)
    assert path.rpartition("/")[0] not in form, "the token is not in the address of the page"
    assert "owner" in text(browser.get(form))
    assert set_password(browser, form)["Location"] == "/login/"
    assert sign_in(RIGHT) == 422
    assert sign_in(NEW) == 302
    assert owner.get("/account/").status_code == 302
    assert browser.get("/account/").status_code == 302, "a reset signs nobody in"
    assert Client().get(path).status_code == 410
    entries = AuditEntry.objects.filter(target="owner").values_list("action", "actor", "reason")
    assert ("SendPasswordReset", "stateyard", "asked from 192.0.2.7") in entries
    assert ("ResetPassword", "owner", "by mail, from 127.0.0.1") in entries


def test_two_forms_at_once_set_one_password(owner: Client) -> None:
    """The second one had the link when it still worked."""
    del owner
    ask()
    path = link()
    (first, form), (second, _) = opened(path), opened(path)
    assert second.get(form).status_code == 200
    assert set_password(first, form).status_code == 302
    assert set_password(second, form, "four green ducks swim").status_code == 410
    assert sign_in(NEW) == 302


def test_a_link_ends_after_an_hour(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose page is open already."""
    del owner
    ask()
    path = link()
    browser, form = opened(path)
    later = datetime.now() + timedelta(minutes=61)  # noqa: DTZ005 - as Django's tokens
    monkeypatch.setattr(default_token_generator, "_now", lambda: later)
    assert browser.get(form).status_code == 410
    assert set_password(browser, form).status_code == 410
    assert Client().get(path).status_code == 410
    assert sign_in(RIGHT) == 302


@pytest.mark.postgres_too
def test_a_weak_password_is_refused(owner: Client) -> None:
    """The link stays."""
    del owner
    ask()
    browser, form = opened(link())
    assert set_password(browser, form, "short").status_code == 422
    assert set_password(browser, form).status_code == 302


def test_the_answer_does_not_tell_who_has_an_account(owner: Client) -> None:
    """Neither by its words, nor by what it asks the database, nor by what it sends."""
    del owner
    answers, queries = [], []
    ask("first@example.com")  # what is read once
    for address in (ADDRESS, "nobody@example.com"):
        with CaptureQueriesContext(connection) as asked:
            answer = ask(address)
        answers.append((answer.status_code, answer["Location"], len(answer.content)))
        queries.append([re.sub(r"\d+|'[^']*'", "?", each["sql"]) for each in asked])
        assert mail.outbox == []
    assert answers[0] == answers[1]
    assert queries[0] == queries[1]
    mails.send_waiting()
    assert [message.to for message in mail.outbox] == [[ADDRESS]]
    assert not AccountMail.objects.exists()


def test_links_have_the_public_address_whatever_the_request_says(owner: Client) -> None:
    """A forged Host would bring the token to somebody else."""
    del owner
    ask(host="localhost", **{"X-Forwarded-Host": "evil.example.com"})
    link()
    assert "evil" not in mail.outbox[0].body
    assert "localhost" not in mail.outbox[0].body


def test_mails_to_one_address_are_bounded_in_silence(owner: Client) -> None:
    """Whatever client asks, and however the address is spelled."""
    del owner
    for number in range(mails.MOST_TO_ADDRESS + 3):
        address = ADDRESS.upper() if number % 2 else ADDRESS
        assert ask(address, f"192.0.2.{number}")["Location"] == "/login/"
    mails.send_waiting()
    assert len(mail.outbox) == mails.MOST_TO_ADDRESS


def test_requests_of_one_client_are_bounded(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the window is over; another client is not held up."""
    del owner
    monkeypatch.setattr(mails, "MOST_OF_CLIENT", 3)
    statuses = [ask(f"a{number}@example.com").status_code for number in range(5)]
    assert statuses == [302, 302, 302, 429, 429]
    assert int(ask()["Retry-After"]) > 0
    assert ask(client="192.0.2.8").status_code == 302
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 16 * 60_000)
    assert ask().status_code == 302


@pytest.mark.parametrize("kind", ["no password", "inactive", "provider"])
def test_no_mail_for_accounts_without_a_password_of_their_own(
    owner: Client, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A provider signs them in, or a login link, or nobody; an earlier link opens nothing."""
    del owner
    user = user_of()
    ask()
    path = link()
    if kind == "no password":
        user.set_unusable_password()
    elif kind == "inactive":
        user.is_active = False
    else:
        monkeypatch.setattr(people, "provider_accounts", lambda users: {each.pk for each in users})
    user.save()
    mail.outbox.clear()
    ask()
    mails.send_waiting()
    assert mail.outbox == []
    assert Client().get(path).status_code == 410


@pytest.mark.parametrize("setting", ["STATEYARD_MAIL", "STATEYARD_PASSWORDS", "STATEYARD_URL"])
def test_it_is_offered_only_where_it_works(owner: Client, settings: Any, setting: str) -> None:
    """With passwords, a mail server and a public address; else the page and links are not there."""
    del owner
    assert 'href="/password-reset/"' in text(Client().get("/login/"))
    ask()
    path = link()
    ask()
    mail.outbox.clear()
    setattr(settings, setting, False if setting == "STATEYARD_PASSWORDS" else "")
    assert "/password-reset/" not in text(Client().get("/login/"))
    assert Client().get("/password-reset/").status_code == 404
    assert ask().status_code == 404
    assert Client().get(path).status_code == 404
    mails.send_waiting()
    assert mail.outbox == []
    assert not AccountMail.objects.exists()


def test_what_is_no_address_is_refused(owner: Client) -> None:
    """On the page."""
    del owner
    assert ask("nobody").status_code == 422
    assert not AccountMail.objects.exists()


def test_the_second_factor_is_asked_after_a_reset(owner: Client, phone: Phone) -> None:
    """A mail replaces a password only."""
    set_up(owner, phone)
    ask()
    browser, form = opened(link())
    set_password(browser, form)
    answer = browser.post("/login/", {"username": "owner", "password": NEW})
    assert answer["Location"] == "/second-step/"


@pytest.mark.postgres_too
def test_a_mail_server_that_is_down_gets_the_mail_later(
    owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For some minutes; an address that it refuses is given up."""
    del owner
    now_ms = clock.now_ms()
    send = EmailMessage.send

    def fail(*_args: object, **_kwargs: object) -> int:
        raise SMTPServerDisconnected("gone")

    def refuse(*_args: object, **_kwargs: object) -> int:
        raise SMTPRecipientsRefused({})

    ask()
    monkeypatch.setattr(EmailMessage, "send", fail)
    mails.send_waiting()
    monkeypatch.setattr(EmailMessage, "send", send)
    mails.send_waiting()
    assert mail.outbox == [], "not at once"
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 60_000)
    mails.send_waiting()
    assert len(mail.outbox) == 1
    ask()
    monkeypatch.setattr(EmailMessage, "send", refuse)
    mails.send_waiting()
    assert not AccountMail.objects.exists()
    ask()
    monkeypatch.setattr(EmailMessage, "send", send)
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 60 * 60_000)
    mails.send_waiting()
    assert not AccountMail.objects.exists()
    assert len(mail.outbox) == 1, "an old one is given up"


# -- the address of an account ---------------------------------------------------------------------


def test_an_address_counts_when_its_link_is_confirmed(signed_in: SignIn) -> None:
    """Opening the link changes nothing; nobody else can confirm it."""
    owner = signed_in("owner")
    change = {"address": "new@example.com", "password": RIGHT}
    assert owner.post("/account/mail/", change)["Location"] == "/account/"
    path = link()
    assert mail.outbox[0].to == ["new@example.com"]
    assert owner.get(path).status_code == 200
    assert user_of().email == ""
    assert Client().post(path)["Location"].startswith("/login/")
    assert signed_in("viewer").post(path).status_code == 410
    owner = Client()
    owner.force_login(user_of())
    assert owner.post(path).status_code == 302
    assert user_of().email == "new@example.com"
    assert "new@example.com" in text(owner.get("/account/"))
    assert AuditEntry.objects.filter(action="SetMailAddress", reason="new@example.com").exists()
    assert owner.post(path).status_code == 410, "the link was for the account without an address"


def test_a_change_needs_password_and_code(signed_in: SignIn, phone: Phone) -> None:
    """Whoever has the address can set a new password."""
    owner = signed_in("owner")
    set_up(owner, phone)
    for sent in ({"password": "wrong"}, {"password": RIGHT}, {"password": RIGHT, "code": "000000"}):
        owner.post("/account/mail/", {"address": "new@example.com", **sent})
    assert not AccountMail.objects.exists()
    right = {"address": "new@example.com", "password": RIGHT, "code": phone.next_code()}
    owner.post("/account/mail/", right)
    assert AccountMail.objects.exists()


@pytest.mark.postgres_too
def test_an_address_is_removed_and_ends_links_for_another(owner: Client) -> None:
    """A link for a new address is of the account as it was."""
    owner.post("/account/mail/", {"address": "new@example.com", "password": RIGHT})
    path = link()
    owner.post("/account/mail/", {"address": "", "password": RIGHT})
    assert user_of().email == ""
    assert owner.post(path).status_code == 410


@pytest.mark.postgres_too
def test_mails_of_one_person_are_bounded(owner: Client) -> None:
    """A person cannot let the server write to strangers all day."""
    for number in range(mails.MOST_OF_PERSON + 2):
        owner.post("/account/mail/", {"address": f"a{number}@example.com", "password": RIGHT})
    assert AccountMail.objects.count() == mails.MOST_OF_PERSON
    owner.post("/account/mail/", {"address": "no address", "password": RIGHT})
    assert AccountMail.objects.count() == mails.MOST_OF_PERSON


def test_an_account_of_a_provider_has_no_address_here(
    owner: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider has it."""
    monkeypatch.setattr(people, "provider_accounts", lambda users: {each.pk for each in users})
    assert 'id="mail-address"' not in text(owner.get("/account/"))
    answer = owner.post("/account/mail/", {"address": "new@example.com", "password": RIGHT})
    assert answer.status_code == 403


def test_a_removed_person_leaves_no_address(owner: Client, signed_in: SignIn) -> None:
    """Whoever is added again under the name begins anew: the former address opens nothing."""
    del owner
    signed_in("viewer")
    viewer = user_of("viewer")
    get_user_model().objects.filter(pk=viewer.pk).update(email="viewer@example.com")
    mails.ask_for_confirmation(viewer, "other@example.com", "")
    project = Project.objects.get(name="default")
    people.remove_member(project, "viewer", audit.NOBODY, needs_owner=False)
    assert user_of("viewer").email == ""
    assert not AccountMail.objects.exists()
