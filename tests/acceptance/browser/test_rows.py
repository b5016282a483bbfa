"""Rows of the list that shape the pages: each test is named after the row it proves."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import (
    create,
    ended,
    log_in,
    login_of,
    map_run,
    over,
    start,
    type_definition,
    unique,
    waits,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ROOT = Path(__file__).parents[3]
FAILS = {
    "StartAt": "Good",
    "States": {
        "Good": {"Type": "Pass", "Next": "Bad"},
        "Bad": {"Type": "Fail", "Error": "Oops"},
    },
}


def test_E1_the_page_of_an_execution_begins_with_its_summary(page: Page, server: Server) -> None:
    """Its name is the heading, one status in words, times that a machine can read."""
    path = ended(server, start(server, create(server, waits(0)), name="summary"))
    page.goto(path)
    expect(page.locator("h1")).to_contain_text("summary")
    assert page.locator("h1").count() == 1
    expect(page.locator("#status")).to_have_text("Succeeded")
    facts = page.locator(".facts")
    for word in ("Started", "Ended", "Duration", "Started by", "State transitions"):
        expect(facts.locator("dt", has_text=re.compile(f"^{word}$"))).to_be_visible()
    moments = facts.locator("time").evaluate_all("all => all.map(one => one.dateTime)")
    assert len(moments) == 2
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment) for moment in moments
    )


def test_E2_the_graph_is_whole_and_coloured_from_all_events(page: Page, server: Server) -> None:
    """With more events than a page of them, nested states too, and what was not reached."""
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    states = {
        "Over": {"Type": "Map", "ItemProcessor": each, "Next": "Way"},
        "Way": {
            "Type": "Choice",
            "Choices": [{"Variable": "$[0]", "IsString": True, "Next": "Never"}],
            "Default": "Last",
        },
        "Never": {"Type": "Pass", "Next": "Last"},
        "Last": {"Type": "Pass", "End": True},
    }
    machine = create(server, {"StartAt": "Over", "States": states})
    page.goto(ended(server, start(server, machine, list(range(300)))))
    assert int(page.locator("#event-total").inner_text().replace(",", "")) > 1000
    tones = page.locator("[data-node]").evaluate_all(
        "all => Object.fromEntries(all.map(one => [one.dataset.step, one.classList[1]]))"
    )
    assert tones == {
        "Over": "succeeded",
        "Each": "succeeded",
        "Way": "succeeded",
        "Never": "idle",
        "Last": "succeeded",
    }


def test_E3_a_status_is_told_in_words_without_colours(page: Page, server: Server) -> None:
    """With forced colours, and without any style at all."""
    path = ended(server, start(server, create(server, FAILS)))
    page.emulate_media(forced_colors="active")
    page.goto(path)
    for state, word in (("Good", "Succeeded"), ("Bad", "Failed")):
        node = page.locator(f"[data-node][data-step={state}]")
        expect(node.locator(".node-detail")).to_contain_text(word)
        assert word.lower() in (node.get_attribute("aria-label") or "")
        expect(node.locator("svg.status-icon use")).to_have_attribute(
            "href", f"#status-icon-{word.lower()}"
        )
    legend = page.locator(".legend")
    for word in ("Not entered", "In progress", "Succeeded", "Caught error", "Failed", "Aborted"):
        expect(legend).to_contain_text(word)
    page.route(re.compile(r"\.css"), lambda route: route.fulfill(body="", content_type="text/css"))
    page.goto(f"{path}?view=steps")
    expect(page.locator("[data-node][data-step=Bad] .node-detail")).to_contain_text("Failed")
    expect(page.locator("tr[data-step=Good] [data-cell=status]")).to_contain_text("Succeeded")


def test_E13_a_mistake_in_the_input_is_named_and_nothing_is_sent(
    page: Page, server: Server
) -> None:
    """Line and column, the focus in the field, no request; afterwards the input is remembered."""
    machine = create(server, waits(0))
    page.goto(f"/machines/{machine}/start/")
    posts: list[str] = []
    page.on(
        "request", lambda request: posts.append(request.url) if request.method == "POST" else None
    )
    type_definition(page, '{\n  "a": nope\n}')
    page.click("form[data-json-form] button.main")
    expect(page.locator("#input-error")).to_contain_text(re.compile(r"line 2.*column \d"))
    assert page.evaluate("document.activeElement.closest('.field')?.contains(window.input)")
    assert not posts
    type_definition(page, '{"a": 1}')
    page.fill("#name", "one")
    page.click("form[data-json-form] button.main")
    page.wait_for_url("**/executions/one/")
    page.click("text=New execution")
    expect(page.locator("h1")).to_contain_text("Start execution of ")
    assert page.locator("#input").evaluate("one => one.value") == '{"a": 1}'


def test_E15_a_redrive_says_what_it_does_or_why_it_cannot(page: Page, server: Server) -> None:
    """Disabled with its reason on a success; on a failure the states, the event, the count."""
    page.goto(ended(server, start(server, create(server, waits(0)))))
    button = page.locator("#actions [aria-disabled=true]", has_text="Redrive")
    expect(button).to_contain_text("cannot be redriven")
    path = ended(server, start(server, create(server, FAILS)))
    page.goto(path)
    page.locator("#actions").get_by_role("link", name="Redrive").click()
    expect(page.locator("main li", has_text="Bad")).to_be_visible()
    expect(page.locator("main")).to_contain_text("definition")
    page.get_by_role("button", name="Redrive").click()
    expect(page.locator("#events")).to_contain_text("ExecutionRedriven")
    expect(page.locator(".facts")).to_contain_text("1 time, last")


def manage(server: Server, *arguments: str) -> str:
    """Run a command on the server's data and return what it printed."""
    command = [sys.executable, "manage.py", *arguments, "--data", str(server.data)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


COUNTS = """() => {
    const number = (row) => row.lastElementChild.innerText.split(":").pop().trim() * 1;
    const rows = [...document.querySelectorAll("[data-count]")];
    return Object.fromEntries(rows.map((row) => [row.dataset.count, number(row)]));
}"""
WAITING = ("Pending", "Never started")  # while it runs, and once it has ended
STATES = ("Running", "Pending redrive", "Succeeded", "Failed", "Timed out", "Aborted")


def _waiting(counts: dict[str, int]) -> int:
    """Return how many wait, or were never started: the row has one of the two names."""
    (name,) = (name for name in WAITING if name in counts)
    return counts[name]


def test_E18_the_counts_of_a_map_run_add_up_at_every_moment(page: Page, server: Server) -> None:
    """While the page refreshes itself, slower and faster, until the end; what is typed stays."""
    nap = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 2, "End": True}}}
    machine = create(server, over(nap, MaxConcurrency=2))
    parent = start(server, machine, list(range(12)))
    page.goto(map_run(server, parent))
    expect(page.locator("[data-count=Running]")).to_contain_text("2")
    page.locator(".map-settings summary").click()
    page.fill("#tolerated_count", "3")
    seen = set()

    def look() -> dict[str, int]:
        counts: dict[str, int] = page.evaluate(COUNTS)
        assert sum(counts[name] for name in STATES) + _waiting(counts) == counts["Total"] == 12
        seen.add(tuple(counts.values()))
        return counts

    while look()["Succeeded"] < 2:
        page.wait_for_timeout(100)
    assert page.input_value("#tolerated_count") == "3"
    assert page.evaluate("document.activeElement.id") == "tolerated_count"
    page.fill("#max_concurrency", "10")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#pace")).to_contain_text("10")
    while look()["Succeeded"] < 12:
        page.wait_for_timeout(100)
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(page.locator("label[for=bar]")).to_have_text("12 of 12 children have ended")
    expect(page.locator("#max_concurrency")).to_have_count(0)
    assert not page.locator("#poll").get_attribute("hx-get")
    assert len(seen) > 3


