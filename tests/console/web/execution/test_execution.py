"""The page of an execution: summary, steps, history, ticks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.models import HistoryEvent, Timer
from console.store.executions.stop import stop_execution
from console.web.history import traces
from tests.console.store.helpers import PASS, create, drain, function, one, start
from tests.console.web.helpers import CHAIN, markup, page, steps_page, text
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_the_page_tells_status_times_and_every_state(project: Project, client: Client) -> None:
    """Summary, graph, history and poller are there for a running execution, and its steps."""
    execution = start(create(project, CHAIN), {"order": 4711}, "x")
    drain(execution)
    shown = text(client.get(page(execution)))
    assert 'data-status="Running"' in shown
    assert shown.count("data-node=") == 2
    assert text(client.get(steps_page(execution))).count("data-row=") == 2
    assert "node succeeded" in shown
    assert "node running" in shown
    assert 'data-poll="execution"' in shown
    assert "WaitStateEntered" in shown


def test_a_terminal_page_has_no_poller(project: Project, client: Client) -> None:
    """An ended execution asks for nothing."""
    execution = drain(start(create(project, PASS)))
    assert 'data-poll="execution"' not in text(client.get(page(execution)))


def test_pages_with_payloads_are_not_kept_by_anyone(project: Project, client: Client) -> None:
    """Neither caches nor the browser's history keep a payload."""
    execution = drain(start(create(project, PASS), {"secret": 1}))
    for address in (
        page(execution),
        page(execution, "_step?step=P"),
        page(execution, "input.json"),
    ):
        assert client.get(address)["Cache-Control"] == "no-store"
    assert 'hx-history="false"' in text(client.get(page(execution)))


def test_a_step_is_a_part_of_the_address(project: Project, client: Client) -> None:
    """The panel is in the page that a colleague opens, each tab too."""
    execution = start(create(project, CHAIN), {"order": 4711}, "x")
    drain(execution)
    shown = text(client.get(steps_page(execution, "?step=Nap")))
    assert 'aria-selected="true"' in shown
    assert '"n"' in shown
    for tab, words in {
        "details": "In progress",
        "definition": '"Seconds": <span class="n">3600</span>',
        "attempts": "no attempts",
        "tries": "no attempts",  # the name of this tab in the release before
        "events": "WaitStateEntered",
    }.items():
        assert words in text(client.get(page(execution, f"?step=Nap&tab={tab}")))
    assert client.get(page(execution, "_step?step=Nowhere")).status_code == 404
    assert "No state" in text(client.get(page(execution, "?step=Nowhere")))


def test_retries_of_a_parallel_are_told(project: Project, client: Client) -> None:
    """Each attempt has its outcome and the pause after it, for groups as well as for tasks."""
    branch = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    execution = start(create(project, one("P", Type="Parallel", Branches=[branch], Retry=retry)))
    drain(execution)
    Timer.objects.update(due_ms=0)
    drain(execution)
    shown = text(client.get(page(execution, "_step?step=P&tab=attempts")))
    assert "Attempt 1: Failed" in shown
    assert "Attempt 2: Failed" in shown
    assert shown.count("<tr>") == 3  # the heading and two attempts
    assert "Backoff" in shown


def test_a_tick_carries_only_what_is_new(project: Project, client: Client) -> None:
    """Nothing new is a 204; then rows, colours, the next cursor; at the end a slow poller."""
    execution = start(create(project, CHAIN), name="x")
    first = page(execution, "_delta?after=1&seen=1&shown=1&follow=1")
    assert client.get(page(execution, "_delta?after=1&follow=1")).status_code == 204
    drain(execution)
    answer = client.get(first)
    shown = text(answer)
    assert answer["HX-Trigger-After-Swap"] == '{"paint": {}}'
    assert [f'id="e{number}"' in shown for number in (1, 2, 3, 4)] == [False, True, True, True]
    assert '"tone": "running"' in shown
    assert "_delta?after=4" in shown
    assert client.get(page(execution, "_delta?after=4&seen=4&shown=4&follow=1")).status_code == 204
    stop_execution(execution)
    last = text(client.get(page(execution, "_delta?after=4&seen=4&shown=4&follow=1")))
    assert "every 500ms" not in last
    assert "data-ended" in last
    assert "<title>x: Aborted · Stateyard</title>" in last
    assert "The execution has ended: Aborted." in last
    assert "ExecutionAborted" in last


