"""A machine's own pages: each test is named after what it accepts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ACCOUNT = "arn:aws:states:us-east-1:123456789012"


def test_e16_every_tab_of_a_machine_is_an_address(page: Page, server: Server) -> None:
    """A node leads to its text; versions, an alias, a comparison and a setting are made here."""
    machine = create(server, waits(1))
    page.goto(f"/machines/{machine}/")
    page.click(".tabs >> text=Definition")
    page.locator(".flow a.node").filter(has_text="Nap").click()
    target = page.locator(".code .src:target")
    expect(target).to_contain_text('"Type": "Wait"')
    expect(target).to_be_in_viewport()
    page.click(".tabs >> text=Versions")
    page.fill("#description", "first")
    page.click("button[value=publish]")
    expect(page.locator("tbody tr").first).to_contain_text("first")
    page.click("#create-alias > summary")
    page.fill("#alias-name", "live")
    page.click("button[value=create]")
    expect(page.locator("main")).to_contain_text("version 1: 100 %")
    client = server.client()
    alias = client.describe_state_machine_alias(
        stateMachineAliasArn=f"{ACCOUNT}:stateMachine:{machine}:live"
    )
    assert alias["routingConfiguration"][0]["weight"] == 100
    page.click("summary:has-text('Delete')")
    page.click("button[value=delete-version]")
    expect(page.locator("[role=alert]").first).to_contain_text("referenced by an alias")
    page.click(".tabs >> text=Settings")
    page.select_option("#level", "ALL")
    page.click("text=Save logging")
    expect(page.locator("#level")).to_have_value("ALL")
    start(server, machine)
    page.click(".tabs >> text=Logs")
    expect(page.locator(".log-line")).not_to_have_count(0)
    page.fill("#pattern", '{ $.type = "ExecutionStarted" }')
    page.keyboard.press("Enter")
    expect(page.locator(".log-line")).to_have_count(1)
    page.goto(f"/machines/{machine}/diff/?from=1")
    expect(page.locator("h2").first).to_contain_text("the same")


@pytest.mark.parametrize("width", [1440, 1000, 390])
def test_the_form_of_a_version_has_room(page: Page, server: Server, width: int) -> None:
    """Its button stands beside the description and covers none of it."""
    machine = create(server, waits(1))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/machines/{machine}/versions/")
    page.fill("#description", "first")
    page.click("button[value=publish]")
    page.goto(f"/machines/{machine}/versions/")
    field = page.locator("#description").bounding_box()
    button = page.locator("button[value=publish]").bounding_box()
    assert field
    assert button
    assert field["x"] + field["width"] <= button["x"] or field["y"] + field["height"] <= button["y"]


def test_the_open_tab_is_in_sight_on_a_phone(page: Page) -> None:
    """The row of tabs is wider than the screen and scrolls to the one that is open."""
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("settings", "versions"):
        page.goto(f"/machines/OrderProcessing/{name}/")
        expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.9)
    assert page.evaluate("scrollY") == 0


def test_e22_a_copied_command_does_what_the_button_does(page: Page, server: Server) -> None:
    """The CLI starts the same again and describes it; the graph leaves as SVG and Mermaid."""
    machine = create(server, waits(0))
    path = start(server, machine, {"it's": '"$HOME"'})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(path)
    page.click("text=Export (CLI, JSON, test)")
    page.click("button[aria-label='Copy the command: Start the same again']")
    command = page.evaluate("navigator.clipboard.readText()")
    credentials = {"AWS_SHARED_CREDENTIALS_FILE": str(server.data / "credentials")}
    done = subprocess.run(
        ["sh", "-c", command],
        env={
            **os.environ,
            **credentials,
            "AWS_PROFILE": "stateyard",
            "AWS_PAGER": "",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)["executionArn"]
    described = server.client().describe_execution(executionArn=again)
    assert json.loads(described["input"]) == {"it's": '"$HOME"'}
    page.goto(f"/machines/{machine}/definition/")
    for name in ("SVG", "Mermaid"):
        with page.expect_download() as saved:
            page.click(f"text={name}")
        assert "Nap" in Path(saved.value.path()).read_text()


def test_x19_an_execution_says_what_changed_since(page: Page, server: Server) -> None:
    """Its page leads to the comparison of its own definition with that of now."""
    machine = create(server, waits(600))
    path = start(server, machine)
    server.client().update_state_machine(
        stateMachineArn=f"{ACCOUNT}:stateMachine:{machine}", definition=json.dumps(waits(601))
    )
    page.goto(path)
    page.get_by_role("link", name="changed since").click()
    expect(page.locator("h1")).to_contain_text("Execution run")
    expect(page.locator("tr.removed .text")).to_contain_text("600")
    expect(page.locator("tr.added .text")).to_contain_text("601")


def test_the_sign_of_an_outlier_styles_nothing_but_the_grid(page: Page, server: Server) -> None:
    """The notes of revisions and the reasons of alarms are as large as the cells beside them."""
    machine = create(server, waits(1))
    page.goto(f"/machines/{machine}/versions/")
    sizes = "row => [...row.cells].slice(1, 3).map(cell => getComputedStyle(cell).fontSize)"
    saved_by, note = page.locator("tr", has=page.locator("td.long")).first.evaluate(sizes)
    assert note == saved_by


def test_x7_the_grid_shows_runs_by_states(page: Page, server: Server) -> None:
    """25 runs fit a screen, an outlier has a sign, and a cell leads to its step."""
    machine = create(server, waits_for())
    for number in range(25):
        start(server, machine, {"s": 2 if number == 10 else 0}, f"run-{number}")
    page.goto(f"/machines/{machine}/executions/run-10/")
    expect(page.locator("#status")).to_have_text("Succeeded")
    page.goto(f"/machines/{machine}/grid/")
    expect(page.locator(".grid .status-icon")).to_have_count(75)
    expect(page.locator("a[href*='run-10/?step=Nap'] .outlier")).to_be_visible()
    # Its cell, and the whole execution; on a loaded machine others may take long, too.
    expect(page.locator(".grid a[href*='/run-10/'] .outlier")).to_have_count(2)
    box = page.locator(".grid").bounding_box()
    assert box is not None
    assert box["width"] <= 1440
    page.click("a[href*='run-10/?step=Nap']")
    expect(page.locator("#panel-title")).to_contain_text("Nap")


def waits_for() -> dict[str, object]:
    """Return a machine of two states that waits as long as its input says."""
    return {
        "StartAt": "Nap",
        "States": {
            "Nap": {"Type": "Wait", "SecondsPath": "$.s", "Next": "Done"},
            "Done": {"Type": "Succeed"},
        },
    }


def test_insights_lead_from_the_graph_to_the_numbers(page: Page, server: Server) -> None:
    """A node leads to its row; what was never tried is listed."""
    machine = create(server, waits(1, rounds=2))
    path = start(server, machine)
    page.goto(path)
    expect(page.locator("#status")).to_have_text("Succeeded")
    page.goto(f"/machines/{machine}/insights/")
    page.locator(".flow a.node").filter(has_text="Nap").click()
    row = page.locator("tr:target")
    expect(row).to_contain_text("1 of 1")
    expect(row.locator("td").nth(3)).to_have_text("2")
    expect(page.locator("#uncovered-title")).to_have_text("Everything is covered")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_grid_fills_its_card_and_shows_the_newest(
    page: Page, server: Server, width: int
) -> None:
    """Few executions leave no empty room; of many, a phone shows the last ones first."""
    machine = create(server, {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
    for number in range(12):
        start(server, machine, name=f"run-{number:02}")
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/machines/{machine}/grid/")
    grid, frame = page.locator(".grid"), page.locator("[data-newest-last]")
    newest = grid.locator("thead a", has_text="run-11")
    expect(newest).to_be_in_viewport(ratio=0.9)
    assert grid.evaluate("grid => grid.offsetWidth") >= frame.evaluate("box => box.clientWidth")
