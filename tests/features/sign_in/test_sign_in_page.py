"""The sign-in page offers providers, and passwords unless they are switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console import access
from console.db.audit import Actor
from console.errors import ValidationException
from console.features.members import store as invitations
from console.features.sign_in import ways
from console.models import AuditEntry
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

BY = Actor("owner")
PROVIDERS = {
    "corp": {"name": "Corp <SSO>", "issuer": "https://login.example.com", "client_id": "c"},
    "other": {"issuer": "https://other.example.com", "client_id": "c"},
}


def test_without_a_provider_nothing_is_offered(project: Project) -> None:
    """The page is as it was, and the addresses are not found."""
    del project
    shown = text(Client().get("/login/"))
    assert "Sign in with" not in shown
    assert 'name="password"' in shown
    for path in ("/sign-in/corp/", "/sign-in/corp/callback/?code=x&state=y"):
        assert Client().get(path).status_code == 404
    assert ways.find_provider_accounts([1, 2]) == set()


def test_each_provider_has_a_button(project: Project, settings: Any) -> None:
    """In the order of the settings, beside the password; each leads back."""
    del project
    settings.STATEYARD_OIDC = PROVIDERS
    shown = text(Client().get("/login/", {"next": "/machines/?q=a&b=c"}))
    assert shown.index("Sign in with Corp <SSO>") < shown.index("Sign in with other")
    assert 'href="/sign-in/corp/?next=%2Fmachines%2F%3Fq%3Da%26b%3Dc"' in shown
    assert 'name="password"' in shown


def test_without_passwords_no_password_lets_in(
    signed_in: Callable[[str], Client], settings: Any
) -> None:
    """Not the right one either; the form, the page Password and its link are gone."""
    member = signed_in("owner")
    settings.STATEYARD_PASSWORDS = False
    shown = text(Client().get("/login/"))
    assert 'name="password"' not in shown
    assert "This server has no passwords." in shown
    client = Client()
    sent = {"username": "owner", "password": "a long enough password"}
    assert client.post("/login/", sent).status_code == 403
    assert client.get("/").status_code == 302
    assert not AuditEntry.objects.filter(action="SignIn").exists()
    assert "has no passwords" in text(member.get("/password/"), 403)
    assert 'href="/password/"' not in text(member.get("/"))


def test_without_passwords_nobody_is_invited(
    project: Project, signed_in: Callable[[str], Client], settings: Any
) -> None:
    """An invitation of before makes no account with a password."""
    owner = signed_in("owner")
    _, token = invitations.create_invitation(project, "ana", "viewer", 24, BY)
    settings.STATEYARD_PASSWORDS = False
    sent = {"new_password1": "seven red bicycles", "new_password2": "seven red bicycles"}
    assert Client().post(f"/invitation/{token}/", sent).status_code == 410
    assert "Invite a person" not in text(owner.get("/members/"))
    with pytest.raises(ValidationException, match="has no passwords"):
        invitations.create_invitation(project, "ben", "viewer", 24, BY)


def test_without_passwords_a_login_link_lets_in(
    signed_in: Callable[[str], Client], settings: Any, django_user_model: Any
) -> None:
    """It is the way in while a provider is down."""
    signed_in("owner")
    settings.STATEYARD_PASSWORDS = False
    token = access.create_login_link(django_user_model.objects.get(username="owner"))
    client = Client()
    assert client.post(f"/login/{token}/").status_code == 302
    assert client.get("/").status_code == 200
