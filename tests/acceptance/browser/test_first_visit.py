"""The first visit to a page of a long history brings few bytes in few answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

MOST_BYTES = 60_000
MOST_ANSWERS = 8
TWO = {"One": {"Type": "Pass", "Next": "Two"}, "Two": {"Type": "Pass", "End": True}}
PASS = {"StartAt": "One", "States": TWO}
EACH = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": PASS, "End": True}}}


def test_a_thousand_iterations_are_few_bytes(page: Page, server: Server) -> None:
    """Headers included, with an empty cache: the page, its scripts, style sheets and picture."""
    path = start(server, create(server, EACH), list(range(1_000)))
    ended(server, path)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[float] = []

    def note(event: dict[str, Any]) -> None:
        sizes.append(event["encodedDataLength"])

    network.on("Network.loadingFinished", note)
    page.goto(path, wait_until="networkidle")
    expect(page.locator("[data-picture]")).to_contain_text("1,000")
    assert 4 < len(sizes) <= MOST_ANSWERS
    assert 20_000 < sum(sizes) < MOST_BYTES
