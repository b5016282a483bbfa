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
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

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
    assert Axe().run(first_page).response["violations"] == []
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


def test_every_tab_of_a_machine_stands_in_a_group(page: Page, server: Server) -> None:
    """All are in sight, below a head of two lines."""
    name = create(server, json.loads(BUILT) | {"Comment": "An order, " * 60})
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/")
    groups = page.locator("nav.tabs > [role=group]")
    expect(groups).to_have_count(3)
    for group in groups.all():
        assert group.locator("a").count() >= 3
    expect(page.locator("nav.tabs a").last).to_be_in_viewport(ratio=0.95)
    box = page.locator("nav.tabs").bounding_box()
    assert box is not None
    assert box["y"] <= 170


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
    assert Axe().run(page).response["violations"] == []
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
