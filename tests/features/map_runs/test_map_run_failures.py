"""The page of a Map Run groups what failed alike, and lists what ended worst first."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.map_runs import views
from console.models import Execution, MapRun
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.map_runs import map_counts
from tests.console.store.helpers import create, ended, start
from tests.console.web.helpers import page, text
from tests.features.map_runs.test_map_run import FAILS, address, over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded

_COUNT = re.compile(r'class="count" id="([^"]+)" href="\?([^"#]+)#[^"]*">\s*([\d,]+) \u00d7')
_ENDS = (
    ExecutionStatus.SUCCEEDED,
    ExecutionStatus.ABORTED,
    ExecutionStatus.RUNNING,
    ExecutionStatus.FAILED,
    ExecutionStatus.TIMED_OUT,
)


@pytest.fixture
def mixed(project: Project, worker: Embedded) -> MapRun:
    """Return a Map Run of ten children, two of each status, mixed by item."""
    del worker
    ended(start(create(project, over(FAILS, ToleratedFailurePercentage=100)), [1] * 10, "x"))
    run = MapRun.objects.select_related("parent").get()
    for index in range(10):
        children = Execution.objects.filter(map_run=run, item_index=index)
        status = _ENDS[index % 5]
        children.update(status=status, error="Oops" if status in ("FAILED", "TIMED_OUT") else None)
    MapRun.objects.update(succeeded=2, failed=2, timed_out=2, aborted=2)
    return MapRun.objects.select_related("parent").get()


def items(answer: Any) -> list[int]:
    """Return the items of the children that a page lists."""
    return [child.item_index for child, *_ in answer.context["children"].rows]


@pytest.mark.parametrize("size", [1, 3, 4, 50])
@pytest.mark.postgres_too
def test_the_worst_ends_stand_first(
    mixed: MapRun, client: Client, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Failed, timed out, aborted, running, succeeded, by item within each, on every page."""
    monkeypatch.setattr("console.features.map_runs.views.PAGE", size)
    seen: list[int] = []
    after = ""
    while len(seen) < 10:
        answer: Any = client.get(address(mixed, f"?after={after}"))
        assert f"<span>{len(seen) + 1} to {len(seen) + len(items(answer))} of 10" in text(answer)
        seen += items(answer)
        after = answer.context["children"].after
    assert (seen, after) == ([3, 8, 4, 9, 1, 6, 2, 7, 0, 5], "")


@pytest.mark.postgres_too
def test_failed_and_timed_out_ones_are_listed_together(mixed: MapRun, client: Client) -> None:
    """The button of the failures leads to as many as it says, with the failed ones first."""
    shown = text(client.get(address(mixed)))
    assert "4 of 10 failed" in shown
    assert "List all 4" in " ".join(shown.split())
    answer: Any = client.get(address(mixed, "?status=failures"))
    assert items(answer) == [3, 8, 4, 9]
    assert "1 to 4 of 4" in text(answer)
    assert 'value="failures" selected' in text(answer)


def counts(shown: str) -> dict[str, tuple[str, int]]:
    """Return what each line of the failures links to, and how many it says there are."""
    return {key: (query, int(count)) for key, query, count in _COUNT.findall(shown)}


@pytest.fixture
def numbered(project: Project, worker: Embedded) -> MapRun:
    """Return a Map Run whose seven failed children name numbers of their own in their causes."""
    del worker
    inner = {
        "StartAt": "Bad",
        "States": {"Bad": {"Type": "Fail", "ErrorPath": "$.error", "CausePath": "$.cause"}},
    }
    causes = [("KeyError", f"sku-{number} is not in stock") for number in (11, 12, 13, 14)]
    causes += [("Declined", f"Card {number} of customer 7") for number in (4711, 4712)]
    causes.append(("Declined", "No money"))
    sent = [{"error": error, "cause": cause} for error, cause in causes]
    ended(start(create(project, over(inner, ToleratedFailurePercentage=100)), sent, "x"))
    return MapRun.objects.select_related("parent").get()


def test_causes_that_differ_in_a_number_are_one_kind(numbered: MapRun, client: Client) -> None:
    """With one example; each count leads to exactly these children, and all add up."""
    shown = text(client.get(address(numbered)))
    failures = " ".join(shown.split('id="failures"')[1].split("</section>")[0].split())
    assert "7 of 7 failed" in failures
    assert "sku-<n> is not in stock" in failures
    assert ">item 0</a>: sku-11 is not in stock" in failures
    assert "sku-12" not in failures
    kinds = counts(shown)
    assert [count for _, count in kinds.values()] == [4, 2, 1]
    lists = [items(client.get(address(numbered, f"?{query}"))) for query, _ in kinds.values()]
    assert lists == [[0, 1, 2, 3], [4, 5], [6]]


