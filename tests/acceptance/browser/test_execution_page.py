"""The page of one execution: each test is named after what it proves (console.md, section 2)."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def ended(server: Server, path: str, seconds: float = 90) -> str:
    """Wait until the execution of a page has ended and return the page's path."""
    _, _, machine, _, name, _ = path.split("/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.client().describe_execution(executionArn=arn)["status"] != "RUNNING":
            return path
        time.sleep(0.1)
    raise AssertionError(path)


@pytest.fixture(scope="module")
def demo_25k(server: Server) -> str:
    """Return the page of an execution with 24,998 events: a Map over 6,248 items."""
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    over = {"Type": "Map", "ItemProcessor": each, "Next": "After"}
    states = {"Over": over, "After": {"Type": "Fail", "Error": "=Last"}}
    machine = create(server, {"StartAt": "Over", "States": states})
    return ended(server, start(server, machine, list(range(6247))))


def test_E11_the_event_table_comes_in_pages_and_filters(page: Page, demo_25k: str) -> None:
    """Of 25,000 events few are in the page; a filter has an address and Back takes it away."""
    page.goto(demo_25k)
    page.goto(f"{demo_25k}events/")
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].responseEnd")
    assert timing < 500
    assert page.locator("#events > tr").count() <= 200
    expect(page.locator("#range")).to_contain_text("1 to 50 of 24,995 events")
    page.select_option("#type", "FailStateEntered")
    expect(page.locator("#events > tr")).to_have_count(1)
    assert "type=FailStateEntered" in page.url
    page.go_back()
    expect(page.locator("#events > tr")).to_have_count(50)
    page.fill("#text", "executionfailed")
    page.keyboard.press("Enter")
    expect(page.locator("#events > tr")).to_have_count(1)
    expect(page.locator("#events .type")).to_have_text("ExecutionFailed")
    expect(page.locator("#text")).to_be_focused()


def test_E11_the_filtered_events_are_had_as_files(page: Page, demo_25k: str) -> None:
    """CSV and JSON hold the rows the filter lets through."""
    page.goto(f"{demo_25k}events/?state=After")
    with page.expect_download() as waiting:
        page.click(".downloads a:has-text('CSV')")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text("utf-8"))))
    assert [row["type"] for row in rows] == ["FailStateEntered"]
    with page.expect_download() as waiting:
        page.click(".downloads a:has-text('JSON')")
    assert len(json.loads(Path(waiting.value.path()).read_text("utf-8"))["events"]) == 1


def test_E12_a_deep_link_shows_and_focuses_its_row(page: Page, demo_25k: str) -> None:
    """The row is in view; several rows stay open by address; a link leads to the cause."""
    page.goto(f"{demo_25k}events/?at=20000")
    expect(page.locator("#e20000")).to_be_focused()
    expect(page.locator("#e20000")).to_be_in_viewport()
    page.click("#e19999 [data-open]")
    expect(page.locator("#d19999 .pairs")).to_be_visible()
    expect(page.locator("#d20000 .pairs")).to_be_visible()
    assert "open=19999.20000" in page.url
    page.reload()
    expect(page.locator("tr.detail")).to_have_count(2)
    previous = page.locator("#d20000 a[data-event]")
    number = previous.get_attribute("data-event")
    previous.click()
    expect(page.locator(f"#e{number}")).to_be_focused()
