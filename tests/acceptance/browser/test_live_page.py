"""A page that follows a running execution: its clocks, its tabs, and Back through its views."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, until, waits
from tests.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

RETRIED: dict[str, Any] = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Wait", "Seconds": 2, "Next": "Flaky"},
        "Flaky": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Busy"}}}],
            "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 2}],
            "Catch": [{"ErrorEquals": ["Busy"], "Next": "Rest"}],
            "End": True,
        },
        "Rest": {"Type": "Wait", "Seconds": 600, "End": True},
    },
}
SLOW_ANSWER = """
    const entries = performance.getEntriesByType.bind(performance);
    performance.getEntriesByType = (type) => type === "navigation"
        ? [{ requestStart: -9000, responseEnd: performance.now() }] : entries(type);
"""


def test_clocks_do_not_lag_behind_by_the_time_that_an_answer_took(
    page: Page, server: Server
) -> None:
    """The server wrote its time eight seconds before the page was there: all eight have passed."""

    def earlier(route: Route) -> None:
        answer = route.fetch()
        text = re.sub(
            r'data-now="(\d+)"', lambda now: f'data-now="{int(now[1]) - 8000}"', answer.text()
        )
        route.fulfill(response=answer, body=text)

    path = start(server, create(server, waits(3600)))
    page.add_init_script(SLOW_ANSWER)
    page.route(f"**{path}", earlier)
    page.goto(path)
    until(
        page,
        """() => {
            const since = document.querySelector("#duration [data-since]");
            const spent = Math.floor((Date.now() - Number(since.dataset.since)) / 1000);
            const shown = /^(\\d+) s$/.exec(since.textContent);
            return shown && spent >= 4 && Math.abs(Number(shown[1]) - spent) <= 1;
        }""",
        seconds=20,
    )


def test_the_count_of_retries_follows(page: Page, server: Server) -> None:
    """The tab of a state that is retried says how often, without a reload."""
    path = start(server, create(server, RETRIED))
    page.goto(f"{path}?step=Flaky")
    tab = page.locator("#panel [data-tab=attempts]")
    expect(tab).to_have_text(re.compile(r"^\s*Retries\s*$"))
    expect(tab).to_have_text(re.compile(r"Retries\s*\(2\)"))


def test_the_end_is_written_as_a_reload_writes_it(page: Page, server: Server) -> None:
    """The moment has no zone, as beside it there is one."""
    page.goto(start(server, create(server, waits(2))))
    expect(page.locator("#status")).to_contain_text("Succeeded")
    followed = page.locator("#ended").inner_text()
    page.reload()
    assert page.locator("#ended").inner_text() == followed


def test_the_timeline_grows_while_nothing_happens(page: Page, server: Server) -> None:
    """The bar of a state that only waits gets longer, and the axis with it."""
    page.goto(f"{start(server, create(server, waits(600)))}?view=timeline")
    end = page.locator("#axis text").nth(1)
    expect(end).to_have_text(re.compile(r"^([3-9]|\d\d)(\.\d)? s$"))
    row = page.locator(".timeline [data-state-name=Nap]")
    expect(row).to_contain_text(re.compile(r"in progress, ([3-9]|\d\d)(\.\d)? s"))


def test_back_leads_from_view_to_view(page: Page, server: Server) -> None:
    """Each view has an entry of the history, also while the execution goes on."""
    path = start(server, create(server, RETRIED))
    page.goto("/executions/")
    page.goto(path)
    card, chosen = page.locator("#workflow"), page.locator("[data-view-link][aria-current]")
    for name in ("steps", "timeline"):
        page.click(f"[data-view-link={name}]")
        expect(card).to_have_attribute("data-view", name)
    page.click("[data-view-link=timeline]")  # it is shown: no entry
    expect(page.locator(".timeline [data-state-name=Rest] svg.bar rect.running")).to_have_count(1)
    page.go_back()
    expect(page).to_have_url(re.compile(r"view=steps"))
    expect(page.locator("#step-table [data-step=Flaky]")).to_be_visible()
    expect(page.locator("#step-table [data-step=Flaky]")).to_contain_text("Caught error")
    expect(chosen).to_contain_text("Steps")
    page.go_back()
    expect(page.locator("a[data-step=Rest]")).to_be_visible()
    expect(chosen).to_contain_text("Graph")
    page.go_forward()
    expect(page.locator("#step-table [data-step=Flaky]")).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/executions/$"))


def test_a_view_is_chosen_while_another_is_read(page: Page, server: Server) -> None:
    """The answer that comes late does not take the place of the view that is in sight."""
    page.goto(ended(server, start(server, create(server, waits(0)))))
    held: list[Route] = []
    page.route(re.compile(r"/run/\?.*view=steps"), lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    page.click("[data-view-link=steps]")
    wait_until(
        lambda: page.evaluate("true") and held
    )  # a request is seen while Playwright is asked
    page.click("[data-view-link=timeline]")
    held[0].continue_()
    expect(page.locator(".timeline [data-state-name=Nap]")).to_be_visible()
    expect(page.locator("#step-table")).to_have_count(0)


def test_a_panel_that_comes_late_leaves_the_focus_alone(page: Page, server: Server) -> None:
    """Who chose a state and types something else meanwhile goes on typing there."""
    page.goto(ended(server, start(server, create(server, waits(0)))))
    held: list[Route] = []
    page.route(re.compile("/run/_step"), lambda route: held.append(route))  # noqa: PLW0108
    page.click("a[data-step=Nap]")
    wait_until(lambda: page.evaluate("true") and held)
    find = page.get_by_label("Find a state")
    find.focus()
    held[0].continue_()
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    page.keyboard.type("Na")
    expect(find).to_have_value("Na")


def test_back_is_no_trap_of_tabs(page: Page, server: Server) -> None:
    """States have entries of their own; the tabs of a state share its entry."""
    page.goto(f"{ended(server, start(server, create(server, waits(0))))}")
    page.click("a[data-step=Nap]")
    expect(page.locator("#panel-title")).to_contain_text("Nap")
    for tab in ("details", "definition", "events"):
        page.click(f"#panel [data-tab={tab}]")
        expect(page.locator(f"#panel [data-tab-content={tab}]")).to_be_visible()
    page.go_back()
    expect(page.locator("#panel-title")).to_contain_text("Execution input and output")


def test_back_leaves_an_earlier_event(page: Page, server: Server) -> None:
    """The page shows the end again where its address names no event."""
    page.goto(f"{ended(server, start(server, create(server, waits(0))))}")
    page.click("a[data-step=Nap]")
    page.locator("#at").press("Home")
    expect(page.locator("a[data-step=Nap]")).to_contain_text("Not entered")
    page.go_back()
    expect(page.locator("a[data-step=Nap]")).to_contain_text("Succeeded")


TABS = """() => {
    const row = document.querySelector("#panel .tabs").getBoundingClientRect();
    return [...document.querySelectorAll("#panel .tabs a")].map((tab) => {
        const { left, right } = tab.getBoundingClientRect();
        const gap = parseFloat(getComputedStyle(tab).paddingLeft);
        return [gap >= 6, left >= row.left - 1 && right <= row.right + 1, tab.ariaCurrent];
    });
}"""


def test_the_tabs_of_a_step_have_room(page: Page, server: Server) -> None:
    """All seven fit beside a graph; on a phone they scroll, and the chosen one is in sight."""
    call = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    definition = {"StartAt": "Call", "States": {"Call": {**call, "Retry": retry}}}
    definition["States"]["Call"]["Parameters"] = {"FunctionName": "none"}
    path = ended(server, start(server, create(server, definition)))
    page.goto(f"{path}?step=Call&tab=events")
    expect(page.locator("#panel .tabs a")).to_have_count(7)
    expect(page.locator("#panel [data-tab=attempts]")).to_contain_text("(1)")
    assert all(room and inside for room, inside, _ in page.evaluate(TABS))
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    tabs = page.evaluate(TABS)
    assert all(room for room, _, _ in tabs)
    assert [inside for _, inside, current in tabs if current] == [True]
    page.click("#panel [data-tab=logs]")
    expect(page.locator("#panel [data-tab-content=logs]")).to_be_visible()
    assert [inside for _, inside, current in page.evaluate(TABS) if current] == [True]


def test_a_page_that_showed_the_end_follows_a_redrive(page: Page, server: Server) -> None:
    """Somebody else redrives it: no press is needed, and the title of the tab says so, too."""
    machine = create(server, waits(600))
    path = start(server, machine)
    page.goto(path)
    expect(page).to_have_title(re.compile("^run: Running"))
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:run"
    server.client().stop_execution(executionArn=arn, error="Oops")
    expect(page).to_have_title(re.compile("^run: Aborted"))
    expect(page.locator("#outcome")).to_contain_text("Oops")
    server.client().redrive_execution(executionArn=arn)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as who comes back does
    expect(page).to_have_title(re.compile("^run: Running"))
    expect(page.locator("#status")).to_have_text(re.compile("Running"))
    expect(page.locator("#outcome")).not_to_contain_text("Oops")
    expect(page.locator("#facts")).to_contain_text("1 time, last")
    expect(page.locator("#live")).to_contain_text("Live")
    server.client().stop_execution(executionArn=arn, error="Again")
    expect(page.locator("#outcome")).to_contain_text("Again")
