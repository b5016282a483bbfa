"""An administrator creates a project on the page Projects, and the header switches to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def check_page(page: Page) -> None:
    """Check accessibility in both themes, and that a phone need not scroll sideways."""
    size = page.viewport_size
    assert size is not None
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        violations = Axe().run(page).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="light")


def test_a_project_is_created_and_opened(page: Page, server: Server) -> None:
    """By the person of the first sign-in, who administers the server."""
    name = unique("payments")
    start(server, create(server, waits(60)))
    page.goto("/projects/")
    check_page(page)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("heading", name="Projects of this server")).to_be_visible()
    page.get_by_role("button", name=f"Open {name}").click()
    menu = page.locator(".project-menu > summary")
    expect(menu).to_have_text(name)
    menu.click()
    check_page(page)
    page.locator(".project-menu").get_by_role("button", name="default").click()
    expect(menu).to_have_text("default")
    page.locator(".project-menu > summary").click()
    page.get_by_role("link", name="All my projects").click()
    page.locator("details.confirm summary", has_text=f"Rename {name}").click()
    check_page(page)
    page.get_by_label("New name").locator("visible=true").fill(f"{name}.2")
    page.locator("details[open] button", has_text="Rename").click()
    expect(page.get_by_text(f"{name} is now called {name}.2.")).to_be_visible()
