"""The graph of an execution: names in their boxes, types, times that go on, and its tools."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start, until, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

NAMES = [
    "WWWWWWWWWW MMMMMMMMMM WWWWWWWWWW",
    "i",
    "注文を確認してから発送する",
    "A name with — signs ✔",
]


def chain(names: list[str]) -> dict[str, Any]:
    """Return a machine of Pass states, one after the other."""
    states: dict[str, Any] = {
        name: {"Type": "Pass", "Next": after} for name, after in pairwise(names)
    }
    return {"StartAt": names[0], "States": {**states, names[-1]: {"Type": "Succeed"}}}


def test_names_and_types_stand_inside_their_boxes(page: Page, server: Server) -> None:
    """Boxes are as wide as the words in them, whatever the alphabet."""
    page.goto(ended(server, start(server, create(server, chain(NAMES)))))
    outside = page.locator("[data-node]").evaluate_all(
        """nodes => nodes.flatMap((node) => {
            const box = node.querySelector(".box").getBoundingClientRect();
            return [...node.querySelectorAll("text:not(.visit-badge text)")].filter((text) => {
                const { left, right, top, bottom } = text.getBoundingClientRect();
                return left < box.left || right > box.right || top < box.top || bottom > box.bottom;
            }).map((text) => text.textContent);
        })"""
    )
    assert outside == []
    expect(page.locator("a[data-step=i] .node-type")).to_have_text("Pass")
    expect(page.locator("a[data-step=i] .type-icon")).to_be_visible()


def test_the_time_of_a_running_state_goes_on(page: Page, server: Server) -> None:
    """In its box, without a reload; what it was not before it was entered."""
    page.goto(start(server, create(server, waits(600))))
    detail = page.locator("a[data-step=Nap] .node-detail")
    expect(detail).to_have_text(re.compile(r"Waiting · \d+ min \d+ s left"))
    before = str(detail.text_content())
    expect(detail).not_to_have_text(before)
    expect(page.locator("a[data-step=After] .node-detail")).to_have_text("Not entered")


def test_retries_and_visits_are_counted_at_the_box(page: Page, server: Server) -> None:
    """How often the work was repeated stands at the corner, beside the time that it took."""
    fail = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Bad"}}}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    state = {"Type": "Parallel", "Branches": [fail], "Retry": retry, "End": True}
    machine = create(server, {"StartAt": "P", "States": {"P": state}})
    page.goto(ended(server, start(server, machine)))
    expect(page.locator("a[data-step=P] > .visit-badge")).to_have_text("↻ 2")
    expect(page.locator("a[data-step=F] > .visit-badge")).to_be_visible()
    expect(page.locator("a[data-step=P] .node-detail")).to_have_text(
        re.compile(r"Failed · 3\.\d s")
    )


def test_a_large_graph_is_searched_mapped_and_fitted(page: Page, server: Server) -> None:
    """A state is found by a part of its name; the small map moves the graph; Fit shows it all."""
    names = [f"State {number}" for number in range(60)]
    page.goto(ended(server, start(server, create(server, chain(names)))))
    graph = page.locator("[data-graph]")
    small = page.locator(".mini-map")
    expect(small).to_be_visible()
    page.fill("[data-find-state]", "state 57")
    expect(page.locator("a[data-step='State 57']")).to_be_in_viewport()
    expect(page.locator(".found")).to_have_count(1)
    expect(page.locator("[data-found-states]")).to_have_text("1 state")
    page.press("[data-find-state]", "Enter")
    expect(page.locator("#panel-title")).to_contain_text("State 57")
    page.fill("[data-find-state]", "nothing like it")
    expect(page.locator("[data-find-state]")).to_have_attribute("aria-invalid", "true")
    page.press("[data-find-state]", "Escape")
    scrolled = graph.evaluate("graph => graph.scrollTop")
    small.click(position={"x": 5, "y": 3})
    assert graph.evaluate("graph => graph.scrollTop") < scrolled
    graph.focus()
    page.keyboard.press("0")
    fits = graph.evaluate("graph => graph.scrollHeight <= graph.clientHeight + 1")
    assert fits
    expect(small).to_be_hidden()
    page.keyboard.press("+")
    assert axe_faults(page) == []


def test_the_graph_fills_the_screen(page: Page, server: Server) -> None:
    """With its tools and the panel, and leaves it again."""
    page.goto(ended(server, start(server, create(server, chain(["A", "B"])))))
    button = page.locator("[data-full-screen]")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#panel")).to_be_visible()
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")


def test_motion_can_be_reduced(page: Page, server: Server) -> None:
    """What runs moves a little, and not for those who asked for none."""
    page.goto(start(server, create(server, waits(600))))
    box = page.locator("a[data-step=Nap] > .box")
    name = "box => getComputedStyle(box).animationName"
    assert box.evaluate(name) == "breathe"
    page.emulate_media(reduced_motion="reduce")
    assert box.evaluate(name) == "none"


def wide(branches: int, *, fails: bool) -> dict[str, Any]:
    """Return a Parallel of many branches, of which the last one may fail."""
    blocks = [chain([f"Step {number}", f"Then {number}"]) for number in range(branches)]
    if fails:
        blocks[-1]["States"][f"Then {branches - 1}"] = {"Type": "Fail", "Error": "Bad"}
    both = {"Type": "Parallel", "Branches": blocks, "Next": "Done"}
    return {"StartAt": "All at once", "States": {"All at once": both, "Done": {"Type": "Succeed"}}}


IN_FRAME = """([graph, selector]) => {
  const frame = graph.getBoundingClientRect();
  return [...graph.querySelectorAll(selector)].map((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return left >= frame.left && right <= frame.right && top >= frame.top && bottom <= frame.bottom;
  });
}"""


def in_frame(page: Page, selector: str) -> list[bool]:
    """Tell of each element of the graph whether the reader sees all of it."""
    graph = page.locator("[data-graph]").element_handle()
    seen: list[bool] = page.evaluate(IN_FRAME, [graph, selector])
    return seen


@pytest.mark.parametrize("width", [1440, 390])
def test_a_graph_wider_than_its_frame_opens_with_its_head_in_sight(
    page: Page, server: Server, width: int
) -> None:
    """Start and the name of the Parallel, readable; the name stays while the graph is moved."""
    page.set_viewport_size({"width": width, "height": 900})
    machine = create(server, wide(9, fails=False))
    ended(server, start(server, machine))
    for address in ("definition", "insights", "edit"):
        page.goto(f"/machines/{machine}/{address}/")
        expect(page.locator(".flow [data-start]")).to_be_attached()
        assert in_frame(page, "[data-start]") == [True]
        assert in_frame(page, ".container [data-head] :is(.title, .node-type)") == [True, True]
        size = "text => text.getBoundingClientRect().height / text.getBBox().height * 12"
        assert page.locator(".flow .node-type").first.evaluate(size) >= 11
        graph = page.locator("[data-graph]")
        graph.evaluate("graph => { graph.scrollLeft = graph.scrollWidth; }")
        until(
            page,
            f"selector => ({IN_FRAME})([document.querySelector('[data-graph]'), selector])[0]",
            arg=".container [data-head] .title",
        )
        page.click("[aria-label='Fit the graph']")
        assert set(in_frame(page, ".box")) == {True}


def test_a_failure_far_to_the_right_opens_with_the_name_around_it(
    page: Page, server: Server
) -> None:
    """The failed state is in sight, and what it is in is named."""
    page.goto(ended(server, start(server, create(server, wide(9, fails=True)))))
    expect(page.locator("#panel-title")).to_contain_text("Then 8")
    assert in_frame(page, "[data-step='Then 8'] .box") == [True]
    assert in_frame(page, ".container [data-head] .title") == [True]
    page.goto(page.url.partition("?")[0] + "?step=All+at+once")
    assert in_frame(page, ".container [data-head] .title") == [True]
