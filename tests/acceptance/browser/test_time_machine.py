"""The page of an execution at one of its events, while it moves, and where it failed."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.test_graph import chain
from tests.acceptance.browser.yard import create, ended, start, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def states(page: Page) -> list[str]:
    """Return the tones of the states in the graph, in the order of the definition."""
    script = "all => all.map(one => one.classList[1])"
    tones: list[str] = page.locator("[data-node]").evaluate_all(script)
    return tones


def test_X6_the_time_machine_shows_the_page_as_it_was(page: Page, server: Server) -> None:
    """Graph, table and variables follow the slider, the arrows and the space bar."""
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Assign": {"n": 1}, "Next": "B"},
            "B": {"Type": "Pass", "Assign": {"n": 2}, "Next": "C"},
            "C": {"Type": "Pass", "End": True},
        },
    }
    path = ended(server, start(server, create(server, definition)))
    page.goto(f"{path}?at=4&step=B")
    assert states(page) == ["succeeded", "running", "idle"]
    expect(page.locator("#variables")).to_contain_text("$n")
    expect(page.locator("#variables .json")).to_have_text("1")
    expect(page.locator("#panel")).to_contain_text("No output yet")
    page.locator("#at").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#moment")).to_contain_text("event 5 of 8")
    assert states(page) == ["succeeded", "succeeded", "idle"]
    expect(page.locator("#variables .json")).to_have_text("2")
    expect(page.locator("#panel")).not_to_contain_text("No output yet")
    assert "at=5" in page.url
    expect(page.locator("#at")).to_be_focused()
    page.keyboard.press(" ")
    expect(page.locator("#moment")).to_contain_text("event 8 of 8")
    page.click("[data-event-step='-1']")
    expect(page.locator("#moment")).to_contain_text("event 7 of 8")
    page.click("[data-leave-past]")
    expect(page.locator("#moment")).to_contain_text("Current state")
    assert "at=" not in page.url


def test_now_keeps_what_was_chosen_meanwhile(page: Page, server: Server) -> None:
    """The state and the view, also those chosen after the page was loaded."""
    page.goto(ended(server, start(server, create(server, waits(0)))))
    page.locator("[data-view-link=timeline]").click()
    expect(page).to_have_url(re.compile("view=timeline"))
    page.locator(".timeline").get_by_role("link", name="Nap").click()
    expect(page).to_have_url(re.compile("step=Nap"))
    page.click("[data-event-step='-1']")
    expect(page).to_have_url(re.compile("at="))
    page.locator(".timeline").get_by_role("link", name="After").click()
    expect(page).to_have_url(re.compile("step=After"))
    page.click("[data-leave-past]")
    expect(page.locator("#moment")).to_contain_text("Current state")
    expect(page.locator("#workflow")).to_have_attribute("data-view", "timeline")
    expect(page.locator("#panel-title")).to_contain_text("After")
    assert "at=" not in page.url


def test_X9_a_cause_is_opened_up_and_copied_as_it_was(page: Page, server: Server) -> None:
    """Type, message and stack are text; what was reported is copied byte for byte."""
    cause = '{"errorMessage":  "näh 🎉 <b>","errorType":"Oops","stackTrace":["at a","at b"]}\r\n'
    state = {"Type": "Fail", "Error": "Bad", "Cause": cause}
    machine = create(server, {"StartAt": "F", "States": {"F": state}})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(ended(server, start(server, machine)))
    banner = page.locator("#outcome .cause")
    expect(banner.locator("p").first).to_have_text("Oops: näh 🎉 <b>")
    banner.locator("summary", has_text="Stack trace").click()
    expect(banner).to_contain_text("at b")
    banner.locator("summary", has_text="Reported text").click()
    banner.locator("[data-copy]").click()
    expect(page.locator("#announce")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == cause
    held = banner.locator("template[data-raw]").evaluate("one => one.content.textContent")
    assert held == cause


def test_X5_ticks_lose_nothing_in_the_tree_timeline_and_time_machine(
    page: Page, server: Server
) -> None:
    """Typed text, focus and rows stay while bars and the slider grow; the past stands still."""
    path = start(server, create(server, waits(1, rounds=30)))
    page.goto(f"{path}?step=Nap&view=timeline")
    page.evaluate(
        "window.kept = [...document.querySelectorAll('.timeline tr, #find, #at, #panel > header')]"
    )
    page.fill("#find", "half a na")
    last = int(page.get_attribute("#at", "max") or 0)
    expect(page.locator(f"#e{last + 6}")).to_be_attached()
    expect(page.locator("#find")).to_be_focused()
    assert page.input_value("#find") == "half a na"
    assert page.evaluate("window.kept.every((one) => one.isConnected)")
    assert int(page.get_attribute("#at", "max") or 0) >= last + 6
    expect(page.locator("#bar-n2 rect[role=img]").nth(2)).to_be_attached()
    page.locator("#at").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-live-text]")).to_contain_text("At event")
    expect(page.locator("#moment")).to_contain_text("after the start")
    words = page.locator("#moment").inner_text()
    page.wait_for_timeout(2500)
    assert page.locator("#moment").inner_text() == words
    expect(page.locator("#at")).to_be_focused()


def test_a_step_in_time_paints_only_what_it_changes(page: Page, server: Server) -> None:
    """In a machine of 200 states: to paint each box again took a page of 1,000 a second."""
    path = ended(server, start(server, create(server, chain([f"S {n}" for n in range(200)]))))
    page.goto(f"{path}?step=S+3")
    last = int(page.locator("#at").get_attribute("max") or 0)
    page.click("[data-event-step='-1']")
    expect(page.locator("#moment")).to_contain_text(f"event {last - 1} of {last}")
    page.evaluate(
        """() => {
            window.changed = new Set();
            new MutationObserver((records) => {
                for (const { target } of records) {
                    const element = target.closest ? target : target.parentElement;
                    window.changed.add(element?.closest("[data-node]")?.dataset.step ?? "");
                }
            }).observe(document.getElementById("workflow"), {
                attributes: true, characterData: true, childList: true, subtree: true,
                attributeFilter: ["class", "aria-label", "href"],
            });
        }"""
    )
    page.click("[data-event-step='-1']")
    expect(page.locator("#moment")).to_contain_text(f"event {last - 2} of {last}")
    expect(page.locator("a[data-step='S 199']")).to_have_class(re.compile("running"))
    changed = set(page.evaluate("[...window.changed]"))
    assert {name for name in changed if name.startswith("S ")} <= {"S 198", "S 199", "S 3"}
