"""A part of a page that cannot be loaded says so where it would stand, with a button to retry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

THREE = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Pass", "Next": "Second"},
        "Second": {"Type": "Pass", "Next": "Third"},
        "Third": {"Type": "Pass", "End": True},
    },
}


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """Return a page whose faults are not counted: here the network is gone on purpose."""
    return context.new_page()


@pytest.fixture
def path(page: Page, server: Server) -> str:
    """Return the path of an execution that has ended, opened at its first state."""
    address = ended(server, start(server, create(server, THREE)))
    page.goto(f"{address}?step=First")
    expect(page.locator("#panel-title")).to_contain_text("First")
    return address


def lose_network(page: Page) -> None:
    """Let every request fail from now on."""
    page.route("**/*", lambda route: route.abort("internetdisconnected"))


def test_the_panel_of_another_state_says_that_it_was_not_loaded(page: Page, path: str) -> None:
    """It names both states; Retry loads the one that was selected."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    lose_network(page)
    page.locator("a[data-step=Second]").click()
    note = page.locator("#panel > .failed-load")
    expect(note).to_contain_text(
        "“Second” was not loaded: no answer from the server. This is still “First”."
    )
    expect(page.locator("#panel")).to_have_class(re.compile("outdated"))
    note.get_by_role("button", name="Retry").click()
    expect(note).to_have_count(1)
    expect(note.get_by_role("button", name="Retry")).to_be_enabled()
    page.unroute("**/*")
    note.get_by_role("button", name="Retry").click()
    expect(page.locator("#panel-title")).to_contain_text("Second")
    expect(note).to_have_count(0)
    expect(page.locator("#panel")).not_to_have_class(re.compile("outdated"))
    assert faults == []


def test_an_error_of_the_server_is_shown_too(page: Page, path: str) -> None:
    """With its status; the next state that loads takes the note away."""

    def answer(route: Route) -> None:
        route.fulfill(status=503, body="no")

    page.route("**/_step*", answer)
    page.locator("a[data-step=Second]").click()
    note = page.locator("#panel > .failed-load")
    expect(note).to_contain_text("“Second” was not loaded: the server answered 503.")
    page.unroute("**/_step*")
    page.locator("a[data-step=Third]").click()
    expect(page.locator("#panel-title")).to_contain_text("Third")
    expect(note).to_have_count(0)


def test_tables_events_and_the_time_machine_say_it_too(page: Page, path: str) -> None:
    """Each where it stands."""
    lose_network(page)
    page.locator("[data-view-link=steps]").click()
    note = page.locator(".workflow-card > .failed-load")
    expect(note).to_contain_text("Not loaded: no answer from the server.")
    page.unroute("**/*")
    note.get_by_role("button", name="Retry").click()
    expect(page.locator("#step-table")).to_contain_text("Third")
    expect(note).to_have_count(0)
    lose_network(page)
    page.locator("#at").fill("2")
    expect(note).to_contain_text("Not loaded")
    page.unroute("**/*")
    note.get_by_role("button", name="Retry").click()
    expect(page.locator("#moment")).to_contain_text("event 2 of")
    expect(note).to_have_count(0)


def test_a_list_whose_updates_fail_says_since_when(page: Page, server: Server) -> None:
    """Its rows would else stand as if they were current; the words go when an update arrives."""
    page.goto("/executions/")
    lose_network(page)
    note = page.locator("#not-live")
    expect(note).to_contain_text("Not live: retrying since")
    since = note.inner_text()
    page.wait_for_timeout(2_500)  # a second update has failed
    expect(note).to_have_text(since)
    page.unroute("**/*")
    expect(note).to_have_count(0)


def test_the_list_of_a_deleted_state_machine_says_so(page: Page, server: Server) -> None:
    """The page stays: what it shows can still be read and copied."""
    name = create(server, THREE)
    ended(server, start(server, name))
    page.goto(f"/machines/{name}/")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    server.client().delete_state_machine(stateMachineArn=arn)
    expect(page.locator("#not-live")).to_have_text("Not live: what this page shows was deleted")
