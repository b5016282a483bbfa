"""The page of an execution shows the progress of its distributed Maps and their children."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.features.exports.pictures import outline_text
from console.models import Execution, MapRun
from console.store.executions.stop import stop_execution
from console.web.execution.child_counts import ChildCounts
from console.web.execution.iterations import MapProgress
from console.web.graph.shapes import CLOCK, DETAIL_SIZE, MAP_ROOM, STATUS_ROOM, text_width_px
from console.web.history import traces
from tests.console.store.helpers import create, ended, one, start, types
from tests.console.web.helpers import markup, page, text
from tests.features.map_runs.test_map_run import FAILS, NAPS, begun, over
from tests.waiting import wait_until

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded

INLINE = one("Each", Type="Map", ItemProcessor=NAPS)


@pytest.fixture
def tolerant(project: Project, worker: Embedded) -> Execution:
    """Return an execution whose Map Run had five items, of which one failed and was tolerated."""
    del worker
    return ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [1, 2, 3, 4, 5], "x"))


@pytest.fixture
def napping(project: Project, worker: Embedded) -> Execution:
    """Return an execution whose Map Run has six items, of which two run."""
    del worker
    execution = start(create(project, over(NAPS, MaxConcurrency=2)), list(range(6)), "x")
    return begun(execution, 2).parent


def shown(client: Client, execution: Execution, query: str = "") -> Any:
    """Return the context of an execution's page."""
    answer = client.get(page(execution, query))
    assert answer.status_code == 200
    return answer.context


def of(context: Any, name: str) -> Any:
    """Return the summary of a state."""
    return next(
        each for each in context["graph"].painting.summaries.values() if each.node.name == name
    )


def test_the_node_counts_the_children_that_ended(tolerant: Execution, client: Client) -> None:
    """All five of them, one badly; the history of the parent knows of none."""
    assert of(shown(client, tolerant), "Each").note.startswith("5 of 5 · 1 failed")
    assert "5 of 5 · 1 failed" in text(client.get(page(tolerant, "graph.svg")))
    assert "5 of 5 · 1 failed" in outline_text(tolerant)


def test_tolerated_failures_are_shown_to_everybody(tolerant: Execution, client: Client) -> None:
    """The Map succeeded: its box, its rows and its panel say that one failed."""
    summary = of(shown(client, tolerant), "Each")
    assert (summary.key, summary.under) == ("succeeded", "Succeeded · 1 of 5 failed")
    assert ">Succeeded · 1 of 5 failed<" in markup(client.get(page(tolerant, "?view=graph")))
    for view in ("steps", "timeline"):
        rows = markup(client.get(page(tolerant, f"?view={view}")))
        assert 'data-cell="children">Child executions: 5 of 5 · 1 failed<' in rows, view


@pytest.mark.slow
def test_failures_are_shown_while_the_others_run(tolerant: Execution, client: Client) -> None:
    """The line drops a word before it drops what failed."""
    summary = of(shown(client, tolerant), "Each")
    for ended_ones, bad in (("5 of 7", "2 failed"), ("12,345 of 98,765", "1,234 failed")):
        runs = replace(
            summary, endings="", done=f"{ended_ones} · {bad}", running_since=1, key="running"
        )
        assert bad in runs.under
        assert text_width_px(f"{runs.under}{CLOCK}", DETAIL_SIZE, bold=True) <= MAP_ROOM


def test_the_states_inside_run_in_child_executions(tolerant: Execution, client: Client) -> None:
    """In the graph, in the table and in the panel, with the way to the Map Run."""
    context = shown(client, tolerant, "?step=Good")
    run = MapRun.objects.get()
    counts = {name: of(context, name).under for name in ("Three?", "Good", "Bad")}
    assert counts == {"Three?": "5 passed", "Good": "4 passed", "Bad": "1 failed"}
    assert of(context, "Bad").status.tone == "failed"
    tree = shown(client, tolerant, "?view=steps")["steps"]
    rows = {row.step: row.status.word for row in tree.rows}
    assert rows["Good"] == "In child executions"
    assert rows["Each"] == "Succeeded"
    assert {row.step: row.children for row in tree.rows} == {
        "Each": "Child executions: 5 of 5 · 1 failed",
        "Three?": "5 passed",
        "Good": "4 passed",
        "Bad": "1 failed",
    }
    panel = text(client.get(page(tolerant, "?step=Good")))
    assert "Not entered" not in re.sub(
        r"<select.*?</select>|class=\"legend\".*?</footer>", "", panel, flags=re.DOTALL
    )
    assert f"/arn/{run.arn}" in panel.replace("?arn=", "/")
    assert "In child executions" in panel


def test_there_is_no_box_of_iterations(tolerant: Execution, client: Client) -> None:
    """Neither on the Map nor inside of it, nor when an old address asks for an iteration."""
    for query in ("?step=Each", "?step=Good", "?step=Good&iteration=3"):
        context = shown(client, tolerant, query)
        assert context["panel"].shown.picker is None
        assert 'class="iterations"' not in text(client.get(page(tolerant, query)))


