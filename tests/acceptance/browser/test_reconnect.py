"""The end of an edge is dragged to another state, or sent there by keyboard."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.test_graph_editor import (
    SHOWN,
    Keyboard,
    Mouse,
    text_of,
    wait_for_state,
    wait_for_text,
)
from tests.acceptance.browser.yard import create, type_definition, until, waits

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

ORDER = """{
  "StartAt": "Which?",
  "States": {
    "Which?": {
      "Type": "Choice",
      "Choices": [
        { "Variable": "$.n", "NumericEquals": 1,   "Next": "Pay" },
        { "Variable": "$.n", "NumericEquals": 2,   "Next": "Pay" }
      ],
      "Default": "Both"
    },
    "Pay": { "Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
             "Parameters": {"FunctionName": "Pay", "Rate":1.50},
             "Catch": [ {"ErrorEquals": ["States.ALL"], "Next": "Sorry"} ], "Next": "Both" },
    "Both": {
      "Type": "Parallel",
      "Branches": [
        { "StartAt": "Left", "States": { "Left": { "Type": "Pass", "End": true } } },
        { "StartAt": "Right", "States": { "Right": { "Type": "Pass", "End": true } } }
      ],
      "End": true
    },
    "Sorry": { "Type": "Pass", "Next": "Both" }
  }
}"""


def open_order(page: Page) -> None:
    """Show the machine in the editor of a new one."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, ORDER)
    wait_for_state(page, "Right")


def grip(page: Page, source: str, target: str, occurrence: int = 0) -> Locator:
    """Return what takes the end of an edge."""
    edge = f'[data-source="{source}"][data-target="{target}"][data-occurrence="{occurrence}"]'
    return page.locator(f".grip{edge} .dot")


def drag(page: Page, end: Locator, target: Locator) -> None:
    """Take the end of an edge to something, and hold it there."""
    end.scroll_into_view_if_needed()
    end.hover(force=True)
    page.mouse.down()
    box = target.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12, steps=4)


def node(page: Page, name: str) -> Locator:
    """Return the box of a state."""
    return page.locator(f'#preview a.node[aria-label^="{name},"]')


@pytest.mark.parametrize(
    ("source", "target", "occurrence", "drop", "before", "after"),
    [
        ("Which?", "Pay", 1, "Sorry", '2,   "Next": "Pay"', '2,   "Next": "Sorry"'),
        ("Which?", "Both", 0, "Pay", '"Default": "Both"', '"Default": "Pay"'),
        ("Pay", "Sorry", 0, "Both", '"Next": "Sorry"', '"Next": "Both"'),
        ("Pay", "Both", 0, "Sorry", '], "Next": "Both"', '], "Next": "Sorry"'),
    ],
    ids=["rule", "default", "catch", "next"],
)
def test_a_dragged_edge_changes_its_own_field(
    page: Page, source: str, target: str, occurrence: int, drop: str, before: str, after: str
) -> None:
    """Every other character stays; one Undo takes it back, one Redo makes it again."""
    open_order(page)
    page.click("[aria-label='Fit the graph']")
    drag(page, grip(page, source, target, occurrence), node(page, drop).locator(".box"))
    expect(node(page, drop)).to_have_class(re.compile("drop-here"))
    page.mouse.up()
    changed = ORDER.replace(before, after)
    assert changed != ORDER
    until(page, f"text => {SHOWN} === text", arg=changed)
    expect(page.locator("#announce")).to_have_text(f"{source} leads to {drop} now.")
    Mouse(page).press("Undo")
    until(page, f"text => {SHOWN} === text", arg=ORDER)
    Mouse(page).press("Redo")
    until(page, f"text => {SHOWN} === text", arg=changed)


def test_only_states_of_the_same_level_take_an_edge(page: Page) -> None:
    """A branch's state does not; neither does the empty ground, and Escape lets go."""
    open_order(page)
    page.click("[aria-label='Fit the graph']")
    Mouse(page).choose("Pay")
    expect(page.locator("#state-name")).to_have_value("Pay")
    end = grip(page, "Which?", "Both")
    drag(page, end, node(page, "Sorry").locator(".box"))
    targets = page.locator(".drop-target")
    expect(targets).to_have_count(4)
    expect(node(page, "Left")).not_to_have_class(re.compile("drop-target"))
    page.keyboard.press("Escape")
    expect(page.locator(".dragging, .drop-target, .drop-here, .drag-line")).to_have_count(0)
    page.mouse.up()
    expect(page.locator("#state-name")).to_have_value("Pay")  # the panel is still open
    drag(page, end, page.locator("#graph-title"))
    page.mouse.up()
    expect(page.locator("#announce")).to_have_text(
        "Nothing was changed: drop the edge on a marked state."
    )
    assert page.evaluate(SHOWN) == ORDER


def test_a_next_is_dragged_to_the_end_and_back(page: Page, server: Server) -> None:
    """Next becomes End and End becomes Next; what nothing leads to stays in sight."""
    page.goto(f"/machines/{create(server, waits(60))}/edit/")
    before = text_of(page)
    drag(page, grip(page, "Nap", "After"), page.locator("rect.end:not([data-start])"))
    page.mouse.up()
    wait_for_text(page, '"Seconds": 60,\n      "End": true')
    expect(page.locator(".problem")).to_contain_text('State "After" is not reachable.')
    expect(node(page, "After")).to_be_visible()
    drag(page, grip(page, "Nap", ""), node(page, "After").locator(".box"))
    page.mouse.up()
    expect(page.locator("#problems-title")).to_have_text("No problems")
    assert text_of(page) == before


