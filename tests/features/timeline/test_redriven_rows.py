"""The rows of a redriven Map: each iteration is drawn in the attempts it was in, as it ended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.features.timeline.bars import MOST_VISITS
from console.web.core.formatting import DAY
from tests.console.store.helpers import create, drain, function, start
from tests.console.web.helpers import page, steps_page, text
from tests.features.test_state.test_scenario import answer
from tests.features.timeline.test_axis import again, drawn, later

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project


def pay_each(most: int) -> dict[str, object]:
    """Return a definition that pays each item."""
    inner = {"StartAt": "Pay", "States": {"Pay": function("pay", End=True)}}
    each = {"Type": "Map", "MaxConcurrency": most, "ItemProcessor": inner, "End": True}
    return {"StartAt": "Each", "States": {"Each": each}}


@pytest.fixture
def redriven(project: Project) -> Execution:
    """Return an execution: #0 succeeded, #1 failed, #2 was aborted; two days later all succeed."""
    execution = drain(start(create(project, pay_each(2)), [0, 1, 2, 3], "x"))
    answer(execution, "Pay", 1)
    later(execution, 60_000)
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, 2 * DAY)
    again(execution)
    for _ in range(3):
        later(execution, 60_000)
        execution = answer(execution, "Pay", 1)
    return execution


@pytest.mark.postgres_too
def test_iterations_are_not_drawn_while_the_execution_had_ended(
    client: Client, redriven: Execution
) -> None:
    """The row of all has no rectangle over the fold, and each one says how its attempt ended."""
    timeline = drawn(client, redriven)
    fold = timeline.axis.span.folds[0]
    lane = timeline.lanes["sn1"]
    for each in lane.rectangles:
        assert each.x + each.width <= fold.x + 0.1 or each.x >= fold.x + fold.width - 0.1
    before = [each.tone for each in lane.rectangles if each.x < fold.x]
    assert sorted(before) == ["aborted", "failed", "succeeded"]
    after = {each.tone for each in lane.rectangles if each.x > fold.x}
    assert after == {"succeeded"}
    assert lane.text.endswith("up to 2 at once")


def test_the_row_of_all_iterations_marks_the_critical_path(
    client: Client, redriven: Execution
) -> None:
    """It is marked where the states below it are."""
    timeline = drawn(client, redriven)
    lane = timeline.lanes["sn1"]
    fold = timeline.axis.span.folds[0]
    marks = [(segment.x, segment.width) for segment in timeline.bars["n2"] if segment.critical]
    assert marks
    for x, width in marks:
        assert any(at <= x + 1 and x + width <= at + wide + 1 for at, wide in lane.critical)
    assert {at < fold.x for at, _ in lane.critical} == {True, False}
    assert lane.height > lane.strip[0] * lane.height / lane.units
    assert "critical path marked" in text(client.get(page(redriven, "?view=timeline")))


def test_an_attempt_counts_the_iterations_it_had(client: Client, redriven: Execution) -> None:
    """The first run failed: its row says so, though all of them have succeeded since."""
    lane = drawn(client, redriven, "?attempt=1").lanes["sn1"]
    assert lane.endings == "1 failed · 1 aborted · 1 succeeded · 1 not started"
    assert drawn(client, redriven, "?attempt=2").lanes["sn1"].endings == (
        "3 succeeded · 1 not started"
    )
    assert drawn(client, redriven).lanes["sn1"].endings == "4 succeeded"


def test_what_was_aborted_before_a_redrive_does_not_count_as_failed(
    client: Client, redriven: Execution
) -> None:
    """A Task that was open when another one failed was aborted, and starts anew."""
    pay = drawn(client, redriven).bars["n2"]
    first = [each for each in pay if each.lane == 0]
    assert [each.tone for each in first][-1] == "failed", "what was aborted beside it hides nothing"
    assert sorted(each.tone for each in first) == ["aborted", "failed", "succeeded"]
    assert [each.text.split(",")[0] for each in first if each.tone == "aborted"] == [
        "First run: aborted"
    ]
    opened = drawn(client, redriven, "?rows=n1").bars
    assert [each.tone for each in opened["in1-2"]] == ["aborted", "succeeded"]


