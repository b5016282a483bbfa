"""Approvals that are alike are answered together, after one more question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.models import AuditEntry, Execution, Project, TaskRow
from tests.console.web.helpers import markup, text
from tests.features.approvals.test_approvals import APPROVAL, ended, key_of
from tests.features.tasks.test_tasks import waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client


@pytest.mark.postgres_too
def test_alike_approvals_are_answered_together(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """All of one state and state machine; each has its own entry of the audit."""
    operator, viewer = signed_in("operator"), signed_in("viewer")
    executions = [waiting(project, APPROVAL, f"r{number}") for number in range(4)]
    listed = markup(operator.get("/tasks/?kind=activity"))
    assert "Answer all" in listed
    assert listed.count('name="tasks"') == 4
    key = re.findall(r'name="alike" value="([\d-]+)"', listed)[0]
    asked = operator.post("/tasks/?kind=activity", {"act": "ask-many", "alike": key})
    shown = markup(asked)
    assert "Answer 4 tasks" in shown
    keys = re.findall(r'name="tasks" value="([\d-]+)"', shown)
    assert sorted(keys) == sorted(key_of(each) for each in executions)
    assert all(ended(each).status == "RUNNING" for each in executions)
    sent = {"act": "approve-many", "tasks": keys, "comment": "as agreed"}
    assert viewer.post("/tasks/", sent).status_code == 403
    done = operator.post("/tasks/?kind=activity", sent)
    assert done["Location"] == "/tasks/?kind=activity"
    assert "4 tasks approved." in text(operator.get("/tasks/"))
    assert all(ended(each).status == "SUCCEEDED" for each in executions)
    assert AuditEntry.objects.filter(action="SendTaskSuccess", actor="operator").count() == 4


def test_selected_approvals_are_rejected(project: Project, client: Client) -> None:
    """Tasks that ended meanwhile, or belong to others, are left out."""
    executions = [waiting(project, APPROVAL, f"r{number}") for number in range(3)]
    keys = [key_of(each) for each in executions]
    client.post("/tasks/", {"act": "approve", "task": keys[0]})
    shown = markup(client.post("/tasks/", {"act": "ask-many", "tasks": keys}))
    assert "Answer 2 tasks" in shown
    client.post("/tasks/", {"act": "reject-many", "tasks": keys, "comment": "no"})
    assert [ended(each).status for each in executions] == ["SUCCEEDED", "FAILED", "FAILED"]
    nothing = client.post("/tasks/", {"act": "reject-many", "tasks": keys}, follow=True)
    assert "No open approval is selected." in text(nothing)
    other = Project.objects.create(name="other", account_id="222222222222")
    foreign = waiting(project, APPROVAL, "foreign")
    key = key_of(foreign)
    Execution.objects.filter(pk=foreign.pk).update(project=other)
    client.post("/tasks/", {"act": "approve-many", "tasks": [key, "x-y"]})
    assert TaskRow.objects.exclude(status="closed").filter(execution=foreign).exists()


def test_one_approval_has_no_bulk_answer(project: Project, client: Client) -> None:
    """There is nothing that it is like."""
    waiting(project, APPROVAL)
    assert 'name="alike"' not in text(client.get("/tasks/"))
