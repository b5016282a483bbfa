"""An administrator creates, archives and deletes projects on a page; the header switches."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Literal

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, manage, start, unique, waits

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def check_page(page: Page) -> None:
    """Check accessibility in both themes, and that a phone need not scroll sideways."""
    size = page.viewport_size
    assert size is not None
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert axe_faults(page) == []
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


def test_a_project_is_archived_and_deleted(page: Page, server: Server) -> None:
    """The archive is read-only; the deletion shows its progress, and the page what is gone."""
    name = unique("billing")
    manage(server, "project", "create", name)
    page.goto("/projects/")
    page.locator("details.confirm summary", has_text=f"Archive {name}").click()
    check_page(page)
    page.get_by_role("button", name=f"Archive {name}").click()
    page.get_by_role("button", name=f"Open {name}").click()
    expect(page.get_by_text(f"The project {name} was archived on")).to_be_visible()
    for path in ("/", "/keys/", "/members/"):
        page.goto(path)
        check_page(page)
        expect(page.get_by_role("button", name="Create access key")).to_have_count(0)
    page.goto("/projects/")
    page.locator("details.confirm summary", has_text=f"Delete {name}").click()
    check_page(page)
    page.get_by_label(f"Type {name} to confirm").fill(name)
    page.get_by_role("button", name="Delete the project").click()
    deleted = page.locator("section", has=page.get_by_role("heading", name="Deleted projects"))
    expect(page.get_by_text(f"{name} is being deleted.")).to_be_visible()
    expect(page.locator("#server-projects")).not_to_contain_text(name)
    page.reload()
    expect(deleted).to_contain_text(name)
    check_page(page)


def test_projects_need_no_script(browser: Browser, server: Server, signed_in: Path) -> None:
    """Each form works by itself; a link shows the progress of a deletion."""
    name = unique("returns")
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto("/projects/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create project").click()
    for act in ("Archive", "Unarchive", "Archive"):
        if act == "Archive":
            page.locator("details.confirm summary", has_text=f"Archive {name}").click()
        page.get_by_role("button", name=f"{act} {name}").click()
    page.locator("details.confirm summary", has_text=f"Delete {name}").click()
    page.get_by_label(f"Type {name} to confirm").fill(f"{name}x")
    page.get_by_role("button", name="Delete the project").click()
    expect(
        page.get_by_text(f"Type the name of the project, '{name}', to delete it.")
    ).to_be_visible()
    page.locator("details.confirm summary", has_text=f"Delete {name}").click()
    page.get_by_label(f"Type {name} to confirm").fill(name)
    page.get_by_role("button", name="Delete the project").click()
    expect(page.get_by_text(f"{name} is being deleted.")).to_be_visible()
    projects = page.locator("#server-projects")
    refresh = projects.get_by_role("link", name="Refresh")
    while refresh.count():
        refresh.click()
    expect(projects).not_to_contain_text(name)
    expect(page.get_by_text("Deleted projects")).to_be_visible()
    context.close()


def test_search_opens_another_project(page: Page, server: Server) -> None:
    """By keyboard: a match of a project opens it with the page."""
    manage(server, "project", "create", unique("shipping"))
    page.goto("/")
    page.keyboard.press("Control+k")
    page.keyboard.type("OrderProcessing")
    group = page.locator("#palette section", has_text="In the project samples")
    expect(group).to_be_visible()
    assert axe_faults(page) == []
    group.locator("[data-match]").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".project-menu > summary")).to_have_text("samples")
    check_page(page)


def test_the_api_takes_a_signed_call(server: Server) -> None:
    """By HTTP, through the server's router, which knows it from a call of AWS."""
    request = AWSRequest("GET", f"{server.url}/api/projects")
    SigV4Auth(Credentials(*server.keys()), "stateyard", "us-east-1").add_auth(request)
    call = urllib.request.Request(request.url, headers=dict(request.headers.items()))
    with urllib.request.urlopen(call) as answer:
        names = [project["name"] for project in json.loads(answer.read())["projects"]]
    assert "default" in names
