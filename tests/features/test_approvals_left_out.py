"""A server without approvals answers tasks as ever, and knows no links that answer one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from console.features import NAMES
from tests import initial_database
from tests.acceptance.server import ROOT

_ANSWER = """
import json
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from console.db.audit import Actor
from console.features.approvals.store import create_approval_link
from console.models import Execution, Project, TaskRow
from console.store.tasks import activities
from tests.console.store.helpers import ACTIVITY, REGION, create, drain, one, start
project = Project.objects.create(name="default", account_id="123456789012")
call_command("member", "ana", "--role", "owner", stdout=open("/dev/null", "w"))
activities.create_activity(project, REGION, "work")
review = one("Review", Type="Task", Resource=ACTIVITY, Comment="Ship it?")
machine = create(project, review)
client = Client(headers={"host": "localhost"})
client.force_login(get_user_model().objects.get(username="ana"))
found = {}
for act in ("approve", "reject"):
    execution = drain(start(machine, {"n": 1}, act))
    task = TaskRow.objects.get(execution=execution).task
    token = create_approval_link(execution, task, 1, Actor("ana"))
    address = f"/machines/machine/executions/{act}/tasks/{task}/"
    shown = client.get(address)
    found[act] = {
        "page": [shown.status_code, shown.content.decode()],
        "links": [
            client.post(f"{address}link/", {"hours": "1"}).status_code,
            client.get(f"/approval/{token}/").status_code,
            client.post(f"/approval/{token}/", {"act": act, "name": "Grace"}).status_code,
        ],
        "answered": client.post(address, {"act": act, "comment": "as agreed"}).status_code,
    }
    ended = drain(Execution.objects.get(pk=execution.pk))
    found[act]["ended"] = [ended.status, ended.output or ended.error, ended.cause]
found["audit"] = client.get("/audit/").content.decode()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: Any) -> dict[str, Any]:
    """Return what a server without approvals shows and does of a task that asks a person."""
    data = tmp_path_factory.mktemp("without-approvals") / "data"
    initial_database.copy_to(data)
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "console.config.settings",
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        "STATEYARD_DATA": str(data),
        "STATEYARD_DATABASE_URL": "",
        "STATEYARD_FEATURES": ",".join(name for name in NAMES if name != "approvals"),
    }
    command = [sys.executable, "-c", _ANSWER]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.slow
def test_the_page_of_a_task_has_no_form_for_links(answers: dict[str, Any]) -> None:
    """It asks its question, and offers what it offers without a link."""
    for act in ("approve", "reject"):
        status, shown = answers[act]["page"]
        assert status == 200
        assert 'id="question">Ship it?' in shown
        for there in ('value="approve"', 'value="reject"', 'id="by-program"'):
            assert there in shown
        for gone in ("approver-link", "make-link", "/link/"):
            assert gone not in shown


def test_a_person_approves_and_rejects(answers: dict[str, Any]) -> None:
    """With a comment, and the audit says which of both it was."""
    assert [answers[act]["answered"] for act in ("approve", "reject")] == [302, 302]
    status, output, _ = answers["approve"]["ended"]
    assert status == "SUCCEEDED"
    assert json.loads(output) == {"approved": True, "by": "ana", "comment": "as agreed"}
    assert answers["reject"]["ended"] == ["FAILED", "Rejected", "Rejected by ana: as agreed"]
    for words in ("Approve task", "Reject task"):
        assert re.search(rf">\s*{words}\s*<", answers["audit"])


def test_no_link_is_made_or_opened(answers: dict[str, Any]) -> None:
    """Neither address is found; a link of a time with approvals answers nothing."""
    for act in ("approve", "reject"):
        assert answers[act]["links"] == [404, 404, 404]
