"""The five flows: write a machine, start it, watch it, look into a step, stop it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, held, start, type_definition, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.mark.row("E19")
def test_a_typo_is_shown_found_and_mended(page: Page) -> None:
    """Problems follow what is typed, a press leads to the place, saving waits until it is right."""
    good = json.dumps(waits(1), indent=2)
    name = unique("typo")
    page.goto("/machines/new/")
    page.fill("#name", name)
    type_definition(page, good.replace('"Next": "After"', '"Next": "Afetr"'))
    problem = page.locator(".problem").first
    expect(problem).to_contain_text("Afetr")
    expect(page.locator("#preview .node")).to_have_count(3)
    expect(page.locator("#preview-note")).to_be_empty()
    loose = page.get_by_role("button", name="Insert a state between Nap and After")
    expect(loose).to_have_count(0)

    problem.click()
    line = good.split("\n").index('      "Next": "After"')
    assert (
        page.evaluate("ace.edit(document.querySelector('.editor')).getCursorPosition().row") == line
    )

    page.click("[data-save]")
    expect(page.locator("#text-error")).to_contain_text("The definition has errors")
    assert page.url.endswith("/machines/new/")
    expect(page.locator(".problem").first).to_contain_text("Afetr")
    assert "Afetr" in page.evaluate("ace.edit(document.querySelector('.editor')).getValue()")
    assert page.input_value("#name") == name

    type_definition(page, good)
    expect(page.locator("#problems-title")).to_have_text("No problems")
    expect(loose).to_have_count(1)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/")
    expect(page.locator("h1")).to_have_text(name)


def test_a_fix_is_tried_in_four_presses(page: Page, server: Server) -> None:
    """From a failed execution to a replay that succeeded with the new definition."""
    broken = {"Type": "Pass", "Parameters": {"total.$": "$.order.total"}, "End": True}
    whole = {
        "StartAt": "Order",
        "States": {"Order": {"Type": "Pass", "Next": "Total"}, "Total": broken},
    }
    page.goto(ended(server, start(server, create(server, whole), {"total": 7})))
    page.locator("#actions").get_by_role("link", name="Edit state machine").click()
    expect(page.locator("#state-panel")).to_contain_text("Total")
    type_definition(page, json.dumps(whole, indent=2).replace("$.order.total", "$.total"))
    page.click("[data-save]")
    page.get_by_role("link", name="Replay from Total with the new definition").click()
    page.get_by_role("button", name="Start replay").click()
    expect(page.locator("#status")).to_contain_text("Succeeded")
    expect(page.locator("#outcome .banner")).to_have_count(0)


@pytest.mark.row("X19")
def test_an_edit_changes_the_machine_and_keeps_running_executions(
    page: Page, server: Server
) -> None:
    """The page of an old execution says that the definition was changed since."""
    name = create(server, waits(60))
    path = start(server, name)
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, json.dumps(waits(61)))
    expect(page.locator("#problems-title")).to_have_text("No problems")
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    expect(page.locator("pre.code").last).to_contain_text('"Seconds": 61')
    page.goto(path)
    expect(page.locator(".facts")).to_contain_text("changed since")
    expect(page.locator("[data-step=Nap]").first).to_contain_text("Waiting")


def test_bad_input_is_not_even_sent(page: Page, server: Server) -> None:
    """The form names line and column, keeps what was typed, and starts nothing."""
    name = create(server, waits(1))
    page.goto(f"/machines/{name}/start/")
    posts: list[str] = []
    page.on(
        "request", lambda request: posts.append(request.url) if request.method == "POST" else None
    )
    type_definition(page, '{\n  "a": nope\n}')
    page.click("form[data-json-form] button.main")
    expect(page.locator("#input-error")).to_contain_text("line 2")
    assert not posts
    type_definition(page, '{"a": 1}')
    page.fill("#name", "first")
    page.click("form[data-json-form] button.main")
    page.wait_for_url(f"**/machines/{name}/executions/first/")

    page.goto(f"/machines/{name}/start/?origin=first")
    assert json.loads(page.locator("#input").evaluate("one => one.value")) == {"a": 1}
    type_definition(page, '{"a": 2}')
    page.fill("#name", "first")
    page.click("form[data-json-form] button.main")
    expect(page.locator("#name-error")).to_contain_text("Already Exists")
    assert page.input_value("#name") == "first"


def test_the_last_input_is_filled_in_place(page: Page, server: Server) -> None:
    """Indented, and beside the name that was typed; the page is not loaded again."""
    name = create(server, waits(0))
    start(server, name, {"order": 4711}, "earlier")
    page.goto(f"/machines/{name}/start/")
    page.fill("#name", "typed")
    page.get_by_role("link", name="Use the last input").click()
    expect(page.locator("#input-source")).to_contain_text("copied from")
    assert page.input_value("#name") == "typed"
    filled = page.locator("#input").evaluate("field => field.value")
    assert filled == '{\n  "order": 4711\n}'
    assert page.locator("#origin").input_value() == "earlier"
    expect(page.get_by_role("link", name="Use the last input")).to_have_count(0)


def test_a_recent_input_is_chosen_and_the_command_follows(page: Page, server: Server) -> None:
    """What is typed or chosen stands in the command that starts the same."""
    name = create(server, waits(0))
    for number in (1, 2):
        start(server, name, {"order": number}, f"run-{number}")
    page.goto(f"/machines/{name}/start/")
    command = page.locator("#start-command pre")
    expect(command).to_contain_text("--input '{}'")
    page.fill("#name", "it's mine")
    expect(command).to_contain_text("""--name 'it'"'"'s mine' --input""")
    page.locator(".recent-inputs a[data-fill]").nth(1).click()
    expect(command).to_contain_text('"order": 1')
    assert page.locator("#origin").input_value() == "run-1"
    expect(command).to_contain_text(re.compile(r"^aws .*start-execution --state-machine-arn arn:"))
    expect(command).to_contain_text(re.compile(r"^aws .*start-execution --state-machine-arn arn:"))
    assert page.locator("#start-command button").get_attribute("data-copy-text") == (
        command.inner_text()
    )


def test_colours_change_without_a_reload(page: Page, server: Server) -> None:
    """Graph, table, history and summary follow the execution to its end, then polling stops."""
    definition, complete = held(server)
    path = start(server, create(server, definition))
    page.goto(path)
    page.evaluate("window.untouched = document.querySelector('svg.flow')")
    nap, after = page.locator("a[data-step=Nap]"), page.locator("a[data-step=After]")
    expect(nap).to_contain_class("running")
    expect(after).to_contain_class("idle")
    complete()
    expect(nap).to_contain_class("succeeded")
    expect(after).to_contain_class("succeeded")
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(page.locator("#events tr").last).to_contain_text("ExecutionSucceeded")
    expect(page.locator("#announce")).to_contain_text("ended: Succeeded")
    expect(page.locator("#result .json")).to_be_visible()
    assert page.evaluate("window.untouched === document.querySelector('svg.flow')")

    ids = page.locator("#events > tr:not(.detail)").evaluate_all("rows => rows.map(row => row.id)")
    assert ids == [f"e{number}" for number in range(1, len(ids) + 1)]
    polls: list[str] = []
    page.on("request", lambda request: polls.append(request.url))
    page.wait_for_timeout(2500)
    assert not polls
    page.click("[data-view-link=steps]")
    expect(page.locator("tr[data-step=After] [data-cell=status]")).to_contain_text("Succeeded")


@pytest.mark.row("E4")
def test_a_step_opens_and_has_an_address(page: Page, server: Server) -> None:
    """Graph, table and panel share one selection, which a reload and Back keep."""
    path = start(server, create(server, waits(0)), {"order": 4711})
    page.goto(path)
    page.click("a[data-step=Nap]")
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    expect(page.locator("#panel .json").first).to_contain_text("4711")
    assert page.url.endswith("?step=Nap")
    page.click("#panel [data-tab=definition]")
    expect(page.locator("#panel .code")).to_contain_text('"Seconds": 0')
    page.reload()
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    expect(page.locator("#panel .code")).to_contain_text('"Seconds": 0')
    page.click("a[data-step=After]")
    expect(page.locator("#panel-title")).to_contain_text("After")
    page.go_back()
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    expect(page.locator("a[data-step=Nap]")).to_have_attribute("aria-current", "true")
    page.click("[data-view-link=steps]")
    expect(page.locator("tr[data-step=Nap]")).to_have_attribute("aria-selected", "true")


@pytest.mark.row("E14")
def test_stopping_shows_at_once(page: Page, server: Server) -> None:
    """The dialog asks for error and cause; the status changes without a reload."""
    path = start(server, create(server, waits(300)))
    page.goto(path)
    page.evaluate("window.untouched = true")
    page.click("[data-dialog=stop-dialog]")
    page.fill("#stop-dialog #error", "WrongInput")
    page.fill("#stop-dialog #cause", "typed <b>4711</b> twice")
    page.click("#stop-dialog button.danger")
    expect(page.locator("#status")).to_have_text("Aborted")
    expect(page.locator("a[data-step=Nap]")).to_contain_class("aborted")
    expect(page.locator("#outcome")).to_contain_text("typed <b>4711</b> twice")
    assert page.evaluate("window.untouched")
    last = page.locator("#events > tr").last
    expect(last).to_contain_text("ExecutionAborted")
    last.locator("[data-open]").click()
    expect(page.locator("tr.detail")).to_contain_text("WrongInput")
    expect(page.locator("tr.detail")).to_contain_text("typed <b>4711</b> twice")


def test_the_map_retry_sample_runs_in_colours(page: Page) -> None:
    """The sample with random failures retries, and every attempt is told."""
    page.goto("/machines/MapRetryWhole/start/")
    name = unique("retry")
    page.fill("#name", name)
    page.click("form[data-json-form] button.main")
    page.wait_for_url(f"**/executions/{name}/")
    expect(page.locator("#poll[data-ended]")).to_be_attached()
    assert page.locator("#status").inner_text() in ("Succeeded", "Failed")
    tone = "succeeded" if page.locator("#status").inner_text() == "Succeeded" else "failed"
    expect(page.locator('a[data-step="2. ProcessItemsInParallel"]')).to_contain_class(tone)
