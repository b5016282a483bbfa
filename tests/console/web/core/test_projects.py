"""A person of several projects sees one at a time, and chooses which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth import get_user_model

from console import access
from console.models import AuditEntry, Definition, Execution, Project, StateMachine
from console.store.people.sample_project import put_sample_project
from tests.console.store.helpers import create, one, start

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client
    from pytest_django.fixtures import Settings

PASS = one("P", Type="Pass", End=True)


@pytest.fixture
def owner(project: Project) -> User:
    """Return the owner of the default project and of that of the samples."""
    user, default, _ = access.first_owner()
    assert default == project
    put_sample_project(user)
    return user


@pytest.mark.postgres_too
def test_the_chosen_project_is_the_one_that_is_shown(
    client: Client, project: Project, owner: User
) -> None:
    """First the oldest one; the samples after a click, also for the next request; then back."""
    client.force_login(owner)
    create(project, PASS, "mine")
    assert b"mine" in client.get("/machines/").content
    assert b"OrderProcessing" not in client.get("/machines/").content
    answer = client.post("/preferences/", {"project": "samples", "next": "/"})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    for _ in range(2):
        shown = client.get("/machines/").content
        assert b"OrderProcessing" in shown
        assert b"mine" not in shown
    client.post("/preferences/", {"project": "default", "next": "/"})
    assert b"mine" in client.get("/machines/").content


def test_the_samples_are_not_said_to_have_executions(client: Client, owner: User) -> None:
    """They are state machines to read and to start; nothing has run there yet."""
    client.force_login(owner)
    assert not Execution.objects.exists()
    shown = client.get("/").content.decode()
    assert "has state machines of every kind to view and start." in shown
    assert "finished" not in shown


@pytest.mark.postgres_too
def test_an_empty_project_leads_to_the_samples(client: Client, owner: User) -> None:
    """The overview of a new server has the button."""
    client.force_login(owner)
    assert b"Look at the samples" in client.get("/").content
    client.post("/preferences/", {"project": "samples", "next": "/"})
    assert b"Look at the samples" not in client.get("/").content


def test_nobody_chooses_a_project_of_others(client: Client, project: Project, owner: User) -> None:
    """Neither the form nor a made-up cookie shows more than one's own projects."""
    del owner
    stranger = get_user_model().objects.create_user("stranger")
    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    theirs.membership_set.create(user=stranger, role="viewer")
    create(project, PASS, "mine")
    client.force_login(stranger)
    client.post("/preferences/", {"project": "default", "next": "/"})
    assert "project" not in client.cookies
    client.cookies["project"] = "default"
    shown = client.get("/machines/").content
    assert b"mine" not in shown
    assert b"999999999999" in shown
    assert b"Look at the samples" not in client.get("/").content


@pytest.mark.postgres_too
def test_a_reset_keeps_people_and_the_audit(
    client: Client, project: Project, owner: User, settings: Settings
) -> None:
    """Work is gone, the samples are back, keys work on, and the trail says who did what."""
    settings.STATEYARD_ALLOW_RESET = True
    key = access.create_access_key(owner, project)
    start(create(project, PASS, "mine"))
    before = AuditEntry.objects.count()
    assert client.post("/reset").status_code == 403
    for name in ("X-Forwarded-Proto", "X-Forwarded-Port", "Via", "Forwarded", "X-Real-IP"):
        proxied = {"X-Stateyard-Reset": "yes", name: "https"}
        assert client.post("/reset", headers=proxied).status_code == 403, name
    told = {"X-Stateyard-Reset": "yes"}
    assert client.post("/reset", headers=told, REMOTE_ADDR="203.0.113.7").status_code == 403
    proxied = {"X-Stateyard-Reset": "yes", "X-Forwarded-For": "203.0.113.7"}
    refused = client.post("/reset", headers=proxied)
    assert (refused.status_code, b"requests of a proxy" in refused.content) == (403, True)
    foreign = {"X-Stateyard-Reset": "yes", "Host": "rebound.example"}
    assert client.post("/reset", headers=foreign).status_code == 400
    assert Execution.objects.exists()
    assert client.post("/reset", headers={"X-Stateyard-Reset": "yes"}).status_code == 204
    assert not Execution.objects.exists()
    assert not StateMachine.objects.filter(project=project).exists()
    assert StateMachine.objects.filter(project__name="samples", name="HelloWorld").exists()
    assert Definition.objects.exists()
    assert access.principal_of_key(key.key_id) is not None
    assert AuditEntry.objects.filter(project=project, action="Reset").count() == 1
    assert AuditEntry.objects.count() > before
    assert client.get("/reset").status_code == 405
