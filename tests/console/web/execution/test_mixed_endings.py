"""States whose visits ended differently, or did not end, are counted as such on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.store.executions.stop import stop_execution
from tests.console.store.helpers import WAIT, create, drain, one, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project


def mixed(project: Project) -> Execution:
    """Return a failed execution of a Map whose third iteration failed while others waited."""
    inner = {
        "StartAt": "Which?",
        "States": {
            "Which?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericLessThan": 3, "Next": "Reserved"}],
                "Default": "Slow",
            },
            "Reserved": {"Type": "Wait", "SecondsPath": "$", "End": True},
            "Slow": {"Type": "Fail", "Error": "Oops"},
        },
    }
    machine = create(project, one("Each", Type="Map", ItemProcessor=inner))
    return drain(start(machine, [0, 0, 0, 2, 2, 2, 3], "x"))


def test_endings_are_counted(project: Project, client: Client) -> None:
    """Three passed and three were aborted: no page says only that it was aborted."""
    execution = mixed(project)
    context = client.get(page(execution, "?view=steps")).context
    summary = next(
        each
        for each in context["graph"].painting.summaries.values()
        if each.node.name == "Reserved"
    )
    assert summary.under == "3 passed · 3 aborted"
    assert summary.status.tone == "aborted"
    assert summary.label.startswith("Reserved, Wait, 3 passed · 3 aborted")
    row = next(row for row in context["steps"].rows if row.step == "Reserved" and row.visits == 6)
    assert (row.key, row.status.word) == ("aborted", "3 passed · 3 aborted")
    grid = text(client.get(f"/machines/{execution.state_machine.name}/grid/"))
    assert "3 passed · 3 aborted" in grid
    assert "x, aborted" not in grid


def test_insights_leave_out_what_did_not_end(project: Project, client: Client) -> None:
    """An aborted and a running visit are no success, and have no typical time."""
    machine = create(project, WAIT)
    stop_execution(drain(start(machine, {}, "stopped")))
    drain(start(machine, {}, "waits"))
    insights = client.get(f"/machines/{machine.name}/insights/").context["insights"]
    first = insights[0]
    assert (first.aborted, first.running, first.p50, first.p95) == (1, 1, None, None)
    assert first.unfinished == "1 aborted, 1 running"
    assert first.status.tone == "aborted"
    answer = client.get(f"/machines/{machine.name}/insights/")
    assert "1 aborted, 1 running" in text(answer)
    grid = client.get(f"/machines/{machine.name}/grid/").context["grid"]
    assert grid.lines[0].median is None
    assert grid.total.median is None


def test_a_state_that_only_runs_does_not_look_like_one_never_entered(
    project: Project, client: Client
) -> None:
    """Insights draw it as running; what nobody entered stays idle."""
    last = {"Last": {"Type": "Pass", "End": True}}
    nap = {"Type": "Wait", "Seconds": 3600, "Next": "Last"}
    machine = create(project, {"StartAt": "Nap", "States": {"Nap": nap, **last}})
    drain(start(machine, {}, "waits"))
    shown = client.get(f"/machines/{machine.name}/insights/")
    tones = {insight.node.name: insight.status.tone for insight in shown.context["insights"]}
    assert (tones["Nap"], tones["Last"]) == ("running", "idle")
    assert 'class="node running"' in text(shown)