def test_the_panel_of_the_map_counts_each_outcome(tolerant: Execution, client: Client) -> None:
    """As the page of the Map Run does."""
    assert "5 of 5 child executions finished: 4 succeeded, 1 failed" in " ".join(
        text(client.get(page(tolerant, "?step=Each"))).split()
    )


def test_a_map_around_a_distributed_one_keeps_its_box(
    project: Project, worker: Embedded, client: Client
) -> None:
    """The iterations of the outer Map are in the history; the counts are of all its Map Runs."""
    del worker
    outer = one("Outer", Type="Map", ItemProcessor=over(one("P", Type="Pass")))
    execution = ended(start(create(project, outer), [[1, 2], [3, 4, 5]], "x"))
    context = shown(client, execution, "?step=Each&iteration=1")
    assert context["panel"].shown.picker.owner == "Outer"
    assert context["panel"].shown.progress.total == 3
    assert of(context, "Each").note.startswith("3 of 3")  # of that iteration
    assert of(shown(client, execution, "?step=Each"), "Each").note.startswith("5 of 5")
    assert shown(client, execution, "?step=P")["panel"].shown.picker is None


@pytest.mark.postgres_too
def test_a_retry_counts_the_last_map_run(
    project: Project, worker: Embedded, client: Client
) -> None:
    """The first Map Run failed and counts no more."""
    del worker
    retry = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "IntervalSeconds": 1}]
    execution = ended(start(create(project, over(FAILS, Retry=retry)), [1, 3], "x"), 30)
    assert MapRun.objects.filter(parent=execution).count() == 2
    assert shown(client, execution, "?step=Each")["panel"].shown.progress.total == 2
    assert of(shown(client, execution), "Each").note.startswith("2 of 2")


def test_the_past_tells_no_counts_of_now(tolerant: Execution, client: Client) -> None:
    """Nobody kept how many had ended at an event."""
    context = shown(client, tolerant, "?at=3&step=Each")
    assert " of 5" not in of(context, "Each").note
    assert context["panel"].shown.progress is None


def test_a_tick_tells_of_counts_alone(napping: Execution, client: Client) -> None:
    """The parent has no new event; the node, the panel and the next poll have the new counts."""
    shown_page = text(client.get(page(napping, "?step=Each")))
    poll = re.search(r'hx-get="([^"]*_delta[^"]*)"', shown_page)
    assert poll is not None
    address = poll[1] + "&step=Each&seen_visit=2"
    assert client.get(address).status_code == 204
    MapRun.objects.update(succeeded=1, started=3)
    told = " ".join(text(client.get(address)).split())
    paint = re.search(r'data-paint="(\{.*?\})"></i>', told)
    assert paint is not None
    nodes = json.loads(paint[1])["nodes"]
    assert "1 of 6" in {node["note"][:6] for node in nodes.values()}
    assert "1 of 6 child executions finished: 1 succeeded, 2 running, 3 pending" in told
    again = re.search(r'hx-get="([^"]*_delta[^"]*)"', told)
    assert again is not None
    assert client.get(again[1] + "&step=Each&seen_visit=2").status_code == 204


def test_the_row_of_a_distributed_map_counts_its_children(
    napping: Execution, client: Client
) -> None:
    """In the table of steps, and in what a tick paints."""
    MapRun.objects.update(succeeded=1, started=3)
    shown = text(client.get(page(napping, "?view=steps")))
    row = (
        shown.partition('id="step-table"')[2].partition('data-step="Each"')[2].partition("</tr>")[0]
    )
    assert "Child executions: 1 of 6" in row
    inner = shown.partition('id="step-table"')[2].partition('data-step="Nap"')[2].partition("</tr>")
    assert re.search(r'data-cell="visits">([^<]*)<', inner[0])[1] == "-"  # not known: never zero
    tick = text(client.get(page(napping, "_delta?after=1")))
    assert '"children": "Child executions: 1 of 6"' in tick


def test_it_costs_one_query_and_others_none(napping: Execution, client: Client) -> None:
    """A page of a distributed Map reads the rows of its Map Runs once, any other never."""
    inline = start(create(napping.project, INLINE, "inline"), list(range(6)), "y")
    wait_until(lambda: types(inline).count("WaitStateEntered") >= 6)

    def of_map_runs(execution: Execution, more: str) -> list[str]:
        traces._TRACES._known.clear()
        with CaptureQueriesContext(connection) as asked:
            assert client.get(page(execution, more)).status_code in (200, 204)
        table = MapRun._meta.db_table
        return [each["sql"] for each in asked if f'"{table}"."task" <= ' in each["sql"]]

    for more in ("", "?step=Each", "?view=timeline", "_delta?after=0", "_step?step=Each"):
        assert len(of_map_runs(napping, more)) == 1, more
        assert of_map_runs(inline, more) == [], more


