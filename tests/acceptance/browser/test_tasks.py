"""A person sees what an execution waits for, and answers it from the page (row X2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, start, unique

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def approval(server: Server) -> tuple[str, str]:
    """Create an activity and an execution that waits at it; return its name and the page."""
    name = unique("approve")
    arn = server.client().create_activity(name=name)["activityArn"]
    machine = create(
        server,
        {
            "StartAt": "Approve",
            "States": {
                "Approve": {
                    "Type": "Task",
                    "Resource": arn,
                    "HeartbeatSeconds": 600,
                    "Retry": [{"ErrorEquals": ["Again"], "IntervalSeconds": 1, "MaxAttempts": 1}],
                    "Next": "Nap",
                },
                "Nap": {"Type": "Wait", "Seconds": 10, "End": True},
            },
        },
    )
    return name, start(server, machine, {"amount": 4711})


def test_x2_an_open_task_is_answered_from_the_page(page: Page, server: Server) -> None:
    """The panel names state and wait, follows each change, and empties at the end."""
    _, path = approval(server)
    page.goto(path)
    panel = page.locator("#waiting")
    expect(panel).to_contain_text("Activity task")
    panel.get_by_role("link", name="Answer Approve").click()
    expect(page.locator("h1")).to_contain_text("Not picked up yet")
    expect(page.locator(".json").first).to_contain_text("4711")

    page.get_by_text("Heartbeat, task token and commands").click()
    page.click("button[value=heartbeat]")
    expect(page.locator(".banner.succeeded")).to_contain_text("heartbeat was sent")
    expect(page.locator("h1")).to_contain_text("Picked up by a worker")
    expect(page.locator(".facts")).to_contain_text("HeartbeatSeconds")

    page.get_by_text("Send another output or error").click()
    page.fill("#error", "Again")
    page.click("button[value=fail]")
    page.wait_for_url(f"**{path}")
    panel.get_by_role("link", name="Answer Approve").click()
    page.get_by_text("Send another output or error").click()
    page.fill("#output", '{"approved": true}')
    page.click("button[value=complete]")
    page.wait_for_url(f"**{path}")
    expect(panel).to_contain_text("then continues")
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(panel).to_be_hidden()
    expect(page.locator("#result")).to_contain_text("approved")
    expect(page.locator("#events")).to_contain_text("ActivityFailed")


def test_x2_activities_and_open_tasks_are_pages(page: Page, server: Server) -> None:
    """From the activity to its task and its execution; nothing there breaks a rule of access."""
    name, path = approval(server)
    page.goto("/activities/")
    page.fill("#q", name)
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("Nobody polls")
    page.get_by_role("table").get_by_role("link", name=name).click()
    expect(page.locator(".banner")).to_contain_text("No worker polls")
    page.get_by_role("link", name="Approve").click()
    expect(page).to_have_url(f"{server.url}{path}tasks/3/")
    for address in ("/activities/", f"/activities/{name}/", "/tasks/", f"{path}tasks/3/", path):
        page.goto(address)
        assert axe_faults(page) == []


def test_x2_pages_of_tasks_fit_a_phone(page: Page, server: Server) -> None:
    """Nothing sticks out to the side at 390 pixels."""
    name, path = approval(server)
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/activities/", f"/activities/{name}/", "/tasks/", f"{path}tasks/3/", path):
        page.goto(address)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, address


@pytest.mark.parametrize("width", [390, 1440])
def test_the_figures_of_an_activity_stand_in_lines(page: Page, server: Server, width: int) -> None:
    """Their labels and notes differ in length; a duration stands in one line, with its unit."""
    name, _ = approval(server)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/activities/{name}/")
    oldest = page.locator(".counters [data-since]")
    expect(oldest).to_be_visible()
    oldest.evaluate("span => { span.dataset.since = Date.now() - 59 * 60_000 - 58_000; }")
    expect(oldest).to_have_text(re.compile("^59 min"))
    assert oldest.evaluate("span => span.getClientRects().length") == 1
    tiles = page.locator(".counters .tile").evaluate_all(
        "tiles => tiles.map(tile => [tile, tile.querySelector('b')].map("
        "part => Math.round(part.getBoundingClientRect().top)))"
    )
    assert len(tiles) == 5
    assert len({value for _, value in tiles}) == len({tile for tile, _ in tiles})
    assert page.evaluate("document.documentElement.scrollWidth") == width
