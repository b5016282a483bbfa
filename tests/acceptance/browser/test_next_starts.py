"""Breakpoints for the next starts in a browser: by mouse, keyboard, phone and without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.test_breakpoints import (
    await_part,
    choose,
    fill,
    fits,
    press,
    reader,
)
from tests.acceptance.browser.yard import create, ended, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

__all__ = ["reader"]
pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
PASSES: dict[str, Any] = {
    "StartAt": "Check",
    "States": {
        "Check": {"Type": "Pass", "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}


def test_the_next_starts_are_set_taken_and_removed(
    reader: tuple[Page, str], server: Server
) -> None:
    """Two places: one is taken by a call of the API, and the other one removed."""
    page, who = reader
    name = create(server, PASSES)
    page.goto(f"/machines/{name}/")
    press(page, who, page.get_by_role("link", name="Next starts"))
    expect(page.get_by_label("Number of starts")).to_be_visible()
    fits(page)
    fill(page, who, page.get_by_label("Number of starts"), "2")
    choose(page, who, page.locator("#break_state"), "Done")
    press(page, who, page.get_by_role("button", name="Set for the next starts"))
    expect(page.locator("main")).to_contain_text("Stops before Done")
    fits(page)
    path = start(server, name)
    page.goto(path)
    opens = page.get_by_role("link", name="Open breakpoints")
    if who == "no script":
        await_part(page, opens)
    expect(opens).to_be_visible()
    expect(page.locator("#next-starts")).to_contain_text("Set for the next 2 starts")
    fits(page)
    page.goto(f"/machines/{name}/")
    fits(page)
    expect(page.locator("#next-starts")).to_contain_text("Set for the next start")
    press(page, who, page.get_by_role("link", name="Open next starts"))
    expect(page.locator("#taken")).to_have_text("1 of 2 starts")
    press(page, who, page.get_by_role("button", name="Remove for everybody"))
    expect(
        page.locator("main, [role=status]").filter(has_text="without breakpoints").first
    ).to_be_visible()
    ended(server, start(server, name, name="after"))


def test_a_press_on_the_graph_selects_a_state(page: Page, server: Server) -> None:
    """The first press fills the first breakpoint, the next one another; nothing typed is lost."""
    page.goto(f"/machines/{create(server, PASSES)}/next-starts/")
    page.get_by_label("Number of starts").fill("7")
    page.locator(".machine-graph a[data-step=Done]").click()
    expect(page.locator("#break_state")).to_have_value("Done")
    expect(page.locator("#break_state")).to_be_focused()
    page.locator(".machine-graph a[data-step=Check]").press("Enter")
    second = page.get_by_label("State of breakpoint 2")
    expect(second).to_have_value("Check")
    expect(second).to_be_visible()
    expect(page.get_by_label("Number of starts")).to_have_value("7")
    page.get_by_role("button", name="Set for the next starts").click()
    expect(page.locator("main")).to_contain_text("Stops before Check")
    expect(page.locator("main")).to_contain_text("Set for the next 7 starts")


def test_the_page_breaks_no_accessibility_rule(page: Page, server: Server) -> None:
    """Form, set ones, and the banner of the machine; light and dark."""
    task = {"Type": "Task", "Resource": "arn:aws:states:::sns:publish", "Parameters": {}}
    definition = {**PASSES, "States": {**PASSES["States"], "Check": {**task, "Next": "Done"}}}
    name = create(server, definition)
    page.goto(f"/machines/{name}/next-starts/")
    for title in ("More breakpoints", "Inject faults"):
        page.locator("summary", has_text=title).first.click()
    _check(page)
    page.locator("#break_state").select_option("Done")
    page.get_by_role("button", name="Set for the next starts").click()
    expect(page.locator("#taken")).to_be_visible()
    _check(page)
    page.goto(f"/machines/{name}/")
    expect(page.locator("#next-starts")).to_be_visible()
    _check(page)


def _check(page: Page) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert axe_faults(page) == []
