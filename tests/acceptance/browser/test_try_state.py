"""A state is tested from its page, from a step's panel and from the editor."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import ROLE, create, ended, start, type_definition

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

INNER = {"Type": "Pass", "Parameters": {"was.$": "$.n"}, "End": True}
DEFINITION: dict[str, Any] = {
    "StartAt": "Shape",
    "States": {
        "Shape": {
            "Type": "Pass",
            "InputPath": "$.order",
            "Parameters": {"id.$": "$.id"},
            "ResultPath": "$.made",
            "Next": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {"StartAt": "Inner", "States": {"Inner": INNER}},
            "ResultSelector": {"all.$": "$"},
            "End": True,
        },
    },
}
DATA = {"order": {"id": 7, "name": "x"}, "items": [{"n": 1}]}


def told(page: Page) -> dict[str, Any]:
    """Return each stage on display; one that is the same as before has the value from there."""
    expect(page.locator("#result [data-result-status]")).to_be_visible()
    stages: dict[str, Any] = {}
    value = None
    for stage in page.locator("#result [data-stage]").all():
        raw = stage.locator("template[data-raw]")
        if raw.count():
            value = json.loads(raw.evaluate("one => one.content.textContent"))
        stages[str(stage.get_attribute("data-stage"))] = value
    return stages


def test_E20_a_state_tested_from_the_page_does_what_the_API_says(
    page: Page, server: Server
) -> None:
    """From a step's panel with the recorded input; then another state, with a mocked result."""
    machine = create(server, DEFINITION)
    path = ended(server, start(server, machine, DATA))
    asked = {"definition": json.dumps(DEFINITION), "roleArn": ROLE, "inspectionLevel": "DEBUG"}
    page.goto(f"{path}?step=Shape")
    page.click("#panel >> text=Test this state")
    expect(page.locator("h1")).to_have_text("Test a state")
    page.click("text=Test state")
    answer = server.client().test_state(stateName="Shape", input=json.dumps(DATA), **asked)
    expect(page.locator("[data-result-status]")).to_have_attribute(
        "data-result-status", answer["status"]
    )
    expect(page.locator("[data-next]")).to_have_text(answer["nextState"])
    shown, data = told(page), answer["inspectionData"]
    assert shown["After Parameters"] == json.loads(data["afterParameters"])
    assert shown["After InputPath"] == json.loads(data["afterInputPath"])
    assert shown["After ResultPath"] == json.loads(data["afterResultPath"])
    page.select_option("#state", "Each")
    page.check("#mock-result")
    page.fill("#result-text", "[5]")
    page.click("text=Test state")
    expect(page.locator("#result-title")).to_have_text("Result of Each")
    mock = {"result": "[5]"}
    answer = server.client().test_state(
        stateName="Each", input=json.dumps(DATA), mock=mock, **asked
    )
    assert told(page)["Output"] == json.loads(answer["output"]) == {"all": [5]}
    assert axe_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_E20_a_mistake_in_the_input_names_its_place(page: Page, server: Server) -> None:
    """Nothing is sent, and the focus goes to the field; a mocked error needs its fields only."""
    page.goto(f"/machines/{create(server, DEFINITION)}/test/?state=Inner")
    expect(page.locator("#error")).to_be_hidden()
    page.check("#mock-error")
    expect(page.locator("#error")).to_be_visible()
    expect(page.locator("#result-text")).to_be_hidden()
    page.check("#mock-none")
    type_definition(page, '{"n": ')
    page.click("text=Test state")
    expect(page.locator("#input-error")).to_contain_text("line 1, column 7")
    expect(page.locator("#result")).to_contain_text("No result yet")
    type_definition(page, '{"n": 4}')
    page.click("text=Test state")
    assert told(page)["Output"] == {"was": 4}


def test_E20_what_is_in_the_editor_is_tested_and_not_lost(page: Page, server: Server) -> None:
    """The text as it stands there, unsaved; the way back has it again."""
    machine = create(server, DEFINITION)
    page.goto(f"/machines/{machine}/edit/")
    only = {"StartAt": "Only", "States": {"Only": {"Type": "Succeed", "Comment": "unsaved"}}}
    type_definition(page, json.dumps(only))
    page.click("text=Test a state")
    page.click("text=Test state")
    expect(page.locator("[data-result-status]")).to_contain_text("Succeeded")
    page.click("text=Back to the editor")
    expect(page.locator("h1")).to_contain_text("Edit")
    assert "unsaved" in page.locator("#text").input_value()
    page.goto(f"/machines/{machine}/definition/")
    expect(page.locator(".body > .code")).not_to_contain_text("unsaved")


def test_E20_it_works_without_a_script(browser: Browser, server: Server, signed_in: Path) -> None:
    """A plain form; a refusal says where it went wrong."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"/machines/{create(server, DEFINITION)}/test/")
    page.fill("#input", json.dumps(DATA)[:-1])
    page.click("text=Test state")
    expect(page.locator("#input-error")).to_contain_text("line 1, column")
    page.fill("#input", json.dumps(DATA))
    page.click("text=Test state")
    expect(page.locator("[data-result-status]")).to_contain_text("Succeeded")
    context.close()
