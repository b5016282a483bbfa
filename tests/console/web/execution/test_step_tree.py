"""The steps of an execution as a tree, with filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from console.models import Timer
from console.web.execution.step_tree import StepFilters
from console.web.history import traces
from tests.console.store.helpers import create, drain, start
from tests.console.web.execution.test_iterations import demo
from tests.console.web.helpers import page, steps_page, text

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
