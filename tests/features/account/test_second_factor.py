"""Second factors: set up, asked for at the sign-in, required, and taken away."""

from __future__ import annotations

import base64
import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client

from console import access
from console.db import clock
from console.db.audit import Actor
from console.features.account import second_factor, second_step
from console.models import AuditEntry, Membership, Project
from console.store.people import login_attempts, people
from tests.console.store.helpers import crowd
from tests.console.web.helpers import text
from tests.features.account.authenticator import SECRET, Phone, codes_on, set_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    SignIn = Callable[[str], Client]

RIGHT = "a long enough password"
OWNER = Actor("owner")
PAGE = "/account/second-factor/"


def sign_in(client: Client, name: str = "owner") -> str:
    """Send the password and return where that leads to."""
    answer = client.post("/login/", {"username": name, "password": RIGHT})
    assert answer.status_code == 302
    return str(answer["Location"])


def is_signed_in(client: Client) -> bool:
    """Return whether a browser has a session that may see pages."""
    return client.get("/machines/").status_code == 200


def user_of(name: str = "owner") -> User:
    """Return a person."""
    return get_user_model().objects.get(username=name)


def actions() -> list[str]:
    """Return what the audit has about second factors and sign-ins."""
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


# -- set up ----------------------------------------------------------------------------------------


def test_a_person_sets_it_up(signed_in: SignIn, phone: Phone) -> None:
    """By picture or typed secret, with a code; codes are shown once; other sessions end."""
    owner, elsewhere = signed_in("owner"), Client()
    sign_in(elsewhere)
    shown = text(owner.get(PAGE))
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', shown)
    assert picture is not None
    assert b"<svg" in base64.b64decode(picture[1])
    codes = set_up(owner, phone)
    assert len(set(codes)) == 10
    assert not is_signed_in(elsewhere)
    assert is_signed_in(owner)
    later = text(owner.get(PAGE)) + text(owner.get("/account/"))
    for secret in (phone.secret, *codes):
        assert secret not in later
    assert "10 unused recovery codes" in later
    assert "EnableSecondFactor" in actions()


def test_recovery_codes_are_downloaded(signed_in: SignIn, phone: Phone) -> None:
    """As a file in the page itself: no second request could have them."""
    owner = signed_in("owner")
    phone.secret = "".join(SECRET.findall(text(owner.get(PAGE)))).replace(" ", "")
    sent = {"act": "on", "code": phone.code(), "password": RIGHT}
    answer = owner.post(PAGE, sent)
    shown = text(answer)
    file = re.search(r'href="data:text/plain;base64,([^"]+)" download=', shown)
    assert file is not None
    codes = re.findall(r"^\d{8}$", base64.b64decode(file[1]).decode(), re.MULTILINE)
    assert len(codes) == 10
    assert all(code in shown for code in codes)
    assert answer["Cache-Control"] == "no-store"
    assert "on already" in text(owner.post(PAGE, sent, follow=True))


def test_no_secret_is_readable_in_the_database(signed_in: SignIn, phone: Phone) -> None:
    """Neither of the app nor of the recovery codes, nor while it is set up."""
    owner = signed_in("owner")
    owner.get(PAGE)
    (session,) = Session.objects.all()
    waiting = session.get_decoded()["second_factor_secret"]
    codes = set_up(owner, phone)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert phone.secret not in waiting
    assert second_factor.decrypt(waiting) == phone.secret
    for secret in (phone.secret, *codes):
        assert secret not in stored
    assert "second_factor_secret" not in owner.session


@pytest.mark.parametrize(
    ("password", "later", "words"),
    [("wrong", 0, "The password is not correct."), (RIGHT, 5, "The code is not correct.")],
)
def test_setting_up_takes_the_password_and_a_code(
    signed_in: SignIn, phone: Phone, password: str, later: int, words: str
) -> None:
    """Somebody at an unlocked screen locks nobody out; the secret stays the same."""
    owner = signed_in("owner")
    shown = SECRET.findall(text(owner.get(PAGE)))
    phone.secret = shown[0].replace(" ", "")
    sent = {"act": "on", "code": phone.code(later), "password": password}
    again = text(owner.post(PAGE, sent), 422)
    assert words in again
    assert SECRET.findall(again) == shown
    assert not second_factor.has_second_factor(user_of())


