"""The values of a project's masked paths are hidden until somebody reveals them (row X14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

CANARY = "4929-canary-7831"
COPIES = {
    "StartAt": "Copy",
    "States": {
        "Copy": {"Type": "Pass", "Parameters": {"renamed.$": "$.card.number"}, "Next": "End"},
        "End": {"Type": "Fail", "Error": "Refused", "CausePath": "$.renamed"},
    },
}


def keep(page: Page, paths: str) -> None:
    """Set the masked paths on their page."""
    page.goto("/settings/")
    page.fill("#paths", paths)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".banner.succeeded")).to_contain_text("masked")


@pytest.fixture
def masked(page: Page, server: Server) -> Iterator[str]:
    """Return the page of an execution in a yard that masks; in the end it no longer does."""
    keep(page, "$.card.number\n$..password")
    data = {"card": {"number": CANARY, "kind": "gold"}}
    yield ended(server, start(server, create(server, COPIES), data))
    keep(page, "")


def test_x14_masked_values_are_revealed_for_a_while(page: Page, masked: str) -> None:
    """In page, panel, event and raw text; after a press with a reason they are there."""
    for address in (f"{masked}?step=Copy", f"{masked}events/?open=2.3", f"{masked}?step=End"):
        page.goto(address)
        expect(page.locator("main")).to_contain_text("(masked)")
        assert CANARY not in page.content()
        assert axe_faults(page) == []
    page.fill("#reveal-reason", "ticket 12")
    page.get_by_role("button", name="Reveal").click()
    expect(page).to_have_url(f"{page.url.split('/machines')[0]}{masked}?step=End")
    expect(page.locator("#outcome")).to_contain_text(CANARY)
    page.goto("/audit/?act=RevealPayloads")
    expect(page.locator("tbody tr:not(.day)").first).to_contain_text("ticket 12")
    page.goto(masked)
    page.get_by_role("button", name="Mask again").click()
    expect(page.locator("#outcome")).to_contain_text("(masked)")
    assert CANARY not in page.content()


def test_x14_pages_with_masked_values_fit_a_phone(page: Page, masked: str) -> None:
    """Nothing sticks out to the side at 390 pixels."""
    page.set_viewport_size({"width": 390, "height": 844})
    for address in (masked, f"{masked}events/", "/settings/"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
