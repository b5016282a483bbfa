"""The pages mark an execution with faults, and say which of them struck."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.store.executions import faults
from console.store.executions.outcome_steps import step_ahead
from console.store.machines.versions import Target
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import ACTIVITY, REGION, WORK, create, drain, function, start

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

RUN = "/machines/machine/executions/run/"
DEFINITION = {
    "StartAt": "Call",
    "States": {
        "Call": {
            **function("work"),
            "Catch": [{"ErrorEquals": ["Busy"], "Next": "Done"}],
            "Next": "Done",
        },
        "Done": {"Type": "Pass", "End": True},
    },
}
BUSY = {"state": "Call", "error": "Busy", "attempts": [1]}


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that a fault has struck."""
    document = {"faults": [BUSY], "seed": 7}
    target = Target(create(project, DEFINITION))
    return drain(faults.start_faulty(target, document, audit.Actor("ana"), name="run"))


def shown(answer: Any) -> str:
    """Return the text of a page, with single blanks."""
    return " ".join(answer.content.decode().split())


def test_the_execution_is_marked(client: Client, execution: Execution) -> None:
    """By a banner on its page, in the panel of the state, in the list, in its export."""
    assert execution.status == "SUCCEEDED"
    page = shown(client.get(RUN))
    assert "<b>Faults injected.</b> Call fails with Busy before its call at attempt 1" in page
    assert "(seed 7)" in page
    assert f'href="{RUN}faults/"' in page
    panel = shown(client.get(f"{RUN}?step=Call"))
    assert "<b>Fault injected</b> at attempt 1: Call fails with Busy before its call." in panel
    assert "<b>Fault injected</b>" not in shown(client.get(f"{RUN}?step=Done"))
    assert "Changes at breakpoints" not in page + panel
    assert "Changes at breakpoints" not in shown(client.get(f"{RUN}breakpoints/"))
    assert "Faults injected" in shown(client.get("/executions/"))
    exported = json.loads(b"".join(client.get(f"{RUN}export.json")))
    assert exported["execution"]["faults"] == {"seed": 7, "faults": [{**BUSY, "type": "fail"}]}


def test_the_page_of_faults(client: Client, execution: Execution) -> None:
    """It has the faults, the seed and the strikes."""
    page = shown(client.get(f"{RUN}faults/"))
    assert "<li>Call fails with Busy before its call at attempt 1</li>" in page
    assert "Seed 7" in page
    assert "attempt 1," in page
    assert "Redrives and replays run without faults" in page
    assert client.post(f"{RUN}faults/").status_code == 405


def test_a_replaced_result_is_masked(client: Client, project: Project) -> None:
    """As the payloads of the execution are."""
    project.masked = "$.card"
    project.save()
    call = {**WORK["States"]["A"], "Catch": DEFINITION["States"]["Call"]["Catch"]}
    activities.create_activity(project, REGION, "work")
    definition = {"StartAt": "Call", "States": {**DEFINITION["States"], "Call": call}}
    document = [{**BUSY, "when": "after"}]
    target = Target(create(project, definition))
    drain(faults.start_faulty(target, document, audit.Actor("ana"), name="run"))
    work = claim.take_activity_task(ACTIVITY, "w1")
    assert work is not None
    complete.pending_success(
        work.token, '{"card": "secret-4711", "kept": 1}', None, step_ahead
    ).result()
    page = shown(client.get(f"{RUN}faults/"))
    assert "Replaced result" in page
    assert "kept" in page
    assert "secret-4711" not in page


def test_replay_and_redrive_say_that_they_have_no_faults(
    client: Client, project: Project, execution: Execution
) -> None:
    """The redrive page only if it can be redriven."""
    assert "The replay has no injected faults." in shown(client.get(f"{RUN}replay/?step=Call"))
    document = {"faults": [{**BUSY, "error": "Broken"}], "seed": 7}
    machine = execution.state_machine
    assert machine is not None
    target = Target(machine)
    drain(faults.start_faulty(target, document, audit.Actor("ana"), name="bad"))
    page = shown(client.get("/machines/machine/executions/bad/redrive/"))
    assert "Its injected faults are not injected again." in page


def test_nothing_is_marked_without_faults(client: Client, project: Project) -> None:
    """The page of faults says how to inject some."""
    drain(start(create(project, DEFINITION), name="run"))
    assert "Faults injected" not in shown(client.get(RUN)) + shown(client.get("/executions/"))
    page = shown(client.get(f"{RUN}faults/"))
    assert "No faults are injected into this execution." in page
    assert "--fault FILE.yaml" in page
