"""Groups of a large machine are folded into boxes that count what is inside of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import engine
from console.web.graph import svg
from console.web.graph.graph_view import FOLD_ABOVE, GraphView, fold_groups, states_inside
from console.web.graph.shapes import DETAIL_SIZE, STATUS_ROOM, fitting_line, text_width_px
from tests.console.store.helpers import create, drain, start
from tests.console.web.graph.graph_geometry import find_flaws
from tests.console.web.graph.workflows import maps
from tests.console.web.helpers import MARKUP, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

SIXTY = maps(60)
"""Sixty Maps with two states each, and a last one."""


def nodes(shown: str) -> set[str]:
    """Return the names of the states in a page's graph."""
    return set(re.findall(r'data-node="n\d+"[^>]*?data-step="([^"]*)"', shown))


def branches(inner: dict[str, Any], count: int) -> str:
    """Return a Parallel with ``inner`` in its first branch, and ``count`` states in the second."""
    states = {f"s{number}": {"Type": "Pass", "Next": f"s{number + 1}"} for number in range(count)}
    chain = {"StartAt": "s0", "States": {**states, f"s{count}": {"Type": "Succeed"}}}
    both = {"Type": "Parallel", "Branches": [inner, chain], "End": True}
    both["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": "After"}]
    last = {"Type": "Pass", "End": True}
    return json.dumps({"StartAt": "Both", "States": {"Both": both, "After": last}})


def run(project: Project, definition: str, name: str, data: Any = None) -> Execution:
    """Start an execution of a new machine, and let it go on as far as it can."""
    return drain(
        start(create(project, json.loads(definition), name=name), {} if data is None else data)
    )


def test_a_fold_keeps_the_graph_whole() -> None:
    """What is folded is counted, the lines between boxes stay, and what is open has its inside."""
    graph = engine.build_graph(engine.parse(SIXTY))
    folded, counts = fold_groups(graph, {"n1", "n4"})
    assert len(counts) == 58
    assert set(counts.values()) == {2}
    assert {node.name for node in folded.nodes} >= {"map0", "first0", "second1", "map59"}
    assert "first2" not in folded.by_name
    assert [edge for edge in folded.edges if edge.source not in folded.by_id] == []
    assert len([edge for edge in folded.edges if edge.target == "n4"]) == 1
    assert sum(map(len, states_inside(graph).values())) == 120
    picture = svg.definition_picture(SIXTY, view=GraphView(folds=True, unfolded=frozenset({"n1"})))
    assert sum(box.folded for box in picture.boxes) == 59 * 2
    assert not any(find_flaws(picture, folded).counts.values())


def test_what_is_inside_a_folded_group_is_hidden() -> None:
    """A group that is open inside of a folded one does not come out."""
    inner = {"StartAt": "m", "States": {"m": json.loads(maps(1))["States"]["map0"] | {"End": True}}}
    inner["States"]["m"].pop("Next")
    graph = engine.build_graph(engine.parse(branches(inner, 3)))
    folded, counts = fold_groups(graph, {graph.by_name["m"]})
    assert set(folded.by_name) == {"Both", "After"}
    assert counts == {graph.by_name["Both"]: len(graph.nodes) - 2}


