"""The page of a running execution with an inline Map says what the reloaded page says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, held, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

NAP = {
    "StartAt": "In",
    "States": {"In": {"Type": "Wait", "Seconds": 1, "End": True}},
}
OVER = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": NAP, "End": True}
AT_ONCE = {"StartAt": "M", "States": {"M": OVER}}
LATER = {
    "StartAt": "Before",
    "States": {"Before": {"Type": "Wait", "Seconds": 2, "Next": "M"}, "M": OVER},
}
SHOWN = """() => [...document.querySelectorAll(
    "#step-table tr, #timeline-rows tr, #critical-path, #shortened, #timeline-rows svg")].map(
    (each) => [each.getAttribute("aria-label"), each.hidden,
               each.textContent.replace(/\\s+/g, " ").trim(),
               [...each.querySelectorAll("rect, path")].map((part) => part.outerHTML)])"""


@pytest.mark.parametrize("definition", [AT_ONCE, LATER], ids=["at once", "later"])
@pytest.mark.parametrize("view", ["graph", "steps", "timeline"])
def test_the_page_that_followed_equals_the_reloaded_one(
    page: Page, server: Server, definition: dict[str, object], view: str
) -> None:
    """All iterations, their counts, their bars and the critical path are there at the end.

    Beside the graph they come when the reader turns to them, and so do the bars beside the steps.
    """
    path = start(server, create(server, definition), [1, 2, 3, 4])
    page.goto(f"{path}?view={view}")
    expect(page.locator("#status")).to_have_text(re.compile("Succeeded"))
    if view == "graph":
        expect(page.locator("#step-table")).to_have_count(0)
        page.click("[data-view-link=steps]")
    steps = page.locator("#step-table tr[data-row^=sn]")
    lanes = page.locator(".timeline svg.lanes rect:not(.critical)")
    in_time = view == "timeline"
    expect(lanes if in_time else steps).to_have_count(4 if in_time else 1)
    if not in_time:
        expect(steps).to_contain_text("4 succeeded")
    followed = page.evaluate(SHOWN)
    page.reload()
    assert page.evaluate(SHOWN) == followed
    page.click(f"[data-view-link={'steps' if in_time else 'timeline'}]")
    expect(steps if in_time else lanes).to_have_count(1 if in_time else 4)
    if in_time:
        expect(steps).to_contain_text("4 succeeded")


def test_the_timeline_that_is_opened_meanwhile_has_its_bars(page: Page, server: Server) -> None:
    """A reader of the steps who turns to the timeline sees what has gone on since the page came."""
    definition, complete = held(server)
    definition["States"]["After"] = {"Type": "Wait", "Seconds": 600, "End": True}
    page.goto(f"{start(server, create(server, definition))}?view=steps")
    complete()
    expect(page.locator("#step-table [data-step=Nap]")).to_contain_text("Succeeded")
    page.click("[data-view-link=timeline]")
    bar = page.locator(".timeline [data-state-name=After] svg.bar rect.running")
    expect(bar).to_have_count(1)
