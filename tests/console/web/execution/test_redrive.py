"""E15: an execution is redriven from its page, or the page says why it cannot be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from console.models import AuditEntry, Execution, Timer
from console.store.executions import redrive as redrives
from console.store.executions.stop import stop_execution
from tests.console.store.helpers import PASS, create, drain, ended, function, one, start, types
from tests.console.web.helpers import CHAIN, MARKUP, markup, page, text
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project
    from console.worker import Embedded


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


def test_a_page_that_showed_the_end_learns_of_a_redrive(project: Project, client: Client) -> None:
    """It asks seldom, gets nothing while nothing happened, then a page that runs again."""
    execution = start(create(project, CHAIN), name="x")
    drain(execution)
    stop_execution(execution)
    poll = markup(client.get(page(execution))).partition('id="poll"')[2].partition("</i>")[0]
    assert 'hx-trigger="every 10s, poll-now"' in poll
    asked = re.findall(r'hx-get="([^"]+)"', poll)[0]
    assert client.get(asked).status_code == 204
    client.post(page(execution, "redrive/"))
    drain(execution)
    shown = markup(client.get(asked))
    assert "<title>x: Running · Stateyard</title>" in shown
    assert "The execution was redriven." in shown
    assert 'hx-trigger="every 500ms, poll-now"' in shown
    assert '<div id="outcome" hx-swap-oob="true"></div>' in shown
    assert "1 time, last" in shown.partition('id="facts"')[2]
    assert ">Live<" in shown


def test_a_page_that_slept_through_a_redrive_shows_its_end(
    project: Project, client: Client
) -> None:
    """The second end is not the one that the page knows."""
    execution = start(create(project, CHAIN), name="x")
    drain(execution)
    stop_execution(execution)
    client.post(page(execution, "redrive/"))
    drain(execution)
    stop_execution(Execution.objects.get(pk=execution.pk), error="Again")
    shown = markup(client.get(page(execution, "_delta?after=6&ended=0")))
    assert "Again" in shown.partition('id="outcome"')[2]
    assert "1 time, last" in shown
    assert client.get(page(execution, "_delta?after=6&ended=1")).status_code == 204


def test_a_page_of_a_success_asks_no_more(project: Project, client: Client) -> None:
    """Nothing can happen to it."""
    done = drain(start(create(project, PASS)))
    poll = text(client.get(page(done))).partition('id="poll"')[2].partition("</i>")[0]
    assert "hx-get" not in poll


def test_the_preview_counts_iterations_and_child_executions(
    project: Project, worker: Embedded, client: Client
) -> None:
    """What succeeded does not run again, so the name of a state alone says too much."""
    del worker
    bad = {"Variable": "$", "NumericEquals": 2, "Next": "Bad"}
    inner = {
        "StartAt": "Two?",
        "States": {
            "Two?": {"Type": "Choice", "Choices": [bad], "Default": "Good"},
            "Good": {"Type": "Pass", "End": True},
            "Bad": {"Type": "Fail", "Error": "Oops"},
        },
    }
    shown = {}
    for mode in ("INLINE", "DISTRIBUTED"):
        kind = {"ExecutionType": "STANDARD"} if mode == "DISTRIBUTED" else {}
        processor = {"ProcessorConfig": {"Mode": mode, **kind}, **inner}
        each = one("Each", Type="Map", MaxConcurrency=1, ItemProcessor=processor)
        execution = ended(start(create(project, each, mode), [1, 2, 3], "x"))
        answered = text(client.get(page(execution, "redrive/")))
        shown[mode] = " ".join(re.sub("<[^>]+>", " ", answered).split())
    again = "run again: 1 failed. 1 more starts for the first time."
    assert f"In Each , these iterations {again}" in shown["INLINE"]
    assert f"In Each , these child executions {again}" in shown["DISTRIBUTED"]


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
    assert len(context["panel"].shown.attempts) == 4
    summary = context["graph"].painting.summaries[context["panel"].shown.node.id]
    assert (summary.retries, summary.badge, summary.note) == (2, "↻ 2", "attempt 4")
    shown = " ".join(text(client.get(page(execution, "?step=P"))).split())
    assert 'Retries<span id="retry-count"> (2)</span>' in shown
    assert "2 retries" in text(client.get("/machines/machine/grid/"))