def test_only_large_machines_fold(project: Project, client: Client) -> None:
    """Below the limit, the page shows every state, whatever the address says."""
    small = maps(FOLD_ABOVE // 3 - 1)
    execution = run(project, small, "small", {"x": []})
    shown = text(client.get(page(execution, "?unfold=n1")))
    assert "first3" in nodes(shown)
    assert "data-fold-sign" not in shown


def test_a_page_unfolds_what_its_address_names(project: Project, client: Client) -> None:
    """And offers to fold it; every other box counts its states and offers to unfold."""
    execution = run(project, SIXTY, "large", [])
    shown = text(client.get(page(execution, "?step=map59")))
    assert {"map0", "map59"} <= nodes(shown)
    assert not {"first0", "second59"} & nodes(shown)
    assert "Unfold map7, 2 states" in shown
    assert re.search(r"Succeeded · 2 states", shown)
    shown = text(client.get(page(execution, "?step=map59&unfold=n1,n4")))
    assert {"first0", "second1"} <= nodes(shown)
    assert "first2" not in nodes(shown)
    assert 'aria-label="Fold map0"' in shown
    links = re.findall(r'class="fold-sign" href="([^"]*)"', shown)
    assert any(re.search(r"unfold=n4(&|#)", link) for link in links)
    for bad in ("n999999", "x", "n1,<b>", "n1" * 900):
        assert "map7" in nodes(text(client.get(page(execution, f"?unfold={bad}"))))


def test_the_chosen_state_is_never_folded_away(project: Project, client: Client) -> None:
    """The failing one, or the one that the address names, is in the graph."""
    execution = run(project, SIXTY, "named", [])
    shown = text(client.get(page(execution, "?step=second7")))
    assert "second7" in nodes(shown)
    assert "second8" not in nodes(shown)


def test_a_folded_box_shows_the_worst_inside(project: Project, client: Client) -> None:
    """With how many states have it; also in what a poll and the time machine repaint."""
    fails = {"StartAt": MARKUP, "States": {MARKUP: {"Type": "Fail", "Error": "Bad"}}}
    execution = run(project, branches(fails, FOLD_ABOVE), "worst")
    raw = client.get(page(execution, "?step=After")).content.decode()
    assert MARKUP not in raw
    shown = text(client.get(page(execution, "?step=After")))
    assert nodes(shown) == {"Both", "After"}
    box = re.search(r'<a class="node (\w+)[^>]*data-node="n1"', shown)
    assert box is not None
    assert box[1] == "failed"
    assert f"{FOLD_ABOVE + 2} states · 1 failed" in shown
    answer = client.get(page(execution, "_delta?after=0"))
    paint = re.search(r'data-paint="([^"]*)"', answer.content.decode())
    assert paint is not None
    told = json.loads(paint[1].replace("&quot;", '"').replace("&lt;", "<").replace("&#x27;", "'"))
    assert told["nodes"]["n1"]["folded"]["tone"] == "failed"


def folded_boxes(shown: str) -> dict[str, str]:
    """Return state -> where its sign leads to, of each group that a machine's page has folded."""
    signs = re.findall(r'class="fold-sign" href="([^"]*)"[^>]*aria-label="Unfold ([^,"]*),', shown)
    return {name: address.replace("&amp;", "&") for address, name in signs}


def test_the_definition_page_of_a_large_machine_folds(project: Project, client: Client) -> None:
    """A press on a sign opens that group; a state that the address names is seen."""
    create(project, json.loads(SIXTY), name="large")
    shown = text(client.get("/machines/large/definition/"))
    signs = folded_boxes(shown)
    assert len(signs) == 60
    assert "2 states inside" in shown
    assert "first7" not in re.findall(r'aria-label="(first7)[,"]', shown)
    assert signs["map7"].endswith("#graph-title")
    opened = text(client.get(f"/machines/large/definition/{signs['map7']}"))
    assert re.search(r'aria-label="first7, ', opened)
    assert len(folded_boxes(opened)) == 59
    assert "Fold map7" in opened
    # the text has a mark for states inside of folded groups, too
    inside = engine.build_graph(engine.parse(SIXTY)).by_name["first9"]
    assert f'id="src-{inside}"' in shown
    named = text(client.get(f"/machines/large/definition/?state={inside}"))
    assert re.search(r'aria-label="first9, ', named)


def test_the_insights_page_of_a_large_machine_folds(project: Project, client: Client) -> None:
    """A folded box says in how many executions it was entered, and what happened inside of it."""
    run(project, SIXTY, "large", {"x": [1, 2]})
    shown = text(client.get("/machines/large/insights/"))
    assert len(folded_boxes(shown)) == 60
    assert "1 of 1 · 2 states" in shown
    opened = text(client.get(f"/machines/large/insights/{folded_boxes(shown)['map7']}"))
    assert re.search(r'aria-label="first7, Choice, (1 of 1|Never entered)', opened)


def test_a_small_machine_does_not_fold_on_its_pages(project: Project, client: Client) -> None:
    """Below the limit the pages of a machine show every state."""
    run(project, maps(3), "small", {"x": []})
    for page_of in ("definition", "insights"):
        shown = text(client.get(f"/machines/small/{page_of}/?unfold=n1"))
        assert not folded_boxes(shown)
        assert re.search(r'aria-label="first2, ', shown)


def test_the_editor_folds_too(client: Client) -> None:
    """By the names of groups, since ids change with the text; what is edited stays in sight."""

    def drawn(**sent: str) -> set[str]:
        """Return the names of the states that the graph of the editor shows."""
        answer = text(client.post("/machines/new/_check", {"text": SIXTY, **sent}))
        assert answer.count("data-first=") == 181  # completion proposes all of them
        return set(re.findall(r'href="#state-n\d+"\s+aria-label="([^,"]*)', answer))

    assert "first2" not in drawn()
    assert "first2" in drawn(opened='["map2"]')
    assert "first3" not in drawn(opened='["map2"]')
    assert drawn(chosen="second41") - drawn() == {"first41", "second41"}
    for odd in ("[", "{}", "[1, null]", '["gone"]', '["first2"]', "[" * 9999):
        assert drawn(opened=odd) == drawn()
    answer = text(client.post("/machines/new/_check", {"text": SIXTY, "chosen": "second41"}))
    assert 'data-opened="["map41"]"' in answer
    small = text(client.post("/machines/new/_check", {"text": maps(10), "opened": '["map2"]'}))
    assert "data-fold-sign" not in small


def test_the_editor_draws_only_what_changed(client: Client) -> None:
    """White space and parameters change the lines of states, not the picture."""
    first = text(client.post("/machines/new/_check", {"text": SIXTY}))
    drawn = re.findall(r'id="drawn"[^>]*value="(\w+)"', first)
    again = {"text": SIXTY.replace("{", "{\n", 3), "drawn": drawn[0]}
    same = text(client.post("/machines/new/_check", again))
    assert 'id="preview"' not in same
    assert 'data-broken="false"' in same
    assert 'data-name="map60"' in same
    for other in (SIXTY.replace("map60", "last"), SIXTY.replace('"$.x"', '"$.y"')):
        assert 'id="preview"' in text(client.post("/machines/new/_check", again | {"text": other}))
    for more in ({"opened": '["map2"]'}, {"chosen": "first3"}, {"drawn": "<b>"}):
        assert 'id="preview"' in text(client.post("/machines/new/_check", again | more))


def test_a_line_of_a_box_is_never_cut() -> None:
    """What it has no room for is left out whole; the first part, in how many, always stays."""
    assert fitting_line(["25 of 25", "8 ms"]) == "25 of 25 · 8 ms"
    assert fitting_line(["25 of 25", "3 failed", "505 ms"]) == "25 of 25 · 3 failed"
    line = fitting_line(["100 of 100", "98 failed", "97 retried", "1 min 30 s"])
    assert line == "100 of 100 · 98 failed"
    assert text_width_px(line, DETAIL_SIZE, bold=True) <= STATUS_ROOM
    assert fitting_line(["x" * 100, "y"]) == "x" * 100


def test_a_graph_beside_a_list_folds_only_where_enough_remains(
    project: Project, client: Client
) -> None:
    """Groups of a wide machine are folded; of one that is a single group they stay open."""

    def branch(name: str) -> dict[str, Any]:
        return {"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}}

    fan = {"Type": "Parallel", "Branches": [branch(f"Branch number {n}") for n in range(9)]}
    create(project, {"StartAt": "Fan", "States": {"Fan": {**fan, "End": True}}}, "fan")
    steps = {f"Step {n}": {"Type": "Pass", "Next": f"Step {n + 1}"} for n in range(3)}
    long = {**steps, "Step 3": {**fan, "End": True}}
    create(project, {"StartAt": "Step 0", "States": long}, "steps")
    for name, boxes in (("fan", 10), ("steps", 4)):
        answer = client.get(f"/machines/{name}/")
        shown = answer.context["picture"]
        assert len(shown.boxes) == boxes, name
        assert {box.compact for box in shown.boxes} == {True}
        folded = name == "steps"  # which says how many states it has
        assert ("+9</text>" in markup(answer)) == folded
        assert ("Step 3 · Parallel · 9 states inside" in markup(answer)) == folded
