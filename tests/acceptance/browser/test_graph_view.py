"""How a reader wants the graph: downwards or to the right, moved by keys, with groups folded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.test_graph import chain
from tests.acceptance.browser.yard import create, ended, start
from tests.console.web.graph.workflows import maps

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def size_of_graph(page: Page) -> tuple[float, float]:
    """Return width and height of the picture, in its own pixels."""
    view = page.locator("svg.flow").get_attribute("viewBox") or ""
    _, _, width, height = map(float, view.split())
    return width, height


def assert_accessible(page: Page) -> None:
    """Check the page with axe."""
    assert axe_faults(page) == []


def test_the_direction_is_chosen_and_kept(page: Page, server: Server) -> None:
    """For every graph of this browser, without a script, too; the chosen step stays chosen."""
    machine = create(server, chain([f"State {number}" for number in range(6)]))
    path = ended(server, start(server, machine))
    page.goto(path)
    page.click("a[data-step='State 3']")
    expect(page.locator("#panel-title")).to_contain_text("State 3")
    width, height = size_of_graph(page)
    assert height > width
    page.get_by_role("button", name="from left to right").click()
    expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "right")
    width, height = size_of_graph(page)
    assert width > height
    expect(page.locator("#panel-title")).to_contain_text("State 3")
    assert_accessible(page)
    for other in (f"/machines/{machine}/definition/", f"/machines/{machine}/insights/"):
        page.goto(other)
        expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "right")
    with page.expect_download() as saved:
        page.goto(path)
        page.get_by_role("link", name="SVG").click()
    drawn = saved.value.path().read_text()
    numbers = drawn.split('viewBox="', 1)[1].split('"', 1)[0].split()
    assert float(numbers[2]) > float(numbers[3])
    page.get_by_role("button", name="from the top down").click()
    expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "down")


def test_an_unknown_direction_is_downwards(page: Page, server: Server) -> None:
    """A cookie is text that anybody can send."""
    path = ended(server, start(server, create(server, chain(["A", "B"]))))
    page.context.add_cookies([{"name": "direction", "value": "<up>", "url": server.url}])
    page.goto(path)
    expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "down")


def test_keys_move_and_zoom_the_graph(page: Page, server: Server) -> None:
    """From a state in it, too; what is in the middle stays there, and the keys are told."""
    machine = create(server, chain([f"State {number}" for number in range(17)]))
    page.goto(ended(server, start(server, machine)))
    expect(page.locator("#graph-keys")).to_be_visible()
    graph = page.locator("[data-graph]")

    def scroll() -> float:
        """Return how far the graph is moved down."""
        return float(graph.evaluate("graph => graph.scrollTop"))

    graph.focus()
    before = scroll()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert scroll() == before + 160
    page.keyboard.press("ArrowUp")
    assert scroll() == before + 80
    page.locator("a[data-step='State 5']").focus()
    before = scroll()
    page.keyboard.press("ArrowDown")
    assert scroll() == before + 80
    middle = """graph => (graph.scrollTop + graph.clientHeight / 2)
        / graph.querySelector("svg.flow").clientHeight"""
    share = graph.evaluate(middle)
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert abs(graph.evaluate(middle) - share) < 0.01
    page.keyboard.press("0")
    assert graph.evaluate("graph => graph.scrollHeight <= graph.clientHeight + 1")


def test_groups_of_a_large_machine_unfold_by_a_press(page: Page, server: Server) -> None:
    """The address keeps it; Back folds it again; a state inside is found, which unfolds it."""
    machine = create(server, json.loads(maps(60)))
    page.goto(ended(server, start(server, machine, [])))
    group = page.locator("a[data-step=map2]")
    expect(group).to_contain_text("Succeeded · 2 states")
    expect(page.locator("a[data-step=first2]")).to_have_count(0)
    assert_accessible(page)
    page.get_by_role("link", name="Unfold map2, 2 states").focus()
    page.keyboard.press("Enter")
    expect(page.locator("a[data-step=first2]")).to_be_in_viewport()
    expect(page.locator("a[data-step=first3]")).to_have_count(0)
    assert "unfold=n7" in page.url
    page.reload()
    page.get_by_role("link", name="Fold map2", exact=True).click()
    expect(page.locator("a[data-step=first2]")).to_have_count(0)
    page.go_back()
    expect(page.locator("a[data-step=first2]")).to_be_visible()
    page.fill("[data-find-state]", "second41")
    expect(page.locator("[data-found-states]")).to_have_text("1 state in folded groups")
    page.press("[data-find-state]", "Enter")
    expect(page.locator("a[data-step=second41]")).to_be_in_viewport()
    expect(page.locator("#panel-title")).to_contain_text("second41")


def test_names_stand_inside_boxes_in_every_sample(page: Page, server: Server) -> None:
    """As this browser's font measures them."""
    outside: list[Any] = []
    for machine in ("OrderProcessing", "LookupCustomerInfo", "VendingMachine"):
        page.goto(f"/machines/{machine}/definition/")
        outside += page.locator(".flow .node").evaluate_all(
            """nodes => nodes.flatMap((node) => {
                const box = node.querySelector(".box").getBoundingClientRect();
                return [...node.querySelectorAll("text")].filter((text) => {
                    const { left, right } = text.getBoundingClientRect();
                    return left < box.left || right > box.right;
                }).map((text) => text.textContent);
            })"""
        )
        outside += page.locator(".flow g:has(> .edge-label)").evaluate_all(
            """labels => labels.filter((label) => {
                const width = (name) => label.querySelector(name).getBoundingClientRect().width;
                return width("text") > width("rect");
            }).map((label) => label.textContent)"""
        )
    assert outside == []
