"""The HTTP API of pauses: signed calls, each in the project of its key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from django.test import Client

from console import access
from console.db.audit import Actor
from console.features.access_keys.key_scopes import read_scope
from console.features.bulk import store as bulk
from console.features.bulk.models import BulkJob
from console.models import AuditEntry, Execution, Pause, SchedulePause
from console.store.people import people
from tests.console.store.helpers import WAIT, create, drain, start
from tests.features.projects.test_api import signed_headers

if TYPE_CHECKING:
    from console.models import Project

BY = Actor("manage.py")


def call(key_id: str, path: str, **body: str) -> tuple[int, dict[str, Any]]:
    """Make a signed call, a GET without a body; return status and answer."""
    method, text = ("POST", json.dumps(body)) if body else ("GET", "")
    headers = signed_headers(key_id, method, path, text)
    client = Client(enforce_csrf_checks=True)
    answer = client.generic(method, path, text, "application/json", headers=headers)
    return answer.status_code, json.loads(answer.content)


def new_key(project: Project, role: str, machines: tuple[str, ...] = ()) -> str:
    """Return a key of a new member."""
    access.forget_principals()
    user = people.put_member(project, role, role, BY).user
    key, _ = people.new_key(user, project, BY, scope=read_scope("all", (), machines))
    return key.key_id


@pytest.fixture(autouse=True)
def persons(db: None, django_user_model: type) -> None:
    """Add a person for each role."""
    del db
    for role in ("viewer", "operator", "editor"):
        django_user_model.objects.create_user(role)  # type: ignore[attr-defined]


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that waits for an hour."""
    execution = start(create(project, WAIT), name="run")
    drain(execution)
    return execution


def test_an_execution_is_paused_described_and_resumed(
    project: Project, execution: Execution
) -> None:
    """The status stays RUNNING; the own fields say since when, by whom and how."""
    key = new_key(project, "operator")
    body = {"executionArn": execution.arn, "timers": "still", "note": "look"}
    status, answer = call(key, "/api/executions/pause", **body, dryRun="true")
    assert (status, answer["dryRun"]) == (200, True)
    assert not Pause.objects.exists()
    status, answer = call(key, "/api/executions/pause", **body)
    row = Pause.objects.get()
    pause = {"since": row.since_ms / 1000, "by": "operator", "timers": "still", "note": "look"}
    described = {"executionArn": execution.arn, "status": "RUNNING", "pause": pause}
    assert (status, answer) == (200, described)
    assert call(key, f"/api/executions/paused?execution={quote(execution.arn, safe='')}") == (
        200,
        described,
    )
    listed = {"executions": [described], "more": False}
    assert call(key, "/api/executions/paused") == (200, listed)
    for dry_run in ("true", "false"):
        status, answer = call(key, "/api/executions/pause", **body, dryRun=dry_run)
        assert (status, answer["__type"]) == (409, "ConflictException")
    status, answer = call(key, "/api/executions/resume", executionArn=execution.arn)
    assert (status, answer["pause"]) == (200, None)
    assert not Pause.objects.exists()
    entry = AuditEntry.objects.get(action="ResumeExecution")
    assert (entry.actor, entry.key_id) == ("operator", key)


def test_a_machine_is_paused_and_resumed_by_a_job(project: Project, execution: Execution) -> None:
    """The dry run begins none; executions of other state machines go on."""
    start(create(project, WAIT, "other"))
    key, machine = new_key(project, "operator"), execution.state_machine
    assert machine is not None
    for act in ("pause", "resume"):
        path, body = f"/api/machines/{act}", {"machine": machine.arn}
        status, answer = call(key, path, **body, dryRun="true")
        assert (status, answer) == (200, {"eligible": 1, "excluded": {}, "job": None})
        status, answer = call(key, path, **body)
        job = BulkJob.objects.latest("pk")
        assert (status, answer["job"], job.actor) == (200, job.pk, "operator")
        while bulk.work_on_job(job.pk):
            pass
        assert Pause.objects.filter(execution=execution).exists() == (act == "pause")
    assert call(key, "/api/machines/resume", machine=machine.arn)[1]["job"] is None
    status, answer = call(key, "/api/machines/pause", machine=f"{machine.arn}x")
    assert (status, answer["__type"]) == (400, "StateMachineDoesNotExist")


def test_schedules_are_paused_and_resumed(project: Project) -> None:
    """By editors; viewers see it."""
    editor, viewer = new_key(project, "editor"), new_key(project, "viewer")
    plan = {"schedules": [], "total": 0, "startsInWindows": 0}
    assert call(editor, "/api/schedules/pause", dryRun="true") == (200, plan)
    assert call(viewer, "/api/schedules/paused") == (200, {"pause": None})
    status, answer = call(editor, "/api/schedules/pause", dryRun="false", note="look")
    since = SchedulePause.objects.get().since_ms / 1000
    assert (status, answer["pause"]) == (200, {"since": since, "by": "editor", "note": "look"})
    assert call(viewer, "/api/schedules/paused") == (200, answer)
    status, answer = call(editor, "/api/schedules/resume", dryRun="false")
    assert (status, answer) == (200, {"pause": None, "startedInWindows": 0})


def test_rights_and_scopes_count(project: Project, execution: Execution) -> None:
    """No key reaches what it is not for, and no unknown member is taken."""
    viewer, operator = new_key(project, "viewer"), new_key(project, "operator")
    limited = new_key(project, "operator", ("other",))
    arn, denied = execution.arn, (403, "AccessDeniedException")

    def refused(key: str, path: str, **body: str) -> tuple[int, str]:
        status, answer = call(key, path, **body)
        return status, answer["__type"]

    assert refused(viewer, "/api/executions/pause", executionArn=arn) == denied
    assert refused(limited, "/api/executions/pause", executionArn=arn) == denied
    assert refused(viewer, "/api/machines/pause", machine=arn) == denied
    assert refused(operator, "/api/schedules/pause", dryRun="true") == denied
    assert refused(limited, "/api/executions/paused") == denied
    other = arn.replace(":run", ":gone")
    assert refused(operator, "/api/executions/pause", executionArn=other)[1] == (
        "ExecutionDoesNotExist"
    )
    status, answer = call(operator, "/api/executions/pause", executionArn=arn, timers="never")
    assert (status, answer["message"]) == (400, "timers: got 'never', wanted run or still")
    status, answer = call(operator, "/api/executions/pause", executionArn=arn, why="x")
    assert "why: there is no such member" in answer["message"]
    assert not Pause.objects.exists()


def test_no_member_is_taken_unread(project: Project, execution: Execution) -> None:
    """Not where a job would have nothing to do, and no note is cut."""
    operator, editor = new_key(project, "operator"), new_key(project, "editor")
    machine = execution.state_machine
    assert machine is not None
    status, answer = call(operator, "/api/machines/resume", machine=machine.arn, dryRun="maybe")
    assert (status, answer["message"]) == (400, "dryRun: got 'maybe', wanted false or true")
    long = {"note": "n" * 1001}
    for key, path, body in (
        (operator, "/api/executions/pause", {"executionArn": execution.arn, **long}),
        (operator, "/api/machines/pause", {"machine": machine.arn, **long}),
        (editor, "/api/schedules/pause", long),
    ):
        status, answer = call(key, path, **body)
        assert (status, answer["message"][:30]) == (400, "note: got 1001 characters, wan")
    assert not Pause.objects.exists()
    assert not SchedulePause.objects.exists()
    assert call(editor, "/api/schedules/pause", note="look")[0] == 200
