"""The pages that pause and resume an execution."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.features.bulk import store as bulk
from console.models import Execution, Pause
from console.store.state import pause
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

PAGE = "/machines/machine/executions/run/"


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that waits for an hour."""
    execution = start(create(project, WAIT), name="run")
    drain(execution)
    return execution


def test_an_execution_is_paused_and_resumed(client: Client, execution: Execution) -> None:
    """The page says who paused it, why, and what its timers do, until somebody resumes it."""
    assert f'href="{PAGE}pause/"' in client.get(PAGE).content.decode()
    answer: Any = client.post(
        f"{PAGE}pause/", {"clock": "stops", "note": "<look> first"}, follow=True
    )
    text = answer.content.decode()
    assert "Paused by" in text
    assert "&lt;look&gt; first" in text
    assert "Its timers are stopped." in " ".join(text.split())
    assert "The engine stopped" not in text
    assert f'href="{PAGE}pause/"' not in text
    assert Pause.objects.get(execution=execution).stops_clock
    answer = client.post(f"{PAGE}resume/", follow=True)
    assert "Paused by" not in answer.content.decode()
    assert not Pause.objects.exists()


def test_an_open_page_learns_of_a_pause(client: Client, execution: Execution) -> None:
    """Its next poll brings the banner, and the one after that nothing."""
    cursor = 3
    while client.get(f"{PAGE}_delta?after={cursor}").status_code != 204:
        cursor -= 1
    row = pause.pause_execution(execution, audit.Actor("ben"), stops_clock=False)
    text = client.get(f"{PAGE}_delta?after={cursor}").content.decode()
    assert 'id="pause" hx-swap-oob="true"' in text
    assert "ben" in text
    assert f'data-note-stamp="{row.since_ms}"' in text
    again = client.get(f"{PAGE}_delta?after={cursor}&note={row.since_ms}")
    assert again.status_code == 204
    pause.resume_execution(execution, audit.Actor("ben"))
    text = client.get(f"{PAGE}_delta?after={cursor}&note={row.since_ms}").content.decode()
    assert 'id="pause" hx-swap-oob="true"' in text
    assert "Paused by" not in text


def test_what_was_decided_meanwhile_is_refused(
    client: Client, project: Project, execution: Execution
) -> None:
    """Two people pause or resume the same; one pauses what has ended."""
    client.post(f"{PAGE}pause/", {"clock": "runs"})
    answer = client.post(f"{PAGE}pause/", {"clock": "runs", "note": "mine"})
    assert answer.status_code == 422
    assert "already paused by" in answer.content.decode()
    client.post(f"{PAGE}resume/")
    answer = client.post(f"{PAGE}resume/", follow=True)
    assert "The execution is not paused." in answer.content.decode()
    assert client.post(f"{PAGE}pause/", {"clock": "never"}).status_code == 404
    assert client.post(f"{PAGE}pause/", {}).status_code == 404
    drain(start(create(project, PASS, "passes"), name="over"))
    answer = client.get("/machines/passes/executions/over/pause/")
    assert "has ended" in answer.content.decode()
    assert not Pause.objects.filter(execution=execution).exists()


def test_a_viewer_pauses_and_resumes_nothing(
    signed_in: Callable[[str], Client], execution: Execution
) -> None:
    """Operators do."""
    viewer, operator = signed_in("viewer"), signed_in("operator")
    assert f"{PAGE}pause/" not in viewer.get(PAGE).content.decode()
    assert viewer.get(f"{PAGE}pause/").status_code == 403
    assert viewer.post(f"{PAGE}pause/", {"clock": "runs"}).status_code == 403
    assert operator.post(f"{PAGE}pause/", {"clock": "runs"}).status_code == 302
    assert f"{PAGE}resume/" not in viewer.get(PAGE).content.decode()
    assert viewer.post(f"{PAGE}resume/").status_code == 403
    assert Pause.objects.filter(execution=execution).exists()


def test_a_machine_pauses_and_resumes_all_that_run(
    client: Client, project: Project, execution: Execution
) -> None:
    """In a bulk job, with a dry run; an execution that starts later is not paused."""
    start(create(project, WAIT, "other"))
    page = text(client.get("/machines/machine/"))
    link = re.search(r'href="([^"]*action=pause[^"]*)"', page)
    assert link is not None
    assert "Resume all paused" not in page
    shown = client.get(unescape(link[1]))
    assert [each.pk for each in shown.context["eligible"]] == [execution.pk]
    assert "Executions that start later are not paused." in text(shown)
    sent = {"action": "pause", "numbers": shown.context["numbers"]}
    assert client.post("/executions/bulk/", sent | {"clock": "never"}).status_code == 404
    answer: Any = client.post(
        "/executions/bulk/", sent | {"clock": "stops", "note": "<look>"}, follow=True
    )
    assert "Timers stop during the pause." in " ".join(text(answer).split())
    assert "&lt;look&gt;" in answer.content.decode()
    work_off_jobs()
    assert "1 paused" in text(client.get(answer.redirect_chain[-1][0]))
    machine = execution.state_machine
    assert machine is not None
    start(machine, name="later")
    assert set(Pause.objects.values_list("execution", "stops_clock")) == {(execution.pk, True)}
    link = re.search(r'href="([^"]*action=resume[^"]*)"', text(client.get("/machines/machine/")))
    assert link is not None
    shown = client.get(unescape(link[1]))
    assert [each.pk for each in shown.context["eligible"]] == [execution.pk]
    client.post("/executions/bulk/", {"action": "resume", "numbers": shown.context["numbers"]})
    work_off_jobs()
    assert not Pause.objects.exists()


@pytest.mark.postgres_too
def test_a_list_marks_and_finds_paused_executions(
    client: Client, project: Project, execution: Execution
) -> None:
    """It offers a resume where one is paused; a viewer gets neither action."""
    other = drain(start(create(project, WAIT, "other"), name="other"))
    page = text(client.get("/executions/"))
    assert 'name="action" value="pause"' in page
    assert 'name="action" value="resume"' not in page
    pause.pause_execution(execution, audit.Actor("ben"), stops_clock=False)
    page = text(client.get("/executions/"))
    assert page.count("Paused by <bdi>ben</bdi>") == 1
    assert 'name="action" value="resume"' in page
    assert page.count('data-no-pause="It is paused already"') == 1
    assert page.count('data-no-resume="It is not paused"') == 1
    for path in ("/executions/", "/machines/machine/"):
        rows = client.get(f"{path}?paused=yes").context["executions"].rows
        assert [row.pk for row in rows] == [execution.pk]
    assert not client.get("/machines/other/?paused=yes").context["executions"].rows
    assert other.status == "RUNNING"


@pytest.mark.postgres_too
def test_an_open_list_learns_of_a_pause(client: Client, execution: Execution) -> None:
    """Its poll sends the row once, and again after the resume."""
    poll = f"/executions/_new?newest={execution.pk}&count=0&notes={execution.pk}:"
    assert client.get(poll).status_code == 204
    since_ms = pause.pause_execution(execution, audit.Actor("ben"), stops_clock=False).since_ms
    assert "Paused by <bdi>ben</bdi>" in text(client.get(poll))
    assert client.get(f"{poll}{since_ms}").status_code == 204
    pause.resume_execution(execution, audit.Actor("ben"))
    assert "Paused by" not in text(client.get(f"{poll}{since_ms}"))


def work_off_jobs() -> None:
    """Do what the bulk jobs have to do."""
    for number in bulk.running_jobs():
        while bulk.work_on_job(number):
            pass
