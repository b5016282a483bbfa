"""The page Projects: one's own for everybody, those of the server for an administrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console import access
from console.db.audit import Actor
from console.features.projects import store
from console.models import AuditEntry, Membership, Project
from console.store.people import people
from console.store.people.sample_project import put_sample_project
from tests.console.store.helpers import WAIT, create, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable
BY = Actor("manage.py")


def test_a_member_sees_their_own_projects_only(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """With what runs in each; neither the others nor a form to create one."""
    owner = signed_in("owner")
    store.create_project("payments", "222222222222", "owner", BY)
    store.create_project("secret", "333333333333", "ben", BY)
    start(create(Project.objects.get(name="payments"), WAIT))
    shown = text(owner.get("/projects/"))
    assert project.name in shown
    assert "222222222222" in shown
    assert '<td class="number" data-label="Running now">1</td>' in shown
    for hidden in ("secret", "333333333333", "Projects of this server", "Create a project"):
        assert hidden not in shown


def test_an_administrator_creates_and_renames(administrator: Client) -> None:
    """Being its owner at first, unless the form names somebody else."""
    answer = administrator.post("/projects/create/", {"name": "payments", "account": ""})
    assert answer.status_code == 302
    member = Membership.objects.get(project__name="payments")
    assert (member.user.get_username(), member.role) == ("root", "owner")
    assert AuditEntry.objects.get(action="CreateProject").actor == "root"
    sent = {"name": "payments", "new_name": "billing"}
    assert administrator.post("/projects/rename/", sent).status_code == 302
    administrator.get("/projects/")  # which shows the messages, and they have both names
    shown = text(administrator.get("/projects/"))
    assert "billing" in shown
    assert "payments" not in shown


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"name": "a b"}, "is not a name of 1 to 64 letters"),
        ({"name": "default"}, "is taken"),
        ({"name": "payments", "account": "1"}, "is not an account ID of 12 digits"),
        ({"name": "payments", "owner": "nobody"}, "there is nobody called"),
        ({"name": "payments", "owner": "a b"}, "there is nobody called"),
    ],
)
def test_a_refused_project_keeps_the_form(
    administrator: Client, sent: dict[str, str], words: str
) -> None:
    """The page says why, and has what was typed."""
    answer = administrator.post("/projects/create/", sent)
    shown = text(answer, 422)
    assert words in shown
    assert f'value="{sent["name"]}"' in shown
    assert Project.objects.count() == 1


def test_a_refused_rename_is_explained(administrator: Client) -> None:
    """A name of the server stays, a taken one is refused."""
    store.create_project("payments", "", "ana", BY)
    for sent in ({"name": "payments", "new_name": "default"}, {"name": "default", "new_name": "x"}):
        answer = administrator.post("/projects/rename/", sent)
        assert 'class="banner failed" role="alert"' in text(answer, 422)
    assert set(Project.objects.values_list("name", flat=True)) == {"default", "payments"}


@pytest.mark.parametrize("role", ["viewer", "operator", "editor", "owner"])
def test_no_role_of_a_project_administers(signed_in: Callable[[str], Client], role: str) -> None:
    """An owner neither creates nor renames a project; the refusal is in the audit."""
    client = signed_in(role)
    for path in ("/projects/create/", "/projects/rename/"):
        answer = client.post(path, {"name": "payments", "new_name": "mine", "owner": role})
        assert answer.status_code == 403
        assert AuditEntry.objects.filter(action="Refused", target=path).exists()
    assert Project.objects.count() == 1


def test_an_administrator_sees_operations_and_no_payload(
    administrator: Client, project: Project
) -> None:
    """The server's page with its hosts is theirs; those of a project are its members'."""
    start(create(project, WAIT), {"secret": "of default"}, "x")
    assert "Free disk space" in text(administrator.get("/operations/"))
    for path in ("/", "/machines/", "/machines/machine/executions/x/", "/audit/", "/members/"):
        shown = text(administrator.get(path), 403)
        assert "of default" not in shown
        assert 'href="/projects/"' in shown


def test_a_membership_gives_an_administrator_its_role_only(project: Project) -> None:
    """A viewer who administers the server starts nothing."""
    people.set_administrator("root", administers=True, actor=BY)
    member = people.put_member(project, "root", "viewer", BY)
    principal = access.Principal(member.user, project, member.role)
    assert access.is_allowed(principal, "CreateProject")
    for action in ("StartExecution", "PutMember", "RevealPayloads", "CreateStateMachine"):
        assert not access.is_allowed(principal, action)


def test_the_header_offers_projects_to_a_member_of_two(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """One project: no menu of projects. Two: a menu that leads to the page, also without script."""
    owner = signed_in("owner")
    assert "project-menu" not in text(owner.get("/"))
    assert 'href="/projects/"' not in text(owner.get("/"))
    store.create_project("payments", "", "owner", BY)
    shown = text(owner.get("/"))
    assert "project-menu" in shown
    assert 'href="/projects/"' in shown
    owner.post("/preferences/", {"project": "payments", "next": "/"})
    assert f"Project: {project.name}" not in text(owner.get("/"))
    assert "Project: payments" in text(owner.get("/"))


@pytest.mark.postgres_too
def test_the_samples_alone_make_no_menu(
    project: Project, signed_in: Callable[[str], Client], django_user_model: Any
) -> None:
    """A new server has them beside ``default``: a button leads out of them, and no menu appears."""
    owner = signed_in("owner")
    put_sample_project(django_user_model.objects.get(username="owner"))
    assert "project-menu" not in text(owner.get("/"))
    assert "Leave the samples" not in text(owner.get("/"))
    owner.post("/preferences/", {"project": "samples", "next": "/"})
    shown = text(owner.get("/"))
    assert "project-menu" not in shown
    assert "Leave the samples" in shown
    owner.post("/preferences/", {"project": project.name, "next": "/"})
    store.create_project("payments", "", "owner", BY)
    shown = text(owner.get("/"))
    assert "project-menu" in shown
    assert 'value="samples"' in shown


def test_an_administrator_without_a_project_sets_a_password(
    administrator: Client, django_user_model: Any
) -> None:
    """The menu leads there; the audit of ``default`` has the change."""
    assert 'href="/password/"' in text(administrator.get("/projects/"))
    assert "New password" in text(administrator.get("/password/"))
    sent = {"new_password1": "three brown foxes", "new_password2": "three brown foxes"}
    assert administrator.post("/password/", sent).status_code == 302
    assert django_user_model.objects.get(username="root").check_password("three brown foxes")
    assert AuditEntry.objects.get(action="ChangePassword").actor == "root"


def test_a_person_without_a_project_sets_no_password(
    project: Project, django_user_model: Any
) -> None:
    """Whoever was removed from their last project has a closed account."""
    del project
    client = Client()
    client.force_login(django_user_model.objects.get(username="ana"))
    sent = {"new_password1": "three brown foxes", "new_password2": "three brown foxes"}
    assert client.get("/password/").status_code == 403
    assert client.post("/password/", sent).status_code == 403
    assert not django_user_model.objects.get(username="ana").has_usable_password()