def test_a_full_table_points_to_the_newest_events(project: Project, client: Client) -> None:
    """A live page stops growing; a page that is not the last one does not jump."""
    execution = start(create(project, CHAIN), name="x")
    drain(execution)
    for query in ("shown=200&follow=1", "shown=1&follow="):
        shown = text(client.get(page(execution, f"_delta?after=1&seen=1&{query}")))
        assert "Show latest events" in shown
        assert 'id="e2"' not in shown


@pytest.mark.postgres_too
def test_25000_events_come_in_pages(project: Project, client: Client) -> None:
    """The page stays small, filters are exact, a deep link shows its row."""
    machine = create(project, one("P", Type="Pass"))
    execution = drain(start(machine, name="big"))
    HistoryEvent.objects.filter(execution_id=execution.pk, event_id__gt=1).delete()
    HistoryEvent.objects.bulk_create(
        [
            HistoryEvent(
                execution_id=execution.pk,
                event_id=number,
                previous=number - 1 if number > 2 else 0,
                at_ms=execution.start_ms + number,
                type="PassStateExited" if number % 2 else "PassStateEntered",
                state="P",
                details='{"name":"P","output":"{}"}',
            )
            for number in range(2, 25_001)
        ],
        batch_size=5_000,
    )
    answer = client.get(page(execution, "?at=20000"))
    table = answer.context["events"]
    assert (table.total, table.number, len(table.rows)) == (25_000, 400, 50)
    assert 'id="e20000"' in text(answer)
    filtered = client.get(page(execution, "?type=PassStateExited&page=2")).context["events"]
    assert (filtered.matching, filtered.rows[0].id) == (12_499, 103)
    newest = client.get(page(execution, "?order=newest")).context["events"]
    assert newest.rows[0].id == 25_000


def test_an_event_opens_on_its_own_page(project: Project, client: Client) -> None:
    """Payloads of an event are read when it is opened, as a page, a row or a raw text."""
    execution = drain(start(create(project, PASS), {"order": 4711}))
    assert "PassStateEntered" in text(client.get(page(execution, "events/2/")))
    assert "4711" in text(client.get(page(execution, "?open=2")))
    assert (
        "4711"
        not in text(
            client.get(
                page(execution, "events/2/"),
            ),
            200,
        ).partition("order")[0]
    )
    raw = client.get(page(execution, "events/2/input/"))
    assert raw.content == b'{"order": 4711}'
    assert raw["Content-Type"].startswith("text/plain")
    assert client.get(page(execution, "events/99/")).status_code == 404
    assert client.get(page(execution, "events/2/previous/")).status_code == 404
    assert client.get(page(execution, "cause.json")).status_code == 404


def test_a_definition_that_no_longer_parses_does_not_break_the_page(
    project: Project, client: Client
) -> None:
    """Old texts may fail newer checks; history and summary stay readable."""
    execution = drain(start(create(project, PASS)))
    execution.definition.text = "{}"
    execution.definition.save()
    traces._TRACES._known.clear()
    shown = text(client.get(page(execution)))
    assert "This definition cannot be drawn" in shown
    assert "ExecutionSucceeded" in shown
    assert text(client.get(page(execution, "_delta?after=0")))
    assert client.get(page(execution, "_step?step=P")).status_code == 404


def test_the_name_of_an_error_is_not_said_twice(project: Project, client: Client) -> None:
    """A function's cause has it, too; another name is another matter."""
    for name, said in (("OutOfStock", False), ("Wrapped", True)):
        execution = drain(start(create(project, one("Buy", **function("buy")), name), name="x"))
        cause = json.dumps({"errorMessage": "no more", "errorType": "OutOfStock"})
        failed = answer(execution, "Buy", (name, cause))
        for query in ("", "?step=Buy&tab=attempts"):
            shown = markup(client.get(page(failed, query)))
            assert "no more</p>" in shown
            assert ("<b><bdi>OutOfStock</bdi>:</b>" in shown) == said
