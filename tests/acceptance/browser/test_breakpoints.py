"""The page of breakpoints in a browser, without a script and at the width of a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start, unique

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def asks(server: Server) -> str:
    """Create a machine that waits for an activity, and then passes; return its name."""
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    states = {
        "Ask": {"Type": "Task", "Resource": activity, "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    }
    return create(server, {"StartAt": "Ask", "States": states})


def finish_task(server: Server, path: str, output: str) -> None:
    """Answer the open task of an execution as its worker."""
    client = server.client()
    name = path.split("/")[2]
    machine = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    states = client.describe_state_machine(stateMachineArn=machine)["definition"]
    arn = states.partition('"Resource": "')[2].partition('"')[0]
    token = client.get_activity_task(activityArn=arn)["taskToken"]
    client.send_task_success(taskToken=token, output=output)


def stop_before_done(page: Page, server: Server) -> str:
    """Set a breakpoint by the page, and let a line reach it; return the page's address."""
    path = start(server, asks(server))
    page.goto(path)
    page.get_by_role("link", name="Breakpoints").click()
    page.select_option("#state", "Done")
    page.get_by_role("button", name="Set breakpoint").click()
    expect(page.locator("main")).to_contain_text("Done, before")
    finish_task(server, path, '{"paid": true}')
    page.goto(f"{path}breakpoints/")
    expect(page.locator("#line-1")).to_have_text("Done")
    return path


def test_a_line_is_skipped_without_a_script_on_a_phone(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Set, look, edit and skip by plain forms; nothing scrolls sideways."""
    context = browser.new_context(
        base_url=server.url,
        storage_state=signed_in,
        java_script_enabled=False,
        viewport={"width": 390, "height": 800},
    )
    page = context.new_page()
    path = stop_before_done(page, server)
    page.fill("#answer-1", '{"by": "hand"}')
    page.get_by_role("button", name="Skip the state").click()
    expect(page.locator("main")).to_contain_text("The execution has ended.")
    expect(page.locator("main")).to_contain_text("Done: skip by")
    page.goto(path)
    expect(page.locator("#status")).to_contain_text("Succeeded")
    context.close()


def test_a_line_that_stands_breaks_no_accessibility_rule(page: Page, server: Server) -> None:
    """Light and dark, with every form open."""
    stop_before_done(page, server)
    page.locator("details summary", has_text="Edit").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert Axe().run(page).response["violations"] == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("main")).to_contain_text("Done continues.")
