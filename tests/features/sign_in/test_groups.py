"""Administrators keep the table of groups on the page Sign-in, beside the operator's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from console.db.audit import Actor
from console.errors import ServiceError
from console.features.sign_in import groups
from console.features.sign_in.claims import read_identity
from console.features.sign_in.models import GroupRole
from console.models import AuditEntry, Project
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

BY = Actor("root")
CORP = {
    "name": "Corp SSO",
    "issuer": "https://login.example.com",
    "client_id": "c",
    "groups": {"dev": {"default": "editor"}},
    "administrators": ["platform"],
}
OTHER = {"issuer": "https://other.example.com", "client_id": "c"}


@pytest.fixture
def providers(settings: Any, project: Project) -> None:
    """Let the settings have two providers; the first gives roles in ``default``."""
    assert project.name == "default"
    settings.STATEYARD_OIDC = {"corp": CORP, "other": OTHER}


def roles(provider_id: str, *names: str) -> Any:
    """Return the identity of a person who is in groups of a provider."""
    with transaction.atomic():
        projects = groups.governed_projects(provider_id, ())
        provider, _ = groups.effective_provider(provider_id, projects.values())
    claims = {"sub": "s", "iss": "i", "groups": list(names)}
    return read_identity(provider_id, provider, claims)


@pytest.fixture
def root(signed_in: Callable[[str], Client], django_user_model: Any) -> Client:
    """Return the browser of an administrator, who is a viewer of ``default``."""
    client = signed_in("viewer")
    django_user_model.objects.filter(username="viewer").update(is_superuser=True)
    return client


@pytest.mark.postgres_too
@pytest.mark.usefixtures("providers")
def test_rows_of_the_page_and_of_the_settings_count(project: Project) -> None:
    """The settings win where they have the pair; the highest role of all groups counts."""
    shop = Project.objects.create(name="shop", account_id="111111111111")
    groups.put_row("corp", "leads", "shop", "owner", BY)
    groups.put_row("corp", "*", "shop", "viewer", BY)
    groups.put_row("corp", "ops", "", "administrator", BY)
    assert roles("corp").roles == {"shop": "viewer"}
    assert roles("corp", "dev", "leads").roles == {"default": "editor", "shop": "owner"}
    assert roles("corp", "dev").governed == {"default", "shop"}
    assert [roles("corp", name).administers for name in ("ops", "platform", "dev")] == [
        *(True, True, False)
    ]
    assert roles("other", "leads").roles == {}
    assert roles("other", "ops").administers is None
    GroupRole.objects.create(provider_id="corp", group="dev", project=project, role="owner")
    assert roles("corp", "dev").roles["default"] == "editor"
    shop.name = "store"
    shop.save()
    assert roles("corp", "leads").roles == {"store": "owner"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("none", "g", "default", "viewer"), "There is no provider 'none'"),
        (("corp", "", "default", "viewer"), "1 to 255 printable"),
        (("corp", "a\nb", "default", "viewer"), "1 to 255 printable"),
        (("corp", "x" * 256, "default", "viewer"), "1 to 255 printable"),
        (("corp", "g", "default", "administrator"), "choose one of the four"),
        (("corp", "g", "default", "king"), "choose one of the four"),
        (("corp", "g", "", "owner"), "can only be administrator"),
        (("corp", "*", "", "administrator"), "cannot administer"),
        (("corp", "g", "absent", "viewer"), "There is no project 'absent'"),
        (("corp", "dev", "default", "viewer"), "settings already decide on 'dev' and default"),
        (("corp", "platform", "", "administrator"), "already decide on 'platform' and the server"),
    ],
)
@pytest.mark.usefixtures("providers")
def test_a_row_that_cannot_be_is_refused(row: tuple[str, str, str, str], words: str) -> None:
    """In one sentence, and nothing is kept."""
    with pytest.raises(ServiceError, match=words):
        groups.put_row(*row, BY)
    assert not GroupRole.objects.exists()


@pytest.mark.postgres_too
@pytest.mark.usefixtures("providers")
def test_an_administrator_keeps_the_table(root: Client, project: Project) -> None:
    """Each change is in the audit of its project; the settings' rows have no button."""
    shown = text(root.get("/sign-in/"))
    assert shown.count("The operator\u2019s settings") == 2
    assert 'name="remove"' not in shown
    sent = {"provider": "corp", "group": "qa", "project": "default", "role": "operator"}
    assert root.post("/sign-in/", sent).status_code == 302
    assert root.post("/sign-in/", {**sent, "role": "viewer"}).status_code == 302
    row = GroupRole.objects.get()
    assert (row.group, row.project, row.role) == ("qa", project, "viewer")
    assert f'name="remove" value="{row.pk}"' in text(root.get("/sign-in/"))
    assert root.post("/sign-in/", {"remove": str(row.pk)}).status_code == 302
    assert not GroupRole.objects.exists()
    assert "was removed meanwhile" in text(root.post("/sign-in/", {"remove": str(row.pk)}), 422)
    entries = AuditEntry.objects.filter(project=project, target="qa@corp").order_by("pk")
    assert [(entry.action, entry.reason) for entry in entries] == [
        ("PutGroupRole", "operator of default"),
        ("PutGroupRole", "viewer of default"),
        ("RemoveGroupRole", "viewer of default"),
    ]


@pytest.mark.usefixtures("providers")
def test_a_refused_row_is_shown_again(root: Client) -> None:
    """With what was typed, and the reason."""
    sent = {"provider": "other", "group": "<b>", "project": "", "role": "owner"}
    shown = text(root.post("/sign-in/", sent), 422)
    assert "can only be administrator" in shown
    assert 'value="<b>"' in shown
    assert '<option value="other" selected>' in shown


@pytest.mark.usefixtures("providers")
def test_nobody_else_sees_the_page(signed_in: Callable[[str], Client]) -> None:
    """An owner neither; the menu does not name it to them."""
    owner = signed_in("owner")
    sent = {"provider": "corp", "group": "qa", "project": "default", "role": "operator"}
    assert owner.get("/sign-in/").status_code == 403
    assert owner.post("/sign-in/", sent).status_code == 403
    assert not GroupRole.objects.exists()
    assert 'href="/sign-in/"' not in text(owner.get("/"))


def test_without_a_provider_the_page_says_how(root: Client, settings: Any) -> None:
    """Rows of a provider that the settings do not have any more can be removed."""
    shown = text(root.get("/sign-in/"))
    assert "No provider is set up." in shown
    assert "Give a group a role" not in shown
    assert 'href="/sign-in/"' in text(root.get("/"))
    settings.STATEYARD_OIDC = {"corp": CORP}
    groups.put_row("corp", "qa", "", "administrator", BY)
    settings.STATEYARD_OIDC = {}
    assert 'name="remove"' in text(root.get("/sign-in/"))
