"""What a team meets first: an empty yard whose lines work as pasted, and the page of a machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.test_graph_editor import BUILT
from tests.acceptance.browser.yard import create, ended, log_in, manage, start, waits
from tests.acceptance.server import Server
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def empty_yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that has no state machine."""
    server = Server(tmp_path_factory.mktemp("empty yard") / "data").start()
    yield server
    server.stop()


@pytest.fixture
def first_page(browser: Browser, empty_yard: Server) -> Iterator[Page]:
    """Return the first page of an empty yard, as its owner."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    watch = Watch(page)
    log_in(page, manage(empty_yard, "login_url", "--address", empty_yard.url).strip())
    yield page
    context.close()
    assert not watch.faults


def in_a_fresh_shell(home: Path, command: str) -> str:
    """Run lines in a shell that knows nothing of the server, and return what they print."""
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", command],
        env={"PATH": tools, "HOME": str(home), "AWS_PAGER": ""},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copied(page: Page, label: str) -> str:
    """Return what a button copies."""
    text = page.get_by_role("button", name=f"Copy: {label}").get_attribute("data-copy-text")
    assert text is not None
    return text


def test_the_lines_of_the_first_page_work_as_pasted(first_page: Page, tmp_path: Path) -> None:
    """In a shell without a profile: they name the file of the key, create, and start."""
    assert axe_faults(first_page) == []
    labels = ("Say where the server is", "Create a state machine", "Start it")
    lines = [copied(first_page, label) for label in labels]
    program = tmp_path / "first.py"
    program.write_text(copied(first_page, "Or with boto3, in the same shell"))
    printed = in_a_fresh_shell(tmp_path, "\n".join([*lines, f"python {program}"]))
    assert ":execution:HelloWorld:" in printed
    assert ":execution:HelloPython:" in printed
    # without a press: what a shell created takes the place of the first page
    expect(first_page.get_by_role("heading", name="No state machines yet")).to_have_count(0)
    expect(first_page.locator("#machines")).to_contain_text("HelloWorld")


def test_a_new_key_works_as_pasted(first_page: Page, empty_yard: Server, tmp_path: Path) -> None:
    """The profile, in the file that the page names, is all that another machine needs."""
    first_page.goto(f"{empty_yard.url}/keys/")
    first_page.get_by_role("button", name="Create access key").first.click()
    button = first_page.get_by_role("button", name="Copy the profile")
    profile = button.get_attribute("data-copy-text")
    assert profile is not None
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(profile)
    in_a_fresh_shell(tmp_path, "aws --profile stateyard stepfunctions list-state-machines")


def test_the_tabs_of_a_machine_are_few_and_in_sight(page: Page, server: Server) -> None:
    """Eight below a head of two lines; three of them lead to further pages, whose tab they are."""
    name = create(server, json.loads(BUILT) | {"Comment": "An order, " * 60})
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/")
    expect(page.locator("nav.tabs a")).to_have_count(8)
    expect(page.locator("nav.tabs a").last).to_be_in_viewport(ratio=0.95)
    box = page.locator("nav.tabs").bounding_box()
    assert box is not None
    assert box["y"] <= 170
    pairs = {
        "Insights": (
            ("Grid of executions", "grid"),
            ("States", "insights"),
            ("Hot states", "hot-states"),
            ("Resilience", "resilience"),
        ),
        "Definition": (("Graph and code", "definition"), ("Calls", "calls")),
        "Triggers & alarms": (("Triggers", "triggers"), ("Alarms", "alarms")),
    }
    for tab, pages in pairs.items():
        page.locator("nav.tabs").get_by_role("link", name=tab).click()
        for words, address in pages:
            page.locator("nav.subtabs").get_by_role("link", name=words, exact=True).click()
            page.wait_for_url(f"**/machines/{name}/{address}/**")
            expect(page.locator("nav.tabs [aria-current]")).to_have_text(tab)
            expect(page.locator("nav.subtabs [aria-current=page]")).to_have_text(words)


def test_the_head_of_a_machine_cuts_nothing(page: Page, server: Server) -> None:
    """ARN and role are copied whole; neither is shown in part."""
    name = create(server, waits(0))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/machines/{name}/")
    cut = """facts => [...facts.querySelectorAll("dd, dd *")].filter(
      (each) => each.checkVisibility() && !each.closest(".visually-hidden")
        && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflow === "hidden"
    ).length"""
    assert page.locator(".machine-facts dl").evaluate(cut) == 0
    page.get_by_role("button", name="Copy ARN").click()
    arn = page.evaluate("navigator.clipboard.readText()")
    assert arn == f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"


def test_the_header_groups_pages_and_every_address_stays(page: Page) -> None:
    """Six entries; alarms, metrics, notifications and schedules have their own addresses still."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    expect(page.locator("#main-menu a")).to_have_count(6)
    for address, entry, tab in (
        ("/charts/", "Monitoring", "Metrics"),
        ("/alarms/", "Monitoring", "Alarms"),
        ("/notifications/", "Rules & schedules", "Notifications"),
        ("/schedules/", "Rules & schedules", "Schedules"),
    ):
        page.goto(address)
        expect(page.locator("#main-menu [aria-current]")).to_have_text(entry)
        expect(page.locator("nav.subtabs [aria-current]")).to_have_text(tab)


