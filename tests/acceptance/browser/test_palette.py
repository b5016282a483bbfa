"""The command palette by keyboard: on every page, from a field, before the matches are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, start, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.mark.parametrize(
    "path", ["/", "/executions/", "/machines/OrderProcessing/edit/", "/members/", "/nothing/"]
)
def test_control_k_finds_a_machine_on_every_page(server: Server, page: Page, path: str) -> None:
    """Control and K, a part of the name, Enter: also out of the editor."""
    machine = create(server, waits(600), unique("palette"))
    page.goto(path)
    if path.endswith("/edit/"):
        page.locator(".ace_content").click()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-text")).to_be_focused()
    page.keyboard.type(machine)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/machines/{machine}/$"))


def test_arrows_choose_and_escape_goes_back(server: Server, page: Page) -> None:
    """The list is links: arrows move the focus, Escape leaves everything as it was."""
    machine = create(server, waits(600), unique("arrows"))
    path = start(server, machine, name=unique("found"))
    page.goto("/machines/")
    page.get_by_role("link", name="Search everything").click()
    page.keyboard.type(path.split("/")[4])
    match = page.locator("#palette [data-match]", has_text=path.split("/")[4])
    expect(match).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(match).to_be_focused()
    assert axe_faults(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-text")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(path)))


def test_escape_closes_at_once_also_with_a_text(page: Page) -> None:
    """A browser empties a search field by the first press. The next visit offers the text again."""
    page.goto("/machines/")
    page.keyboard.press("Control+k")
    page.keyboard.type("Order")
    expect(page.locator("#palette [data-match]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-text")).to_have_value("Order")
    assert page.evaluate("getSelection().toString()") == "Order"
