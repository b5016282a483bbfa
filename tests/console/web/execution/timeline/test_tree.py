"""The steps as a tree, and as bars over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from console.models import HistoryEvent, Timer
from console.web.execution.step_tree import StepFilters
from console.web.execution.timeline.axis import LEAST, WIDTH, AxisSpan
from console.web.history import traces
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.execution.test_iterations import demo
from tests.console.web.helpers import CHAIN, page, steps_page, text, timeline_page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution in which #37 failed, and after a retry #141."""
    execution = start(create(project, demo()), {"items": list(range(200))}, "x")
    drain(execution)
    Timer.objects.update(due_ms=0)
    return drain(execution)


def labels(client: Client, execution: Execution, query: str = "") -> list[tuple[str, int]]:
    """Return label and depth of the rows on display."""
    return [
        (row.label, row.depth)
        for row in client.get(steps_page(execution, query)).context["steps"].rows
    ]


def test_a_filter_keeps_the_way_down(client: Client, failed: Execution) -> None:
    """The iteration that failed last and its state stay, with the Map around them."""
    below = [("#141", 1), ("Break", 1)]
    assert labels(client, failed, "?status=FAILED") == [("Over", 0), *below]
    assert labels(client, failed, "?find=fine") == [("Over", 0), ("Fine", 1)]
    rows = client.get(steps_page(failed, "?find=fine")).context["steps"].rows
    assert [row.matches for row in rows] == [False, True]
    assert "No matching steps" in text(client.get(steps_page(failed, "?find=nowhere")))


def test_failed_iterations_stand_below_their_map(client: Client, failed: Execution) -> None:
    """Without a filter the states and what failed; sorting keeps each below its parent."""
    inner = [("Look", 1), ("Fine", 1), ("Break", 1)]
    worst = [("142 iterations", 1), ("#141", 2)]
    assert labels(client, failed) == [("Over", 0), *worst, *inner]
    names = [name for name, _ in labels(client, failed, "?sort=-name")]
    assert names == ["Over", "Look", "Fine", "Break", "142 iterations", "#141"]
    assert 'aria-sort="descending"' in text(client.get(steps_page(failed, "?sort=-name")))


def test_a_tick_brings_the_rows_that_the_page_has_not(client: Client, failed: Execution) -> None:
    """Where other rows are shown, all of them; else those of the iterations, and their counts."""
    shown = client.get(steps_page(failed)).context["steps"]
    (summary,) = [row.id for row in shown.rows if row.iterations]
    stamp = shown.stamp
    for view, table, row in (
        ("steps", "step-table", "step"),
        ("timeline", "timeline-rows", "time"),
    ):
        tick = page(failed, f"_delta?after=1&view={view}&seen_rows=")
        before = text(client.get(f"{tick}other"))
        assert f'id="{table}" data-rows="{stamp}" hx-swap-oob="true"' in before
        same = text(client.get(f"{tick}{stamp}"))
        assert f'id="{table}"' not in same
        assert f'<tr id="{row}-{summary}" hx-swap-oob="true"' in same
    nothing = page(failed, f"_delta?after=1&find=nowhere&view=timeline&seen_rows={stamp}")
    assert 'id="axis"' not in text(client.get(nothing))  # which that page does not have


@pytest.mark.parametrize(
    ("view", "there", "left_out"),
    [("steps", "step-table", "timeline-rows"), ("timeline", "timeline-rows", "step-table")],
)
def test_a_page_holds_the_table_that_is_in_view(
    client: Client, failed: Execution, view: str, there: str, left_out: str
) -> None:
    """Not the other one, neither do a tick or the time machine: each takes as long as the graph."""
    for part in ("?", "_delta?after=1&seen_rows=other&", "_at?at=9&seen_rows=other&"):
        shown = text(client.get(page(failed, f"{part}view={view}")))
        assert f'id="{there}"' in shown
        assert f'id="{left_out}"' not in shown


def test_a_query_that_makes_no_sense_filters_nothing() -> None:
    """Whatever stands in the address, the page answers."""
    assert not StepFilters.of(QueryDict("status=zzz&sort=zzz")).active
    assert StepFilters.of(QueryDict("status=idle")).status == ""
    assert StepFilters.of(QueryDict("status=FAILED&sort=-duration")).sort == "-duration"


def test_a_retried_state_has_a_segment_for_each_attempt(project: Project, client: Client) -> None:
    """Attempts and the pauses between them are told in words."""
    branch = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    execution = start(create(project, one("P", Type="Parallel", Branches=[branch], Retry=retry)))
    drain(execution)
    Timer.objects.update(due_ms=0)
    drain(execution)
    begin = execution.start_ms
    events = HistoryEvent.objects.filter(execution_id=execution.pk)
    for number in events.values_list("event_id", flat=True):
        events.filter(event_id=number).update(at_ms=begin + number * 1000)
    shown = client.get(timeline_page(execution)).context["timeline"].bars["n1"]
    assert [segment.text for segment in shown] == [
        "attempt 1 failed, 1.0 s, on the critical path",
        "waited, 1.0 s, on the critical path",
        "attempt 2 failed, 2.0 s, on the critical path",
    ]
    assert [segment.tone for segment in shown] == ["failed", "wait", "failed"]


def test_the_bars_of_a_running_execution_follow(project: Project, client: Client) -> None:
    """A tick carries the bars while the timeline is on display, and at the end."""
    execution = drain(start(create(project, CHAIN), name="x"))
    seen = "&seen_rows=" + client.get(steps_page(execution)).context["steps"].stamp
    assert 'id="bar-n2"' in text(client.get(page(execution, f"_delta?after=1&view=timeline{seen}")))
    assert 'id="bar-n2"' not in text(
        client.get(page(execution, f"_delta?after=1&view=graph{seen}"))
    )
    unread = text(client.get(page(execution, "_delta?after=1&view=timeline")))
    assert 'id="bar-n2"' not in unread  # the page has just asked for the table


def test_a_segment_is_never_too_short_to_see() -> None:
    """Whatever the proportions, each segment stands within the bar."""
    span = AxisSpan(0, 1_000_000, 1_000_000)
    assert span.place(0, 0) == (0.0, LEAST)
    assert span.place(1_000_000, 1_000_000) == (WIDTH - LEAST, LEAST)
    assert span.place(250_000, 500_000) == (250.0, 250.0)
    assert AxisSpan(5, 5, 5).place(5, 5) == (0.0, LEAST)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?step=Over&tab=attempts&view=timeline",
        "?step=Break&iteration=37&tab=flow",
        "?step=Over&tab=flow&at=200",
        "?status=FAILED&sort=-duration&type=FailStateEntered&text=i&open=1.2.3",
    ],
)
@pytest.mark.postgres_too
def test_a_page_needs_few_queries(client: Client, failed: Execution, query: str) -> None:
    """Whatever is open, 15 at most; the first view reads the history, later ones what is new."""
    traces._TRACES._known.clear()
    with CaptureQueriesContext(connection) as captured:
        assert client.get(page(failed, query)).status_code == 200
    assert len(captured) <= 15, [each["sql"] for each in captured]
