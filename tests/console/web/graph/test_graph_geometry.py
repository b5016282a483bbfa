"""Graphs can be read: lines cross no box of others, labels cover nothing, names are never cut.

Every definition that people published is drawn in both directions, and searched for flaws.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import combinations
from math import dist
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.samples import MACHINES
from console.web.graph import layout_pool, svg
from console.web.graph.diagram import Direction
from console.web.graph.graph_view import GraphView
from tests.console.web.graph.graph_geometry import find_flaws, flattened
from tests.console.web.graph.workflows import caught, chain, choices, maps

if TYPE_CHECKING:
    from console.web.graph.shapes import Picture, Point

FOLDER = Path(os.environ.get("STATEYARD_SHARED", "")) / "definitions"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Let Graphviz take its time: a busy processor must not change what is measured."""
    settings.STATEYARD_LAYOUTS = tmp_path
    monkeypatch.setattr(layout_pool, "LIMIT_S", 60.0)
    monkeypatch.setattr(layout_pool, "PROCESSOR_S", 30.0)
    svg.PICTURES.clear()


def drawn(text: str, direction: Direction) -> tuple[Picture, engine.Graph]:
    """Return a picture by Graphviz, and its graph."""
    picture = svg.definition_picture(text, view=GraphView(direction))
    assert not picture.notices
    return picture, engine.build_graph(engine.parse_stored(text))


def published() -> list[str]:
    """Return the text of each published definition that can be drawn."""
    texts: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.json")):
        entries = json.loads(path.read_text()) if path.name != "INDEX.json" else []
        for entry in entries:
            text = entry.get("text") or json.dumps(entry["definition"])
            try:
                engine.parse_stored(text)
            except engine.DefinitionError:
                continue
            texts[f"{path.stem} {entry['id']}"] = text
    return list(texts.values())


# A Parallel whose branches differ in height and loop: threads have to find a way around.
_LOOP = {
    "StartAt": "Ask",
    "States": {
        "Ask": {"Type": "Pass", "Next": "Enough?"},
        "Enough?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Done"}],
            "Default": "Look closer at it",
        },
        "Look closer at it": {"Type": "Wait", "Seconds": 1, "Next": "Ask"},
        "Done": {"Type": "Pass", "End": True},
    },
}
_SHORT = {"StartAt": "Quick", "States": {"Quick": {"Type": "Pass", "End": True}}}
_ALSO = {"StartAt": "Other", "States": {"Other": {"Type": "Pass", "End": True}}}
LOOPS = json.dumps(
    {
        "StartAt": "Both",
        "States": {"Both": {"Type": "Parallel", "Branches": [_SHORT, _LOOP, _ALSO], "End": True}},
    }
)
HOSTILE = json.dumps(
    {
        "StartAt": "W" * 80,
        "States": {
            "W" * 80: {"Type": "Pass", "Next": "名前" * 40},
            "名前" * 40: {"Type": "Pass", "Next": '"><script>alert(1)</script>'},
            '"><script>alert(1)</script>': {"Type": "Succeed"},
        },
    }
)
OWN = [
    *(pytest.param([machine.definition], id=machine.name) for machine in MACHINES),
    pytest.param([LOOPS], id="loops"),
    pytest.param([HOSTILE], id="hostile"),
    pytest.param([caught(8)], id="caught"),
    pytest.param([maps(6)], id="maps"),
    pytest.param([chain(40)], id="chain"),
    pytest.param([choices(5, 2)], id="choices"),
]


@pytest.fixture
def texts(request: pytest.FixtureRequest) -> list[str]:
    """The definitions of a parameter, or those that ``published`` reads: hundreds."""
    texts: list[str] = published() if request.param is published else request.param
    return texts


HAS_PUBLISHED = bool(os.environ.get("STATEYARD_SHARED")) and FOLDER.is_dir()
PUBLISHED = [pytest.param(published, id="published")] if HAS_PUBLISHED else []


@pytest.mark.slow
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("texts", [*OWN, *PUBLISHED], indirect=True)
def test_nothing_is_crossed_covered_or_cut(texts: list[str], direction: Direction) -> None:
    """In no definition, in neither direction."""
    assert texts
    flaws_by_text = {}
    for text in texts:
        flaws = find_flaws(*drawn(text, direction))
        if any(flaws.counts.values()):
            flaws_by_text[text[:80]] = flaws
    assert not flaws_by_text


@pytest.mark.parametrize("direction", Direction)
def test_a_branch_is_not_crossed_by_the_way_out_of_its_neighbour(direction: Direction) -> None:
    """The short branch's line goes straight on until all branches have ended, and bends then."""
    picture, graph = drawn(LOOPS, direction)
    axis = 1 if direction is Direction.DOWN else 0
    box = next(box for box in picture.boxes if box.node.name == "Look closer at it")
    ends = [line for line in picture.lines if line.kind == "out" and line.source == line.target]
    assert len(ends) == 3
    after = (box.y + box.height, box.x + box.width)[axis == 0]
    for line in ends:
        first, second = flattened(line.path)[:2]
        assert first[1 - axis] == pytest.approx(second[1 - axis], abs=0.2)
        assert second[axis] > after
    assert not any(find_flaws(picture, graph).counts.values())


