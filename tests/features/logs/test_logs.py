"""The log pages: of a state machine, and of one execution."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.features.logs import log_filter, newest, streams
from console.models import Execution, HistoryEvent, StateMachine
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

LOGS = "/machines/machine/logs/"
FAILS = {
    "StartAt": "Look",
    "States": {
        "Look": {"Type": "Pass", "Next": "Refuse"},
        "Refuse": {"Type": "Fail", "Error": "TooHigh", "Cause": "Above the limit"},
    },
}
EVENTS = 5
"""How many events an execution of it has."""


@pytest.fixture
def logging(project: Project, client: Client) -> StateMachine:
    """Return a machine that logs every event."""
    create(project, FAILS)
    form = {"act": "logging", "level": "ALL", "group": "/aws/vendedlogs/states/x"}
    client.post("/machines/machine/settings/", form)
    return StateMachine.objects.get()


def run(name: str, at_ms: int) -> Execution:
    """Run an execution whose events are all at a moment."""
    execution = drain(start(StateMachine.objects.get(), {"from": name}, name))
    Execution.objects.filter(pk=execution.pk).update(start_ms=at_ms, stop_ms=at_ms)
    HistoryEvent.objects.filter(execution=execution).update(at_ms=at_ms)
    return execution


def keys(shown: str) -> list[str]:
    """Return the lines of a page by execution and number."""
    return re.findall(r'id="line-(\d+-\d+)"', shown)


def all_pages(client: Client, **query: Any) -> list[list[str]]:
    """Follow *Older* from the newest page to the end."""
    pages: list[list[str]] = []
    before = ""
    while len(pages) < 100:
        shown = text(client.get(LOGS, {**query, "before": before}))
        pages.append(keys(shown))
        older = re.search(r'rel="next" href="\?[^"]*before=([\d-]+)', shown)
        if older is None:
            return pages
        before = older[1]
    raise AssertionError(before)


def test_the_logs_of_an_execution_are_a_page_that_names_it(
    logging: StateMachine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has that execution's lines only, also when many others started since."""
    monkeypatch.setattr(newest, "BATCH", 2)
    monkeypatch.setattr(newest, "_MOST_BATCHES", 1)
    now_ms = clock.now_ms()
    first = run("first", now_ms + 1_000)
    for number in range(5):
        run(f"later-{number}", now_ms + 2_000 + number)
    shown = text(client.get(LOGS, {"execution": "first"}))
    assert keys(shown) == [f"{first.pk}-{number}" for number in range(EVENTS, 0, -1)]
    assert "<title>Logs of first" in shown
    first.refresh_from_db()
    assert f"--log-stream-name {streams.stream_name(first)}</code>" in shown
    crumbs = shown.partition('class="crumbs"')[2].partition("</nav>")[0]
    assert 'href="/machines/machine/executions/first/"' in crumbs
    assert 'href="/machines/machine/logs/?execution=first"' in text(
        client.get("/machines/machine/executions/first/")
    )
    assert client.get(LOGS, {"execution": "nobody"}).status_code == 404


@pytest.mark.postgres_too
def test_older_lines_follow_page_by_page_each_once(
    logging: StateMachine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first, of an execution that started before many others, too."""
    monkeypatch.setattr(newest, "BATCH", 2)
    monkeypatch.setattr(log_filter, "LINES", 7)
    now_ms = clock.now_ms()
    long_one = run("long", now_ms)
    for number in range(6):
        run(f"short-{number}", now_ms + 1_000 + number)
    Execution.objects.filter(pk=long_one.pk).update(stop_ms=now_ms + 9_000)
    HistoryEvent.objects.filter(execution=long_one, event_id=EVENTS).update(at_ms=now_ms + 9_000)
    pages = all_pages(client)
    assert [len(page) for page in pages] == [7] * 5
    lines = [key for page in pages for key in page]
    assert lines[0] == f"{long_one.pk}-{EVENTS}"
    assert len(set(lines)) == len(lines) == 7 * EVENTS
    assert lines[-1] == f"{long_one.pk}-1"
    matching = all_pages(client, pattern='{ $.type = "FailStateEntered" }')
    assert len({key for page in matching for key in page}) == 7


@pytest.mark.postgres_too
def test_lines_are_chosen_by_time_event_and_state(logging: StateMachine, client: Client) -> None:
    """A choice that is none, or a time that cannot be read, is said."""
    now_ms = clock.now_ms()
    run("now", now_ms + 1)
    old = run("old", now_ms + 2)
    log_start = now_ms - 3 * 3_600_000
    logging.project.loggroup_set.update(created_ms=log_start)
    logging.project.logroute_set.update(since_ms=log_start)
    Execution.objects.filter(pk=old.pk).update(
        start_ms=log_start + 1_000, stop_ms=log_start + 1_000
    )
    HistoryEvent.objects.filter(execution=old).update(at_ms=log_start + 1_000)
    assert len(keys(text(client.get(LOGS)))) == 2 * EVENTS
    shown = text(client.get(LOGS, {"range": "1h"}))
    assert len(keys(shown)) == EVENTS
    assert "no older ones match" in shown
    own = {"range": "own", "to": "2020-01-01T10:00"}
    assert "No matching lines" in text(client.get(LOGS, own))
    assert len(keys(text(client.get(LOGS, {"events": "failures"})))) == 4
    assert len(keys(text(client.get(LOGS, {"events": "executions"})))) == 4
    assert len(keys(text(client.get(LOGS, {"state": "Look"})))) == 4
    assert len(keys(text(client.get(LOGS, {"state": "Refuse", "range": "1h"})))) == 1
    refused = text(client.get(LOGS, {"range": "own", "from": "then"}), 422)
    assert "is not a time" in refused
    assert "Newest" not in refused


@pytest.mark.postgres_too
def test_a_line_is_one_line(logging: StateMachine, client: Client) -> None:
    """The line ends of a cause are blanks in the list."""
    run("one", clock.now_ms() + 1)
    cause = '{"error":"TooHigh","cause":"Above\\n  the limit"}'
    HistoryEvent.objects.filter(type="ExecutionFailed").update(details=cause)
    assert "error TooHigh  cause Above the limit" in text(client.get(LOGS))


@pytest.mark.postgres_too
def test_a_press_lays_out_the_whole_line(logging: StateMachine, client: Client) -> None:
    """In place, and by a link where there is no script; other lines come without their JSON."""
    execution = run("one", clock.now_ms() + 1)
    key = f"{execution.pk}-{EVENTS}"
    shown = text(client.get(LOGS))
    assert "error TooHigh  cause Above the limit" in shown
    assert "previous_event_id" not in shown
    line = text(client.get(LOGS, {"line": key}))
    assert "previous_event_id" in line
    assert "data-copy" in line
    assert "<html" not in line
    assert text(client.get(LOGS, {"open": key})).count("previous_event_id") == 2  # tree and copy
    for wrong in ("x", "1-999999", f"{execution.pk}-99"):
        assert client.get(LOGS, {"line": wrong}).status_code == 404


def test_the_cost_does_not_grow_with_the_executions(
    logging: StateMachine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page reads a bounded number of batches."""
    monkeypatch.setattr(newest, "BATCH", 2)
    now_ms = clock.now_ms()
    for number in range(20):
        run(f"run-{number}", now_ms + number)
    with CaptureQueriesContext(connection) as seen:
        text(client.get(LOGS, {"pattern": "nothing"}))
    assert len(seen) <= 40
