"""Log lines open in place, alarms are previewed, and no column says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import ROLE, create, ended, start, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
FAILS = {
    "StartAt": "Refuse",
    "States": {"Refuse": {"Type": "Fail", "Error": "TooHigh", "Cause": "Above the limit"}},
}


def logged(server: Server) -> str:
    """Create a machine that logs every event; return its name."""
    name = create(server, FAILS, unique("logged"))
    group = f"arn:aws:logs:us-east-1:123456789012:log-group:/aws/vendedlogs/states/{name}:*"
    server.client().update_state_machine(
        stateMachineArn=f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}",
        roleArn=ROLE,
        loggingConfiguration={
            "level": "ALL",
            "includeExecutionData": True,
            "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": group}}],
        },
    )
    return name


def test_a_log_line_opens_in_place_and_is_copied(page: Page, server: Server) -> None:
    """A press lays out its JSON; the page has no fault for axe and no sideways scroll."""
    name = logged(server)
    ended(server, start(server, name))
    page.goto(f"/machines/{name}/logs/?execution=run")
    expect(page.locator("h1")).to_contain_text("Logs of run")
    line = page.locator(".log-line").first
    expect(line.locator(".json")).to_have_count(0)
    line.locator("summary").first.click()
    expect(line.locator(".json")).to_contain_text("previous_event_id")
    expect(line.get_by_role("button", name="Copy")).to_be_visible()
    assert axe_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_generated_name_takes_one_line_of_a_log(page: Page, server: Server) -> None:
    """A log of lines is scanned from top to bottom: the rows are as high as one line of text."""
    name = logged(server)
    ended(server, start(server, name, name="0d9c5a4e-7b1f-4c52-9f59-4f1b6d1c2e3a"))
    page.goto(f"/machines/{name}/logs/")
    link = page.locator(".log-execution a").first
    expect(link).to_have_attribute("title", "0d9c5a4e-7b1f-4c52-9f59-4f1b6d1c2e3a")
    box = page.locator(".log-line").first.bounding_box()
    assert box
    assert box["height"] < 40


def test_an_alarm_is_previewed_before_it_is_created(page: Page, server: Server) -> None:
    """What is changed in the form is drawn at once; a refusal is said in its place."""
    name = create(server, FAILS, unique("alarmed"))
    page.goto(f"/machines/{name}/alarms/")
    page.locator("#alarm-metric > summary").click()
    preview = page.locator(".alarm-preview")
    expect(preview).to_contain_text("Sum of ExecutionsFailed")
    page.get_by_label("Statistic").select_option("p95")
    expect(preview).to_contain_text("p95 of ExecutionsFailed")
    page.locator("#periods").fill("0")
    page.locator("#periods").blur()
    expect(preview).to_contain_text("No preview: EvaluationPeriods must be 1 to")
    page.locator("#periods").fill("3")
    assert axe_faults(page) == []
    page.locator("#alarm-metric").get_by_role("button", name="Create alarm").click()
    expect(page.locator("#alarms")).to_contain_text("in 1 of 3 periods")


def test_a_press_that_outlasts_the_preview_creates_the_alarm(page: Page, server: Server) -> None:
    """The button stays under the pointer while the preview grows or shrinks."""
    name = create(server, FAILS, unique("pressed"))
    page.goto(f"/machines/{name}/alarms/")
    page.locator("#alarm-metric > summary").click()
    preview = page.locator(".alarm-preview")
    expect(preview).to_contain_text("Sum of ExecutionsFailed")
    page.locator("#periods").fill("0")
    page.locator("#periods").blur()
    expect(preview).to_contain_text("No preview")
    page.locator("#periods").fill("3")
    page.locator("#alarm-metric").get_by_role("button", name="Create alarm").hover()
    page.mouse.down()
    expect(preview).to_contain_text("Sum of ExecutionsFailed")
    page.mouse.up()
    expect(page.locator("#alarms")).to_contain_text("in 1 of 3 periods")


def test_the_event_table_has_no_column_that_says_nothing(page: Page, server: Server) -> None:
    """*Resource* is there where an event has one."""
    path = ended(server, start(server, create(server, waits(0))))
    page.goto(f"{path}events/")
    expect(page.get_by_role("columnheader", name="Step")).to_be_visible()
    expect(page.locator("th.event-resource")).to_be_hidden()
    parameters = {"QueueUrl": "http://127.0.0.1:1/q", "MessageBody": "x"}
    sends = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}
    task = {**sends, "Parameters": parameters}
    calls = create(server, {"StartAt": "Send", "States": {"Send": task}})
    page.goto(f"{ended(server, start(server, calls))}events/")
    expect(page.locator("th.event-resource")).to_be_visible()
