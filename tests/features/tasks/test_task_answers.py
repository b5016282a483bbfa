"""X2: a person with the right answers an open task by hand, on the record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from console.models import AuditEntry, HistoryEvent, TaskRow
from tests.console.store.helpers import (
    create,
    drain,
    start,
    types,
)
from tests.console.web.helpers import MARKUP, markup, page, text
from tests.features.tasks.test_tasks import CALLBACK, PAGE, form, token_of, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def test_x2_an_operator_completes_a_task(project: Project, signed_in: SignIn) -> None:
    """The manager's approval: the history names the person, the audit has the answer's row."""
    execution = waiting(project)
    ben = signed_in("operator")
    answer = ben.post(form(execution), {"act": "complete", "output": '{"approved": true}'})
    assert answer["Location"] == page(execution)
    execution = drain(execution)
    assert (execution.status, execution.output) == ("SUCCEEDED", '{"approved": true}')
    began = HistoryEvent.objects.get(execution=execution, type="ActivityStarted")
    assert json.loads(began.details) == {"workerName": "operator"}
    row = AuditEntry.objects.get(action="SendTaskSuccess")
    assert (row.actor, row.target) == ("operator", execution.arn)
    assert "approved" not in row.reason


def test_x2_an_operator_fails_a_task(project: Project, signed_in: SignIn) -> None:
    """Error and cause arrive as they were typed."""
    execution = waiting(project)
    typed = {"act": "fail", "error": "Rejected", "cause": MARKUP}
    signed_in("operator").post(form(execution), typed)
    execution = drain(execution)
    assert (execution.status, execution.error, execution.cause) == ("FAILED", "Rejected", MARKUP)
    assert AuditEntry.objects.filter(action="SendTaskFailure", actor="operator").count() == 1


def test_x2_a_callback_is_answered_and_kept_alive(project: Project, client: Client) -> None:
    """A heartbeat moves the deadline and writes no event; then the answer ends the task."""
    execution = waiting(project, CALLBACK)
    due = TaskRow.objects.get().heartbeat_due_ms or 0
    TaskRow.objects.update(heartbeat_due_ms=due - 300_000)
    before = types(execution)
    client.post(form(execution), {"act": "heartbeat"})
    assert (TaskRow.objects.get().heartbeat_due_ms or 0) >= due
    assert types(drain(execution)) == before
    client.post(form(execution), {"act": "complete", "output": "1"})
    assert drain(execution).status == "SUCCEEDED"


def test_a_refused_answer_keeps_what_was_typed(project: Project, client: Client) -> None:
    """Bad JSON is named; the task stays open, untaken, and nothing is recorded."""
    execution = waiting(project)
    shown = text(client.post(form(execution), {"act": "complete", "output": "{nope"}), 422)
    assert "Invalid Output" in shown
    assert "{nope</textarea>" in shown
    assert TaskRow.objects.get().status == "scheduled"
    assert not AuditEntry.objects.filter(action="SendTaskSuccess").exists()
    assert client.post(form(execution), {"act": "dance"}).status_code == 422


def test_a_late_answer_is_refused(project: Project, client: Client) -> None:
    """Once somebody has answered, the form says who did and the history stays."""
    execution = waiting(project)
    address = form(execution)
    client.post(address, {"act": "complete", "output": "1"})
    late = client.post(address, {"act": "fail", "error": "Late"})
    assert "editor completed this task. Your answer changed nothing." in text(late, 422)
    assert "editor completed this task. No more answers are accepted." in text(client.get(address))
    assert drain(execution).status == "SUCCEEDED"


def test_a_viewer_cannot_answer(project: Project, signed_in: SignIn) -> None:
    """No form in the page, and 403 for each thing that can be sent."""
    execution = waiting(project)
    viewer = signed_in("viewer")
    shown = text(viewer.get(form(execution)))
    assert "Send success" not in shown
    for act in ("complete", "fail", "heartbeat", "reveal"):
        assert viewer.post(form(execution), {"act": act, "output": "1"}).status_code == 403
    assert viewer.post("/activities/", {"name": "a"}).status_code == 403
    assert viewer.post(PAGE).status_code == 403
    assert viewer.post(PAGE, {"act": "delete"}).status_code == 403
    assert "Create activity" not in text(viewer.get("/activities/"))


def test_no_page_shows_a_token_but_on_request(
    project: Project, client: Client, signed_in: SignIn
) -> None:
    """Not the form, not the event with the parameters; who asks for it gets a row in the audit."""
    execution = waiting(project, CALLBACK)
    token, viewer = token_of(execution), signed_in("viewer")
    task = TaskRow.objects.get().task
    assert token in TaskRow.objects.get().input
    for address in (
        form(execution),
        page(execution, f"events/{task}/"),
        page(execution, f"events/{task}/parameters/"),
        page(execution, f"?open={task}&step=Approve"),
        page(execution, "?step=Approve&tab=flow"),
        page(execution, "events.csv"),
        page(execution, "events.json"),
        "/tasks/",
    ):
        assert token not in text(viewer.get(address))
        assert token not in text(client.get(address))
    assert token in text(client.post(form(execution), {"act": "reveal"}))
    assert AuditEntry.objects.get(action="RevealTaskToken").actor == "editor"


def test_the_page_of_a_task_has_the_answer_beside_the_input(
    project: Project, client: Client
) -> None:
    """First what is asked and its answer, then the facts, then links and commands, folded."""
    shown = markup(client.get(form(waiting(project))))
    parts = ('class="answer-columns', "Input of the task", 'id="complete-title"', 'id="fail-title"')
    places = [shown.index(part) for part in (*parts, 'class="facts"', '<details id="by-program">')]
    assert places == sorted(places)
    assert "send-task-success --task-token TASK_TOKEN" in shown


def test_only_an_approval_is_approved(project: Project, client: Client) -> None:
    """To a task that a program works on a person sends what the program would, in AWS's words."""
    address = form(waiting(project))
    shown = text(client.get("/tasks/"))
    assert 'value="approve"' not in shown
    assert f'href="{address}#output"' in shown
    assert f'href="{address}#error"' in shown
    opened = text(client.get(address))
    assert opened.count("Send success") == opened.count("Send failure") == 2
    assert 'id="output"' in opened
    assert 'id="error"' in opened
    drain(start(create(project, CALLBACK, "refunds"), {}, "y"))
    assert text(client.get("/tasks/")).count('value="approve"') == 1