@pytest.mark.postgres_too
def test_kinds_beyond_the_listed_ones_are_counted_and_listed(
    numbered: MapRun, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line holds the rest, so that the counts add up to the total."""
    monkeypatch.setattr("console.features.map_runs.views.MOST_KINDS", 1)
    kinds = counts(text(client.get(address(numbered))))
    assert [count for _, count in kinds.values()] == [4, 3]
    answer: Any = client.get(address(numbered, f"?{kinds['kind-other'][0]}"))
    assert items(answer) == [4, 5, 6]
    assert "with failures that are not listed above" in text(answer)


def test_a_redrive_that_waits_leaves_the_counts_whole(numbered: MapRun, client: Client) -> None:
    """Children that wait to be redriven have failed, and are not subtracted."""
    MapRun.objects.update(failed=0, pending_redrive=7, redrive_count=1, redrive_ms=clock.now_ms())
    shown = text(client.get(address(numbered)))
    assert "7 of 7 failed" in shown
    assert "7 wait for a redrive" in shown
    assert [count for _, count in counts(shown).values()] == [4, 2, 1]


def test_a_failure_is_grouped_by_what_its_reader_may_see(
    numbered: MapRun, client: Client, project: Project
) -> None:
    """A masked number is in no example."""
    type(project).objects.update(masked="$.cause")
    Execution.objects.filter(map_run=numbered).update(input=json.dumps({"cause": "canary-4711"}))
    Execution.objects.filter(map_run=numbered).update(cause="canary-4711")
    assert "canary-4711" not in text(client.get(address(numbered)))


def test_the_page_leads_up_to_the_execution_and_its_state(mixed: MapRun, client: Client) -> None:
    """Two links, and how the execution fares."""
    shown = " ".join(text(client.get(address(mixed))).split())
    facts = shown.split('id="facts"')[1].split("</dl>")[0]
    assert f'id="parent" href="{page(mixed.parent)}"' in facts
    assert f'id="parent-state" href="{page(mixed.parent, "?step=Each")}"' in facts
    assert "Succeeded" in facts


# -- limits and speed ------------------------------------------------------------------------------

_CHILDREN = map_counts.Counts(
    pending=100,
    running=12,
    pending_redrive=0,
    succeeded=93,
    failed=20,
    timed_out=3,
    aborted=2,
    total=230,
    results_written=0,
    not_redrivable=0,
)


def facts(children: map_counts.Counts = _CHILDREN, *, over: bool = False, **more: Any) -> list[str]:
    """Return the three facts of a Map Run in words; "!" marks a limit that is passed."""
    now_ms = clock.now_ms()
    values: dict[str, Any] = {"status": MapRunStatus.RUNNING, "total": 230}
    values |= {"start_ms": now_ms - 60_000, "stop_ms": now_ms if over else None}
    run = MapRun(**(values | more))
    return [
        f"{fact.value} {fact.rest}".strip() + "!" * fact.bad
        for fact in views.pace_facts(run, children, over=over)
    ]


def test_limits_and_speed_are_told_in_words() -> None:
    """How many run of how many, how many failed of how many, and how many end in which time."""
    assert facts(max_concurrency=40, tolerated_percentage=90) == [
        "12 running of at most 40",
        "23 failed or timed out, 2 aborted; 207 tolerated (90 %)",
        "2.0 child executions a second, about 1 min left",
    ]


def test_a_limit_that_is_passed_stands_out() -> None:
    """Without a tolerance the first failure is too many; the lower one of two limits counts."""
    assert facts(over=True)[:2] == ["no limit", "none the first failure ends the Map Run!"]
    assert facts(tolerated_count=24, tolerated_percentage=90)[1] == (
        "23 failed or timed out, 2 aborted; 24 tolerated (24 or 90 %)!"
    )
    assert facts(tolerated_count=25)[1] == "23 failed or timed out, 2 aborted; 25 tolerated"
    stopped = replace(_CHILDREN, failed=11, timed_out=0, aborted=4)
    assert facts(stopped, tolerated_count=10)[1] == "11 failed, 4 aborted; 10 tolerated!"
    untouched = replace(stopped, failed=3, aborted=0)
    assert facts(untouched, tolerated_count=10)[1] == "3 failed; 10 tolerated"


def test_no_speed_is_told_that_is_not_known() -> None:
    """Before the first end, after a redrive, and nothing of what is left while the last run."""
    none = replace(_CHILDREN, succeeded=0, failed=0, timed_out=0, aborted=0)
    assert facts(none)[2] == "none yet"
    assert len(facts(redrive_count=1)) == 2
    assert "left" not in facts(replace(_CHILDREN, pending=0))[2]
    reading = facts(tolerated_percentage=90, reading=True)
    assert reading[1] == "90 % of the items (still reading)"
    assert "left" not in reading[2]


def test_nothing_is_told_of_what_is_left_where_children_hang() -> None:
    """Twelve run and 118 ended in a minute: one takes six seconds, and not half a minute."""
    for age_ms, estimated in ((6_000, True), (30_000, False)):
        run = MapRun(status=MapRunStatus.RUNNING, total=230, start_ms=clock.now_ms() - 60_000)
        oldest_ms = clock.now_ms() - age_ms
        told = views.pace_facts(run, _CHILDREN, over=False, oldest_ms=oldest_ms)[2].rest
        assert ("left" in told) == estimated
