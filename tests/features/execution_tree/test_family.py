"""The page of a family: what is above an execution, what is below it, and its replays."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from console.features.execution_tree import family
from console.models import Execution, MapRun, Project, TaskRow
from console.store.executions import replay
from console.web.templatetags.stateyard import machine_name
from tests.console.store.helpers import PASS, create, drain, ended, start
from tests.console.web.helpers import page, text
from tests.console.web.search.test_filters import seed
from tests.console.worker.nesting import machine_of, members, started, starting, worked
from tests.features.map_runs.test_map_run import FAILS, over

if TYPE_CHECKING:
    from django.test import Client

    from console.worker import Embedded


def tree(client: Client, execution: Execution, query: str = "") -> Any:
    """Return the family that a page shows."""
    names = [machine_name(execution), execution.name]
    answer = client.get(f"{reverse('family', args=names)}{query}")
    assert answer.status_code == 200, answer.content[:500]
    return answer.context["family"]


def fails(error: str) -> dict[str, Any]:
    """Return a machine that fails at once."""
    return {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": error}}}


def lines(shown: Any) -> list[tuple[int, str, str]]:
    """Return depth, name and status of the rows; a Map Run is called ``*``."""
    return [
        (row.depth, row.execution.name if row.execution else "*", row.status.word)
        for row in shown.rows
    ]


def test_nested_executions_stand_below_the_one_that_started_them(
    project: Project, client: Client
) -> None:
    """Seen from each of them; a failure below is told above."""
    members(project, ada="editor")
    deepest = machine_of(project, "ada", fails("Deep"), "deepest")
    middle = machine_of(project, "ada", starting(deepest, ".sync:2"), "middle")
    top = machine_of(project, "ada", starting(middle), "top")
    first = worked(started(top, "ada"))
    assert first.status == "SUCCEEDED"
    second = worked(Execution.objects.get(parent=first.pk))
    third = Execution.objects.get(parent=second.pk)
    drain(third)
    second = worked(second)
    shown = tree(client, first)
    assert [depth for depth, *_ in lines(shown)] == [0, 1, 2]
    assert [row.chosen for row in shown.rows] == [True, False, False]
    assert shown.below.tone == "failed"
    assert shown.rows[2].error == "Deep"
    assert lines(tree(client, third)) == lines(shown) == lines(tree(client, second))
    assert tree(client, third).rows[0].below.text == shown.rows[0].below.text
    assert f'href="{page(first)}tree/"' in text(client.get(page(first)))
    assert "2 descendant executions:" in text(client.get(page(first, "tree/")))


def test_a_map_run_shows_its_counts_and_what_failed(
    project: Project, client: Client, worker: Embedded
) -> None:
    """Only the failed children have a line, and the child leads back to its parent."""
    del worker
    parent = ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [1, 2, 3, 4, 5]))
    shown = tree(client, parent)
    assert [(depth, word) for depth, _, word in lines(shown)] == [
        (0, "Succeeded"),
        (1, "Succeeded"),
        (2, "Failed"),
    ]
    assert shown.below.text == shown.rows[1].below.text == "1 failed below"
    child = Execution.objects.get(map_run__parent=parent, status="FAILED")
    shown = tree(client, child)
    assert [row.chosen for row in shown.rows] == [False, False, True]
    assert shown.rows[1].run is not None
    there = text(client.get(page(parent, "tree/")))
    assert "show the succeeded ones" in there


def test_replays_and_redrives_are_named(project: Project, client: Client) -> None:
    """The replay leads to its origin, and the origin to its replays."""
    machine = create(project, fails("Bad"))
    failed = drain(start(machine, name="first"))
    again = drain(replay.start_replay(failed, "No", input="{}", name="second"))
    drain(start(machine, name="other"))
    Execution.objects.filter(pk=failed.pk).update(redrive_count=2, redrive_ms=failed.start_ms)
    assert [each.name for each in tree(client, failed).replays] == ["second"]
    shown = tree(client, again)
    assert shown.origin is not None
    assert shown.origin.name == "first"
    assert "Redriven 2 times" in text(client.get(page(failed, "tree/")))


@pytest.fixture
def large(project: Project) -> Execution:
    """Return an execution with a Map Run of 6,000 children, 60 failed, and 4,000 nested ones."""
    machine = create(project, PASS)
    [top] = seed(project, machine, 1, name="top")
    run = MapRun.objects.create(
        parent=top,
        task=1,
        arn="arn:aws:states:us-east-1:123456789012:mapRun:machine/Each:1",
        definition_id=machine.definition_id,
        state_machine_arn=f"{machine.arn}/Each",
        total=6_000,
        started=6_000,
        failed=60,
        succeeded=5_940,
        start_ms=top.start_ms,
    )
    of_run: dict[str, Any] = {"map_run_id": run.pk, "state_machine_id": None}
    of_run["state_machine_arn"] = f"{machine.arn}/Each"
    rows = seed(project, machine, 60, status="FAILED", error="Bad", **of_run)
    rows += seed(project, machine, 5_940, **of_run)
    for index, row in enumerate(rows):
        row.item_index = index
    Execution.objects.bulk_update(rows, ["item_index"], batch_size=1000)
    seed(project, machine, 30, status="FAILED", parent=top.pk, parent_task=2, depth=1)
    seed(project, machine, 3_969, parent=top.pk, parent_task=2, depth=1)
    return top


@pytest.mark.slow
def test_a_family_of_ten_thousand_is_bounded(large: Execution, client: Client) -> None:
    """A few queries, a few rows; the others are counted, and a page away."""
    client.get(reverse("overview"))  # the first request of a process imports all pages
    seconds = []
    for _ in range(3):  # the least of three: a loaded machine takes more processor time, too
        with CaptureQueriesContext(connection) as taken:
            begun = time.thread_time()
            shown = tree(client, large)
            seconds.append(time.thread_time() - begun)
        assert len(taken) <= 25
    assert min(seconds) < 2
    assert shown.total == 9_999
    assert not shown.cut
    assert len(shown.rows) == 1 + 1 + 2 * family.PAGE_ROWS
    assert shown.below.text == "90 failed below"
    top, run = shown.rows[:2]
    assert (top.more, run.more) == (3_999 - family.PAGE_ROWS, 60 - family.PAGE_ROWS)
    following = tree(client, large, f"?{run.next_page}")
    assert {row.execution.pk for row in following.rows[2:27]}.isdisjoint(
        row.execution.pk for row in shown.rows[2:27]
    )
    following = tree(client, large, f"?{top.next_page}")
    failed = [row for row in following.rows if row.execution and row.execution.parent]
    assert [row.status.word for row in failed[:6]] == ["Failed"] * 5 + ["Succeeded"]
    assert tree(client, large, "?after=3999").rows[0].more == 0


@pytest.mark.slow
@pytest.mark.postgres_too
def test_what_is_beyond_the_bound_is_told(
    large: Execution, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says that there are more, and the Map Run still counts all of its own."""
    monkeypatch.setattr(family, "MOST_RELATIVES", 500)
    shown = tree(client, large)
    assert shown.cut
    assert shown.total == 500
    assert "nearest descendants are counted" in text(client.get(page(large, "tree/")))
    [run] = [row for row in shown.rows if row.run]
    assert run.below.text == "60 failed below"


