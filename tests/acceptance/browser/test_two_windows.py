"""Back, forward and a second window leave no question open that is about something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.yard import create, start, waits

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ASK = "[data-dialog=stop-dialog]"


def test_back_closes_a_dialog(page: Page, server: Server) -> None:
    """The page behind it shows another state then; forward does not open it again."""
    page.goto(start(server, create(server, waits(600))))
    page.click("a[data-step=After]")
    expect(page.locator("#panel")).to_contain_text("After")
    page.click(ASK)
    expect(page.locator("#stop-dialog")).to_be_visible()
    page.go_back()
    expect(page.locator("#stop-dialog")).to_be_hidden()
    expect(page.locator("#panel")).to_contain_text("Nap")
    page.go_forward()
    expect(page.locator("#panel")).to_contain_text("After")
    expect(page.locator("#stop-dialog")).to_be_hidden()


def test_the_question_whether_to_stop_ends_with_the_execution(
    page: Page, context: BrowserContext, server: Server
) -> None:
    """Somebody else stops it: the open question goes, and the page says how it ended."""
    path = start(server, create(server, waits(600)))
    page.goto(path)
    page.click(ASK)
    other = context.new_page()
    watch = Watch(other)
    other.goto(path)
    other.click(ASK)
    other.locator("#stop-dialog button.danger").click()
    expect(other.locator("#status")).to_have_text("Aborted")
    expect(page.locator("#status")).to_have_text("Aborted")
    expect(page.locator("#stop-dialog")).to_be_hidden()
    expect(page.locator("#announce")).to_contain_text("The execution has ended: Aborted.")
    assert not watch.faults


def test_a_second_redrive_says_that_it_goes_on(
    page: Page, context: BrowserContext, server: Server
) -> None:
    """Two people ask for the same redrive: one is done, and the other reads why not."""
    path = start(server, create(server, waits(600)))
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{path.split('/')[2]}:run"
    server.client().stop_execution(executionArn=arn)
    other = context.new_page()
    for window in (page, other):
        window.goto(f"{path}redrive/")
    page.locator("main form button.main").first.click()
    expect(page.locator("#status")).to_have_text("Running")
    other.locator("main form button.main").first.click()
    expect(other.locator("main")).to_contain_text("Execution is RUNNING and cannot be redriven")
