"""Two people edit one machine: the second save is told of the first, and neither text is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, type_definition, waits
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SHOWN = "ace.edit(document.querySelector('.editor')).getValue()"
MINE, THEIRS = json.dumps(waits(71), indent=2), json.dumps(waits(82), indent=2)


@pytest.fixture
def second(browser: Browser, server: Server, signed_in: Any) -> Any:
    """Return a page of somebody who meets a conflict: the answer 409 is no fault."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, viewport={"width": 1440, "height": 1000}
    )
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert not faults


def stored(server: Server, name: str) -> str:
    """Return the definition that the server has."""
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    return str(server.client().describe_state_machine(stateMachineArn=arn)["definition"])


def save_theirs(page: Page, name: str) -> None:
    """Save another definition, as the person who is first."""
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, THEIRS)
    expect(page.locator("#problems-title")).to_have_text("No problems")
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")


def test_the_second_save_shows_both_and_asks(page: Page, second: Page, server: Server) -> None:
    """Mine is in the editor, theirs beside it; Ctrl+S overwrites nothing, the button does."""
    name = create(server, waits(60))
    second.goto(f"/machines/{name}/edit/")
    save_theirs(page, name)
    type_definition(second, MINE)
    second.click("[data-save]")
    expect(second.locator("#conflict-title")).to_contain_text("after you opened it")
    assert second.evaluate(SHOWN) == MINE
    expect(second.locator(".diff .removed .text")).to_contain_text('"Seconds": 82')
    expect(second.locator(".diff .added .text")).to_contain_text('"Seconds": 71')
    assert stored(server, name) == THEIRS

    second.keyboard.press("Control+s")
    assert stored(server, name) == THEIRS
    second.click("button[name=over]")
    second.wait_for_url(f"**/machines/{name}/definition/")
    assert stored(server, name) == MINE


def test_theirs_can_be_taken(page: Page, second: Page, server: Server) -> None:
    """The editor then has their text, of their revision: the next save is no conflict."""
    name = create(server, waits(60))
    second.goto(f"/machines/{name}/edit/")
    save_theirs(page, name)
    type_definition(second, MINE)
    second.click("[data-save]")
    second.get_by_role("link", name="Discard mine and edit theirs").click()
    expect(second.locator("#conflict-title")).to_have_count(0)
    assert second.evaluate(SHOWN) == THEIRS
    type_definition(second, MINE)
    second.click("[data-save]")
    second.wait_for_url(f"**/machines/{name}/definition/")
    assert stored(server, name) == MINE


def test_text_that_back_brings_is_of_the_revision_it_was_made_from(
    page: Page, second: Page, server: Server
) -> None:
    """The page is new and knows of their save, the text that the browser kept does not."""
    name = create(server, waits(60))
    second.goto(f"/machines/{name}/edit/")
    type_definition(second, MINE)
    second.get_by_role("link", name="Tasks", exact=True).click()
    second.wait_for_url("**/tasks/**")
    save_theirs(page, name)
    second.go_back()
    expect(second.locator("[data-restored-text=text]")).to_be_visible()
    second.click("[data-save]")
    expect(second.locator("#conflict-title")).to_be_visible()
    assert stored(server, name) == THEIRS

    second.get_by_role("link", name="Discard mine and edit theirs").click()
    expect(second.locator("#conflict-title")).to_have_count(0)
    type_definition(second, MINE)
    second.click("[data-save]")
    second.wait_for_url(f"**/machines/{name}/definition/")
    assert stored(server, name) == MINE


def test_discarded_text_leaves_its_revision_behind(
    page: Page, second: Page, server: Server
) -> None:
    """After Back and Discard the editor is as if it had just been opened."""
    name = create(server, waits(60))
    second.goto(f"/machines/{name}/edit/")
    type_definition(second, MINE)
    second.get_by_role("link", name="Tasks", exact=True).click()
    second.wait_for_url("**/tasks/**")
    save_theirs(page, name)
    second.go_back()
    second.click("[data-discard=text]")
    assert second.evaluate(SHOWN) == THEIRS
    type_definition(second, MINE)
    second.click("[data-save]")
    second.wait_for_url(f"**/machines/{name}/definition/")
    assert stored(server, name) == MINE


def test_masked_paths_that_back_brings_overwrite_nothing(page: Page, second: Page) -> None:
    """A plain text area is filled by the server alone: what it shows is of the form's revision."""
    second.goto("/settings/")
    second.fill("#paths", "$.mine")
    second.get_by_role("link", name="Tasks", exact=True).click()
    second.wait_for_url("**/tasks/**")
    page.goto("/settings/")
    page.fill("#paths", "$.theirs")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#paths")).to_have_value("$.theirs")
    second.go_back()
    expect(second.locator("#paths")).to_have_value("$.theirs")
    page.fill("#paths", "")
    page.get_by_role("button", name="Save").click()
