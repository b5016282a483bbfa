"""Nothing typed into the editor is lost: drafts, the warning, revisions, the merge of two texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.yard import create, type_definition, waits

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Dialog, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SHOWN = "ace.edit(document.querySelector('.editor')).getValue()"
MINE = json.dumps(waits(71), indent=2)


def test_a_draft_is_there_after_the_tab_is_gone(
    page: Page, context: BrowserContext, server: Server
) -> None:
    """A new tab has the text, its problems and its graph; Discard brings the stored one back."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    stored = page.evaluate(SHOWN)
    type_definition(page, MINE.replace("Nap", "Doze"))
    expect(page.locator("#draft-note")).to_have_text("Draft kept")
    page.close()

    again = context.new_page()
    watch = Watch(again)
    again.goto(f"/machines/{name}/edit/")
    expect(again.locator("[data-restored-text=text]")).to_be_visible()
    assert "Doze" in again.evaluate(SHOWN)
    expect(again.locator("#preview .node", has_text="Doze")).to_have_count(1)
    with again.expect_response("**/_draft"):
        again.click("[data-discard=text]")
    assert again.evaluate(SHOWN) == stored
    again.reload()
    assert again.evaluate(SHOWN) == stored
    expect(again.locator("[data-restored-text=text]")).to_be_hidden()
    assert not watch.faults


def test_leaving_at_once_keeps_the_draft(page: Page, server: Server) -> None:
    """No pause after the last key is needed."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, MINE)
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.wait_for_url("**/tasks/**")
    page.goto(f"/machines/{name}/edit/")
    expect(page.locator("[data-restored-text=text]")).to_be_visible()
    assert page.evaluate(SHOWN) == MINE


def test_a_draft_on_its_way_does_not_come_back_after_the_save(
    page: Page, context: BrowserContext, server: Server
) -> None:
    """A draft that the network delivers after the text was saved is not shown as unsaved."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    held: list[tuple[str, bytes]] = []

    def hold(route: Route) -> None:
        held.append((route.request.headers["content-type"], route.request.post_data_buffer or b""))
        route.fulfill(status=204)

    page.route("**/_draft", hold)
    type_definition(page, MINE.replace("Nap", "Doze"))
    expect(page.locator("#draft-note")).to_have_text("Draft kept")
    type_definition(page, MINE)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    kind, body = held[0]
    headers = {"content-type": kind, "referer": page.url}
    late = context.request.post(f"/machines/{name}/edit/_draft", data=body, headers=headers)
    assert late.status == 204
    page.goto(f"/machines/{name}/edit/")
    expect(page.locator("#preview .node", has_text="Nap")).to_have_count(1)
    expect(page.locator("[data-restored-text=text]")).to_be_hidden()
    assert page.evaluate(SHOWN) == MINE


def test_leaving_warns_of_a_text_that_could_not_be_kept(
    context: BrowserContext, server: Server
) -> None:
    """The server is away: the page says so, and the browser asks before the text is lost."""
    name = create(server, waits(60))
    page = context.new_page()
    page.goto(f"/machines/{name}/edit/")
    page.route("**/_draft", lambda route: route.abort())
    type_definition(page, MINE)
    expect(page.locator("#draft-note")).to_contain_text("Draft not kept")
    questions: list[str] = []

    def stay(dialog: Dialog) -> None:
        questions.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    with page.expect_event("dialog"):
        page.evaluate("setTimeout(() => document.querySelector('.nav a').click())")
    assert questions == ["beforeunload"]
    assert page.url.endswith("/edit/")
    assert page.evaluate(SHOWN) == MINE


def test_a_save_with_a_note_is_a_revision_that_can_be_restored(page: Page, server: Server) -> None:
    """Who, when and note stand beside the versions; restoring is another revision."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, MINE)
    page.fill("#note", "Wait longer")
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    page.goto(f"/machines/{name}/versions/")
    rows = page.locator("#revisions tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Wait longer")
    expect(rows.first).to_contain_text("owner")
    rows.first.get_by_role("link", name="changes").click()
    expect(page.locator(".diff .added .text")).to_contain_text('"Seconds": 71')
    page.go_back()
    rows.last.get_by_text("Restore", exact=False).first.click()
    page.get_by_role("button", name="Save revision 1 as a new revision").click()
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Restored revision 1")


def test_two_texts_are_merged_in_the_editor(
    page: Page, context: BrowserContext, server: Server
) -> None:
    """Both changes are in the merged text; the choice of a difference is the reader's."""
    name = create(server, waits(60))
    other = context.new_page()
    other.goto(f"/machines/{name}/edit/")
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, json.dumps(waits(82), indent=2))
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    mine = waits(60)
    mine["Comment"] = "mine"
    type_definition(other, json.dumps(mine, indent=2))
    other.click("[data-save]")
    expect(other.locator("#conflict-title")).to_be_visible()
    expect(other.locator(".side-by-side .choice")).to_have_count(2)
    other.get_by_role("button", name="Merge into the editor").click()
    expect(other.locator("#conflict-title")).to_have_count(0)
    merged = json.loads(other.evaluate(SHOWN))
    assert merged["Comment"] == "mine"
    assert merged["States"]["Nap"]["Seconds"] == 82
    other.click("[data-save]")
    other.wait_for_url(f"**/machines/{name}/definition/")
