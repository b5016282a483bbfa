"""An invitation admits its invited person once, with a password of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console.db import clock
from console.db.audit import Actor
from console.errors import ErrorCode
from console.features.members import store as invitations
from console.models import AuditEntry, Invitation, Membership, Project
from console.store.people import login_attempts, people
from tests.console.store.helpers import crowd
from tests.console.web.helpers import MARKUP, markup, text
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable

    SignIn = Callable[[str], Client]

RIGHT = "a long enough password"
NEW = "seven red bicycles"
BOTH = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture(autouse=True)
def _quick(settings: Any) -> None:
    """Check passwords in no time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def invited(owner: Client, name: str = "ana", role: str = "operator", hours: int = 1) -> str:
    """Invite a person by the page and return the path of the link."""
    form = {"name": name, "role": role, "hours": str(hours)}
    shown = text(owner.post("/members/invite/", form))
    match = re.search(r"http://testserver(/invitation/[\w-]+/)<", shown)
    assert match is not None
    return match[1]


def actions() -> list[tuple[str, str, str]]:
    """Return what was done to ana, in order."""
    rows = AuditEntry.objects.filter(target="ana").order_by("pk")
    return list(rows.values_list("action", "actor", "reason"))


# -- joining ---------------------------------------------------------------------------------------


def test_an_invited_person_joins_with_a_password_of_their_own(
    project: Project, signed_in: SignIn
) -> None:
    """Opening the link changes nothing; sending its form makes a member who is signed in."""
    owner = signed_in("owner")
    link = invited(owner)
    assert link not in text(owner.get("/members/"))
    assert "1 open invitation" in text(owner.get("/members/"))
    ana = Client()
    for _ in range(2):
        assert "Your role will be<b>operator</b>" in markup(ana.get(link))
        assert ana.head(link).status_code == 200
    assert not Membership.objects.filter(user__username="ana").exists()
    assert ana.post(link, BOTH)["Location"] == "/"
    assert Membership.objects.get(user__username="ana").role == "operator"
    assert "You are operator of default" in text(ana.get("/"))
    assert Client().post("/login/", {"username": "ana", "password": NEW}).status_code == 302
    assert actions() == [
        ("CreateInvitation", "owner", "role operator, for 1 h"),
        ("AcceptInvitation", "ana", "role operator, invited by owner"),
        ("SignIn", "ana", "by invitation, from 127.0.0.1"),
        ("SignIn", "ana", "by password, from 127.0.0.1"),
    ]
    for again in (Client().get, Client().post):
        assert "no longer works" in text(again(link), 410)
    assert "open invitation" not in text(owner.get("/members/"))


def test_the_token_is_stored_as_a_hash_only(project: Project, signed_in: SignIn) -> None:
    """Nobody who reads the database can use a link."""
    token = invited(signed_in("owner")).split("/")[2]
    rows = str([*Invitation.objects.values(), *AuditEntry.objects.values()])
    assert token not in rows
    assert len(Invitation.objects.get().token_hash) == 64


def test_a_bad_password_uses_nothing_up(project: Project, signed_in: SignIn) -> None:
    """Too short, too common, the name itself, two different ones: the words stand at the field."""
    link = invited(signed_in("owner"), "christopher.smith")
    ana = Client()
    for password, other, told in (
        ("short", "short", "at least 12"),
        ("qwerty123456", "qwerty123456", "too common"),
        ("christopher.smith", "christopher.smith", "too similar"),
        (NEW, f"{NEW}s", "match"),
    ):
        form = {"new_password1": password, "new_password2": other}
        shown = text(ana.post(link, form), 422)
        assert told in shown
        assert NEW not in shown
    assert ana.post(link, {**BOTH}).status_code == 302


def test_of_eight_who_join_by_one_link_one_does(project: Project, signed_in: SignIn) -> None:
    """And the password is the winner's."""
    link = invited(signed_in("owner"))

    def join(number: int) -> tuple[int, int]:
        password = f"{NEW} {number}"
        form = {"new_password1": password, "new_password2": password}
        return Client().post(link, form).status_code, number

    results = crowd(8, join)
    assert sorted(status for status, _ in results) == [302] + [410] * 7, results
    winner = dict(results)[302]
    form = {"username": "ana", "password": f"{NEW} {winner}"}
    assert Client().post("/login/", form).status_code == 302