@pytest.mark.parametrize("direction", Direction)
def test_the_ways_out_of_a_group_have_no_gap(direction: Direction) -> None:
    """Where several lines end, they meet at the point that the way to the edge begins at."""
    two: dict[str, Any] = {
        "StartAt": "Which?",
        "States": {
            "Which?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "IsNull": True, "Next": "A"}],
                "Default": "B",
            },
            "A": {"Type": "Pass", "End": True},
            "B": {"Type": "Pass", "End": True},
        },
    }
    each = {"Type": "Map", "ItemProcessor": two, "End": True}
    picture, _ = drawn(json.dumps({"StartAt": "M", "States": {"M": each}}), direction)
    ways = [line for line in picture.lines if line.kind == "out"]
    [thread] = [flattened(line.path) for line in ways if line.source == line.target]
    ends = [flattened(line.path)[-1] for line in ways if line.target == "end"]
    assert ends == [pytest.approx(thread[0], abs=0.2)] * 2


def test_a_flaw_is_found() -> None:
    """Whoever moves a box, a label or a name sees it in the counts."""
    picture, graph = drawn(choices(6, 3), Direction.DOWN)
    first, second, *rest = picture.boxes
    moved = replace(picture, boxes=(first, replace(second, x=first.x, y=first.y + 20), *rest))
    assert find_flaws(moved, graph).crossed_boxes
    cut = replace(picture, boxes=(replace(first, width=40.0), second, *rest))
    assert find_flaws(cut, graph).cut_names
    lines = list(picture.lines)
    number = next(place for place, line in enumerate(lines) if line.label)
    middle = (first.x + first.width / 2, first.y + first.height / 2)
    lines[number] = replace(lines[number], at=middle)
    assert find_flaws(replace(picture, lines=tuple(lines)), graph).labels_on_boxes
    others = [line.at for line in lines if line.label and line.at != middle]
    lines[number] = replace(lines[number], at=others[0])
    flaws = find_flaws(replace(picture, lines=tuple(lines)), graph)
    assert flaws.labels_on_labels


def test_the_usual_view_keeps_its_layouts() -> None:
    """Who reads downwards has the file of the text alone; another direction has one of its own."""
    assert not GraphView().key
    assert GraphView(Direction.RIGHT).key
    wide = drawn(chain(5), Direction.RIGHT)[0]
    high = drawn(chain(5), Direction.DOWN)[0]
    assert wide.width > wide.height
    assert high.height > high.width


@pytest.mark.parametrize("direction", Direction)
def test_plain_layers_follow_the_direction(
    direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Graphviz, too; every box lies in the picture."""
    monkeypatch.setattr(svg, "POOL", layout_pool.LayoutPool([]))
    assert "plain layers" in svg.definition_picture(LOOPS, view=GraphView(direction)).notices[0]
    picture = svg.definition_picture(caught(8), view=GraphView(direction))
    assert (picture.width > picture.height) == (direction is Direction.RIGHT)
    for box in picture.boxes:
        assert 0 <= box.x <= box.x + box.width <= picture.width
        assert 0 <= box.y <= box.y + box.height <= picture.height


def test_the_callback_of_a_service_is_named_whole() -> None:
    """What a Task calls is the second thing that its reader wants to know."""
    for call in ("lambda:invoke", "sqs:sendMessage", "states:startExecution", "events:putEvents"):
        resource = f"arn:aws:states:::{call}.waitForTaskToken"
        task = {"Type": "Task", "Resource": resource, "End": True}
        text = json.dumps({"StartAt": "Ask", "States": {"Ask": task}})
        picture, _ = drawn(text, Direction.DOWN)
        (box,) = picture.boxes
        assert box.kind == f"Task · {call.replace(':', ': ')}.waitForTaskToken"


@pytest.mark.parametrize("direction", Direction)
def test_lines_that_join_the_same_states_lie_apart(direction: Direction) -> None:
    """Next and a Catcher, and a Choice's rules: there is room to press each one in its middle."""
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Ask"}]
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:f"}
    rules = [{"Variable": "$.n", "NumericEquals": number, "Next": "Done"} for number in (1, 2)]
    states = {
        "Work": {**task, "Catch": catch, "Next": "Ask"},
        "Ask": {"Type": "Choice", "Choices": rules, "Default": "Done"},
        "Done": {"Type": "Pass", "End": True},
    }
    picture, graph = drawn(json.dumps({"StartAt": "Work", "States": states}), direction)
    assert not any(find_flaws(picture, graph).counts.values())
    middles: dict[str, list[Point]] = {}
    for line in picture.lines:
        way = flattened(line.path)
        middles.setdefault(line.key, []).append(way[len(way) // 2])
    assert sorted(map(len, middles.values())) == [1, 1, 2, 3]
    for places in middles.values():
        for place, other in combinations(places, 2):
            assert dist(place, other) >= 20
