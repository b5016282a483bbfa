"""Rows of executions are selected, and their actions reached, on a desk, by keys and on a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start, waits

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page, ViewportSize

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def listed(server: Server) -> str:
    """Return the list of a machine with forty executions that run."""
    machine = create(server, waits(600))
    for number in range(40):
        start(server, machine, name=f"customer-{number:02}")
    return f"/machines/{machine}/"


def row_boxes(page: Page) -> Locator:
    """Return the checkboxes of the rows."""
    return page.locator("#executions tbody input[type=checkbox]")


def focused_text(page: Page) -> str:
    """Return the words of the element with the focus."""
    return str(page.evaluate("document.activeElement.innerText.trim()"))


def test_the_actions_are_two_keys_from_a_selected_row(page: Page, listed: str) -> None:
    """Tab and Enter lead from the row in the middle to the actions, Escape leads back."""
    page.goto(listed)
    row_boxes(page).nth(19).focus()
    page.keyboard.press("Space")
    expect(page.locator("#announce")).to_contain_text("1 selected row")
    row_boxes(page).nth(20).focus()
    page.keyboard.press("Space")
    expect(page.locator("#announce")).to_contain_text("2 selected rows")
    page.keyboard.press("Tab")
    assert focused_text(page) == "Actions for 2 selected rows"
    expect(page.locator("#to-actions")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert focused_text(page) == "Compare two"
    page.keyboard.press("Escape")
    expect(row_boxes(page).nth(20)).to_be_focused()
    page.keyboard.press("a")
    assert focused_text(page) == "Compare two"
    page.keyboard.press("Escape")
    page.keyboard.press("Space")
    row_boxes(page).nth(19).focus()
    page.keyboard.press("Space")
    expect(page.locator("#announce")).to_contain_text("Select rows")
    expect(page.locator("#to-actions")).to_have_count(0)


def test_the_buttons_count_what_they_would_act_on(page: Page, server: Server) -> None:
    """Of the selected rows; where it is none, the button says why. The dry run says the same."""
    machine = create(server, waits(600))
    for name in ("runs", "also", "stopped"):
        ended_path = start(server, machine, name=name)
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:stopped"
    server.client().stop_execution(executionArn=arn)
    ended(server, ended_path)
    page.goto(f"/machines/{machine}/")
    page.get_by_label("Select all rows of this page").check()
    bar = page.locator("#bulk")
    expect(bar.get_by_role("button", name="Redrive 1 of 3")).to_be_visible()
    expect(bar.get_by_role("button", name="Start again 3", exact=True)).to_be_visible()
    expect(bar.get_by_role("button", name="Stop 2 of 3")).to_be_visible()
    page.get_by_role("checkbox", name="Select stopped").uncheck()
    redrive = bar.get_by_role("button", name="Redrive 0 of 2")
    expect(redrive).to_have_attribute("aria-disabled", "true")
    expect(redrive).to_have_attribute(
        "title", re.compile("None of the 2 can be redriven: .*RUNNING")
    )
    page.get_by_role("checkbox", name="Select stopped").check()
    bar.get_by_role("button", name="Stop 2 of 3").click()
    expect(page.locator("h1")).to_have_text("Stop 2 executions?")
    expect(page.locator("#selected")).to_have_text("3")


def test_all_that_match_are_counted(page: Page, listed: str) -> None:
    """Instead of the selected rows, as long as the box is ticked."""
    page.goto(f"{listed}?q=customer-0")
    count = page.locator("#selected-count")
    expect(count).to_have_text("Select rows")
    page.locator("#bulk input[name=all]").check()
    expect(count).to_have_text("10 match")
    expect(page.locator("#announce")).to_contain_text("10 match")
    page.locator("#bulk input[name=all]").uncheck()
    expect(count).to_have_text("Select rows")


def test_the_actions_come_before_the_rows(page: Page, listed: str) -> None:
    """For a reader of the page from its top, and for tools that read it."""
    page.goto(listed)
    order = page.locator("#bulk, #executions").evaluate_all("all => all.map((part) => part.id)")
    assert order == ["bulk", "executions"]


@pytest.mark.parametrize(("width", "most"), [(1440, 48), (390, 56), (360, 56)])
def test_the_selection_is_one_line_that_stays_in_view(
    page: Page, listed: str, width: int, most: int
) -> None:
    """Wherever the rows are scrolled to; every action shown stands inside of the window."""
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(listed)
    row_boxes(page).nth(3).check()
    row_boxes(page).nth(30).check()
    for place in (3, 38):
        row_boxes(page).nth(place).scroll_into_view_if_needed()
        bar = page.locator("#bulk").bounding_box()
        assert bar is not None
        assert bar["height"] <= most
        assert 0 <= bar["y"] <= 844 - bar["height"]
        for button in page.locator("#bulk .actions button:visible").all():
            expect(button).to_be_in_viewport(ratio=1)
            reached = button.evaluate(
                """(button) => {
                    const { left, top, width, height } = button.getBoundingClientRect();
                    const [x, y] = [left + width / 2, top + height / 2];
                    return button.contains(document.elementFromPoint(x, y));
                }"""
            )
            assert reached
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_of_the_selection_covers_the_rows_of_a_phone(page: Page, listed: str) -> None:
    """Until a row is selected; then the selection can be acted on and given up."""
    page.set_viewport_size(PHONE)
    page.goto(listed)
    expect(page.locator("#bulk")).to_be_hidden()
    row_boxes(page).nth(0).check()
    expect(page.locator("#bulk")).to_be_visible()
    expect(page.locator("#selected-count")).to_have_text("1 selected row")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert axe_faults(page) == []
    page.get_by_role("button", name="Select none").click()
    expect(page.locator("#bulk")).to_be_hidden()


def test_a_selection_without_a_script(
    browser: Browser, server: Server, signed_in: Path, listed: str
) -> None:
    """Its actions appear when a row is selected, and lead to the preview."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False, viewport=PHONE
    )
    page = context.new_page()
    page.goto(listed)
    row_boxes(page).nth(0).check()
    page.locator("#bulk").get_by_role("button", name="Stop").click()
    expect(page.locator("#eligible")).to_have_text("1 eligible")
    context.close()


