"""Pictures are laid out by Graphviz or in plain layers, drawn in part, and kept in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.web.graph import svg
from console.web.graph.layout_pool import LayoutFailure, LayoutPool
from tests.acceptance.server import ROOT
from tests.console.web.graph.workflows import caught, chain, choices, maps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.web.graph.shapes import Box, Picture


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A folder where layouts are kept; nothing is known of any."""
    settings.STATEYARD_LAYOUTS = tmp_path / "layouts"
    svg.PICTURES.clear()
    yield tmp_path / "layouts"
    svg.PICTURES.clear()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child is free: only what is kept can be drawn by Graphviz."""
    monkeypatch.setattr(svg, "POOL", LayoutPool([]))


def overlap(box: Box, other: Box) -> bool:
    """Return whether two boxes share room."""
    return (
        box.x < other.x + other.width
        and other.x < box.x + box.width
        and box.y < other.y + other.height
        and other.y < box.y + box.height
    )


def is_sound(picture: Picture) -> bool:
    """Return whether no two boxes of a group overlap and all lie inside the picture."""
    groups: dict[str, list[Box]] = {}
    for box in picture.boxes:
        groups.setdefault(box.node.group, []).append(box)
        if not (0 <= box.x <= box.x + box.width <= picture.width):
            return False
        if not (0 <= box.y <= box.y + box.height <= picture.height):
            return False
    return not any(
        overlap(box, other)
        for boxes in groups.values()
        for place, box in enumerate(boxes)
        for other in boxes[place + 1 :]
    )


@pytest.mark.slow
def test_a_graph_over_the_limit_is_drawn_in_plain_layers(folder: Path) -> None:
    """In time, whole, with a sentence about it; another visit does not try again."""
    text = choices(40, 40)
    picture = svg.definition_picture(text)
    assert "too large for Graphviz within 2 seconds" in picture.notices[0]
    assert len(picture.boxes) == 41
    assert is_sound(picture)
    svg.PICTURES.clear()
    begun = time.thread_time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svg, "POOL", None)  # asking it would fail
        assert svg.definition_picture(text) == picture
    assert time.thread_time() - begun < 1
    del folder


@pytest.mark.slow
@pytest.mark.parametrize("text", [caught(30), maps(20), chain(300), choices(12, 12)])
def test_plain_layers_have_room_for_everything(text: str, nobody: None) -> None:
    """Loops, groups, long ways: every state has its place, and every pair its arrow."""
    graph = engine.build_graph(engine.parse(text))
    svg.PICTURES.clear()
    picture = svg.definition_picture(text)
    assert "drawn in plain layers" in picture.notices[0]
    assert len(picture.boxes) == len(graph.nodes)
    assert is_sound(picture)
    pairs = {(edge.source, edge.target) for edge in graph.edges}
    assert pairs <= {(line.source, line.target) for line in picture.lines}


def test_a_picture_that_had_no_child_is_tried_again(folder: Path) -> None:
    """Only that nobody was free says nothing of the graph: neither memory nor folder keeps it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svg, "POOL", LayoutPool([]))
        assert svg.definition_picture(chain(3)).notices
    assert not folder.exists()
    assert not svg.definition_picture(chain(3)).notices


