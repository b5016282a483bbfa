"""Pages say that lines of control stand at breakpoints, and stop saying it when they continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import engine
from console.db import audit
from console.models import HaltedExecution, HistoryEvent
from console.store.executions import breakpoints, step_rows
from console.store.executions.stop import stop_execution
from console.store.state import pause
from console.web.execution.note_stamp import note_stamp
from tests.console.store.helpers import create, drain, function, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Execution, Project

RUN = "/machines/machine/executions/run/"
CALL = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}
MAPPED = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "One",
                "States": {"One": {"Type": "Pass", "End": True}},
            },
            "End": True,
        }
    },
}


def shown(answer: Any) -> str:
    """Return the text of a page."""
    return str(answer.content.decode())


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that stands before its call."""
    places = (engine.Breakpoint("Call"), engine.Breakpoint("Done", engine.BreakTime.AFTER))
    execution = start(create(project, CALL), {"n": 1}, name="run", breakpoints=places)
    drain(execution)
    return execution


def press(client: Client, act: str, **fields: str) -> None:
    """Let a line continue."""
    client.post(f"{RUN}breakpoints/", {"act": act, **fields})


def read(execution: Execution) -> Execution:
    """Return the execution as a page reads it."""
    rows = type(execution).objects.select_related("note", "pause", "halted")
    return rows.get(pk=execution.pk)


def test_a_page_says_where_its_execution_stands(client: Client, execution: Execution) -> None:
    """A banner, the box of the graph and the panel of the state; none of it after the end."""
    text = shown(client.get(RUN))
    assert "Halted at a breakpoint since" in text
    assert f'href="{RUN}breakpoints/">Open breakpoints' in text
    assert "At a breakpoint · " in text
    panel = shown(client.get(f"{RUN}?step=Call"))
    assert f'href="{RUN}breakpoints/#line-1"' in panel
    press(client, "answer", halt="1", output="{}")
    assert "after its success" in shown(client.get(RUN))
    press(client, "continue", halt="2")
    text = shown(client.get(RUN))
    assert "Halted at" not in text
    assert "At a breakpoint" not in text
    assert not HaltedExecution.objects.exists()


def test_an_open_page_learns_of_it(client: Client, execution: Execution) -> None:
    """A poll brings the banner when a line stops without an event, and takes it away."""
    press(client, "answer", halt="1", output="{}")
    row = read(execution)
    last = HistoryEvent.objects.filter(execution=execution).count()
    seen = {"after": str(last), "note": note_stamp(row)}
    assert client.get(f"{RUN}_delta?{urlencode(seen)}").status_code == 204
    text = shown(client.get(f"{RUN}_delta?{urlencode(seen | {'note': ''})}"))
    assert '<div id="halted" hx-swap-oob="true">' in text
    assert "Halted at a breakpoint" in text
    press(client, "continue", halt="2")
    assert "Halted at" not in shown(client.get(f"{RUN}_delta?{urlencode(seen)}"))


def test_lists_and_the_overview_say_it_without_a_query(
    client: Client, project: Project, execution: Execution
) -> None:
    """As many queries with a line at a breakpoint as without one."""
    counts = []
    for _ in range(2):
        for address in ("/executions/", "/machines/machine/", "/"):
            with CaptureQueriesContext(connection) as queries:
                text = shown(client.get(address))
            counts.append(len(queries))
            words = "1 at a breakpoint" if address == "/" else "At a breakpoint"
            assert (words in text) == bool(HaltedExecution.objects.exists()), address
        HaltedExecution.objects.all().delete()
    assert counts[:3] == counts[3:]


def test_readers_see_the_banner_without_its_link(
    signed_in: Callable[[str], Client], execution: Execution
) -> None:
    """Only editors continue a line."""
    text = shown(signed_in("viewer").get(f"{RUN}?step=Call"))
    assert "Halted at a breakpoint" in text
    assert "Open breakpoints" not in text
    assert 'id="continue-step"' not in text


def test_many_lines_are_counted(client: Client, project: Project) -> None:
    """The row names the first ones; a stop of the execution removes it."""
    places = (engine.Breakpoint("One"),)
    execution = start(create(project, MAPPED), [*range(30)], name="run", breakpoints=places)
    drain(execution)
    row = HaltedExecution.objects.get(execution=execution)
    assert (row.count, row.newest, len(row.stops)) == (30, 30, step_rows.MOST_LINES)
    text = shown(client.get(RUN))
    assert "Halted at breakpoints since" in text
    assert "25 more" in text
    assert "30 at a breakpoint · " in text
    state = breakpoints.debugged(execution)
    assert state is not None
    assert [line.number for line in state.lines[:20]] == [line.number for line in row.stops]
    stop_execution(execution)
    assert not HaltedExecution.objects.exists()


def first_row(client: Client, view: str) -> str:
    """Return the first row of a view: ``steps`` or ``timeline``."""
    mark = "data-row" if view == "steps" else "data-bar"
    page = shown(client.get(f"{RUN}?view={view}"))
    return page.partition(f'{mark}="')[2].partition("</tr>")[0]


def test_rows_of_tables_are_marked(client: Client, execution: Execution) -> None:
    """Steps and timeline: a state at a breakpoint, else one that is paused, until it goes on."""
    for view in ("steps", "timeline"):
        assert "At a breakpoint" in first_row(client, view)
    press(client, "continue", halt="1")
    drain(execution)
    pause.pause_execution(read(execution), audit.NOBODY, stops_clock=False)
    for view in ("steps", "timeline"):
        row = first_row(client, view)
        assert "At a breakpoint" not in row
        assert "Paused</span>" in row


def test_an_open_table_learns_of_it(client: Client, execution: Execution) -> None:
    """A stop without an event draws the rows again."""
    press(client, "answer", halt="1", output="{}")
    last = HistoryEvent.objects.filter(execution=execution).count()
    rows = shown(client.get(f"{RUN}?view=steps")).partition('data-rows="')[2].partition('"')[0]
    assert rows
    seen = {"after": str(last), "view": "steps", "seen_rows": rows}
    same = client.get(f"{RUN}_delta?{urlencode(seen | {'note': note_stamp(read(execution))})}")
    assert same.status_code == 204
    text = shown(client.get(f"{RUN}_delta?{urlencode(seen)}"))
    assert "At a breakpoint" in text.partition('data-step="Done"')[2].partition("</tr>")[0]
