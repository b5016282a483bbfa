"""E15: an execution is redriven from its page, or the page says why it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.models import AuditEntry, Execution, Timer
from console.store.executions import redrive as redrives
from console.store.executions.stop import stop_execution
from tests.console.store.helpers import PASS, create, drain, function, start, types
from tests.console.web.helpers import CHAIN, MARKUP, page, text
from tests.console.web.test_scenario import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project


def test_e15_a_success_has_a_disabled_button_that_says_why(
    project: Project, client: Client
) -> None:
    """The reason is in the page, not in colour alone; its address tells it, too."""
    done = drain(start(create(project, PASS)))
    shown = text(client.get(page(done)))
    assert "Execution is SUCCEEDED and cannot be redriven" in shown
    assert f'href="{page(done, "redrive/")}"' not in shown
    assert "cannot be redriven" in text(client.get(page(done, "redrive/")))
    assert client.post(page(done, "redrive/")).status_code == 422


def test_e15_a_stopped_execution_goes_on(project: Project, client: Client) -> None:
    """The page before tells what runs again; afterwards the count and the history say so."""
    execution = start(create(project, CHAIN))
    drain(execution)
    stop_execution(execution)
    before = text(client.get(page(execution, "redrive/")))
    assert "<li><bdi>Nap</bdi></li>" in before
    assert "First" not in before.split("These states run again")[1].split("</ul>")[0]
    client.post(page(execution, "redrive/"))
    drain(execution)
    execution = Execution.objects.get(pk=execution.pk)
    assert (execution.status, execution.redrive_count) == ("RUNNING", 1)
    assert types(execution).count("ExecutionRedriven") == 1
    assert AuditEntry.objects.filter(action="RedriveExecution", actor="editor").exists()
    shown = text(client.get(page(execution)))
    assert "1 time, last" in shown
    assert "ExecutionRedriven" in shown


def test_a_viewer_cannot_redrive(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """No button, and 403."""
    execution = start(create(project, CHAIN, "m"), name="x")
    drain(execution)
    stop_execution(execution, error=MARKUP)
    viewer = signed_in("viewer")
    assert "Redrive" not in text(viewer.get(page(execution)))
    assert viewer.post(page(execution, "redrive/")).status_code == 403


def test_the_graph_shows_a_redriven_state_as_running(project: Project, client: Client) -> None:
    """What failed is in progress again, and what succeeded stays so."""
    execution = start(create(project, CHAIN))
    drain(execution)
    stop_execution(execution)
    client.post(page(execution, "redrive/"))
    drain(execution)
    shown = text(client.get(page(execution, "?view=steps&step=Nap")))
    row = shown.split('id="step-status"')[1][:900]
    assert "In progress" in row or "Running" in row


def test_a_redrive_is_no_retry(project: Project, client: Client) -> None:
    """A state with one retry in each attempt at the execution has four attempts and two retries."""
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    pay = function("pay", Retry=retry, End=True)
    execution = drain(start(create(project, {"StartAt": "P", "States": {"P": pay}}), name="x"))
    for redriven in (False, True):
        if redriven:
            redrives.redrive_execution(Execution.objects.get(pk=execution.pk))
            drain(execution)
        answer(execution, "P", ("Bad", "it broke"))
        Timer.objects.update(due_ms=0)
        drain(execution)
        answer(execution, "P", ("Bad", "it broke"))
    context = client.get(page(execution, "?step=P&tab=attempts")).context
    assert len(context["panel"].attempts) == 4
    summary = context["summaries"][context["panel"].node.id]
    assert (summary.retries, summary.badge, summary.note) == (2, "↻ 2", "attempt 4")
    shown = " ".join(text(client.get(page(execution, "?step=P"))).split())
    assert 'Retries<span id="retry-count"> (2)</span>' in shown
    assert "2 retries" in text(client.get("/machines/machine/grid/"))