def test_an_invitation_ends_with_its_time(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour, a day, a week."""
    owner, now = signed_in("owner"), clock.now_ms()
    for hours in invitations.HOURS:
        monkeypatch.setattr(clock, "now_ms", lambda: now)
        link = invited(owner, hours=hours)
        over = now + hours * 3_600_000
        monkeypatch.setattr(clock, "now_ms", lambda to=over - 1: to)
        assert Client().get(link).status_code == 200
        monkeypatch.setattr(clock, "now_ms", lambda to=over: to)
        assert Client().get(link).status_code == 410
        assert Client().post(link, BOTH).status_code == 410
        assert "open invitation" not in text(owner.get("/members/"))


def test_a_revoked_or_replaced_invitation_opens_nothing(
    project: Project, signed_in: SignIn
) -> None:
    """Of a name there is one; another project's are not in reach."""
    owner = signed_in("owner")
    first, second = invited(owner), invited(owner)
    assert Client().get(first).status_code == 410
    number = Invitation.objects.get().pk
    owner.post(f"/members/invitations/{number}/revoke/")
    assert Client().post(second, BOTH).status_code == 410
    assert "no such open invitation" in text(
        owner.post(f"/members/invitations/{number}/revoke/", follow=True)
    )
    other = Project.objects.create(name="other", account_id="999999999999")
    theirs, _ = invitations.create_invitation(other, "ben", "viewer", 1, Actor("manage.py"))
    owner.post(f"/members/invitations/{theirs.pk}/revoke/")
    assert Invitation.objects.filter(pk=theirs.pk).exists()
    assert "ben" not in text(owner.get("/members/"))


# -- who may invite --------------------------------------------------------------------------------


def test_only_an_owner_invites(project: Project, signed_in: SignIn) -> None:
    """Others see no form and no open invitation, and a POST is refused."""
    invited(signed_in("owner"), "secret-name")
    for role in ("viewer", "operator", "editor"):
        client = signed_in(role)
        shown = text(client.get("/members/"))
        assert "invited-role" not in shown
        assert "secret-name" not in shown
        form = {"name": "eve", "role": "owner", "hours": "1"}
        assert client.post("/members/invite/", form).status_code == 403
        number = Invitation.objects.get().pk
        assert client.post(f"/members/invitations/{number}/revoke/").status_code == 403
    assert not Invitation.objects.filter(name="eve").exists()


@pytest.mark.parametrize("how", ["removed", "demoted", "switched off"])
def test_an_owner_who_is_none_any_more_leaves_no_way_back(
    project: Project, signed_in: SignIn, how: str
) -> None:
    """Invitations that they made open nothing, also after they are owner again."""
    owner = signed_in("owner")
    signed_in("editor")
    people.put_member(project, "editor", "owner", Actor("owner"))
    link = invited(owner, "back-door", "owner")
    user = Membership.objects.get(user__username="owner").user
    if how == "removed":
        people.remove_member(project, "owner", Actor("editor"))
    elif how == "demoted":
        people.put_member(project, "owner", "viewer", Actor("editor"))
    else:
        user.is_active = False
        user.save()
    assert Client().get(link).status_code == 410
    assert Client().post(link, BOTH).status_code == 410
    if how != "switched off":
        people.put_member(project, "owner", "owner", Actor("editor"))
        assert Client().post(link, BOTH).status_code == 410
    people.put_member(project, "owner", "viewer", Actor("editor"))
    with raises_code(ErrorCode.AccessDeniedException):
        invitations.create_invitation(project, "eve", "owner", 1, Actor("owner"), user)


@pytest.mark.postgres_too
def test_what_makes_no_sense_is_refused(project: Project, signed_in: SignIn) -> None:
    """Names, roles, members; what was typed stays in the form."""
    owner = signed_in("owner")
    for name, role, told in (
        (MARKUP, "viewer", "is not a name of 1 to 64"),
        ("ana", "king", "must be one of viewer"),
        ("owner", "viewer", "owner is a member already"),
    ):
        answer = owner.post("/members/invite/", {"name": name, "role": role, "hours": "1"})
        assert told in text(answer, 422)
        assert MARKUP not in answer.content.decode()
    assert 'value="owner"' in text(answer, 422)
    assert Invitation.objects.count() == 0


# -- accounts of others ----------------------------------------------------------------------------


def test_an_invitation_takes_no_account_over(project: Project, signed_in: SignIn) -> None:
    """Who belongs to another project joins while they are signed in, and keeps their password."""
    ben = signed_in("viewer")
    Membership.objects.update(project=Project.objects.create(name="b", account_id="999999999999"))
    owner = signed_in("owner")
    link = invited(owner, "viewer")
    thief = Client()
    assert "new_password1" not in text(thief.get(link))
    for client in (thief, owner):
        assert "has an account already" in markup(client.post(link, BOTH), 403)
    assert Membership.objects.filter(user__username="viewer").count() == 1
    assert ben.post(link)["Location"] == "/"
    assert Membership.objects.filter(user__username="viewer").count() == 2
    form = {"username": "viewer", "password": NEW}
    assert Client().post("/login/", form).status_code == 422
    assert Client().post("/login/", {**form, "password": RIGHT}).status_code == 302


def test_an_account_that_is_made_at_the_same_moment_is_not_taken_over(project: Project) -> None:
    """Another project adds the person while somebody joins by the link: one of them is first."""
    from django.contrib.auth import get_user_model

    other = Project.objects.create(name="b", account_id="999999999999")
    owner = get_user_model().objects.create_user("owner")
    Membership.objects.create(project=project, user=owner, role="owner")
    for number in range(8):
        name = f"ana-{number}"
        get_user_model().objects.create_user(name)
        _, token = invitations.create_invitation(project, name, "viewer", 1, Actor("owner"), owner)

        def act(which: int, name: str = name, token: str = token) -> str:
            if which:
                people.put_member(other, name, "editor", Actor("manage.py"))
                return "added"
            invitations.accept_invitation(token, "md5$salt$hash", None)
            return "joined"

        results = crowd(2, act)
        assert "added" in results
        added_first = any(isinstance(result, invitations.OtherAccount) for result in results)
        assert added_first or "joined" in results
        assert get_user_model().objects.get(username=name).has_usable_password() != added_first
    _, token = invitations.create_invitation(project, "eve", "viewer", 1, Actor("owner"), owner)
    with pytest.raises(invitations.InvitationClosed):
        invitations.accept_invitation(token, "", None)


def test_an_invitation_ends_when_the_person_is_added_otherwise(
    project: Project, signed_in: SignIn
) -> None:
    """Whoever has the link could set the password of a member."""
    owner = signed_in("owner")
    link = invited(owner)
    owner.post("/members/", {"name": "ana", "role": "viewer"})
    assert Client().post(link, BOTH).status_code == 410


def test_a_removed_person_who_is_invited_again_starts_from_nothing(
    project: Project, signed_in: SignIn
) -> None:
    """The old session and key stay out, and the old password is gone."""
    viewer, owner = signed_in("viewer"), signed_in("owner")
    viewer.post("/keys/")
    owner.post("/members/remove/", {"name": "viewer"})
    link = invited(owner, "viewer")
    assert viewer.get("/")["Location"].startswith("/login/")
    assert Client().post(link, BOTH).status_code == 302
    assert viewer.get("/")["Location"].startswith("/login/")
    form = {"username": "viewer", "password": RIGHT}
    assert Client().post("/login/", form).status_code == 422


def test_a_switched_off_account_is_not_switched_on(
    project: Project, signed_in: SignIn, django_user_model: Any
) -> None:
    """An operator of the server switched it off; an owner of a project cannot undo that."""
    django_user_model.objects.create_user("ana", is_active=False)
    assert Client().post(invited(signed_in("owner")), BOTH).status_code == 410
    assert not Membership.objects.filter(user__username="ana").exists()


# -- own password ----------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_person_changes_their_password_and_other_sessions_end(
    project: Project, signed_in: SignIn
) -> None:
    """The current one is asked for; this session goes on, keys too; it is on record."""
    here = signed_in("viewer")
    elsewhere = Client()
    elsewhere.post("/login/", {"username": "viewer", "password": RIGHT})
    assert elsewhere.get("/").status_code == 200
    assert "not correct" not in text(here.get("/password/"))
    wrong = {"old_password": "a guess", **BOTH}
    assert "entered incorrectly" in text(here.post("/password/", wrong), 422)
    assert elsewhere.get("/").status_code == 200
    done = here.post("/password/", {"old_password": RIGHT, **BOTH}, follow=True)
    assert "Your password is set" in text(done)
    assert elsewhere.get("/")["Location"].startswith("/login/")
    assert here.get("/").status_code == 200
    form = {"username": "viewer", "password": RIGHT}
    assert Client().post("/login/", form).status_code == 422
    assert Client().post("/login/", {**form, "password": NEW}).status_code == 302
    assert AuditEntry.objects.filter(action="ChangePassword", target="viewer").count() == 1


