"""The iterations of a Map: what came of each, and the ways between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.models import Timer
from console.store.executions.stop import stop_execution
from console.web.execution import iterations
from console.web.history.traces import open_trace
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.helpers import markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project


def demo(failing: tuple[int, ...] = (37, 141)) -> dict[str, Any]:
    """Return a Map whose first attempt fails at #37 and whose second fails at #141."""
    fails = [
        {
            "And": [
                {"Variable": "$.try", "NumericEquals": attempt},
                {"Variable": "$.i", "NumericEquals": index},
            ],
            "Next": "Break",
        }
        for attempt, index in enumerate(failing)
    ]
    inner = {
        "StartAt": "Look",
        "States": {
            "Look": {"Type": "Choice", "Choices": fails, "Default": "Fine"},
            "Fine": {"Type": "Pass", "End": True},
            "Break": {"Type": "Fail", "Error": "Bad", "Cause": "item is bad"},
        },
    }
    over = {
        "Type": "Map",
        "MaxConcurrency": 1,
        "ItemsPath": "$.items",
        "ItemSelector": {"i.$": "$$.Map.Item.Index", "try.$": "$$.State.RetryCount"},
        "ItemProcessor": inner,
        "Retry": [{"ErrorEquals": ["Bad"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        "End": True,
    }
    return {"StartAt": "Over", "States": {"Over": over}}


@pytest.fixture
def mended(project: Project) -> Execution:
    """Return an execution in which #1 of two failed, and after a retry none."""
    execution = drain(start(create(project, demo((1,))), {"items": [0, 1]}, "x"))
    Timer.objects.update(due_ms=0)
    return drain(execution)


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution in which #37 failed, and after a retry #141."""
    execution = start(create(project, demo()), {"items": list(range(200))}, "x")
    drain(execution)
    Timer.objects.update(due_ms=0)
    return drain(execution)


def test_the_banner_leads_to_the_state_and_iteration_that_failed(
    client: Client, failed: Execution
) -> None:
    """The link names step and iteration; what it leads to is that visit."""
    shown = text(client.get(page(failed)))
    assert "step=Break&iteration=141" in shown.replace("&amp;", "&")
    panel = client.get(page(failed, "?step=Break&iteration=141")).context["panel"].shown
    assert (panel.node.name, panel.iteration, panel.status.word) == ("Break", "#141", "Failed")


def test_the_box_of_a_map_counts_the_endings_that_its_panel_counts(
    project: Project, client: Client
) -> None:
    """One failed while another waited: neither is passed over for the one that succeeded."""
    ways = [{"Variable": "$", "NumericEquals": way, "Next": state} for way, state in WAYS]
    inner = {
        "StartAt": "Look",
        "States": {
            "Look": {"Type": "Choice", "Choices": ways, "Default": "Fine"},
            "Fine": {"Type": "Pass", "End": True},
            "Nap": {"Type": "Wait", "Seconds": 500, "End": True},
            "Pause": {"Type": "Wait", "Seconds": 1, "Next": "Break"},
            "Break": {"Type": "Fail", "Error": "Bad"},
        },
    }
    execution = drain(start(create(project, one("Over", Type="Map", ItemProcessor=inner)), ITEMS))
    Timer.objects.filter(due_ms__lt=execution.start_ms + 60_000).update(due_ms=0)
    drain(execution)
    shown = client.get(page(execution, "?step=Over")).context
    summary = next(each for each in shown["summaries"].values() if each.node.name == "Over")
    assert summary.under == "1 of 3 failed, 1 aborted"
    assert "1 of 3 failed, 1 aborted" in summary.label
    groups = {group.status.word: group.count for group in shown["panel"].shown.picker.groups}
    assert groups == {"Failed": 1, "Aborted": 1, "Succeeded": 1}


WAYS = ((1, "Pause"), (2, "Nap"))
ITEMS = [0, 1, 2]


def test_the_box_of_a_map_that_began_some_of_its_items_counts_all(
    client: Client, failed: Execution
) -> None:
    """What never began is neither failed nor aborted; after a retry its last attempt counts."""
    shown = client.get(page(failed)).context
    summary = next(each for each in shown["summaries"].values() if each.node.name == "Over")
    assert summary.under == "1 of 200 failed"


def nested(*, catch: bool = False) -> dict[str, Any]:
    """Return a Map inside a Map: a 13 fails, a number from 50 on waits."""
    ways = [
        {"Variable": "$", "NumericEquals": 13, "Next": "Break"},
        {"Variable": "$", "NumericGreaterThanEquals": 50, "Next": "Nap"},
    ]
    each = {
        "StartAt": "Look",
        "States": {
            "Look": {"Type": "Choice", "Choices": ways, "Default": "Fine"},
            "Fine": {"Type": "Pass", "End": True},
            "Nap": {"Type": "Wait", "Seconds": 3600, "End": True},
            "Break": {"Type": "Fail", "Error": "Bad"},
        },
    }
    inner: dict[str, Any] = {"Type": "Map", "ItemProcessor": each, "Next": "Last"}
    if catch:
        inner["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "Last"}]
    states = {"Inner": inner, "Last": {"Type": "Pass", "End": True}}
    return one("Outer", Type="Map", ItemProcessor={"StartAt": "Inner", "States": states})


def lines_of_maps(client: Client, execution: Execution, query: str = "") -> dict[str, str]:
    """Return the line under the name of each Map in the graph."""
    summaries = client.get(page(execution, query)).context["graph"].painting.summaries.values()
    return {each.node.name: each.under for each in summaries if each.node.type == "Map"}


def test_a_map_inside_a_map_counts_iterations_and_items_of_the_same_visits(
    project: Project, client: Client
) -> None:
    """All visits together, or those of the iteration on display; never more than there are."""
    machine = create(project, nested())
    whole = drain(start(machine, [[1, 2, 3]] * 54, "whole"))
    assert lines_of_maps(client, whole)["Inner"].startswith("Succeeded · 162 of 162")
    assert lines_of_maps(client, whole, "?step=Last&iteration=5")["Inner"].startswith(
        "Succeeded · 3 of 3"
    )
    waiting = drain(start(machine, [[50, 51], [52], [1, 53, 54]], "stopped"))
    stop_execution(waiting)
    stopped = drain(waiting)
    assert lines_of_maps(client, stopped) == {
        "Outer": "3 of 3 aborted",
        "Inner": "5 of 6 aborted",
    }
    assert lines_of_maps(client, stopped, "?step=Last&iteration=2")["Inner"] == "2 of 3 aborted"
    runs = drain(start(machine, [[1, 50], [2, 3, 51, 52]], "runs"))
    assert "3 of 6" in lines_of_maps(client, runs)["Inner"]


def test_a_caught_failure_counts_with_the_items_of_its_own_map(
    project: Project, client: Client
) -> None:
    """The iteration on display failed one of two; all visits together have four items."""
    execution = drain(start(create(project, nested(catch=True)), [[1, 2], [3, 13]], "x"))
    shown = lines_of_maps(client, execution, "?step=Last&iteration=1")
    assert shown["Inner"] == "Caught error · 1 of 2 failed"
    assert lines_of_maps(client, execution)["Inner"] == "1 passed · 1 caught"


def test_iterations_are_grouped_by_what_came_of_them(client: Client, failed: Execution) -> None:
    """Each group has its number, in the last attempt; those before it lead to the failed one."""
    shown = client.get(page(failed, "_step?step=Break&iteration=37"))
    picker = shown.context["panel"].shown.picker
    assert {group.status.word: group.count for group in picker.groups} == {
        "Failed": 1,
        "Succeeded": 141,
    }
    assert picker.next_failed.key == "141"
    assert picker.previous_failed is None
    assert "Next failed #141" in text(shown)
    assert "and 41 more" in text(shown)


def test_a_retry_that_succeeds_leaves_no_failed_iteration(
    client: Client, mended: Execution
) -> None:
    """Nothing says that one failed, and nothing leads there but the attempts of the Map."""
    assert mended.status == "SUCCEEDED"
    for query in ("?step=Over", "?step=Fine&iteration=1", "?step=Fine&iteration=0"):
        shown = client.get(page(mended, query))
        picker = shown.context["panel"].shown.picker
        assert {each.status.word: each.count for each in picker.groups} == {"Succeeded": 2}
        assert (picker.next_failed, picker.previous_failed) == (None, None)
        assert "Next failed" not in text(shown)
        assert "2 iterations of" in text(shown)
    rows = client.get(page(mended, "?status=FAILED&view=steps")).context["steps"].rows
    assert [row.label for row in rows if row.kind == "Iteration"] == []
    assert "item is bad" in text(client.get(page(mended, "?step=Break&iteration=1")))


def test_a_retry_inside_of_an_iteration_counts_for_it(project: Project, client: Client) -> None:
    """The first attempt of a Map within a Map failed, the second did not: both have succeeded."""
    inner = demo((1,))
    inner["States"]["Over"].pop("ItemsPath")
    outer = one("Outer", Type="Map", MaxConcurrency=1, ItemProcessor=inner)
    execution = drain(start(create(project, outer), [[0, 1]], "x"))
    Timer.objects.update(due_ms=0)
    execution = drain(execution)
    assert execution.status == "SUCCEEDED"
    for query, total in (("?step=Outer", 1), ("?step=Over&iteration=0", 2)):
        picker = client.get(page(execution, query)).context["panel"].shown.picker
        assert {each.status.word: each.count for each in picker.groups} == {"Succeeded": total}


def test_a_typed_number_leads_into_the_map(client: Client, failed: Execution) -> None:
    """From the Map itself to what tells most; from a state to that state, if it was entered."""
    context = client.get(page(failed, "?step=Over&iteration=141")).context
    assert (context["panel"].chosen, context["panel"].shown.iteration) == ("Break", "#141")
    context = client.get(page(failed, "?step=Over&iteration=37")).context
    assert (context["panel"].chosen, context["panel"].shown.iteration) == ("Fine", "#37")
    fine = client.get(page(failed, "?step=Over&iteration=5")).context
    assert (fine["panel"].chosen, fine["panel"].shown.iteration) == ("Fine", "#5")
    shown = markup(client.get(page(failed, "_step?step=Break&iteration=5")))
    assert "Not entered in iteration #5" in shown
    assert text(client.get(page(failed, "_step?step=Break&iteration=zzz")))


def test_states_outside_of_maps_have_no_picker(client: Client, failed: Execution) -> None:
    """Nested Maps tell both indexes; a state without a Map around it has none."""
    with open_trace(failed) as trace:
        picker = iterations.iteration_picker(trace, trace.graph.nodes[0])
        assert picker is not None
        assert (picker.owner, picker.current, picker.total) == ("Over", None, 142)
    assert iterations.iteration_label((2, 5)) == "#2 → #5"
    assert iterations.parse_iteration("2.5") == (2, 5)
    assert iterations.parse_iteration("2.") == ()
