"""The timeline is read and zoomed by mouse, by keys and without a script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, over, start, waits

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def mapped(server: Server) -> str:
    """Return the page of a Map whose items wait for a second, two at a time; the last one fails."""
    bad = {"Variable": "$", "NumericGreaterThan": 4, "Next": "<b>Bad</b>"}
    states: dict[str, Any] = {
        "Nap": {"Type": "Wait", "Seconds": 1, "Next": "Look"},
        "Look": {"Type": "Choice", "Choices": [bad], "Default": "Fine"},
        "Fine": {"Type": "Pass", "End": True},
        "<b>Bad</b>": {"Type": "Fail", "Error": "Odd"},
    }
    each = {
        "Type": "Map",
        "MaxConcurrency": 2,
        "ItemProcessor": {"StartAt": "Nap", "States": states},
        "End": True,
    }
    machine = create(server, {"StartAt": "Each", "States": {"Each": each}})
    return ended(server, start(server, machine, [1, 2, 3, 4, 5]))


def assert_accessible(page: Page) -> None:
    """Check the page with axe."""
    assert axe_faults(page) == []


def test_the_legend_has_the_signs_that_are_drawn(page: Page, server: Server) -> None:
    """None of retries and waits where there were none; states of children say where they ran."""
    path = ended(server, start(server, create(server, waits(1))))
    page.goto(f"{path}?view=timeline")
    signs = page.get_by_role("list", name="Timeline legend").locator("li:visible")
    expect(signs).to_have_text(["Active", "Wait state", "Critical path"])
    inner = {"StartAt": "Price", "States": {"Price": {"Type": "Pass", "End": True}}}
    path = ended(server, start(server, create(server, over(inner)), [1, 2]))
    page.goto(f"{path}?view=timeline")
    expect(signs).to_have_text(["Active", "Critical path"])
    expect(page.locator("#timeline tr", has_text="Price")).to_contain_text("in child executions")
    fails = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Lost"}}}
    catch = [{"ErrorEquals": ["Lost"], "Next": "After"}]
    states = {
        "Fan": {"Type": "Parallel", "Branches": [fails], "Catch": catch, "Next": "After"},
        "After": {"Type": "Pass", "End": True},
    }
    path = ended(server, start(server, create(server, {"StartAt": "Fan", "States": states})))
    page.goto(f"{path}?view=timeline")
    expect(signs).to_have_text(["Active", "Failed attempt", "Caught error", "Critical path"])


def test_iterations_fold_in_table_and_timeline(page: Page, mapped: str) -> None:
    """A press, by mouse or key, lists all; the address keeps it; light and dark pass axe."""
    page.goto(f"{mapped}?view=timeline&step=")
    timeline = page.locator(".timeline")
    fold = timeline.get_by_role("link", name="5 iterations")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(timeline.get_by_role("link", name="#4", exact=True)).to_be_visible()
    expect(timeline.get_by_role("link", name="#0", exact=True)).to_have_count(0)
    expect(
        timeline.get_by_role("img", name=re.compile("5 iterations: .*up to 2 at once"))
    ).to_be_visible()
    assert_accessible(page)
    fold.focus()
    page.keyboard.press("Enter")
    expect(timeline.get_by_role("link", name="#0", exact=True)).to_be_visible()
    assert "rows=n1" in page.url
    page.emulate_media(color_scheme="dark")
    assert_accessible(page)
    page.goto(f"{mapped}?view=steps&rows=n1&step=")
    expect(page.locator(".step-table").get_by_role("link", name="#0", exact=True)).to_be_visible()
    assert page.locator("b", has_text="Bad").count() == 0


def test_a_part_is_zoomed_by_dragging_and_by_fields(page: Page, mapped: str) -> None:
    """Both write the same address; the chosen step stays, and all is shown again by a press."""
    page.goto(f"{mapped}?view=timeline&step=Nap")
    bar = page.locator("#bar-n1")
    box = bar.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle, steps=5)
    expect(page.locator(".timeline-range")).to_be_visible()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=\d+\.\d+&to=\d+\.\d+"))
    expect(page.get_by_role("link", name="Show all")).to_be_visible()
    since, until = (float(page.input_value(f"#zoom-{name}")) for name in ("from", "to"))
    whole = until / 0.75
    assert abs(since - whole / 4) < whole / 20
    assert "step=Nap" in page.url
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("link", name="Show all")).to_have_count(0)
    page.fill("#zoom-from", "1")
    page.fill("#zoom-to", "2")
    page.keyboard.press("Enter")
    expect(page.locator("#axis")).to_have_attribute(
        "aria-label", re.compile(r"From 1\.0 s to 2\.0 s")
    )
    page.go_back()
    expect(page.locator("#zoom-from")).to_have_value("")


def test_the_timeline_reads_without_a_script(
    browser: Browser, server: Server, mapped: str, signed_in: Any
) -> None:
    """Critical path in words, rows that unfold by links, fields that zoom; on a phone, too."""
    context = browser.new_context(
        java_script_enabled=False,
        storage_state=signed_in,
        base_url=server.url,
        viewport={"width": 390, "height": 844},
    )
    page = context.new_page()
    page.goto(f"{mapped}?view=timeline")
    expect(page.locator(".critical-path")).to_contain_text("Nap")
    page.locator(".timeline").get_by_role("link", name="5 iterations").click()
    expect(page.locator(".timeline").get_by_role("link", name="#0", exact=True)).to_be_visible()
    page.fill("#zoom-from", "1")
    page.get_by_role("button", name="Zoom", exact=True).click()
    expect(page.get_by_role("link", name="Show all")).to_be_visible()
    expect(page.locator(".timeline").get_by_role("link", name="#0", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
