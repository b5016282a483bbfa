"""A machine's own pages: each test is named after what it accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ACCOUNT = "arn:aws:states:us-east-1:123456789012"


def test_e16_every_tab_of_a_machine_is_an_address(page: Page, server: Server) -> None:
    """A node leads to its text; versions, an alias, a comparison and a setting are made here."""
    machine = create(server, waits(1))
    page.goto(f"/machines/{machine}/")
    page.click(".tabs >> text=Definition")
    page.locator(".flow a.node").filter(has_text="Nap").click()
    target = page.locator(".code .src:target")
    expect(target).to_contain_text('"Type": "Wait"')
    expect(target).to_be_in_viewport()
    page.click(".tabs >> text=Versions")
    page.fill("#description", "first")
    page.click("text=Publish")
    expect(page.locator("tbody tr").first).to_contain_text("first")
    page.fill("#alias-name", "live")
    page.click("button[value=create]")
    expect(page.locator("main")).to_contain_text("version 1: 100 %")
    client = server.client()
    found = client.describe_state_machine_alias(
        stateMachineAliasArn=f"{ACCOUNT}:stateMachine:{machine}:live"
    )
    assert found["routingConfiguration"][0]["weight"] == 100
    page.click("summary:has-text('Delete')")
    page.click("button[value=delete-version]")
    expect(page.locator("[role=alert]").first).to_contain_text("referenced by an alias")
    page.click(".tabs >> text=Settings")
    page.select_option("#level", "ERROR")
    page.click("text=Save logging")
    expect(page.locator("#level")).to_have_value("ERROR")
    page.goto(f"/machines/{machine}/diff/?from=1")
    expect(page.locator("h2").first).to_contain_text("the same")
