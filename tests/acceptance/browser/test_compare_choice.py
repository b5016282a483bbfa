"""Two executions are chosen from a list that is filtered, on a desk and on a phone."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start, unique, waits

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
SOMETIMES = {
    "StartAt": "Well?",
    "States": {
        "Well?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.ok", "BooleanEquals": True, "Next": "Good"}],
            "Default": "Bad",
        },
        "Good": {"Type": "Succeed"},
        "Bad": {"Type": "Fail", "Error": "Bad"},
    },
}
FAILS = {"StartAt": "Bad", "States": {"Bad": {"Type": "Fail", "Error": "Bad"}}}


@pytest.fixture(scope="module")
def machines(server: Server) -> tuple[str, str]:
    """Return two machines: one with sixty executions that wait, one with three that failed."""
    many, few = create(server, waits(600)), create(server, FAILS)
    for number in range(60):
        start(server, many, {"order": number}, name=f"waits-{number:02}")
    for number in range(3):
        start(server, few, name=f"fails-{number}")
    return many, few


def test_what_is_chosen_stays_while_the_list_is_filtered(
    page: Page, machines: tuple[str, str]
) -> None:
    """A from one machine, B from the second page of another; the bar says both."""
    many, few = machines
    page.goto("/compare/")
    page.fill("#machine", few)
    page.select_option("#status", "FAILED")
    page.get_by_role("button", name="Find").click()
    rows = page.locator(".compare-choices tbody tr:has(a)")
    expect(rows).to_have_count(3)
    page.get_by_role("radio", name="A: fails-1").check()
    side = page.locator("[data-compare-side=a]")
    expect(side).to_contain_text("fails-1")
    expect(page.locator("#announce")).to_have_text("A: fails-1")
    page.fill("#machine", many)
    page.select_option("#status", "")
    page.press("#machine", "Enter")
    expect(rows).to_have_count(50)
    expect(side).to_contain_text("fails-1")
    page.get_by_role("button", name="Older").click()
    expect(rows).to_have_count(10)
    page.get_by_role("radio", name="B: waits-03").check()
    expect(page.locator("[data-compare-side=b]")).to_contain_text("waits-03")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#side-A")).to_contain_text("fails-1")
    expect(page.locator("#side-B")).to_contain_text("waits-03")


def test_one_execution_is_not_both(page: Page, machines: tuple[str, str]) -> None:
    """The last choice wins; a filter that is wrong keeps what is chosen, and says why."""
    page.goto(f"/compare/?machine={machines[1]}")
    page.get_by_role("radio", name="A: fails-2").check()
    page.get_by_role("radio", name="B: fails-2").check()
    expect(page.get_by_role("radio", name="A: fails-2")).not_to_be_checked()
    expect(page.locator("[data-compare-side=a]")).to_contain_text("not chosen")
    page.fill("#find", "input.order = 3 and")
    page.fill("#machine", "no-such-machine")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#machine-problem")).to_contain_text("There is no state machine")
    expect(page.locator("[data-compare-side=b]")).to_contain_text("fails-2")
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator("#machine")).to_have_value("")
    expect(page.locator("[data-compare-side=b]")).to_contain_text("fails-2")


@pytest.mark.parametrize("width", [1440, 390, 360])
def test_the_button_stays_in_view(page: Page, machines: tuple[str, str], width: int) -> None:
    """With what is chosen beside it, at the end of the list, too."""
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/compare/?machine={machines[0]}")
    page.get_by_role("radio", name="A: waits-59").check()
    page.get_by_role("radio", name="B: waits-12").check()
    for place in ("0", "document.body.scrollHeight / 2"):
        page.evaluate(f"window.scrollTo(0, {place})")
        expect(page.get_by_role("button", name="Compare")).to_be_in_viewport(ratio=1)
        expect(page.locator("[data-compare-side=a]")).to_be_in_viewport(ratio=1)
        expect(page.locator("[data-compare-side=b]")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert axe_faults(page) == []


def test_long_names_leave_a_phone_its_width(page: Page, server: Server) -> None:
    """The names of a failure and of its state machine stand in the button that compares it."""
    name = create(server, SOMETIMES, unique("a-state-machine-with-quite-a-long-name"))
    paths = [
        start(server, name, {"ok": ok}, f"{letter}{uuid.uuid4().hex}")
        for letter, ok in (("a", True), ("b", False))
    ]
    for path in paths:
        ended(server, path)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/compare/")
    expect(page.locator(".suggested")).to_contain_text(name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_choice_without_a_script(
    browser: Browser, server: Server, signed_in: Path, machines: tuple[str, str]
) -> None:
    """Both are chosen in one list by plain forms."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"/compare/?machine={machines[0]}")
    page.get_by_role("radio", name="A: waits-59").check()
    page.get_by_role("radio", name="B: waits-58").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#side-A")).to_contain_text("waits-59")
    page.get_by_role("link", name="Choose another B").click()
    expect(page.locator("[data-compare-side=a]")).to_contain_text("waits-59")
    page.fill("#find", "input.order = 7")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("radio", name="B: waits-07").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#side-B")).to_contain_text("waits-07")
    expect(page.locator("#side-A")).to_contain_text("waits-59")
    context.close()


def test_choosing_a_lists_the_executions_of_its_state_machine(
    page: Page, machines: tuple[str, str]
) -> None:
    """One press for A, one for B; arrow keys pass over rows and change nothing."""
    page.goto("/compare/")
    rows = page.locator(".compare-choices tbody tr:has(a)")
    first = rows.first.get_by_role("radio").first
    first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-compare-side=a]")).not_to_contain_text("not chosen")
    expect(page).to_have_url(re.compile(r"/compare/$"))
    page.get_by_role("radio", name="A: fails-0").click()
    expect(rows).to_have_count(2)
    expect(page.locator("[data-compare-side=a]")).to_contain_text("fails-0")
    expect(page.locator(".narrowed")).to_contain_text(machines[1])
    expect(rows.first).to_contain_text("Bad")
    page.get_by_role("link", name="Show executions of all").click()
    expect(rows).to_have_count(49)  # a page of them without A
    expect(page.locator("[data-compare-side=a]")).to_contain_text("fails-0")


def test_the_button_waits_for_two(page: Page, machines: tuple[str, str]) -> None:
    """It says what is missing; ARNs that are typed count, and their fields stand in one line."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/compare/?machine={machines[0]}")
    compare = page.locator("[data-compare-button]")
    expect(compare).to_have_attribute("aria-disabled", "true")
    expect(compare).to_have_attribute("title", "Choose A and B first")
    page.get_by_role("radio", name="B: waits-58").check()
    expect(compare).to_have_attribute("title", "Choose A first")
    compare.click(force=True)
    expect(page.locator("#announce")).to_have_text("Choose A first")
    page.locator(".by-arn summary").click()
    tops = [box["y"] for side in "ab" if (box := page.locator(f"#{side}").bounding_box())]
    assert tops[0] == tops[1]
    arn = page.get_by_role("radio", name="A: waits-59").get_attribute("value") or ""
    page.fill("#a", arn)
    expect(compare).to_have_attribute("aria-disabled", "false")
    compare.click()
    expect(page.locator("#side-A")).to_contain_text("waits-59")
    expect(page.locator("#side-B")).to_contain_text("waits-58")