def test_many_visits_are_drawn_in_the_attempts_they_were_in(
    project: Project, client: Client
) -> None:
    """Each attempt says how many of them it had, and how they ended there."""
    count = MOST_VISITS + 10
    execution = drain(start(create(project, pay_each(1)), list(range(count)), "x"))
    for _ in range(count - 5):
        answer(execution, "Pay", 1)
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, 2 * DAY)
    again(execution)
    for _ in range(5):
        execution = answer(execution, "Pay", 1)
    pay = drawn(client, execution).bars["n2"]
    words = [each.text.split(" visits, ") for each in pay]
    assert [count for count, _ in words] == [f"First run: {count - 4}", "Redrive 1: 5"]
    assert [word.split(",")[0] for _, word in words] == ["failed", "succeeded"]


def test_insights_count_failures_that_a_redrive_repaired(
    client: Client, redriven: Execution
) -> None:
    """They happened: metrics and the list of failures had counted them, too."""
    assert redriven.state_machine is not None
    answer = client.get(f"/machines/{redriven.state_machine.name}/insights/")
    insights = {insight.node.name: insight for insight in answer.context["insights"]}
    for name, visits, again_visits in (("Each", 1, 1), ("Pay", 4, 2)):
        insight = insights[name]
        assert (insight.visits, insight.redriven) == (visits, again_visits), name
        assert (insight.failed, insight.failed_before) == (1, 1), name
        assert insight.status.tone == "failed"
        assert insight.under.startswith("1 of 1 · 1 failed")
    words = " ".join(text(answer).split())
    assert 'data-label="p50 of visits"' in words
    assert "A redriven visit counts once, its failures each time." in words
    grid = text(client.get(f"/machines/{redriven.state_machine.name}/grid/"))
    assert "Median per execution" in grid


@pytest.mark.postgres_too
def test_the_overview_says_why_more_ends_than_executions_count(
    client: Client, redriven: Execution
) -> None:
    """The tile counts executions by their status now, the chart ends: a redrive is one more."""
    answer = client.get("/")
    words = " ".join(text(answer).split())
    assert "Redriven executions count once per run" in words
    assert "Finished executions" in words
    redrives = answer.context["redrives"]
    assert redrives.count == 1
    listed = client.get(redrives.href).context
    assert (listed["total"], listed["counted"]) == (1, 1)
    assert "1 redrive" in words


def test_the_past_of_a_redriven_execution_folds_the_time_before_its_redrive(
    client: Client, redriven: Execution
) -> None:
    """In the time machine, too: two idle days leave no room for a minute of work."""
    whole = drawn(client, redriven).axis.span
    past = drawn(client, redriven, "?at=12").axis.span
    assert (past.begin, past.end) == (whole.begin, whole.end)
    assert [(fold.since, fold.until) for fold in past.folds] == [
        (fold.since, fold.until) for fold in whole.folds if fold.until - fold.since > DAY
    ]


def test_the_clock_of_iterations_leaves_out_the_time_before_a_redrive(
    project: Project, client: Client
) -> None:
    """As the clock of their Map does: two days in which nothing ran are no time of theirs."""
    execution = drain(start(create(project, pay_each(2)), [0, 1, 2, 3], "x"))
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, 2 * DAY)
    again(execution)
    rows = client.get(steps_page(execution, "?rows=n1")).context["steps"].rows
    since = {row.id: row.since for row in rows if row.since is not None}
    assert {"n1", "sn1", "in1-0", "in1-1"} <= since.keys()
    assert since["sn1"] == since["n1"]
    assert since["in1-0"] >= since["n1"]


def test_the_way_to_a_redrive_is_no_backoff(client: Client, redriven: Execution) -> None:
    """The attempts at a state say that it was redriven two days later, not that it was retried."""
    shown = text(client.get(page(redriven, "?step=Pay&iteration=1&tab=attempts")))
    row = " ".join(re.sub(r"<[^>]*>", " ", shown.partition("Attempt 1: Failed")[2]).split())
    assert "Redriven 2 d" in row.partition("Attempt 2")[0]
    assert row.partition("Attempt 2")[0].rstrip().endswith("1 min 00 s -")