def test_hidden_errors_stay_hidden(project: Project, client: Client) -> None:
    """The error of a child is masked as everywhere; another project sees no family at all."""
    machine = create(project, PASS)
    [top] = seed(project, machine, 1, name="top")
    secret = {"input": '{"card": "secret-4711"}', "status": "FAILED", "error": "secret-4711"}
    seed(project, machine, 1, name="low", parent=top.pk, parent_task=1, depth=1, **secret)
    assert "secret-4711" in text(client.get(page(top, "tree/")))
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    assert "secret-4711" not in text(client.get(page(top, "tree/")))
    for query in ("?after=x&run=&item=-5", "?after=99999999999999999999", "?run=1&item=999999"):
        assert client.get(page(top, f"tree/{query}")).status_code == 200
    assert client.get("/machines/machine/executions/nobody/tree/").status_code == 404


def test_a_map_run_is_named_by_its_map(project: Project, client: Client, worker: Embedded) -> None:
    """The error of a failed child stands in a column of its own."""
    del worker
    parent = ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [1, 3]))
    shown = text(client.get(page(parent, "tree/")))
    assert "Map Run of <bdi>Each</bdi>" in shown
    assert re.search(r'<td class="secondary row-error">\W*(<bdi>)?Oops', shown)


def test_a_nested_execution_names_the_task_that_started_it(
    project: Project, client: Client
) -> None:
    """As the definition of the execution above it calls the state."""
    members(project, ada="editor")
    low = machine_of(project, "ada", fails("Deep"), "low")
    top = worked(started(machine_of(project, "ada", starting(low, ".sync:2"), "top"), "ada"))
    state = TaskRow.objects.get(execution=top.pk).state
    assert f"started by <bdi>{state}</bdi>" in text(client.get(page(top, "tree/")))
