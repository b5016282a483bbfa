"""Branches are listed below their parent on the page Projects, and nowhere among its things."""

from __future__ import annotations

import pytest
from django.test import Client

from console.features.branches import store
from console.features.projects import deletion
from console.features.projects import store as projects
from console.models import AuditEntry, Project
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text
from tests.features.branches.conftest import BY


def client_of(project: Project, name: str) -> Client:
    """Return the browser of a member, with the project open."""
    client = Client()
    client.force_login(project.membership_set.get(user__username=name).user)
    client.cookies["project"] = project.name
    return client


def test_a_branch_stands_below_its_parent(payments: Project) -> None:
    """With its time and buttons to open and delete it; the menu of projects has none."""
    store.put_branch(payments, "feature/x", "3d", BY)
    shown = text(client_of(payments, "ed").get("/projects/"))
    assert "feature/x" in shown
    assert "Active until" in shown
    assert '<button class="button small" name="project" value="payments~feature~x">' in shown
    assert "/projects/branches/delete/" in shown
    assert shown.count("payments~feature~x") == 1
    overview = text(client_of(payments, "ed").get("/"))
    assert "feature" not in overview
    assert 'href="/projects/"' in overview


def test_an_open_branch_is_named(payments: Project) -> None:
    """In the menu and in a note; its page of members has no forms."""
    branch = store.put_branch(payments, "feature/x", "3d", BY).branch.project
    owner = client_of(branch, "olga")
    shown = text(owner.get("/members/"))
    assert 'aria-label="Branch"' in shown
    assert 'aria-label="Project: payments~feature~x"' in shown
    assert "/members/add" not in shown
    answer = owner.post("/members/", {"name": "nina", "role": "owner", "action": "put"})
    assert answer.status_code != 200
    assert branch.membership_set.count() == payments.membership_set.count()
    assert 'name="name"' not in shown


@pytest.mark.postgres_too
def test_an_editor_deletes_it(payments: Project) -> None:
    """On the page; a viewer and a stranger may not, and get no button."""
    store.put_branch(payments, "feature/x", "3d", BY)
    sent = {"project": "payments", "branch": "feature/x"}
    viewer = client_of(payments, "vera")
    assert "/projects/branches/delete/" not in text(viewer.get("/projects/"))
    assert viewer.post("/projects/branches/delete/", sent).status_code == 403
    assert AuditEntry.objects.filter(action="Refused", actor="vera").exists()
    stranger = Client()
    stranger.force_login(payments.membership_set.get(user__username="otto").user)
    payments.membership_set.filter(user__username="otto").delete()
    assert stranger.post("/projects/branches/delete/", sent).status_code == 403
    editor = client_of(payments, "ed")
    assert editor.post("/projects/branches/delete/", sent).status_code == 302
    shown = text(editor.get("/projects/"))
    assert "is being deleted" in shown
    assert "Deleting" in shown
    deletion.continue_deletions()
    assert editor.post("/projects/branches/delete/", sent).status_code == 302
    assert "has no branch" in text(editor.get("/projects/"))


@pytest.mark.postgres_too
def test_search_finds_the_parent_only(payments: Project) -> None:
    """By name; the ARN of a thing of the branch finds it."""
    create(payments, PASS, "orders")
    branch = store.put_branch(payments, "feature/x", "3d", BY).branch.project
    other = projects.create_project("other", "", "olga", BY)
    client = client_of(other, "olga")
    found = text(client.get("/palette/?q=orders"))
    assert "In the project payments" in found
    assert "feature" not in found
    arn = branch.statemachine_set.get().arn
    assert "payments~feature~x" in text(client.get(f"/palette/?q={arn}"))


def test_a_missing_page_names_no_branches(payments: Project) -> None:
    """As other projects that have a state machine of the name."""
    create(payments, PASS, "orders")
    store.put_branch(payments, "feature/x", "3d", BY)
    other = projects.create_project("other", "", "olga", BY)
    answer = client_of(other, "olga").get("/machines/orders/")
    assert answer.status_code == 404
    shown = answer.content.decode()
    assert "payments" in shown
    assert "feature" not in shown


def test_an_administrator_sees_parents_only(payments: Project) -> None:
    """In the table of the server; deleted branches do not fill the list of deletions."""
    store.put_branch(payments, "feature/x", "3d", BY)
    user = payments.membership_set.get(user__username="olga").user
    user.is_superuser = True
    user.save()
    client = client_of(payments, "olga")
    shown = text(client.get("/projects/"))
    table = shown[shown.index("Projects of this server") :]
    assert "payments" in table
    assert "feature" not in table
    store.delete_branch(payments, "feature/x", BY)
    deletion.continue_deletions()
    assert "Deleted projects" not in text(client.get("/projects/"))
