"""After Back an editor shows the text that it sends: what was typed before, with its check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.conftest import ARGS, Watch
from tests.acceptance.browser.yard import (
    create,
    ended,
    start,
    type_definition,
    unique,
    until,
    waits,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SHOWN = "ace.edit(document.querySelector('.editor')).getValue()"


def away_and_back(page: Page) -> None:
    """Leave the page by a link of the page's own and come back by the browser's button."""
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.wait_for_url("**/tasks/**")
    page.go_back(wait_until="commit")
    until(page, "window.ace && document.querySelector('.editor .ace_content')")
    until(page, "document.readyState === 'complete'")  # then the forms have their texts back


def test_an_abandoned_definition_is_shown_checked_and_saved(page: Page, server: Server) -> None:
    """The editor, the problems and the graph are of the text that Save stores."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    text = json.dumps(waits(77)).replace("Nap", "Doze")
    type_definition(page, text)
    expect(page.locator("#preview .node", has_text="Doze")).to_have_count(1)
    away_and_back(page)
    expect(page.locator("[data-restored-text=text]")).to_be_visible()
    assert page.evaluate(SHOWN) == text
    assert page.locator("#text").evaluate("one => one.value") == text
    expect(page.locator("#preview .node", has_text="Doze")).to_have_count(1)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    expect(page.locator("pre.code").last).to_contain_text('"Doze"')


def test_abandoned_text_with_a_mistake_has_its_problems_again(page: Page, server: Server) -> None:
    """The list of problems is that of the text on display, not that of the stored one."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, json.dumps(waits(60)).replace('"After"', '"Afetr"', 1))
    expect(page.locator(".problem").first).to_contain_text("Afetr")
    away_and_back(page)
    expect(page.locator(".problem").first).to_contain_text("Afetr")


def test_abandoned_text_can_be_discarded(page: Page, server: Server) -> None:
    """One press brings the stored definition back, which Save then leaves as it is."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    stored = page.evaluate(SHOWN)
    type_definition(page, '{"StartAt": "nowhere"}')
    away_and_back(page)
    assert page.evaluate(SHOWN) != stored
    page.click("[data-discard=text]")
    assert page.evaluate(SHOWN) == stored
    expect(page.locator("[data-restored-text=text]")).to_be_hidden()
    expect(page.locator("#problems-title")).to_have_text("No problems")
    assert page.locator("#text").evaluate("one => one.value") == stored


def test_an_untouched_editor_shows_the_stored_text(page: Page, server: Server) -> None:
    """Nobody typed, so Back shows what the server has, and no word of kept text."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    away_and_back(page)
    expect(page.locator("[data-restored-text=text]")).to_be_hidden()
    assert page.evaluate(SHOWN) == page.locator("#text").evaluate("one => one.value")


@pytest.mark.parametrize("place", ["start", "test", "replay", "new"])
def test_every_editor_shows_what_it_sends(page: Page, server: Server, place: str) -> None:
    """Start, test of a state, replay, and the definition of a new machine."""
    name = create(server, waits(0))
    where = f"/machines/{name}/{place}/"
    if place == "replay":
        run = ended(server, start(server, name, {"a": 1}))
        where = f"{run}replay/?step=Nap"
    if place == "new":
        where = "/machines/new/"
    page.goto(where)
    type_definition(page, '{"abandoned": 4711}')
    away_and_back(page)
    until(page, f"text => {SHOWN} === text", arg='{"abandoned": 4711}')
    hidden = page.locator("textarea[data-editor]").evaluate("one => one.value")
    assert page.evaluate(SHOWN) == hidden == '{"abandoned": 4711}'


def test_what_is_shown_is_what_starts(page: Page, server: Server) -> None:
    """The input of the new execution is the text on display after Back."""
    name = create(server, waits(0))
    page.goto(f"/machines/{name}/start/")
    type_definition(page, '{"abandoned": 1}')
    away_and_back(page)
    shown = '{"abandoned": 1}'
    until(page, f"text => {SHOWN} === text", arg=shown)
    run = unique("back")
    page.fill("#name", run)
    page.click("form[data-json-form] button.main")
    page.wait_for_url(f"**/executions/{run}/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{name}:{run}"
    assert server.client().describe_execution(executionArn=arn)["input"] == shown


def test_a_textarea_changed_behind_the_editor_is_not_sent(page: Page, server: Server) -> None:
    """The form takes the editor's text, whatever an extension or the browser wrote beneath it."""
    name = create(server, waits(0))
    page.goto(f"/machines/{name}/start/")
    type_definition(page, '{"shown": 1}')
    page.locator("#input").evaluate("""one => { one.value = '{"unseen": 1}'; }""")
    run = unique("unseen")
    page.fill("#name", run)
    page.click("form[data-json-form] button.main")
    page.wait_for_url(f"**/executions/{run}/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{name}:{run}"
    assert server.client().describe_execution(executionArn=arn)["input"] == '{"shown": 1}'


@pytest.fixture
def caching_page(
    browser: Browser, whole_chromium: str, server: Server, signed_in: Path
) -> Iterator[Page]:
    """Return a page of a chromium with its back/forward cache, which Playwright switches off."""
    caching = browser.browser_type.launch(
        executable_path=whole_chromium,
        args=ARGS,
        ignore_default_args=["--disable-back-forward-cache"],
    )
    context = caching.new_context(base_url=server.url, storage_state=signed_in)
    page = context.new_page()
    watch = Watch(page)
    yield page
    caching.close()
    assert not watch.faults


def test_a_page_from_the_back_forward_cache_keeps_its_editor(
    caching_page: Page, server: Server
) -> None:
    """The page goes on where it was left: same text, same check, and Save stores it."""
    page = caching_page

    def without_no_store(route: Route) -> None:
        # what may not be stored is not kept by this cache; other browsers are less strict
        answer = route.fetch()
        headers = {k: v for k, v in answer.headers.items() if k != "cache-control"}
        route.fulfill(response=answer, headers=headers)

    name = create(server, waits(60))
    page.route("**/edit/", without_no_store)
    page.goto(f"/machines/{name}/edit/")
    page.evaluate("addEventListener('pageshow', (event) => { window.kept = event.persisted; })")
    text = json.dumps(waits(78))
    type_definition(page, text)
    expect(page.locator("#problems-title")).to_have_text("No problems")
    away_and_back(page)
    assert page.evaluate("window.kept") is True
    assert page.evaluate(SHOWN) == page.locator("#text").evaluate("one => one.value") == text
    page.click("[data-save]")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    # Playwright does not see where such a page goes on to
    wait_until(
        lambda: server.client().describe_state_machine(stateMachineArn=arn)["definition"] == text
    )
