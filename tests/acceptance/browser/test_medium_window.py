"""Between a phone and a desk the lists can be read without scrolling sideways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
WIDTHS = (768, 899, 900, 1024, 1100, 1280)
FAILS = {
    "StartAt": "Charge the credit card",
    "States": {
        "Charge the credit card": {
            "Type": "Fail",
            "Error": "Payments.CardDeclinedByIssuerException",
            "Cause": "The card was declined",
        }
    },
}


@pytest.fixture(scope="module")
def machine(server: Server) -> str:
    """Return a machine of a long name; one execution failed, tasks wait for an answer."""
    name = create(server, FAILS, unique("charge-credit-card-and-notify"))
    for number in range(2):
        ended(server, start(server, name, name=f"order-2026-{number}-{unique('customer')}"))
    activity = unique("approve-large-orders-by-hand")
    arn = server.client().create_activity(name=activity)["activityArn"]
    task = {"Type": "Task", "Resource": arn, "TimeoutSeconds": 90_000, "HeartbeatSeconds": 3_600}
    approval = {"StartAt": "Approve order", "States": {"Approve order": {**task, "End": True}}}
    order = {"order": {"id": 4711, "customer": "Ada Lovelace", "amount": 12.5}}
    start(server, create(server, approval), order, name=unique("order-of-a-customer-in-2026"))
    start(server, create(server, waits(600)), name=unique("order-of-a-customer-in-2026"))
    return name


def hidden_width(scrolled: Locator) -> int:
    """Return how many pixels of an element are beyond its right edge."""
    return int(scrolled.evaluate("one => one.scrollWidth - one.clientWidth"))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_list_scrolls_sideways(page: Page, machine: str, width: int) -> None:
    """Neither the page nor its card, and the name, the status and the way to answer are there."""
    page.set_viewport_size({"width": width, "height": 900})
    for address in ("/executions/", "/machines/", "/tasks/", f"/machines/{machine}/"):
        page.goto(address)
        assert hidden_width(page.locator("html")) == 0, address
        for card in page.locator("main .scroll").all():
            assert hidden_width(card) == 0, address
    row = page.locator("#executions tbody tr").first
    expect(row).to_contain_text("CardDeclinedByIssuer")
    expect(row).to_contain_text("Failed")
    page.goto("/tasks/")
    approve = page.get_by_role("button", name="Approve").first
    expect(approve).to_be_in_viewport(ratio=1)
    assert (page.locator(".open-tasks td.name").first.bounding_box() or {"width": 0})["width"] > 120
