"""A deleted project leaves nothing in the database but its entries in the server's audit."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from console import access
from console.db import clock
from console.db.audit import Actor
from console.errors import ServiceError
from console.features.projects import deletion, rows_of_project, store
from console.features.projects.models import ProjectDeletion
from console.models import (
    AuditEntry,
    Definition,
    Execution,
    Membership,
    Project,
    RunRow,
    StateMachine,
    TaskRow,
)
from console.store.executions import retention
from console.store.machines import tags
from console.store.people import people
from console.store.tasks import activities
from tests import initial_database
from tests.acceptance.server import ROOT
from tests.console.store.helpers import PASS, REGION, WAIT, create, drain, one, start
from tests.console.web.helpers import text
from tests.features.projects.rows import RowsOfProject, content

if TYPE_CHECKING:
    from pathlib import Path

BY = Actor("root")


@pytest.fixture
def payments(project: Project, django_user_model: Any) -> Project:
    """Return an archived project of Ana's."""
    del project
    payments = store.create_project("payments", "222222222222", "ana", BY)
    store.archive_project("payments", BY)
    return Project.objects.get(pk=payments.pk)


def delete(project: Project) -> None:
    """Delete an archived project."""
    deletion.begin_deletion(project.name, project.name, BY)
    assert deletion.work_on_deletion(project.pk)


@pytest.mark.postgres_too
def test_no_table_has_a_row_of_it(payments: Project, project: Project) -> None:
    """Of two projects with a row in every table, all is as if the deleted one had never been."""
    user = get_user_model().objects.get(username="ben")
    returns = Project.objects.create(name="returns", account_id="333333333333")
    RowsOfProject(returns, user)
    before = content()
    gone = Project.objects.create(name="gone", account_id="444444444444", archived_ms=1)
    RowsOfProject(gone, user)
    tables = {model._meta.db_table for model, _ in rows_of_project.tables_of_projects()}
    assert len(tables) > 20
    filled = content()
    assert all(len(filled[table]) > len(before[table]) for table in tables)
    ProjectDeletion.objects.filter(project__in=[gone, returns]).update(lease_until_ms=0)
    assert deletion.work_on_deletion(gone.pk)
    after = content()
    entries = AuditEntry.objects.filter(project=None)
    assert [(entry.action, entry.target) for entry in entries] == [("DeleteProject", "gone")]
    entries.delete()
    after["console_auditentry"] = content()["console_auditentry"]
    for table in before:
        if not table.startswith("sqlite_"):
            leased = table == "console_projectdeletion"
            assert len(after[table]) == len(before[table]), table
            assert leased or after[table] == before[table], table
    assert {payments.pk, project.pk, returns.pk} == {*Project.objects.values_list("pk", flat=True)}


def test_every_table_belongs_to_a_project_an_execution_or_the_server() -> None:
    """A new table without a way to a project has to be thought about here."""
    of_projects = {model for model, _ in rows_of_project.tables_of_projects()}
    others = {
        model.__name__
        for model in apps.get_app_config("console").get_models()
        if model not in of_projects
    }
    assert others == {
        *("Execution", "ExecutionNote", "FunctionLog", "HistoryEvent", "InboxMessage", "MapItem"),
        *("MapRun", "RunRow", "RunValue", "TaskRow", "Timer", "Pause", "DebugEdit"),
        *("ExecutionSummary", "HaltedExecution"),
        *("Project", "ProjectDeletion", "Tag", "Definition"),
        *("AccountMail", "BrowserSession", "LoginAttempts", "LoginLink", "Price"),
        *("FollowedPerson", "ProviderSession", "SpentLogoutToken"),
        *("ReadinessMinute", "ServerFact", "Worker"),
        *("AuditChain", "AuditSeal", "AuditStream"),
    }


def test_what_is_shared_stays(payments: Project, project: Project) -> None:
    """A definition goes unless another project has it; people stay, without their sessions."""
    user = get_user_model().objects.get(username="ana")
    user.set_password("three brown foxes")
    user.save()
    for each in (payments, project):
        machine = create(each, WAIT, "shared")
        tags.put_tags(machine.arn, {"team": each.name})
    own = create(payments, PASS, "own").definition_id
    shared = StateMachine.objects.filter(name="shared").values_list("definition_id", flat=True)[0]
    delete(payments)
    keys = set(Definition.objects.values_list("pk", flat=True))
    assert shared in keys
    assert own not in keys
    machine = StateMachine.objects.get()
    assert machine.project == project
    assert tags.get_tags(machine.arn) == {"team": project.name}
    assert not get_user_model().objects.get(username="ana").has_usable_password()


@pytest.mark.postgres_too
def test_running_executions_end_without_a_step(payments: Project) -> None:
    """Their tasks are called by nobody, and a worker that has one in hand writes nothing."""
    Project.objects.filter(pk=payments.pk).update(archived_ms=None)
    payments.refresh_from_db()
    activity = activities.create_activity(payments, REGION, "work").arn
    execution = drain(start(create(payments, one("A", Type="Task", Resource=activity))))
    assert TaskRow.objects.get().status == "scheduled"
    for number in range(3):
        start(create(payments, WAIT, "waiting"), name=f"x{number}")
    store.archive_project("payments", BY)
    deletion.begin_deletion("payments", "payments", BY)
    assert not deletion.work_on_deletion(payments.pk, lambda: False)
    assert Execution.objects.filter(project=payments).count() == 4
    assert not RunRow.objects.exists()
    assert not TaskRow.objects.exists()
    assert not drain(execution).stop_ms
    assert deletion.work_on_deletion(payments.pk)
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("name", "confirmed", "code"),
    [
        ("default", "default", "ValidationException"),
        ("samples", "samples", "ValidationException"),
        ("payments", "Payments", "ValidationException"),
        ("payments", "", "ValidationException"),
        ("nothing", "nothing", "ResourceNotFound"),
        ("returns", "returns", "ConflictException"),
    ],
)
def test_a_deletion_that_cannot_be_is_refused(
    payments: Project, name: str, confirmed: str, code: str
) -> None:
    """Only an archived project goes, after its name is typed; ``default`` never does."""
    store.create_project("returns", "", "ana", BY)
    with pytest.raises(ServiceError) as caught:
        deletion.begin_deletion(name, confirmed, BY)
    assert caught.value.code == code
    assert not ProjectDeletion.objects.exists()
    assert Membership.objects.filter(project=payments).exists()


