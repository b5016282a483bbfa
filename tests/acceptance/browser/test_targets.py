"""A person sees where calls go, for all and for one state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, unique

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def calling(server: Server) -> str:
    """Create a machine with a callback that has no target, and a child; return its name."""
    token = {"QueueUrl": "https://q", "MessageBody": {"token.$": "$$.Task.Token"}}
    return create(
        server,
        {
            "StartAt": "Ask",
            "States": {
                "Ask": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                    "Parameters": token,
                    "Next": "Child",
                },
                "Child": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::states:startExecution.sync:2",
                    "Parameters": {"StateMachineArn": "arn:aws:states:us-east-1:1:stateMachine:x"},
                    "End": True,
                },
            },
        },
        unique("calls"),
    )


def test_targets_are_read_from_the_navigation(page: Page) -> None:
    """Tasks, then Targets: the samples' functions and activities are there."""
    page.goto("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Tasks").click()
    page.get_by_role("link", name="Targets").click()
    expect(page.locator("h1")).to_have_text("Targets")
    expect(page.locator("tbody").first).to_contain_text("Python, in this server")
    expect(page.locator("main")).to_contain_text("No AWS services yet")
    assert axe_faults(page) == []


def test_what_would_this_state_call(page: Page, server: Server) -> None:
    """Each Task has a line: what, where, or why nothing; its parameters open in place."""
    name = calling(server)
    page.goto(f"/machines/{name}/")
    page.locator(".tabs").get_by_role("link", name="Definition").click()
    page.get_by_role("link", name="Calls").click()
    ask, child = page.locator("tbody tr").all()
    expect(ask).to_contain_text("Nothing")
    expect(ask).to_contain_text("No target for 'sqs'")
    expect(child).to_contain_text("stepfunctions StartExecution")
    expect(child).to_contain_text("this server")
    ask.get_by_text("Parameters").click()
    expect(ask.locator(".json")).to_contain_text("$$.Task.Token")
    assert axe_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto("/targets/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
