"""A graph that is larger than its frame: a map beside it, and shades at its edges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.test_graph import chain, in_frame, wide
from tests.acceptance.browser.yard import create, ended, start, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

COVERED = """() => {
  const map = document.querySelector(".mini-map").getBoundingClientRect();
  const graph = document.querySelector("[data-graph]").getBoundingClientRect();
  return map.left < graph.right && map.right > graph.left
      && map.top < graph.bottom && map.bottom > graph.top;
}"""

# whether the map has, in the middle of each state, the colour of the border of its box
TONES = """() => {
  const map = document.querySelector(".mini-map");
  const svg = document.querySelector("[data-graph] svg.flow");
  const room = svg.closest("[data-graph]");
  const scale = svg.clientWidth / svg.viewBox.baseVal.width;
  const shift = Math.max(0, (room.scrollWidth - svg.clientWidth) / 2);
  const pen = map.getContext("2d", { willReadFrequently: true });
  return [...svg.querySelectorAll(".node")].map((node) => {
    const box = node.querySelector(".box");
    const value = (name) => box[name].baseVal.value * scale;
    const left = (value("x") + value("width") / 2 + shift) * map.width / room.scrollWidth;
    const top = (value("y") + value("height") / 2) * map.height / room.scrollHeight;
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = getComputedStyle(box).stroke;
    probe.fillRect(0, 0, 1, 1);
    const shown = pen.getImageData(left, top, 1, 1).data;
    const meant = probe.getImageData(0, 0, 1, 1).data;
    return [...shown].every((part, place) => Math.abs(part - meant[place]) <= 6);
  });
}"""


def assert_graph_is_free(page: Page) -> None:
    """Check that the map is there and stands over nothing of the graph."""
    expect(page.locator(".mini-map")).to_be_visible()
    until(page, f"() => !({COVERED})()")  # a frame later where the map takes room


@pytest.mark.parametrize("address", ["", "definition/"])
def test_the_map_stands_over_no_state(page: Page, server: Server, address: str) -> None:
    """Beside a high graph, below a wide one; never on it, wherever the graph is moved to."""
    high = ended(server, start(server, create(server, chain([f"S {n}" for n in range(17)]))))
    page.goto(f"{high}{address}")
    assert_graph_is_free(page)
    expect(page.locator("[data-picture]")).to_have_attribute("data-beyond", "bottom")
    broad = ended(server, start(server, create(server, wide(9, fails=True))))
    page.goto(f"{broad}{address}")
    assert_graph_is_free(page)
    graph = page.locator("[data-graph]")
    graph.evaluate("graph => graph.scrollTo(graph.scrollWidth, 0)")
    expect(page.locator("[data-picture]")).to_have_attribute("data-beyond", re.compile("left"))
    expect(page.locator(".in-view")).to_have_text(re.compile(r"\d+ of 20 states in view"))
    assert_graph_is_free(page)
    assert axe_faults(page) == []


APART = """() => {
  const [map, words] = [".mini-map", ".in-view"].map(
    (part) => document.querySelector(part).getBoundingClientRect());
  return words.right <= map.left || words.left >= map.right
    || words.bottom <= map.top || words.top >= map.bottom;
}"""


def test_the_map_of_a_graph_larger_than_its_frame_both_ways_covers_nothing(
    page: Page, server: Server
) -> None:
    """Neither a state nor the number of states in view, which counts what can be seen."""
    names = [f"S {number}" for number in range(12)]
    definition = chain(names)
    branches = [chain([f"B{place} {number}" for number in range(6)]) for place in range(6)]
    definition["States"][names[-1]] = {"Type": "Parallel", "Branches": branches, "End": True}
    path = ended(server, start(server, create(server, definition)))
    page.goto(f"{path}?step=B5+5")
    assert_graph_is_free(page)
    assert in_frame(page, "a[aria-current=true] .box") == [True]
    expect(page.locator(".in-view")).to_have_text(re.compile(r"\d+ of 48 states in view"))
    assert page.evaluate(APART)
    page.set_viewport_size({"width": 1600, "height": 700})
    high = ended(server, start(server, create(server, chain([f"S {n}" for n in range(17)]))))
    page.goto(high)
    assert_graph_is_free(page)
    if page.locator(".in-view").is_visible():
        assert page.evaluate(APART)


def test_the_map_goes_when_the_graph_fits(page: Page, server: Server) -> None:
    """It leaves its place to the graph, and there are no shades; Fit uses the whole frame."""
    page.goto(ended(server, start(server, create(server, wide(9, fails=False)))))
    assert_graph_is_free(page)
    page.click("[aria-label='Fit the graph']")
    expect(page.locator(".mini-map")).to_be_hidden()
    expect(page.locator("[data-picture]")).to_have_attribute("data-beyond", "")
    picture, frame = page.locator("[data-picture]"), page.locator("[data-graph]")
    width = "element => element.getBoundingClientRect().width"
    assert frame.evaluate(width) == picture.evaluate(width)
    assert set(in_frame(page, ".box")) == {True}


@pytest.mark.parametrize("width", [1312, 1280])
def test_the_map_cuts_no_graph_that_has_just_the_room(
    page: Page, server: Server, width: int
) -> None:
    """A graph about as wide as its frame is not cut for the sake of a map beside it."""
    page.set_viewport_size({"width": width, "height": 560})
    page.goto(ended(server, start(server, create(server, wide(3, fails=False)))))
    assert_graph_is_free(page)
    cut = "graph => graph.scrollWidth - graph.clientWidth"
    assert page.locator("[data-graph]").evaluate(cut) <= 1


def test_a_phone_has_shades_and_no_map(page: Page, server: Server) -> None:
    """The graph keeps the whole width."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{ended(server, start(server, create(server, wide(9, fails=False))))}definition/")
    picture = page.locator("[data-picture]")
    expect(picture).to_have_attribute("data-beyond", re.compile("left right"))
    expect(page.locator(".mini-map")).to_be_hidden()


def test_the_definition_opens_at_the_state_of_the_reader(page: Page, server: Server) -> None:
    """The chosen step of the execution is marked in the graph and in the text, both in sight."""
    page.goto(ended(server, start(server, create(server, wide(9, fails=True)))))
    expect(page.locator("#panel-title")).to_contain_text("Then 8")
    page.get_by_role("link", name="Definition", exact=True).first.click()
    expect(page.locator("h1")).to_contain_text("Definition")
    chosen = page.locator(".flow a[aria-current=true]")
    expect(chosen).to_have_attribute("data-step", "Then 8")
    assert in_frame(page, "a[aria-current=true] .box") == [True]
    expect(page.locator(".src:has-text('Then 8')").last).to_be_in_viewport()
    page.click("a[data-step='Then 7'] .box")
    expect(chosen).to_have_attribute("data-step", "Then 7")


def test_the_map_follows_the_time_machine(page: Page, server: Server) -> None:
    """It has the colours of the graph at each event, also after the borders have faded over."""
    path = ended(server, start(server, create(server, chain([f"S {n}" for n in range(16)]))))
    page.goto(path)
    expect(page.locator(".mini-map")).to_be_visible()
    page.locator("#at").fill("30")
    expect(page.locator("#moment")).to_contain_text("event 30 of 34")
    expect(page.locator(".flow .node.running")).to_have_count(1)
    until(page, "!document.getAnimations().some((each) => each instanceof CSSTransition)")
    assert page.evaluate(TONES) == [True] * 16