def test_an_empty_checkbox_looks_like_one_in_the_dark(page: Page, listed: str) -> None:
    """It is as dark as what it stands on; a filled grey box looks disabled."""
    page.emulate_media(color_scheme="dark")
    page.goto(listed)
    box = row_boxes(page).first
    assert box.evaluate("box => getComputedStyle(box).appearance") == "none"
    empty = box.evaluate("box => getComputedStyle(box).backgroundColor")
    assert empty == page.locator("#list").evaluate("card => getComputedStyle(card).backgroundColor")
    box.check()
    assert box.evaluate("box => getComputedStyle(box).backgroundColor") != empty


def test_back_from_an_execution_finds_the_rows_selected(page: Page, listed: str) -> None:
    """With their count and actions; a new visit of the list begins without a selection."""
    page.goto(listed)
    row_boxes(page).nth(3).check()
    row_boxes(page).nth(7).check()
    row_boxes(page).nth(7).uncheck()
    row_boxes(page).nth(5).check()
    page.click("#executions tbody tr:nth-child(9) td.name a")
    expect(page.locator("#status")).to_be_visible()
    page.go_back()
    expect(page.locator("#selected-count")).to_have_text("2 selected rows")
    expect(row_boxes(page).nth(3)).to_be_checked()
    expect(row_boxes(page).nth(5)).to_be_checked()
    expect(page.locator('#bulk button[value="stop"]')).to_contain_text("Stop 2")
    page.go_forward()
    expect(page.locator("#status")).to_be_visible()
    page.goto(listed)
    expect(page.locator("#selected-count")).to_have_text("Select rows")


def test_back_between_filters_finds_the_rows_selected(page: Page, listed: str) -> None:
    """A filter keeps the rows selected that it shows; Back and forward find those of each."""
    page.goto(listed)
    row_boxes(page).nth(2).check()
    page.check("input[name=status][value=RUNNING]")
    page.wait_for_url("**status=RUNNING**")
    expect(page.locator("#selected-count")).to_have_text("1 selected row")
    row_boxes(page).nth(0).check()
    row_boxes(page).nth(1).check()
    expect(page.locator("#selected-count")).to_have_text("3 selected rows")
    page.go_back()
    expect(page.locator("#selected-count")).to_have_text("1 selected row")
    expect(row_boxes(page).nth(2)).to_be_checked()
    page.go_forward()
    expect(page.locator("#selected-count")).to_have_text("3 selected rows")
    row_boxes(page).nth(0).uncheck()
    expect(page.locator("#selected-count")).to_have_text("2 selected rows")