def test_what_was_too_slow_is_tried_again_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy processor says little of a graph: it is asked again after ten minutes."""
    text = chain(4)
    svg.write_layout(svg.layout_digest(text), svg.with_time_limit(LayoutFailure.SLOW))
    assert svg.definition_picture(text).notices
    begun_ms = svg.now_ms()
    monkeypatch.setattr(svg, "now_ms", lambda: begun_ms + 11 * 60 * 1000)
    assert not svg.definition_picture(text).notices
    del folder


@pytest.mark.slow
def test_ten_thousand_states_are_drawn_in_part() -> None:
    """Those nearest to the start, with a sentence that says how many there are."""
    begun = time.process_time()
    picture = svg.definition_picture(chain(10_000))
    assert time.process_time() - begun < 5
    assert picture.notices[0].startswith("500 of 10,000 states are drawn")
    assert [box.node.name for box in picture.boxes] == [f"state{number}" for number in range(500)]
    assert svg.state_names(chain(10_000))[-1] == "state9999"


@pytest.mark.slow
def test_a_part_keeps_groups_whole_or_as_plain_boxes() -> None:
    """A Map whose inside is not drawn any more is a box like others."""
    picture = svg.definition_picture(maps(1000))
    assert len(picture.boxes) == 500
    assert is_sound(picture)
    owners = {box.node.id for box in picture.boxes if box.nested}
    assert owners
    assert sum(box.node.type == "Map" for box in picture.boxes) >= len(owners)


# -- what is kept ----------------------------------------------------------------------------------

_OTHER = """
import sys, django
django.setup()
from console.web.graph import svg
print(len(svg.definition_picture(sys.stdin.read()).boxes))
"""


@pytest.mark.slow
def test_processes_share_what_was_laid_out(folder: Path, nobody: None) -> None:
    """What another process laid out, or could not, needs no child here."""
    env = {**os.environ, "STATEYARD_DATA": str(folder.parent)}
    env["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
    for text, well in ((caught(10), True), (choices(40, 39), False)):
        done = subprocess.run(
            [sys.executable, "-c", _OTHER],
            cwd=ROOT,
            env=env,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        picture = svg.definition_picture(text)
        assert int(done.stdout) == len(picture.boxes)
        assert bool(picture.notices) is not well
        if not well:
            assert "within 2 seconds" in picture.notices[0]


def signed(text: str) -> str:
    """Return a file with the right checksum."""
    return f"{svg.layout_digest(text)}\n{text}"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:0],
        lambda text: text[:-20],
        lambda text: text.replace("1", "2"),
        lambda text: "\x00\xff" + text,
        lambda _: signed("[]"),
        lambda _: signed('{"a":1}'),
        lambda _: signed('["no such reason",0,{}]'),
        lambda _: signed('["",0,{}]'),
        lambda text: signed(json.dumps(["", 0, {key: {} for key in json.loads(text[65:])[2]}])),
        lambda text: signed(json.dumps(["", 0, {key: [] for key in json.loads(text[65:])[2]}])),
        lambda text: signed(text[65:].replace(",", ";", 9)),
    ],
)
def test_a_damaged_file_counts_as_missing(folder: Path, damage: Any) -> None:
    """The picture is the same as before, and so is the file."""
    text = caught(5)
    picture = svg.definition_picture(text)
    (path,) = folder.iterdir()
    written = path.read_text()
    path.write_text(damage(written), encoding="latin-1")
    svg.PICTURES.clear()
    assert svg.definition_picture(text) == picture
    assert path.read_text() == written


def test_a_folder_that_cannot_be_written_keeps_nothing(settings: Any) -> None:
    """The picture comes all the same."""
    settings.STATEYARD_LAYOUTS = Path("/proc/nowhere")
    svg.PICTURES.clear()
    assert not svg.definition_picture(chain(2)).notices


def test_the_folder_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not used for the longest time goes first."""
    monkeypatch.setattr(svg, "MOST_FILES", 5)
    for number in range(5):
        svg.write_layout(f"key{number}", svg.Layout())
        os.utime(folder / f"key{number}-{svg._FORMAT}", ns=(number, number))
    assert svg.read_layout("key0") is not None  # it is used
    svg.write_layout("another", svg.Layout())
    keys = {path.name.partition("-")[0] for path in folder.iterdir()}
    assert keys == {"key0", "key2", "key3", "key4", "another"}


def test_nothing_of_a_name_is_kept(folder: Path) -> None:
    """The files hold ids and places only."""
    svg.definition_picture(chain(3, "secretname"))
    assert "secretname" not in "".join(path.read_text() for path in folder.iterdir())
