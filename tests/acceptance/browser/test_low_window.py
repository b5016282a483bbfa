"""What a reader looks for is in view: the chosen state, all tabs, the answer, readable JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, unique, until, waits

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

CAUSE = json.dumps(
    {"errorType": "Refused", "errorMessage": "the bank refused", "stackTrace": ["at bank.py"] * 9}
)


def chain_that_fails(count: int) -> dict[str, Any]:
    """Return a machine of one line whose last state fails, far below its first one."""
    states: dict[str, Any] = {
        f"Step {number}": {"Type": "Pass", "Next": f"Step {number + 1}"} for number in range(count)
    }
    states[f"Step {count}"] = {"Type": "Fail", "Error": "Refused", "Cause": CAUSE}
    return {"StartAt": "Step 0", "States": states}


def bottom(place: Locator) -> float:
    """Return where the lower edge of something stands in the window."""
    box = place.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize("height", [620, 700, 800, 900])
@pytest.mark.parametrize("count", [5, 6, 30])
def test_the_chosen_state_is_above_the_fold(
    page: Page, server: Server, height: int, count: int
) -> None:
    """In a low window, too, and where the last state of the graph is chosen."""
    path = ended(server, start(server, create(server, chain_that_fails(count)), {}))
    page.set_viewport_size({"width": 1440, "height": height})
    page.goto(path)
    chosen = page.locator('[data-node][aria-current="true"] .box')
    expect(chosen).to_be_visible()
    assert bottom(chosen) <= height
    assert page.evaluate("scrollY") == 0


def test_the_graph_follows_the_size_of_the_window(page: Page, server: Server) -> None:
    """A window that becomes lower has a lower graph, which still ends in it."""
    path = ended(server, start(server, create(server, chain_that_fails(30)), {}))
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(path)
    expect(page.locator("[data-graph]")).to_be_visible()
    page.set_viewport_size({"width": 1440, "height": 760})
    until(
        page, "document.querySelector('[data-graph]').getBoundingClientRect().bottom <= innerHeight"
    )


def test_the_graph_ends_in_the_window_when_a_banner_appears_above_it(
    page: Page, server: Server
) -> None:
    """An execution that fails while its page is open has a cause of several lines then."""
    activity = server.client().create_activity(name=unique("late"))["activityArn"]
    machine = chain_that_fails(30)
    machine["States"]["Step 1"] |= {"Type": "Task", "Resource": activity}
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(start(server, create(server, machine), {}))
    expect(page.locator("#status")).to_contain_text("Running")
    token = server.client().get_activity_task(activityArn=activity)["taskToken"]
    server.client().send_task_failure(taskToken=token, error="Refused", cause="\n".join(CAUSE))
    expect(page.locator("#status")).to_contain_text("Failed")
    expect(page.locator("#outcome")).to_contain_text("Refused")
    until(
        page, "document.querySelector('[data-graph]').getBoundingClientRect().bottom <= innerHeight"
    )


def test_the_tabs_of_a_step_stand_in_one_line(page: Page, server: Server) -> None:
    """A Task has seven of them, and a count on one."""
    activity = server.client().create_activity(name=unique("tabs"))["activityArn"]
    ask = {"StartAt": "Ask", "States": {"Ask": {"Type": "Task", "Resource": activity, "End": True}}}
    path = start(server, create(server, ask), {})
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{path}?step=Ask")
    tabs = page.locator(".panel .tabs a")
    expect(tabs).to_have_count(7)
    assert tabs.evaluate_all("tabs => new Set(tabs.map(tab => tab.offsetTop)).size") == 1
    wide = ".panel .tabs"
    assert page.locator(wide).evaluate("tabs => tabs.scrollWidth <= tabs.clientWidth")


def test_what_waits_for_a_person_is_answered_from_the_panel(page: Page, server: Server) -> None:
    """The panel of the state that runs says what it waits for, also after a press on its node."""
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    ask = {
        "StartAt": "Before",
        "States": {
            "Before": {"Type": "Pass", "Next": "Ask"},
            "Ask": {"Type": "Task", "Resource": activity, "End": True},
        },
    }
    path = start(server, create(server, ask), {})
    page.set_viewport_size({"width": 1440, "height": 800})
    page.goto(path)
    answer = page.locator(".step-waits").get_by_role("link", name="Answer")
    expect(answer).to_be_in_viewport()
    page.click('[data-step="Before"]')
    expect(answer).to_have_count(0)
    page.click('[data-step="Ask"]')
    answer.click()
    page.wait_for_url("**/tasks/**")


def test_recorded_input_is_formatted_to_be_edited(page: Page, server: Server) -> None:
    """It stands in lines in the forms of a replay and of a test, with every number as it was."""
    data = '{"id":12345678901234567890,"price":1.50,"items":[{"sku":"A"},{"sku":"B"}],"to":"me"}'
    name = create(server, waits(1))
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    server.client().start_execution(stateMachineArn=arn, name="run", input=data)
    path = ended(server, f"/machines/{name}/executions/run/")
    shown = "ace.edit(document.querySelector('.editor')).getValue()"
    for address in (f"{path}replay/?step=Nap", f"/machines/{name}/test/?state=Nap&origin=run"):
        page.goto(address)
        text = page.evaluate(shown)
        assert '\n  "price": 1.50,\n' in text
        assert "".join(text.split()) == data


def test_the_page_of_an_event_leads_to_its_neighbours(page: Page, server: Server) -> None:
    """Back and on, and to the graph as it was then; without a script."""
    path = ended(server, start(server, create(server, waits(1)), {}))
    page.goto(f"{path}events/1/")
    expect(page.locator("[rel=prev]")).to_have_count(0)
    page.click("[rel=next]")
    expect(page.locator("h1")).to_have_text("Event 2: PassStateEntered")
    page.get_by_role("link", name="Graph at this event").click()
    expect(page.locator("#moment")).to_contain_text("event 2 of")


@pytest.mark.parametrize("tab", ["definition", "insights", "grid"])
def test_a_machine_says_what_it_is_in_a_line(page: Page, server: Server, tab: str) -> None:
    """Its tabs stand near the top, and its ARN can be copied whole."""
    name = create(server, waits(60))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/{tab}/")
    assert bottom(page.locator("nav.tabs")) <= 260
    copied = page.get_by_role("button", name="Copy ARN").get_attribute("data-copy-text")
    assert copied == f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