def test_an_account_of_a_provider_has_none(
    signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider asks for it, also where this server requires one."""
    owner = signed_in("owner")
    monkeypatch.setattr(people, "provider_accounts", lambda users: {user.pk for user in users})
    assert "provider" in text(owner.get(PAGE), 403)
    assert not second_factor.must_set_up(user_of(), required=True)


# -- the sign-in -----------------------------------------------------------------------------------


def test_the_sign_in_asks_for_a_code(signed_in: SignIn, phone: Phone) -> None:
    """Between the password and the code there is no session; the audit names both."""
    set_up(signed_in("owner"), phone)
    client = Client()
    form = {"username": "owner", "password": RIGHT, "next": "/executions/"}
    assert client.post("/login/", form)["Location"] == "/second-step/"
    assert not is_signed_in(client)
    assert "SignIn" not in actions()
    assert 'name="code"' in text(client.get("/second-step/"))
    assert "not correct" in text(client.post("/second-step/", {"code": "000000"}), 422)
    code = phone.next_code()
    answer = client.post("/second-step/", {"code": f"{code[:3]} {code[3:]}"})
    assert answer["Location"] == "/executions/"
    assert is_signed_in(client)
    assert AuditEntry.objects.get(action="SignIn").reason == (
        "by password and authenticator code, from 127.0.0.1"
    )
    assert client.get("/second-step/")["Location"] == "/", "Back, after the sign-in"


def test_a_wrong_password_does_not_ask(signed_in: SignIn, phone: Phone) -> None:
    """Nobody learns who has a second factor without the password."""
    set_up(signed_in("owner"), phone)
    client = Client()
    assert client.post("/login/", {"username": "owner", "password": "no"}).status_code == 422
    assert client.get("/second-step/")["Location"] == "/login/"


def test_a_code_works_once(signed_in: SignIn, phone: Phone) -> None:
    """Neither again nor after a later one; the code that set it up is used, too."""
    set_up(signed_in("owner"), phone)
    owner = user_of()
    assert not second_factor.use_code(owner, phone.code())
    assert second_factor.use_code(owner, phone.code(later=1))
    assert not second_factor.use_code(owner, phone.code(later=1))
    assert not second_factor.use_code(owner, phone.code())
    assert not second_factor.use_code(owner, phone.code(later=2)), "of a time to come"
    phone.period += 2
    assert second_factor.use_code(owner, phone.code())


@pytest.mark.postgres_too
def test_of_two_at_once_one_uses_a_code(
    signed_in: SignIn, phone: Phone, own_connection: Any
) -> None:
    """In whichever process: the row decides."""
    del own_connection
    codes = set_up(signed_in("owner"), phone)
    owner, code = user_of(), phone.next_code()
    kinds = crowd(4, lambda _number: second_factor.use_code(owner, code))
    assert sorted(kinds) == ["", "", "", "authenticator code"]
    kinds = crowd(4, lambda _number: second_factor.use_code(owner, codes[0]))
    assert sorted(kinds) == ["", "", "", "recovery code"]


def test_a_recovery_code_lets_in_once(signed_in: SignIn, phone: Phone) -> None:
    """And the page says how many are left."""
    codes = set_up(signed_in("owner"), phone)
    client = Client()
    sign_in(client)
    answer = client.post("/second-step/", {"code": codes[3]}, follow=True)
    assert "have 9 more" in text(answer)
    again = Client()
    sign_in(again)
    assert again.post("/second-step/", {"code": codes[3]}).status_code == 422
    assert "9 unused recovery codes" in text(client.get(PAGE))


def test_codes_cannot_be_guessed(signed_in: SignIn, phone: Phone) -> None:
    """After ten wrong ones the right one is refused, in other browsers as well."""
    set_up(signed_in("owner"), phone)
    first, second = Client(), Client()
    sign_in(first)
    sign_in(second)
    wrong = {"code": "000000"}
    for _ in range(login_attempts.MOST_OF_ACCOUNT):
        assert first.post("/second-step/", wrong).status_code == 422
    answer = second.post("/second-step/", {"code": phone.next_code()})
    assert "Too many wrong codes" in text(answer, 429)
    assert answer["Retry-After"]
    assert AuditEntry.objects.get(action="LockLogin").reason.startswith("wrong codes")


@pytest.mark.postgres_too
def test_a_login_link_asks_as_well(signed_in: SignIn, phone: Phone) -> None:
    """Others may see a link on its way: it stands for the password only."""
    set_up(signed_in("owner"), phone)
    client = Client()
    answer = client.post(f"/login/{access.create_login_link(user_of())}/")
    assert answer["Location"] == "/second-step/"
    assert not is_signed_in(client)
    client.post("/second-step/", {"code": phone.next_code()})
    assert is_signed_in(client)


def test_the_second_step_ends_with_the_password(
    signed_in: SignIn, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new password, a removal or ten minutes: then the sign-in begins again."""
    owner = signed_in("owner")
    set_up(owner, phone)
    slow, other = Client(), Client()
    sign_in(slow)
    sign_in(other)
    now = clock.now_ms()
    with monkeypatch.context() as later:
        later.setattr(clock, "now_ms", lambda: now + 601_000)
        assert slow.post("/second-step/", {"code": phone.next_code()})["Location"] == "/login/"
    form = {"old_password": RIGHT, "new_password1": "seven red bicycles"}
    owner.post("/password/", {**form, "new_password2": "seven red bicycles"})
    assert other.post("/second-step/", {"code": phone.next_code()})["Location"] == "/login/"
    assert not is_signed_in(other)


def test_signing_in_over_somebody_else_ends_their_session(signed_in: SignIn, phone: Phone) -> None:
    """Before the code, not after it: the browser is nobody's meanwhile."""
    set_up(signed_in("owner"), phone)
    viewer = signed_in("viewer")
    key = viewer.session.session_key
    sign_in(viewer)
    assert not Session.objects.filter(pk=key).exists()
    assert not is_signed_in(viewer)


# -- required --------------------------------------------------------------------------------------


def test_a_project_requires_it(project: Project, signed_in: SignIn, phone: Phone) -> None:
    """Its members can set it up and nothing else, at once; then they go on where they were."""
    owner, viewer = signed_in("owner"), signed_in("viewer")
    other = Project.objects.create(name="other", account_id="999999999999")
    stranger = get_user_model().objects.create_user("eve", password=RIGHT)
    Membership.objects.create(project=other, user=stranger, role="owner")
    outside = Client()
    outside.force_login(stranger)
    assert is_signed_in(viewer)
    answer = owner.post("/members/second-factor/", {"required": "on"})
    assert answer["Location"] == "/members/"
    for path in ("/", "/machines/?q=a", "/account/", "/members/", "/projects/", "/password/"):
        assert viewer.get(path)["Location"].startswith(f"{PAGE}?next=%2F"), path
    refused = viewer.post("/keys/", {"description": "x"}, follow=True)
    assert "Nothing was changed" in text(refused)
    assert "requires a second factor" in text(refused)
    assert viewer.get("/machines/", headers={"hx-request": "true"}).status_code == 403
    assert is_signed_in(outside)
    set_up(viewer, phone)
    assert is_signed_in(viewer)
    entry = AuditEntry.objects.get(action="RequireSecondFactor")
    assert (entry.actor, entry.target, entry.reason) == ("owner", project.name, "true")


def test_keys_work_where_it_is_required(project: Project, signed_in: SignIn) -> None:
    """Programs have no phone."""
    signed_in("owner")
    owner = user_of()
    key, _ = people.new_key(owner, project, OWNER)
    second_factor.require_in(project, required=True, actor=OWNER, by=owner)
    access.forget_principals()
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    access.authorize(principal, "StartExecution")


def test_the_server_requires_it(signed_in: SignIn, phone: Phone, settings: Any) -> None:
    """Of everybody, also of somebody who signs in by a link; a person may still sign out."""
    settings.STATEYARD_REQUIRE_SECOND_FACTOR = True
    linked = Client()
    signed_in("owner")
    linked.post(f"/login/{access.create_login_link(user_of())}/")
    assert linked.get("/")["Location"] == f"{PAGE}?next=%2F"
    set_up(linked, phone)
    assert linked.get("/").status_code == 200
    linked.post("/logout/")
    sign_in(linked)
    linked.post("/second-step/", {"code": phone.next_code()})
    assert linked.get("/").status_code == 200


@pytest.mark.postgres_too
def test_only_an_owner_requires_it(project: Project, signed_in: SignIn, phone: Phone) -> None:
    """The page of members names who has none, to owners only."""
    owner, editor = signed_in("owner"), signed_in("editor")
    set_up(owner, phone)
    assert editor.post("/members/second-factor/", {"required": "on"}).status_code == 403
    assert not second_factor.is_required_in(project)
    assert "Require a second factor" not in text(editor.get("/members/"))
    shown = text(owner.get("/members/"))
    assert "Require a second factor" in shown
    assert second_factor.members_without(project) == ["editor"]
    owner.post("/members/second-factor/", {"required": "on"})
    owner.post("/members/second-factor/", {"required": "off"})
    assert not second_factor.is_required_in(project)
    assert is_signed_in(editor)


# -- taken away ------------------------------------------------------------------------------------


def test_switching_off_takes_password_and_code(signed_in: SignIn, phone: Phone) -> None:
    """An unlocked screen is not enough; a recovery code does."""
    owner = signed_in("owner")
    codes = set_up(owner, phone)
    for sent in ({"code": codes[0], "password": "no"}, {"code": "000000", "password": RIGHT}):
        assert owner.post(PAGE, {"act": "off", **sent}).status_code == 422
    assert second_factor.has_second_factor(user_of())
    owner.post(PAGE, {"act": "off", "code": codes[0], "password": RIGHT})
    assert not Authenticator.objects.exists()
    assert "DisableSecondFactor" in actions()
    assert sign_in(Client()) == "/"


def test_new_recovery_codes_replace_the_former(signed_in: SignIn, phone: Phone) -> None:
    """All of them, used or not."""
    owner = signed_in("owner")
    former = set_up(owner, phone)
    sent = {"act": "codes", "code": phone.next_code(), "password": RIGHT}
    codes = codes_on(owner.post(PAGE, sent))
    assert len(codes) == 10
    assert not set(codes) & set(former)
    assert not second_factor.use_code(user_of(), former[0])
    assert second_factor.use_code(user_of(), codes[0])


def test_the_operator_resets_it(signed_in: SignIn, phone: Phone) -> None:
    """From the shell; all sessions end, as the phone may be in other hands."""
    owner = signed_in("owner")
    set_up(owner, phone)
    said = StringIO()
    call_command("reset_second_factor", "owner", stdout=said)
    assert "signs in without a second factor now" in said.getvalue()
    assert not is_signed_in(owner)
    assert sign_in(Client()) == "/"
    entry = AuditEntry.objects.get(action="ResetSecondFactor")
    assert (entry.actor, entry.target) == ("manage.py", "owner")
    for name, words in (("owner", "has no second factor"), ("nobody", "a person's name")):
        with pytest.raises(CommandError, match=words):
            call_command("reset_second_factor", name)


def test_it_goes_with_the_account(project: Project, signed_in: SignIn, phone: Phone) -> None:
    """Whoever is added again begins anew; in another project it stays."""
    signed_in("owner")
    set_up(signed_in("viewer"), phone)
    other = Project.objects.create(name="other", account_id="999999999999")
    Membership.objects.create(project=other, user=user_of("viewer"), role="viewer")
    people.remove_member(project, "viewer", OWNER)
    assert second_factor.has_second_factor(user_of("viewer"))
    people.remove_member(other, "viewer", Actor("manage.py"))
    assert not Authenticator.objects.exists()


def test_a_second_step_is_asked_for_by_no_provider(signed_in: SignIn, phone: Phone) -> None:
    """The provider has asked for it."""
    set_up(signed_in("owner"), phone)
    request: Any = Client().get("/login/").wsgi_request
    assert second_step.ask_second_factor(request, user_of(), "overview", "provider corp") is None