def test_E18_a_map_run_is_between_its_execution_and_its_children(
    page: Page, server: Server
) -> None:
    """From the step to the Map Run, to the failed child, and back; then it is redriven."""
    parent = ended(server, start(server, create(server, over(FAILS, ToleratedFailureCount=0)), [1]))
    page.goto(f"{parent}?step=Each")
    page.click("#to-map-run")
    expect(page.locator("h1")).to_contain_text("Map Run of Each")
    page.select_option("#status-wanted", "FAILED")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#children tr")).to_have_count(1)
    expect(page.locator("#children")).to_contain_text("Oops")
    page.click("#children a")
    expect(page.locator("#outcome")).to_contain_text("Oops")
    page.click(".facts a:has-text('Map Run')")
    page.locator("#actions").get_by_role("link", name="Redrive").click()
    expect(page.locator("main li", has_text="Each")).to_be_visible()


def test_E23_a_viewer_can_look_and_nothing_else(
    browser: Browser, page: Page, server: Server
) -> None:
    """No Stop in the page; who sends it all the same gets 403, and the audit has a row."""
    path = start(server, create(server, waits(600)))
    name = unique("viewer")
    manage(server, "member", name, "--role", "viewer")
    context = browser.new_context(base_url=server.url)
    visitor = context.new_page()
    log_in(visitor, manage(server, "login_url", "--user", name, "--address", server.url))
    visitor.goto(path)
    expect(visitor.locator("#status")).to_have_text("Running")
    for word in ("Stop execution", "New execution", "Edit state machine", "Redrive"):
        assert word not in visitor.content()
    token = visitor.locator("[name=csrfmiddlewaretoken]").first.input_value()
    answer = context.request.post(
        f"{path}stop/",
        form={"csrfmiddlewaretoken": token},
        headers={"Referer": server.url},
    )
    assert answer.status == 403
    context.close()
    page.goto("/audit/")
    row = page.locator("tr", has_text=name).filter(has_text="StopExecution")
    expect(row).to_contain_text("Refused")
    page.goto(path)
    expect(page.locator("#status")).to_have_text("Running")