def test_an_execution_that_ended_has_no_stop_and_one_card_before_its_events(
    page: Page, server: Server
) -> None:
    """Assignee, note and export share it; without any of them it has one line."""
    page.goto(ended(server, start(server, create(server, waits(0)))))
    expect(page.locator("#actions")).not_to_contain_text("Stop")
    cards = """() => [...document.querySelectorAll("#workflow ~ .card")].filter(
      (card) => card.checkVisibility()
        && card.compareDocumentPosition(document.querySelector("#history")) & 4
        && !card.contains(document.querySelector("#history"))).length"""
    assert page.evaluate(cards) == 1
    box = page.locator("#notes").bounding_box()
    assert box is not None
    assert box["height"] < 80


@pytest.mark.parametrize("width", [1440, 390])
def test_the_keyboard_comes_to_the_graph_and_to_the_name_at_once(
    page: Page, server: Server, width: int
) -> None:
    """A link at the top skips to the graph; the page of a new machine begins in its name."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(ended(server, start(server, create(server, waits(0)))))
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the graph")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#graph")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("a[data-step=Before]")).to_be_focused()
    page.goto("/machines/new/?fresh=1")
    expect(page.locator("#name")).to_be_focused()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_graph_stands_beside_the_executions(page: Page, server: Server, width: int) -> None:
    """A state leads to its place in the definition; on a phone the graph is below the list."""
    name = create(server, waits(0))
    start(server, name)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/machines/{name}/")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    rows = page.locator("#list").bounding_box()
    graph = page.locator(".machine-graph").bounding_box()
    assert rows is not None
    assert graph is not None
    if width == 1440:
        assert graph["x"] >= rows["x"] + rows["width"]
        expect(page.locator(".machine-graph .node").last).to_be_in_viewport(ratio=1)
    else:
        assert graph["y"] >= rows["y"] + rows["height"]
    wide = "document.querySelector('#list .scroll').scrollWidth"
    assert page.evaluate(f"{wide} <= document.querySelector('#list .scroll').clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert axe_faults(page) == []
    page.locator(".machine-graph .node", has_text="Nap").click()
    page.wait_for_url(f"**/machines/{name}/definition/**")
    marked = page.locator('a[data-place][aria-current="true"]').first
    expect(marked).to_have_attribute("data-step", re.compile("Nap"))


def test_a_machine_shows_its_executions_at_once(page: Page, server: Server) -> None:
    """A dozen rows of one line above the fold, below a filter of two lines and their number."""
    states = {"Charge card": {"Type": "Wait", "Seconds": 600, "End": True}}
    name = create(server, {"StartAt": "Charge card", "States": states})
    for number in range(15):
        start(server, name, name=f"order-{number}")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/")
    expect(page.get_by_role("heading", name="15 executions")).to_be_visible()
    rows = page.locator("#executions tbody tr")
    expect(rows.first).to_contain_text("Charge card")
    boxes = [row.bounding_box() for row in rows.all()]
    heights = {round(box["height"]) for box in boxes if box}
    assert max(heights) <= 40
    assert sum(box["y"] + box["height"] <= 900 for box in boxes if box) >= 12
