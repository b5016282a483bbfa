"""Pages keep what the reader did, read without a script, show names as typed, fit a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import (
    create,
    login_of,
    start,
    unique,
    waits,
)

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title>]]>&#x3c;b&#x3e;",
    "javascript:alert(1)",
    "\u202egnp.exe \\N\\G\\E",
    "bell\u0007 emoji 🎉 日本語",
]


@pytest.mark.row("X5")
def test_a_tick_loses_nothing(page: Page, server: Server) -> None:
    """Open rows, scroll, zoom, selection, focus and typed text survive many ticks."""
    path = start(server, create(server, waits(1, rounds=30)))
    page.goto(f"{path}?step=Nap")
    page.click("[data-open='2']")
    expect(page.locator("tr.detail .json").first).to_be_visible()
    page.click("[data-zoom-by='1']")
    page.click("[data-dialog=stop-dialog]")
    page.fill("#stop-dialog #cause", "half a sent")
    page.evaluate(
        """() => {
            // the panel's texts follow the visit that runs: each has an output only at its end
            const kept = "[data-node], #events > tr, #panel, #panel-title";
            window.nodes = [...document.querySelectorAll(kept)];
            window.before = document.querySelector("svg.flow").getAttribute("width");
            window.scrollTo(0, 200);
        }"""
    )
    rows = page.locator("#events > tr:not(.detail)").count()
    expect(page.locator("#events > tr:not(.detail)").nth(rows + 8)).to_be_attached()
    state = page.evaluate(
        """() => ({
            same: window.nodes.every((node) => node.isConnected),
            zoom: window.before === document.querySelector("svg.flow").getAttribute("width"),
            top: window.scrollY,
            open: document.querySelectorAll("tr.detail .json").length > 0,
            panel: document.querySelectorAll("#panel .json").length > 0,
            typed: document.querySelector("#stop-dialog #cause").value,
            focus: document.activeElement.id,
        })"""
    )
    assert state == {
        "same": True,
        "zoom": True,
        "top": 200,
        "open": True,
        "panel": True,
        "typed": "half a sent",
        "focus": "cause",
    }


@pytest.mark.row("X5")
def test_pause_stops_the_ticks(page: Page, server: Server) -> None:
    """Nothing moves while paused; resuming catches up without a gap."""
    page.goto(start(server, create(server, waits(1, rounds=30))))
    page.click("[data-pause]")
    expect(page.locator("[data-live-text]")).to_have_text("Paused")
    rows = page.locator("#events > tr").count()
    page.wait_for_timeout(2500)
    assert page.locator("#events > tr").count() == rows
    page.click("[data-pause]")
    expect(page.locator("#events > tr").nth(rows + 3)).to_be_attached()
    ids = page.locator("#events > tr").evaluate_all("rows => rows.map(row => row.id)")
    assert ids == [f"e{number}" for number in range(1, len(ids) + 1)]


def test_pause_drops_the_answer_under_way(page: Page, server: Server) -> None:
    """A poll that has been sent brings no rows to a page that is paused."""
    under_way: list[Route] = []

    def hold(route: Route) -> None:
        under_way.append(route)

    page.goto(start(server, create(server, waits(1, rounds=30))))
    page.route("**/_delta*", hold)
    with page.expect_request("**/_delta*"):
        pass
    with page.expect_event("requestfailed"):
        page.click("[data-pause]")
    page.unroute("**/_delta*")
    expect(page.locator("[data-live-text]")).to_have_text("Paused")


def test_the_history_filters_without_losing_the_rest(page: Page, server: Server) -> None:
    """A filter has an address, Back takes it away, the panel stays."""
    path = start(server, create(server, waits(0)))
    page.goto(f"{path}?step=Nap")
    page.select_option("#type", "PassStateEntered")
    expect(page.locator("#events > tr")).to_have_count(2)
    assert "type=PassStateEntered" in page.url
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    page.go_back()
    expect(page.locator("#events > tr").first).to_contain_text("ExecutionStarted")
    page.goto(f"{path}?at=4")
    expect(page.locator("#e4")).to_be_focused()


def test_the_type_filter_learns_types_that_come_later(page: Page, server: Server) -> None:
    """What has just happened for the first time can be filtered by, without a reload."""
    page.goto(start(server, create(server, waits(2))))
    expect(page.locator("#type option", has_text="WaitStateEntered")).to_be_attached()
    expect(page.locator("#type option", has_text="ExecutionSucceeded")).to_be_attached()
    texts = page.locator("#type option").evaluate_all("all => all.slice(1).map(one => one.text)")
    assert texts == sorted(set(texts))


def test_lists_announce_new_executions(page: Page, server: Server) -> None:
    """A list does not jump: it says how many are new, and marks those that ended."""
    machine = create(server, waits(2))
    start(server, machine, name="one")
    page.goto(f"/machines/{machine}/")
    start(server, machine, name="two")
    expect(page.locator("#new-executions")).to_contain_text("1 new execution")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    expect(page.locator("#executions tbody")).to_contain_text("Succeeded")
    page.click("#new-executions a")
    expect(page.locator("#executions tbody tr")).to_have_count(2)


@pytest.mark.row("X18")
def test_everything_reads_without_a_script(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Create, start, look into a step, open an event and stop, all by plain forms and links."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    name = unique("plain")
    page.goto("/machines/new/")
    page.fill("#name", name)
    page.fill("#text", '{"StartAt": "X"}')
    page.click("button[name=check]")
    expect(page.locator(".problem").first).to_be_visible()
    page.fill(
        "#text",
        page.locator("#text")
        .input_value()
        .replace(
            '"X"}', '"Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 300, "End": true}}}'
        ),
    )
    page.click("[data-save]")
    page.click("form[data-json-form] button.main")
    expect(page.locator("#status")).to_contain_text("Running")
    page.click("a[data-step=Nap]")
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    page.click("#e2 a")
    expect(page.locator("h1")).to_contain_text("WaitStateEntered")
    page.go_back()
    page.click("a.danger")
    page.fill("#cause", "no script")
    page.click("button.danger")
    expect(page.locator("#status")).to_contain_text("Aborted")
    context.close()


def test_hostile_names_are_shown_as_typed(page: Page, server: Server) -> None:
    """Markup, quotes, control characters and direction marks in names do nothing anywhere."""
    states = {
        name: {"Type": "Pass", "Comment": name, "Result": {name: name}, "Next": after}
        for name, after in zip(HOSTILE, [*HOSTILE[1:], "End of it"], strict=True)
    }
    states["End of it"] = {"Type": "Fail", "Error": HOSTILE[0], "Cause": HOSTILE[1]}
    machine = create(
        server,
        {"Comment": HOSTILE[0], "StartAt": HOSTILE[0], "States": states},
        "Ünï-🎉-\u202eevil",
    )
    path = start(server, machine, {HOSTILE[0]: HOSTILE[1]}, name="run-🎉-\u202eevil")
    own = f"/machines/{machine}/"
    for address in (own, f"{own}definition/", f"/failures/?machine={machine}", path):
        page.goto(address)
        expect(page.locator("main")).to_contain_text("🎉")
    expect(page.locator("#status")).to_have_text("Failed")
    for name in HOSTILE[:4]:
        node = page.locator("[data-node]").filter(has_text=name[:12]).first
        node.click()
        expect(page.locator("#panel-title")).to_contain_text(name)
        page.click("#panel [data-tab=definition]")
        expect(page.locator("#panel .code")).to_contain_text(name.replace('"', '\\"'))
        page.click("#panel [data-tab=io]")
    expect(page.locator("#outcome")).to_contain_text(HOSTILE[1])
    assert page.locator("main script, main img").count() == 0


def test_theme_and_clock_are_kept(page: Page) -> None:
    """A choice holds on the next page; switching the clock changes every time and no datetime."""
    page.goto("/machines/")
    first = page.locator("time").first
    before = first.get_attribute("datetime")
    page.click("[aria-label='Display and account']")
    with page.expect_response("**/preferences/"):
        page.click("button[name=theme][value=dark]")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Escape")
    with page.expect_response("**/preferences/"):
        page.click("button[name=clock][value=local]")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")
    assert first.get_attribute("datetime") == before
    page.goto("/executions/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")


@pytest.mark.parametrize("chosen", ["", "light", "dark"])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_switch_of_the_theme_wins_over_the_system(
    page: Page, system: Literal["light", "dark"], chosen: str
) -> None:
    """Both ways to a theme lead to the same colours of the page and of its status."""
    page.emulate_media(color_scheme=system)
    page.goto("/machines/")
    page.evaluate(
        "theme => theme ? document.documentElement.dataset.theme = theme"
        " : delete document.documentElement.dataset.theme",
        chosen,
    )
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark = (chosen or system) == "dark"
    assert shown == ("rgb(14, 19, 25)" if dark else "rgb(244, 246, 248)")


def test_a_link_works_once(browser: Browser, server: Server) -> None:
    """Opening it uses nothing up; its button lets one person in, by Enter, and no second one."""
    link = login_of(server, unique("linked"), "viewer")
    first, second = browser.new_context(), browser.new_context()
    scanner, late = first.new_page(), second.new_page()
    scanner.goto(link)
    scanner.goto(f"{server.url}/machines/")
    assert "/login/" in scanner.url
    late.goto(link)
    assert axe_faults(late) == []
    scanner.goto(link)
    expect(scanner.get_by_role("button", name="Sign in")).to_be_focused()
    scanner.keyboard.press("Enter")
    expect(scanner.locator("h1")).to_contain_text("Overview")
    late.get_by_role("button", name="Sign in").click()
    expect(late.locator("h1")).to_contain_text("no longer works")
    late.goto(f"{server.url}/machines/")
    assert "/login/" in late.url
    first.close()
    second.close()


def test_keys_move_and_stay_out_of_fields(page: Page) -> None:
    """Letters lead somewhere, but not while one types."""
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/machines/")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("g e ?")
    assert page.input_value("#q") == "g e ?"
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("dialog#help")).to_be_visible()
