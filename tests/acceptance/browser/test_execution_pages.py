"""The pages beside that of an execution: its definition, tree, Map Run, comparison, events."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import faults_at_all_sizes
from tests.acceptance.browser.test_graph import chain
from tests.acceptance.browser.yard import create, ended, map_run, over, start, unique, until
from tests.console.web.graph.workflows import maps

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

LONG = "Prepare the very long named packaging step for the fragile goods"
SORTED = {
    "StartAt": "Large?",
    "States": {
        "Large?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.amount", "NumericGreaterThan": 100, "Next": "Refuse"}],
            "Default": LONG,
        },
        "Refuse": {"Type": "Fail", "Error": "Order.TooLarge", "Cause": "at most 100"},
        LONG: {"Type": "Pass", "End": True},
    },
}


@pytest.fixture(scope="module")
def failed(server: Server) -> str:
    """Return the page of an execution whose Map Run had one failure of three children."""
    machine = create(server, over(SORTED))
    items = [{"amount": amount} for amount in (5, 500, 7)]
    return ended(server, start(server, machine, items, name="run-of-the-night"))


@pytest.fixture(scope="module")
def compared(server: Server) -> str:
    """Return the address that compares a failure with a success of a machine."""
    machine = create(server, SORTED)
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}"
    for name, amount in (("large", 500), ("small", 5)):
        ended(server, start(server, machine, {"customer": {"name": name}, "amount": amount}, name))
    return f"/compare/?a={arn}:large&b={arn}:small"


def test_a_state_of_the_definition_is_found_and_read(page: Page, server: Server) -> None:
    """By its name, with the map beside the graph; Enter leads to its place in the text."""
    machine = create(server, chain([f"State {number}" for number in range(40)]))
    page.goto(f"{ended(server, start(server, machine))}definition/")
    expect(page.locator(".mini-map")).to_be_visible()
    find = page.get_by_role("searchbox", name="Find a state")
    find.fill("State 37")
    expect(page.locator(".node.found")).to_be_in_viewport()
    find.press("Enter")
    expect(page.locator(".src:target")).to_contain_text('"State 37"')
    expect(page.locator(".src:target")).to_be_in_viewport()
    page.go_back()
    expect(page.locator(".src:target")).to_have_count(0)
    page.get_by_role("button", name="Full screen").click()
    until(page, "document.fullscreenElement?.querySelector('svg.flow')")
    until(page, "document.querySelector('[data-graph]').clientHeight > innerHeight - 120")


def test_a_state_in_a_folded_group_is_found_in_the_text(page: Page, server: Server) -> None:
    """The graph does not show it."""
    machine = create(server, json.loads(maps(60)))
    page.goto(f"{ended(server, start(server, machine, []))}definition/")
    find = page.get_by_role("searchbox", name="Find a state")
    find.fill("first41")
    expect(page.locator("[data-found-states]")).to_have_text("1 state in folded groups")
    find.press("Enter")
    expect(page.locator(".src:target")).to_contain_text('"first41"')


def test_from_a_failed_map_run_to_the_child_that_failed(
    page: Page, server: Server, failed: str
) -> None:
    """Its error is told above the list; one press opens the child; Back leads back."""
    page.goto(map_run(server, failed))
    failures = page.locator("#failures")
    expect(failures).to_contain_text("1 of 3 failed")
    expect(failures).to_contain_text("Order.TooLarge")
    failures.get_by_role("link", name="item 1").click()
    expect(page.locator("#outcome")).to_contain_text("Order.TooLarge")
    page.go_back()
    page.get_by_role("link", name="List it", exact=True).click()
    expect(page.locator("#children tr")).to_have_count(1)
    expect(page.locator("#status-wanted")).to_have_value("FAILED")


def test_new_failures_are_grouped_while_it_runs(page: Page, server: Server) -> None:
    """The page was opened before any child failed."""
    late = {**SORTED["States"]["Refuse"]}
    nap = {"Type": "Wait", "Seconds": 3, "Next": "Refuse"}
    slow = {"StartAt": "Nap", "States": {"Nap": nap, "Refuse": late}}
    machine = create(server, over(slow, ToleratedFailurePercentage=100))
    page.goto(map_run(server, start(server, machine, [1, 2])))
    expect(page.locator("#failures")).to_be_hidden()
    expect(page.locator("#failures")).to_contain_text("2 of 2 failed")
    expect(page.locator("#failures")).to_be_visible()


@pytest.mark.parametrize("width", [1440, 390])
def test_a_comparison_is_read_without_scrolling_sideways(
    page: Page, compared: str, width: int
) -> None:
    """Both sides have the same room; no path is broken where there is room."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(compared)
    cut = page.locator(".scroll").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    )
    assert cut == []
    a, b = page.locator("[data-diff=input] tbody tr:first-child td:nth-last-child(-n + 2)").all()
    assert abs(a.evaluate("one => one.clientWidth") - b.evaluate("one => one.clientWidth")) < 2
    path = page.locator("[data-diff=input] td.mono").first
    expect(path).to_have_text("customer.name")
    if width > 1000:
        lines = path.evaluate("one => getComputedStyle(one).lineHeight && one.clientHeight")
        assert lines < 45
    page.get_by_role("link", name="Differences only").click()
    expect(page.locator("#states tbody tr")).to_have_count(2)
    page.locator("#states tbody tr", has_text="Refuse").get_by_role("link").click()
    expect(page.locator("#panel-title")).to_contain_text("Refuse")