def test_an_edge_has_another_target_by_keyboard_alone(page: Page, server: Server) -> None:
    """The + of an edge opens its panel, which offers the states of its level."""
    page.goto(f"/machines/{create(server, waits(60))}/edit/")
    hand = Keyboard(page)
    hand.press("Insert a state between Before and Nap")
    expect(page.locator("#panel-title")).to_have_text("Edge between Before and Nap")
    assert axe_faults(page) == []
    hand.focus(lambda label: label == "This edge leads to")
    page.keyboard.type("Aft")
    hand.press("Change target")
    wait_for_text(page, '"Next": "After"\n    },\n    "Nap"')
    expect(page.locator("#panel-title")).to_have_text("Before")
    assert list(text_of(page)["States"]) == ["Before", "Nap", "After"]


def test_a_press_on_an_end_opens_the_panel_of_its_edge(page: Page, server: Server) -> None:
    """A pointer that does not move drags nothing."""
    page.goto(f"/machines/{create(server, waits(60))}/edit/")
    grip(page, "Before", "Nap").click(force=True)
    expect(page.locator("#panel-title")).to_have_text("Edge between Before and Nap")
    assert text_of(page) == waits(60)


COVERED = """() => {
  const boxes = (selector) =>
    [...document.querySelectorAll(`#preview ${selector}`)].map((it) => it.getBoundingClientRect());
  const [pluses, labels] = [boxes(".insert circle"), boxes(".edge-label-box")];
  const meet = (one, other) =>
    one.left < other.right - 1 && other.left < one.right - 1 &&
    one.top < other.bottom - 1 && other.top < one.bottom - 1;
  const gap = (one, other) => Math.hypot(one.left - other.left, one.top - other.top);
  const covered = pluses.filter((plus) => labels.some((label) => meet(plus, label)));
  const near = pluses.filter((plus) =>
    pluses.some((other) => other !== plus && gap(plus, other) < plus.width - 2));
  return [pluses.length, covered.length, near.length];
}"""
SLANTED = {
    "StartAt": "Check",
    "States": {
        "Check": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.items[0]", "IsPresent": True, "Next": "Both"}],
            "Default": "Refuse",
        },
        "Refuse": {"Type": "Fail", "Error": "Empty"},
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "Left", "States": {"Left": {"Type": "Pass", "End": True}}},
                {"StartAt": "Right", "States": {"Right": {"Type": "Pass", "End": True}}},
            ],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Refuse"}],
            "Next": "Done",
        },
        "Done": {"Type": "Succeed"},
    },
}


def test_what_inserts_a_state_covers_no_label(page: Page, server: Server) -> None:
    """Each + has its own place on its edge, beside labels, also where an edge is slanted."""
    page.goto(f"/machines/{create(server, SLANTED)}/edit/")
    wait_for_state(page, "Done")
    expect(page.locator("#preview .insert")).to_have_count(7)
    assert page.evaluate(COVERED) == [7, 0, 0]


def test_the_panel_of_an_edge_says_which_it_is(page: Page, server: Server) -> None:
    """Two edges may lead to the same state; the graph marks the one, and no state."""
    page.goto(f"/machines/{create(server, SLANTED)}/edit/")
    wait_for_state(page, "Done")
    hand, title = Mouse(page), page.locator("#panel-title")
    hand.choose("Check")
    expect(title).to_have_text("Check")
    hand.press("Insert a state at the start of Both, part 2")
    expect(title).to_have_text("Edge at the start of Both branch 2")
    marked = page.locator("#preview [aria-current]")
    expect(marked).to_have_count(1)
    expect(marked).to_have_attribute("aria-label", "Insert a state at the start of Both, part 2")
    hand.press("Insert a state between Both and Refuse")
    expect(title).to_have_text("Edge between Both and Refuse catch 1")
    hand.press("Cancel")
    expect(marked).to_have_count(0)


def test_the_start_of_a_branch_with_a_loop_is_its_own(page: Page) -> None:
    """Its first state has an arrow of its own; a press on it never changes another level."""
    loop = {
        "StartAt": "Try",
        "States": {
            "Try": {"Type": "Pass", "Next": "Good?"},
            "Good?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.ok", "IsPresent": True, "Next": "Try"}],
                "Default": "Go",
            },
            "Go": {"Type": "Succeed"},
        },
    }
    config = {"ProcessorConfig": {"Mode": "INLINE"}}
    each = {"Type": "Map", "ItemProcessor": {**config, **loop}, "End": True}
    page.goto("/machines/new/?fresh=1")
    type_definition(page, json.dumps({"StartAt": "Each", "States": {"Each": each}}, indent=2))
    wait_for_state(page, "Go")
    expect(
        page.get_by_role("button", name="Insert a state at the start", exact=True)
    ).to_have_count(1)
    end = page.locator('.grip[data-owner="Each"] .dot')
    drag(page, end, node(page, "Good?").locator(".box"))
    page.mouse.up()
    wait_for_text(page, '"StartAt": "Good?"')
    assert text_of(page)["StartAt"] == "Each"
