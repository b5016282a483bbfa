"""A page names the timeout that runs, and the one that ran out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.models import Execution, TaskRow, Timer
from console.store.machines import machines, tags, versions
from console.store.tasks import activities, claim, expiry
from tests.console.store.helpers import ACTIVITY, REGION, WAIT, create, drain, one, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

SAID = {
    "scheduleToStart": ("timeout_due_ms", "schedule to start (no worker picked it up in time)"),
    "startToClose": ("timeout_due_ms", "start to close (TimeoutSeconds)"),
    "scheduleToClose": ("timeout_due_ms", "schedule to close"),
    "heartbeat": ("heartbeat_due_ms", "heartbeat (HeartbeatSeconds)"),
}


def waiting(project: Project, clock: str) -> Execution:
    """Return an execution at a task with one clock; a worker has it if the clock needs one."""
    activities.create_activity(project, REGION, "work")
    tags.put_tags(ACTIVITY, {f"stateyard:{clock}Timeout": "600"})
    execution = start(create(project, one("A", Type="Task", Resource=ACTIVITY)))
    drain(execution)
    if clock in ("startToClose", "heartbeat"):
        claim.take_activity_task(ACTIVITY, "w")
        drain(execution)
    return execution


@pytest.mark.parametrize("clock", SAID)
def test_the_page_names_the_clock_that_runs(project: Project, client: Client, clock: str) -> None:
    """In the panel of the execution, on the task's own page and in the list."""
    execution = waiting(project, clock)
    column, words = SAID[clock]
    due = getattr(TaskRow.objects.get(), column)
    shown = text(client.get(page(execution)))
    assert f'data-until="{due}"' in shown
    assert f"times out: {words}" in shown
    assert words in text(client.get(page(execution, "tasks/3/")))
    assert words in text(client.get("/tasks/"))


@pytest.mark.parametrize("clock", SAID)
def test_the_page_names_the_clock_that_ran_out(
    project: Project, client: Client, clock: str
) -> None:
    """At the event and at the attempt; the history itself stays AWS's."""
    execution = waiting(project, clock)
    column, words = SAID[clock]
    TaskRow.objects.update(**{column: 1})
    assert expiry.expire_tasks([(execution.pk, 3)]) == 1
    drain(execution)
    number = execution.historyevent_set.get(type="ActivityTimedOut").event_id
    assert words in text(client.get(page(execution, f"events/{number}/")))
    assert words in text(client.get(page(execution, "?step=A&tab=attempts")))
    assert words not in text(client.get(page(execution, "events/3/")))


def test_a_task_without_a_clock_says_who_answers(project: Project, client: Client) -> None:
    """The year that every task has is not shown as its deadline."""
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, one("A", Type="Task", Resource=ACTIVITY)))
    drain(execution)
    assert "data-until" not in text(client.get(page(execution)))
    assert "a year" not in text(client.get(page(execution, "tasks/3/")))


def test_an_execution_is_started_with_a_limit_of_its_own(project: Project, client: Client) -> None:
    """The form's seconds come before the machine's, and the page shows when they end."""
    machine = create(project, {**WAIT, "TimeoutSeconds": 1000})
    assert "limit of 1000 s" in text(client.get("/machines/machine/start/"))
    client.post("/machines/machine/start/", {"name": "x", "input": "{}", "timeout": "20"})
    execution = Execution.objects.get(state_machine=machine)
    drain(execution)
    due = Timer.objects.get(execution=execution, name="execution").due_ms
    assert due - execution.start_ms == 20_000
    assert f'data-until="{due}"' in text(client.get(page(execution)))
    Timer.objects.filter(name="execution").update(due_ms=1)
    assert drain(execution).status == "TIMED_OUT"


def test_the_limit_of_another_version_is_not_that_of_the_current_definition(
    project: Project, client: Client
) -> None:
    """Where a version can be chosen, the form says whose limit it names."""
    machine = create(project, {**WAIT, "TimeoutSeconds": 60})
    versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps({**WAIT, "TimeoutSeconds": 3600}))
    shown = " ".join(text(client.get("/machines/machine/start/?run=1")).split())
    assert "Replaces the limit of the definition (currently 3600 s)." in shown
    assert "of its state machine." not in shown


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "soon", "123456789"])
def test_a_limit_that_is_none_is_refused(project: Project, client: Client, limit: str) -> None:
    """The form comes back as it was typed, and nothing starts."""
    create(project, WAIT)
    typed = {"name": "x", "input": '{"a": 1}', "timeout": limit}
    shown = text(client.post("/machines/machine/start/", typed), 422)
    assert "Enter whole seconds" in shown
    assert f'value="{limit}"' in shown
    assert not Execution.objects.exists()