def test_two_executions_are_chosen_by_keys(page: Page, compared: str, server: Server) -> None:
    """From the list of one machine, and against the last success."""
    del server
    machine = re.search(r"execution:([^:]+):", compared)
    assert machine is not None
    page.goto(f"/compare/?machine={machine[1]}")
    page.get_by_role("radio", name="A: large").focus()
    page.keyboard.press("Space")
    page.get_by_role("radio", name="B: the last success").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("#divergence-title")).to_contain_text("Large?")
    expect(page.locator("#side-B")).to_contain_text("small")
    page.get_by_role("link", name="Choose another B").click()
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.locator("#announce")).to_have_text("Choose B first")


def test_all_events_of_a_page_are_unfolded_and_folded(page: Page, failed: str) -> None:
    """By one press, with and without the script's smaller request; the error stands in its row."""
    page.goto(f"{failed}events/")
    expect(page.locator("#events .event-error").last).to_contain_text("States.")
    rows = page.locator("#events > tr:not(.detail)").count()
    page.get_by_role("link", name="Unfold all").click()
    expect(page.locator("#events > tr.detail")).to_have_count(rows)
    page.get_by_role("link", name="Fold all").click()
    expect(page.locator("#events > tr.detail")).to_have_count(0)


def test_they_work_without_a_script(
    browser: Browser, server: Server, signed_in: Path, failed: str, compared: str
) -> None:
    """Each flow by plain links and forms."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"{failed}definition/")
    page.locator("a.node").first.click()
    expect(page).to_have_url(re.compile("#src-"))
    page.goto(f"{failed}events/")
    page.get_by_role("link", name="Unfold all").click()
    expect(page.locator("#events > tr.detail").first).to_be_visible()
    page.goto(compared)
    page.get_by_role("link", name="Choose another B").click()
    page.get_by_role("radio", name="B: the last success").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#side-B")).to_contain_text("small")
    page.goto("/import/")
    page.fill("#history", "{")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[role=alert]")).to_contain_text("Import failed")
    context.close()


def test_they_break_no_accessibility_rule(
    page: Page, server: Server, failed: str, compared: str
) -> None:
    """Wide and narrow, with failures, with problems of forms, and nothing scrolls sideways."""
    addresses = [
        f"{failed}definition/",
        f"{failed}tree/",
        map_run(server, failed),
        f"{failed}events/?since=2020-01-01T00:00&open=1.2",
        compared,
        "/compare/",
        f"/compare/?a={unique('no')}&b=last-success",
    ]
    for address in addresses:
        assert faults_at_all_sizes(page, address) == [], address
