"""A distributed Map counts its children on the execution's page while they come to their ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, over, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def test_the_counts_follow_without_a_reload(page: Page, server: Server) -> None:
    """The node, the panel and the states inside are told by ticks, though no event is new."""
    naps = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 2, "End": True}}}
    path = start(server, create(server, over(naps, MaxConcurrency=4)), list(range(12)))
    page.goto(f"{path}?step=Each")
    page.evaluate("window.untouched = true")
    node = page.locator("a[data-step=Each] .node-detail")
    expect(node).to_have_text(re.compile(r"[1-9]\d* of 12 done"))
    expect(page.locator("a[data-step=Nap] .node-detail")).to_have_text("12 passed")
    expect(page.locator("#step-map-run")).to_contain_text("12 of 12 child executions finished")
    expect(page.locator("#step-map-run")).to_contain_text("12 succeeded")
    expect(node).to_contain_text("Succeeded · 12 of 12")
    expect(page.locator("#panel .iterations")).to_have_count(0)
    page.click("a[data-step=Nap]")
    expect(page.locator("#panel")).to_contain_text("runs in child executions of Each")
    assert page.evaluate("window.untouched")
    page.click("#panel >> text=Map Run")
    expect(page.locator("h1")).to_contain_text("Map Run")
