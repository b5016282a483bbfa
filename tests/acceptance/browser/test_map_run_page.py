"""The page of a Map Run: failures lead to all alike, those that failed stand first, in red."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, map_run, over, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

FAILING: dict[str, Any] = {
    "StartAt": "Which?",
    "States": {
        "Which?": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$", "StringEquals": "key", "Next": "No key"},
                {"Variable": "$", "StringEquals": "late", "Next": "Too late"},
            ],
            "Default": "Good",
        },
        "Good": {"Type": "Pass", "End": True},
        "No key": {"Type": "Fail", "Error": "KeyError", "Cause": "'sku-37'"},
        "Too late": {"Type": "Fail", "Error": "States.Timeout", "Cause": "No answer in 30 s"},
    },
}


@pytest.fixture(scope="module")
def run_of_130(server: Server) -> str:
    """Return the page of a Map Run of 130 children, of which 20 failed in two ways."""
    items = ["good"] * 130
    for place in range(13):
        items[5 + 9 * place] = "key"
    for place in range(7):
        items[60 + 10 * place] = "late"
    machine = create(server, over(FAILING, ToleratedFailurePercentage=90))
    return map_run(server, ended(server, start(server, machine, items)))


def test_every_failure_is_reached_and_stands_first(page: Page, run_of_130: str) -> None:
    """A count leads to all thirteen; the pager says where the reader is."""
    page.goto(run_of_130)
    words = page.locator("#children tr .status")
    expect(words.nth(19)).to_have_text(re.compile("Failed"))
    expect(words.nth(20)).to_have_text(re.compile("Succeeded"))
    expect(page.locator("#pager")).to_contain_text("1 to 50 of 130")
    page.click("#next")
    expect(page.locator("#pager")).to_contain_text("51 to 100 of 130")
    page.click("#first")
    error = page.locator("#children td.child-error").first
    color = "element => getComputedStyle(element).color"
    assert error.evaluate(color) == page.locator(".failure-kinds b").first.evaluate(color)
    page.get_by_role("link", name=re.compile("^13 .*KeyError")).click()
    expect(page.locator("#children tr")).to_have_count(13)
    expect(page.locator("#pager")).to_contain_text("1 to 13 of 13")
    expect(page.locator(".children-kind")).to_contain_text("KeyError 'sku-37'")
    assert axe_faults(page) == []
    page.get_by_role("link", name="Show all child executions").click()
    page.select_option("#order-wanted", "item")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#children td[data-item]").first).to_have_text("0")
    expect(page.locator("#pager")).to_contain_text("1 to 50 of 130")


def test_a_phone_shows_each_child_on_three_lines(page: Page, run_of_130: str) -> None:
    """Its name, its times, its status; no column is cut, the page does not scroll sideways."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(run_of_130)
    heights = page.locator("#children td.name a").evaluate_all(
        "links => links.map((link) => link.getClientRects().length)"
    )
    assert set(heights) == {1}
    rows = page.locator("#children tr").evaluate_all("rows => rows.map((row) => row.clientHeight)")
    assert max(rows) <= 80
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert axe_faults(page) == []