@pytest.mark.postgres_too
def test_nobody_opens_a_project_that_is_being_deleted(payments: Project) -> None:
    """Its members and keys are gone first; it is neither renamed nor unarchived."""
    Project.objects.filter(pk=payments.pk).update(archived_ms=None)
    user = get_user_model().objects.get(username="ana")
    key, _ = people.new_key(user, payments, BY)
    store.archive_project("payments", BY)
    client = Client()
    client.force_login(user)
    assert client.get("/").status_code == 200
    deletion.begin_deletion("payments", "payments", BY)
    assert access.principal_of_key(key.key_id) is None
    assert client.get("/").status_code != 200
    for change in (
        lambda: store.unarchive_project("payments", BY),
        lambda: store.rename_project("payments", "billing", BY),
    ):
        with pytest.raises(ServiceError, match="is being deleted"):
            change()
    assert (
        ProjectDeletion.objects.get().pk == deletion.begin_deletion("payments", "payments", BY).pk
    )
    assert AuditEntry.objects.filter(project=None).count() == 1


def test_a_killed_deletion_goes_on(payments: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes it when the lease has ended, and counts on."""
    monkeypatch.setattr(retention, "BATCH", 2)
    Project.objects.filter(pk=payments.pk).update(archived_ms=None)
    payments.refresh_from_db()
    for number in range(5):
        start(create(payments, PASS), name=f"x{number}")
    store.archive_project("payments", BY)
    deletion.begin_deletion("payments", "payments", BY)
    while deletion._stop_some(payments.pk):
        pass
    assert deletion._delete_executions(payments.pk)
    assert str(deletion.progress_of("payments")) == "2 of 5 executions removed"
    monkeypatch.setattr(deletion, "_RUNNER", "another process")
    assert not deletion.work_on_deletion(payments.pk)
    assert Execution.objects.count() == 3
    ended_ms = clock.now_ms() + deletion.LEASE_MS
    monkeypatch.setattr(clock, "now_ms", lambda: ended_ms)
    deletion.continue_deletions()
    assert not Project.objects.filter(name="payments").exists()
    assert not Execution.objects.exists()
    assert [entry.reason for entry in deletion.past_deletions()] == [
        "end: account 222222222222, 5 executions"
    ]


def test_an_administrator_deletes_on_the_page(payments: Project, administrator: Client) -> None:
    """The page shows how far it is, and what has been deleted."""
    sent = {"name": "payments", "confirmed": "payment"}
    assert "Type the name" in text(administrator.post("/projects/delete/", sent), 422)
    shown = text(administrator.get("/projects/"))
    assert 'name="confirmed"' in shown
    sent["confirmed"] = "payments"
    assert administrator.post("/projects/delete/", sent).status_code == 302
    shown = text(administrator.get("/projects/"))
    assert "Deleting: 0 of 0 executions removed" in shown
    assert 'hx-trigger="every 2s"' in shown
    assert "Unarchive" not in shown
    deletion.continue_deletions()
    shown = text(administrator.get("/projects/"))
    assert "Deleted projects" in shown
    assert "account 222222222222, 0 executions" in shown
    assert 'hx-trigger="every 2s"' not in shown
    entries = AuditEntry.objects.filter(project=None).order_by("pk")
    assert [(entry.actor, entry.target) for entry in entries] == [("root", "payments")] * 2
    assert not Project.objects.filter(pk=payments.pk).exists()


def test_the_command_deletes_after_the_name(payments: Project) -> None:
    """With one line at the end, and progress on the way."""
    out, progress = io.StringIO(), io.StringIO()
    for words in ([], ["--yes", "payment"]):
        with pytest.raises(CommandError, match="write --yes payments"):
            call_command("project", "delete", "payments", *words)
    assert Project.objects.filter(pk=payments.pk).exists()
    call_command("project", "delete", "payments", "--yes", "payments", stdout=out, stderr=progress)
    assert out.getvalue() == "payments is deleted: 0 executions\n"
    assert "payments: 0 of 0 executions removed" in progress.getvalue()
    with pytest.raises(CommandError, match="There is no project 'payments'"):
        call_command("project", "delete", "payments", "--yes", "payments")


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_process_killed_by_kill_9_leaves_a_deletion_that_ends(tmp_path: Path) -> None:
    """The same command again goes on where the killed one was."""
    data = tmp_path / "data"
    initial_database.copy_to(data)
    env = {**os.environ, "STATEYARD_DATA": str(data), "STATEYARD_DATABASE_URL": ""}
    env["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
    command = [sys.executable, "-m", "tests.features.projects.delete_payments"]
    killed = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)
    assert killed.stderr is not None
    for line in killed.stderr:
        if "payments: 40 of 300" in line:
            killed.kill()
            break
    assert killed.wait() == -9
    killed.stderr.close()
    again = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert "payments: 300 of 300 executions removed" in again.stderr
    assert "payments: 0 of 300" not in again.stderr
    assert again.stdout.splitlines() == ["payments is deleted: 300 executions", "0 left"]
