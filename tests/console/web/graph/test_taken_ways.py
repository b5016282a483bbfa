"""The graph draws as taken what an execution took: into branches, through them and out of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.console.store.helpers import create, drain, ended, start
from tests.console.web.helpers import page, text
from tests.features.map_runs.test_map_run import over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project
    from console.worker import Embedded
    from engine import Graph

PASS = {"Type": "Pass", "End": True}
NAP = {"Type": "Wait", "Seconds": 600, "End": True}


def choice(below: str, otherwise: str) -> dict[str, Any]:
    """Return a Choice by whether its input is below two."""
    rule = {"Variable": "$", "NumericLessThan": 2, "Next": below}
    return {"Type": "Choice", "Choices": [rule], "Default": otherwise}


def ways(client: Client, execution: Execution) -> tuple[set[str], set[str]]:
    """Return the lines of an execution's graph, as ``drawn_ways`` does."""
    answer = client.get(page(execution))
    return drawn_ways(answer, answer.context["graph"].painting.graph)


def drawn_ways(answer: Any, graph: Graph) -> tuple[set[str], set[str]]:
    """Return the lines of the graph that are drawn as taken, and the others, by their names."""
    ids = {node.id: node.name for node in graph.nodes}
    starts = {group.id: ids[group.start] for group in graph.groups}
    taken: set[str] = set()
    others: set[str] = set()
    lines = r'<path class="edge ([^"]*)" data-edge="([^"]*)"\s*([^>]*)'
    for classes, edge, rest in re.findall(lines, text(answer)):
        thread = re.search(r'data-way="(in|out)-([^"]*)"', rest)
        source, target = edge.split("-")
        words = f"{ids.get(source, source)} > {ids.get(target, target)}"
        if thread:
            words = f"{thread[1]} {starts[thread[2]]}"
        (taken if "taken" in classes.split() else others).add(words)
    return taken, others


def test_the_ways_of_branches(project: Project, client: Client) -> None:
    """One branch has ended, one has not; one of two ways out of the first was not taken."""
    first = {"Ask": choice("Low", "High"), "Low": PASS, "High": PASS}
    branches = [
        {"StartAt": "Ask", "States": first},
        {"StartAt": "Wait", "States": {"Wait": NAP}},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    execution = drain(start(create(project, {"StartAt": "Both", "States": {"Both": both}}), 1))
    taken, others = ways(client, execution)
    assert taken == {"start > Both", "in Ask", "in Wait", "Ask > Low", "Low > end", "out Ask"}
    assert others == {"Ask > High", "High > end", "out Wait", "Both > end"}


def test_the_ways_of_a_map(project: Project, client: Client) -> None:
    """Its iterations take both ways, of which one does not end; so says the picture to keep."""
    states = {"Ask": choice("Low", "High"), "Low": PASS, "High": NAP}
    each = {"Type": "Map", "ItemProcessor": {"StartAt": "Ask", "States": states}, "End": True}
    execution = drain(start(create(project, {"StartAt": "Each", "States": {"Each": each}}), [1, 2]))
    taken, others = ways(client, execution)
    assert {"in Ask", "Ask > Low", "Ask > High", "Low > end", "out Ask"} <= taken
    assert others == {"High > end", "Each > end"}
    picture = text(client.get(page(execution, "graph.svg")))
    assert picture.count('stroke="#17202b" stroke-width="2"') == len(taken)


def test_the_ways_of_one_iteration(project: Project, client: Client) -> None:
    """Of a chosen iteration only the lines that it took are drawn inside, also by a panel alone."""
    states = {"Ask": choice("Low", "High"), "Low": PASS, "High": NAP}
    each = {"Type": "Map", "ItemProcessor": {"StartAt": "Ask", "States": states}, "End": True}
    execution = drain(start(create(project, {"StartAt": "Each", "States": {"Each": each}}), [1, 2]))
    first = client.get(page(execution, "?step=Ask&iteration=0"))
    low, _ = drawn_ways(first, first.context["graph"].painting.graph)
    assert low == {"start > Each", "in Ask", "Ask > Low", "Low > end", "out Ask"}
    whole = client.get(page(execution, "?step=Ask&iteration=1"))
    assert drawn_ways(whole, whole.context["graph"].painting.graph)[0] == {
        "start > Each",
        "in Ask",
        "Ask > High",
    }
    ids = {node.name: node.id for node in whole.context["graph"].painting.graph.nodes}
    answer = client.get(page(execution, "_step?step=Ask&iteration=1"))
    repainted = json.loads(answer.context["repaint"])["taken"]
    assert f"{ids['Ask']}-{ids['High']}" in repainted
    assert f"{ids['Ask']}-{ids['Low']}" not in repainted


def test_the_ways_of_children(worker: Embedded, project: Project, client: Client) -> None:
    """Only counts are known of them: a way is taken if its target was entered by no other."""
    del worker
    states = {"Ask": choice("Low", "High"), "Low": PASS, "High": PASS}
    machine = create(project, over({"StartAt": "Ask", "States": states}))
    taken, others = ways(client, ended(start(machine, [5, 6, 7])))
    assert {"in Ask", "Ask > High", "High > end", "out Ask", "Each > end"} <= taken
    assert others == {"Ask > Low", "Low > end"}


def test_the_ways_over_some_executions(project: Project, client: Client) -> None:
    """The insights draw what some execution took, also into the branches and out of them."""
    first = {"Ask": choice("Low", "High"), "Low": PASS, "High": PASS}
    branches = [
        {"StartAt": "Ask", "States": first},
        {"StartAt": "Wait", "States": {"Wait": NAP}},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    machine = create(project, {"StartAt": "Both", "States": {"Both": both}})
    drain(start(machine, 1))
    drain(start(machine, 1))
    answer = client.get("/machines/machine/insights/")
    taken, others = drawn_ways(answer, answer.context["graph"])
    assert taken == {"start > Both", "in Ask", "in Wait", "Ask > Low", "Low > end", "out Ask"}
    assert others == {"Ask > High", "High > end", "out Wait", "Both > end"}


def test_a_catcher_to_the_next_state_is_told_from_next(project: Project, client: Client) -> None:
    """Both lead to the same state: the line of the one that was not taken stays thin."""
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Busy"}}}
    fine = {"StartAt": "F", "States": {"F": PASS}}
    catch = [{"ErrorEquals": ["Busy"], "Next": "After"}]
    for number, (branch, expected) in enumerate(((fail, "catch"), (fine, "next"))):
        both = {"Type": "Parallel", "Branches": [branch], "Catch": catch, "Next": "After"}
        machine = create(
            project, {"StartAt": "Both", "States": {"Both": both, "After": PASS}}, f"m{number}"
        )
        execution = drain(start(machine, {}, "x"))
        ids = client.get(page(execution)).context["graph"].painting.graph.by_name
        edge = f'data-edge="{ids["Both"]}-{ids["After"]}"'
        for address in (page(execution), f"/machines/m{number}/insights/"):
            shown = text(client.get(address))
            classes = re.findall(rf'<path class="edge ([^"]*)" {edge}', shown)
            assert len(classes) == 2
            assert [each for each in classes if "taken" in each.split()] == [f"{expected} taken"]