def test_E24_a_clock_changes_what_is_read_and_not_what_is_meant(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Every time on the page changes its text, none its moment; the next page keeps it.

    A time of the last day says how long ago it was: its title changes.
    """
    ended(server, start(server, create(server, waits(0))))
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, timezone_id="Asia/Tokyo"
    )
    page = context.new_page()
    page.goto("/executions/")
    read = "all => all.map(one => [one.dateTime, one.title || one.textContent])"
    before = page.locator("main time").evaluate_all(read)
    page.click("[aria-label='Display and account']")
    with page.expect_response("**/preferences/"):
        page.click("button[name=clock][value=local]")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")
    after = page.locator("main time").evaluate_all(read)
    assert [moment for moment, _ in before] == [moment for moment, _ in after]
    assert all(text != other for (_, text), (_, other) in zip(before, after, strict=True))
    page.goto("/machines/")
    expect(page.locator("html")).to_have_attribute("data-clock", "local")
    context.close()


def test_X13_who_stopped_it_is_on_its_page(browser: Browser, server: Server) -> None:
    """Ana stops it, and both she and Ben read it on the page: she without a reload."""
    path = start(server, create(server, waits(300)))
    ana, ben = browser.new_context(base_url=server.url), browser.new_context(base_url=server.url)
    hers, his = ana.new_page(), ben.new_page()
    log_in(hers, login_of(server, "ana-x13", "operator"))
    log_in(his, login_of(server, "ben-x13", "viewer"))
    hers.goto(path)
    hers.click("[data-dialog=stop-dialog]")
    hers.fill("#stop-dialog #cause", "wrong input")
    hers.click("#stop-dialog button.danger")
    expect(hers.locator("#activity")).to_contain_text("Stopped")
    his.goto(path)
    row = his.locator("#activity tbody tr").first
    for word in ("Stopped", "ana-x13", "wrong input"):
        expect(row).to_contain_text(word)
    expect(his.locator("#activity tbody tr").last).to_contain_text("Started")
    ana.close()
    ben.close()