def test_a_person_without_a_password_sets_one(
    project: Project, signed_in: SignIn, django_user_model: Any
) -> None:
    """After a login link; weak ones are refused as everywhere."""
    user = django_user_model.objects.create_user("ana")
    Membership.objects.create(project=project, user=user, role="viewer")
    ana = Client()
    ana.force_login(user)
    assert "old_password" not in text(ana.get("/password/"))
    weak = {"new_password1": "short", "new_password2": "short"}
    assert "at least 12" in text(ana.post("/password/", weak), 422)
    assert ana.post("/password/", BOTH).status_code == 302
    assert ana.get("/").status_code == 200
    assert "old_password" in text(ana.get("/password/"))
    assert ana.post("/password/", BOTH).status_code == 422


def test_the_current_password_is_not_guessed_at_the_form(
    project: Project, signed_in: SignIn
) -> None:
    """Ten attempts, as at the login; the counts do not lock each other."""
    viewer = signed_in("viewer")
    wrong = {"old_password": "a guess", **BOTH}
    for _ in range(login_attempts.MOST_OF_ACCOUNT):
        assert viewer.post("/password/", wrong).status_code == 422
    refused = viewer.post("/password/", {**wrong, "old_password": RIGHT})
    assert "Too many wrong passwords" in text(refused, 429)
    form = {"username": "viewer", "password": RIGHT}
    assert Client().post("/login/", form).status_code == 302


def test_of_two_changes_at_once_one_counts(project: Project, signed_in: SignIn) -> None:
    """The other one is told so: both knew the password before, neither the other's new one."""
    viewer = signed_in("viewer")
    user = Membership.objects.get(user__username="viewer").user
    results = crowd(4, lambda n: people.set_password(project, user, f"hash-{n}", Actor("viewer")))
    assert sorted(results) == [False, False, False, True]
    people.remove_member(project, "viewer", Actor("manage.py"))
    assert people.set_password(project, user, "hash", Actor("viewer")) is False
    assert viewer.get("/password/").status_code == 302
