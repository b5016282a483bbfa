"""Do lists of executions do in a browser what they promise: filter, page, act, search, compare?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start, waits

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

PAY = {
    "StartAt": "Large?",
    "States": {
        "Large?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.amount", "NumericGreaterThan": 100, "Next": "Refuse"}],
            "Default": "Pay",
        },
        "Refuse": {"Type": "Fail", "Error": "Orders.TooLarge", "CausePath": "$.why"},
        "Pay": {"Type": "Pass", "End": True},
    },
}


def orders(server: Server, amounts: list[int]) -> str:
    """Start an order a given amount each; more than 100 fail. Return the machine's name."""
    machine = create(server, PAY)
    for number, amount in enumerate(amounts):
        data = {"orderId": 4700 + number, "amount": amount, "why": f"order {number} is too large"}
        start(server, machine, data, name=f"order-{number}")
    return machine


def test_E17_a_filter_narrows_in_place_and_has_an_address(page: Page, server: Server) -> None:  # noqa: N802 - named after its row
    """The form keeps its place in the page, Back undoes it, a mistake is told at its field."""
    machine = orders(server, [10, 500, 10])
    page.goto(f"/machines/{machine}/")
    expect(page.locator("#executions tbody tr")).to_have_count(3)
    page.evaluate("window.kept = true")
    page.check("input[name=status][value=FAILED]")
    page.click("text=Find")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    assert page.url.endswith(f"/machines/{machine}/?status=FAILED")
    assert page.evaluate("window.kept")
    page.click("text=More filters")
    page.fill("#min", "soon")
    page.press("#min", "Enter")
    expect(page.locator("#min-problem")).to_contain_text("wanted a span")
    expect(page.locator("#min")).to_have_value("soon")
    page.fill("#min", "0 ms")
    page.fill("#error", "toolarge")
    page.press("#error", "Enter")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("#executions tbody")).to_contain_text("order-1")
    page.go_back()
    page.go_back()
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    page.go_back()
    expect(page.locator("#executions tbody tr")).to_have_count(3)


def test_E17_thirty_that_start_on_page_two_repeat_and_hide_nothing(  # noqa: N802 - see above
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Without a script, too: every row is seen once, whatever starts meanwhile."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    machine = create(server, waits(600))
    for number in range(104):
        start(server, machine, name=f"first-{number}")
    page.goto(f"/machines/{machine}/?q=first")
    seen = page.locator("#executions td.name").all_inner_texts()
    page.click("a[rel=next]")
    for number in range(30):
        start(server, machine, name=f"late-{number}")
    seen += page.locator("#executions td.name").all_inner_texts()
    page.click("a[rel=next]")
    seen += page.locator("#executions td.name").all_inner_texts()
    context.close()
    assert sorted(seen) == sorted(f"first-{number}" for number in range(104))