def test_a_failed_one_counts_what_went_wrong_as_an_inline_map_does(
    napping: Execution, client: Client
) -> None:
    """Not how many have ended, which reads as how many failed."""
    stop_execution(napping)
    execution = ended(napping)
    # the children end, and are counted, after their Map Run
    wait_until(lambda: of(shown(client, execution), "Each").under == "2 of 6 aborted")
    counted = MapProgress(
        *("", 1_300, 1_143, 16, 1, 17, 0, 123, 0),
        reading=False,
        over=True,
    )
    assert counted.endings == "16 of 1,300 failed, 1 timed out, 17 aborted"


@pytest.mark.parametrize(
    ("counts", "under"),
    [
        (ChildCounts(entered=176, failed=16, aborted=17), "16 failed · 17 aborted"),
        (ChildCounts(entered=40, failed=2), "38 passed · 2 failed"),
        (ChildCounts(entered=5), "5 passed"),
    ],
)
def test_the_box_of_a_state_inside_has_room_for_its_counts(
    napping: Execution, client: Client, counts: ChildCounts, under: str
) -> None:
    """What went wrong is kept where not all has room; the label has all of it."""
    summary = replace(of(shown(client, napping), "Nap"), note=counts.text)
    assert summary.under == under
    assert text_width_px(summary.under, DETAIL_SIZE, bold=True) <= STATUS_ROOM
    assert counts.text in summary.label


def test_the_box_of_a_running_one_leaves_room_for_its_clock(
    napping: Execution, client: Client
) -> None:
    """It says ``3 of 6 done``, or how many failed: a word has to go for that."""
    running = of(shown(client, napping), "Each")
    for done, under in (("3 of 6 · 1 failed", "3 of 6 · 1 failed"), ("3 of 6", "3 of 6 done")):
        summary = replace(running, done=done)
        assert summary.under == under
        words = text_width_px(f"{summary.under}{CLOCK}", DETAIL_SIZE, bold=True)
        assert words <= MAP_ROOM


def test_what_was_pending_when_it_ended_was_never_started(
    napping: Execution, client: Client
) -> None:
    """In the panel, and in the tallies of its own page; while it runs it is pending."""
    address = page(napping, f"map-runs/{MapRun.objects.get(parent=napping).task}/")
    assert 'data-count="Pending"' in text(client.get(address))
    assert "4 pending" in " ".join(text(client.get(page(napping))).split())
    stop_execution(napping)
    execution = ended(napping)
    wait_until(lambda: MapRun.objects.get(parent=execution).status != "RUNNING")
    assert "4 never started" in " ".join(text(client.get(page(execution))).split())
    shown_run = text(client.get(address))
    assert 'data-count="Never started"' in shown_run
    assert 'data-count="Pending"' not in shown_run


def test_an_ended_page_follows_until_the_children_are_counted(
    napping: Execution, client: Client
) -> None:
    """They end after their parent. The page asks on at the same pace, then for redrives only."""
    stop_execution(napping)
    execution = ended(napping)
    counted = MapRun.objects.filter(parent=execution, aborted=2).exclude(status="RUNNING")
    wait_until(counted.exists)
    MapRun.objects.update(aborted=0)
    address, pace = poll_of(text(client.get(page(execution, "?step=Each"))))
    assert pace == "every 500ms, poll-now"
    assert client.get(address).status_code == 204
    MapRun.objects.update(aborted=2)
    tick = text(client.get(f"{address}&step=Each&seen_visit=2"))
    assert "2 of 6 aborted" in tick
    assert 'id="announce"' not in tick  # the page has said so
    address, pace = poll_of(tick)
    assert pace == "every 10s, poll-now"
    assert client.get(address).status_code == 204


def test_counts_leave_what_they_do_not_change(napping: Execution, client: Client) -> None:
    """A focus within the actions or the outcome stays, while children are counted."""
    stop_execution(napping)
    execution = ended(napping)
    counted = MapRun.objects.filter(parent=execution, aborted=2).exclude(status="RUNNING")
    wait_until(counted.exists)
    MapRun.objects.update(aborted=0)
    address, _ = poll_of(text(client.get(page(execution))))
    MapRun.objects.update(aborted=1)
    tick = text(client.get(address))
    assert "1 of 6 aborted" in tick
    assert not [part for part in ("status", "actions", "outcome") if f'id="{part}"' in tick]


def test_an_ended_page_that_never_settles_asks_seldom(napping: Execution, client: Client) -> None:
    """Without a worker nothing counts the children: after a minute the page slows down."""
    stop_execution(napping)
    execution = ended(napping)
    counted = MapRun.objects.filter(parent=execution, aborted=2).exclude(status="RUNNING")
    wait_until(counted.exists)
    MapRun.objects.update(aborted=0)
    Execution.objects.filter(pk=execution.pk).update(stop_ms=clock.now_ms() - 61_000)
    _, pace = poll_of(text(client.get(page(execution))))
    assert pace == "every 10s, poll-now"


def poll_of(shown: str) -> tuple[str, str]:
    """Return what a page asks next, and how often."""
    poll = re.search(r'hx-get="([^"]*_delta[^"]*)"\s+hx-trigger="([^"]*)"', shown)
    assert poll is not None
    return poll[1], poll[2]
