"""The page of one execution: each test is named after what it proves (console.md, section 2)."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, held, start

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def demo_25k(server: Server) -> str:
    """Return the page of an execution with 24,998 events: a Map over 6,248 items."""
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    over = {"Type": "Map", "ItemProcessor": each, "Next": "After"}
    states = {"Over": over, "After": {"Type": "Fail", "Error": "=Last"}}
    machine = create(server, {"StartAt": "Over", "States": states})
    return ended(server, start(server, machine, list(range(6247))))


def test_E11_the_event_table_comes_in_pages_and_filters(
    page: Page, server: Server, demo_25k: str
) -> None:
    """Of 25,000 events few are in the page; a filter has an address and Back takes it away."""
    page.goto(demo_25k)
    before_s = server.processor_s()
    page.goto(f"{demo_25k}events/")
    assert server.processor_s() - before_s < 0.5
    assert page.locator("#events > tr").count() <= 200
    expect(page.locator("#range")).to_contain_text("1 to 50 of 24,995 events")
    page.select_option("#type", "FailStateEntered")
    expect(page.locator("#events > tr")).to_have_count(1)
    assert "type=FailStateEntered" in page.url
    page.go_back()
    expect(page.locator("#events > tr")).to_have_count(50)
    page.fill("#text", "executionfailed")
    page.keyboard.press("Enter")
    expect(page.locator("#events > tr")).to_have_count(1)
    expect(page.locator("#events .type")).to_have_text("ExecutionFailed")
    expect(page.locator("#text")).to_be_focused()


def test_E11_the_filtered_events_are_had_as_files(page: Page, demo_25k: str) -> None:
    """CSV and JSON hold the rows the filter lets through."""
    page.goto(f"{demo_25k}events/?state=After")
    with page.expect_download() as waiting:
        page.click(".downloads a:has-text('CSV')")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text("utf-8"))))
    assert [row["type"] for row in rows] == ["FailStateEntered"]
    with page.expect_download() as waiting:
        page.click(".downloads a:has-text('JSON')")
    assert len(json.loads(Path(waiting.value.path()).read_text("utf-8"))["events"]) == 1


def test_E12_a_deep_link_shows_and_focuses_its_row(page: Page, demo_25k: str) -> None:
    """The row is in view; several rows stay open by address; a link leads to the cause."""
    page.goto(f"{demo_25k}events/?at=20000")
    expect(page.locator("#e20000")).to_be_focused()
    expect(page.locator("#e20000")).to_be_in_viewport()
    page.click("#e19999 [data-open]")
    expect(page.locator("#d19999 .pairs")).to_be_visible()
    expect(page.locator("#d20000 .pairs")).to_be_visible()
    assert "open=19999.20000" in page.url
    page.reload()
    expect(page.locator("tr.detail")).to_have_count(2)
    previous = page.locator("#d20000 a[data-event]")
    number = previous.get_attribute("data-event")
    previous.click()
    expect(page.locator(f"#e{number}")).to_be_focused()
    page.goto(f"{demo_25k}events/#e123")
    expect(page.locator("#e123")).to_be_focused()


@pytest.fixture(scope="module")
def demo_200(server: Server) -> str:
    """Return the page of a Map over 200 items: #37 failed, and after a retry #141."""
    fails = [
        {
            "And": [
                {"Variable": "$.try", "NumericEquals": attempt},
                {"Variable": "$.i", "NumericEquals": index},
            ],
            "Next": "Break",
        }
        for attempt, index in enumerate((37, 141))
    ]
    look = {"Type": "Choice", "Choices": fails, "Default": "Fine"}
    cause = {"errorMessage": "no stock", "errorType": "Oops", "stackTrace": ["at a", "at b"]}
    broken = {"Type": "Fail", "Error": "Bad", "Cause": json.dumps(cause)}
    states = {"Look": look, "Fine": {"Type": "Pass", "End": True}, "Break": broken}
    over = {
        "Type": "Map",
        "MaxConcurrency": 1,
        "ItemsPath": "$.items",
        "ItemSelector": {"i.$": "$$.Map.Item.Index", "try.$": "$$.State.RetryCount"},
        "ItemProcessor": {"StartAt": "Look", "States": states},
        "Retry": [{"ErrorEquals": ["Bad"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        "End": True,
    }
    machine = create(server, {"StartAt": "Over", "States": {"Over": over}})
    return ended(server, start(server, machine, {"items": list(range(200))}))


def test_E5_each_attempt_is_a_row(page: Page, server: Server) -> None:
    """A state with two retries has three rows, each with error, cause and the wait after it."""
    branch = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops", "Cause": "why"}}}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}]
    state = {"Type": "Parallel", "Branches": [branch], "Retry": retry, "End": True}
    machine = create(server, {"StartAt": "P", "States": {"P": state}})
    page.goto(f"{ended(server, start(server, machine))}?step=P")
    words = ["Input & output", "Data flow", "Details", "Definition", "Retries (2)", "Events"]
    expect(page.locator("#panel .tabs a")).to_have_text(words)
    page.click("#panel [data-tab=attempts]")
    rows = page.locator("#step-attempts tbody tr")
    expect(rows).to_have_count(3)
    for row in rows.all():
        expect(row).to_contain_text("Oops")
        expect(row).to_contain_text("why")
    expect(rows.nth(0).locator("td").last).to_contain_text("1.")
    expect(rows.nth(2).locator("td").last).to_have_text("-")


def test_E6_the_data_flow_equals_what_TestState_tells(page: Page, server: Server) -> None:
    """Each stage on display is the value that TestState DEBUG gives for the same input."""
    state = {
        "Type": "Pass",
        "InputPath": "$.order",
        "Parameters": {"id.$": "$.id"},
        "ResultPath": "$.made",
        "OutputPath": "$.made",
        "End": True,
    }
    path = start(server, create(server, {"StartAt": "P", "States": {"P": state}}), DATA)
    asked = {"definition": json.dumps(state), "input": json.dumps(DATA), "inspectionLevel": "DEBUG"}
    told = server.client().test_state(**asked)["inspectionData"]
    page.goto(f"{ended(server, path)}?step=P&tab=flow")
    for key in ("input", "afterInputPath", "afterParameters", "afterResultPath"):
        title = {"input": "Input"}.get(key, f"After {key.removeprefix('after')}")
        raw = page.locator(f"[data-stage='{title}'] template[data-raw]")
        shown = raw.evaluate("one => one.content.textContent")
        assert json.loads(shown) == json.loads(told[key]), key


DATA = {"order": {"id": 7, "name": "x"}, "other": [1, 2]}


def test_E7_the_banner_leads_to_what_failed(page: Page, demo_200: str) -> None:
    """The link selects step and iteration, and the heading of the step gets the focus."""
    page.goto(demo_200)
    page.click("#outcome >> text=View step details")
    expect(page.locator("#panel-title")).to_be_focused()
    expect(page.locator("#panel-title")).to_contain_text("Break")
    assert "step=Break" in page.url
    assert "iteration=141" in page.url
    expect(page.locator("#panel")).to_contain_text("no stock")


def test_E8_other_iterations_lead_to_the_failed_one(page: Page, demo_200: str) -> None:
    """One press moves from #37 to #141; a number can be typed; the last attempt is counted."""
    page.goto(f"{demo_200}?step=Break&iteration=37")
    page.click("#panel >> text=Next failed #141")
    expect(page.locator("#step-status")).to_contain_text("iteration #141")
    assert "iteration=141" in page.url
    expect(page.locator("#panel >> text=Previous failed")).to_have_count(0)
    expect(page.locator("#iteration-counts")).to_have_text(
        "142 iterations of Over: 1 failed, 141 succeeded, 58 not started"
    )
    page.fill("#iteration", "37")
    page.keyboard.press("Enter")
    expect(page.locator("#step-status")).to_contain_text("iteration #37")
    page.keyboard.press("f")
    expect(page.locator("#step-status")).to_contain_text("iteration #141")
    page.fill("#iteration", "5")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text("Not entered in iteration #5")
    page.goto(f"{demo_200}?step=Over&iteration=5")
    expect(page.locator("#panel-title")).to_contain_text("Fine")


def test_E9_the_table_of_steps_is_a_tree_with_filters(page: Page, demo_200: str) -> None:
    """The failed ones leave an iteration and its parents; a column sorts; Back restores."""
    page.goto(f"{demo_200}?view=steps")
    rows = page.locator(".step-table tbody tr")
    expect(rows).to_have_count(6)
    page.select_option("#step-status-filter", "FAILED")
    expect(rows).to_have_count(3)
    expect(page.locator(".step-table [data-iteration]")).to_have_count(1)
    expect(rows.first).to_contain_text("Over")
    assert "status=FAILED" in page.url
    page.go_back()
    expect(rows).to_have_count(6)
    page.click(".step-table th .sort >> text=Duration")
    expect(page.locator(".step-table th[aria-sort=ascending]")).to_contain_text("Duration")
    page.click(".step-table [data-iteration='141'] a")
    expect(page.locator("#step-status")).to_contain_text("iteration #141")


def test_E9_chosen_columns_are_kept_and_followed_live(page: Page, server: Server) -> None:
    """The choice stands in another page, too; a tick fills the cells there are, and no others."""
    definition, complete = held(server)
    path = start(server, create(server, definition))
    page.goto(f"{path}?view=steps&step=Nap")
    page.click("summary:has-text('Columns')")
    for word in ("Type", "Status", "Entered", "Visits"):
        page.uncheck(f"form[aria-label=Columns] label:has-text('{word}') input")
    page.check("form[aria-label=Columns] label:has-text('Left') input")
    page.click("form[aria-label=Columns] >> text=Apply")
    expect(page).to_have_url(f"{server.url}{path}?view=steps&step=Nap#workflow")
    words = page.locator(".step-table th")
    expect(words).to_have_text(["Name", re.compile("Left"), "Duration"])
    nap = page.locator(".step-table [data-step=Nap]")
    expect(nap.locator("[data-cell=left]")).to_have_text("-")
    complete()
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(nap.locator("[data-cell=left] time")).to_be_visible()
    page.goto("/machines/Wait/")
    page.goto(f"{path}?view=steps")
    expect(words).to_have_count(3)
    assert axe_faults(page) == []
    page.click("summary:has-text('Columns')")
    page.click("form[aria-label=Columns] >> text=Reset")
    expect(words).to_have_count(6)


def test_the_view_switch_names_the_current_view_to_screen_readers(
    page: Page, demo_200: str
) -> None:
    """``aria-current`` is "true" on one link; its empty value means false."""
    page.goto(f"{demo_200}?view=graph")
    for view in ("steps", "timeline", "graph"):
        page.click(f"[data-view-link={view}]")
        expect(page.locator(f"[data-view-link={view}]")).to_have_attribute("aria-current", "true")
        expect(page.locator("[data-view-link][aria-current]")).to_have_count(1)


def test_E10_a_retried_bar_tells_each_attempt_in_words(page: Page, demo_200: str) -> None:
    """A segment for each attempt and for the pause between them, with a text each."""
    page.goto(f"{demo_200}?view=timeline")
    bar = page.locator("#bar-n1")
    expect(bar).to_be_visible()
    texts = bar.locator("rect[role=img]").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert [text.split(",")[0] for text in texts] == [
        "attempt 1 failed",
        "waited",
        "attempt 2 failed",
    ]
    sizes = bar.locator("rect[role=img]").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert min(sizes) >= 2


def test_import_shows_a_history_from_elsewhere(page: Page, server: Server, demo_200: str) -> None:
    """What the CLI prints is uploaded and pasted, and seen with the same page."""
    machine = demo_200.split("/")[2]
    client = server.client()
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:run"
    events = client.get_execution_history(executionArn=arn, maxResults=1000)
    rest = client.get_execution_history(
        executionArn=arn, maxResults=1000, nextToken=events["nextToken"]
    )
    told = {"events": [*events["events"], *rest["events"]]}
    described = client.describe_state_machine_for_execution(executionArn=arn)
    page.goto("/executions/")
    page.click("text=Import an execution")
    page.set_input_files(
        "#uploads",
        {
            "name": "history.json",
            "mimeType": "application/json",
            "buffer": json.dumps(told, default=str).encode(),
        },
    )
    page.fill("#machine", json.dumps({"definition": described["definition"], "name": "theirs"}))
    page.get_by_role("button", name="Import").click()
    expect(page.locator("#status")).to_have_text("Failed")
    expect(page.locator("#actions")).to_contain_text("read-only")
    page.click("#outcome >> text=View step details")
    expect(page.locator("#step-status")).to_contain_text("iteration #141")
    page.click("#panel [data-tab=flow]")
    expect(page.locator("[data-stage=Input]")).to_contain_text("141")
    assert axe_faults(page) == []
