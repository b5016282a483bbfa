"""The editor shows graph, form and text at once, and opens a graph whole if that is readable."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.test_graph_editor import (
    BUILT,
    SHOWN,
    Keyboard,
    Mouse,
    text_of,
    wait_for_state,
    wait_for_text,
)
from tests.acceptance.browser.yard import create, type_definition, unique, waits
from tests.console.web.graph.workflows import TEMPLATE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SCALE = """() => {
  const svg = document.querySelector("#preview svg.flow");
  return svg.clientWidth / svg.viewBox.baseVal.width;
}"""


def box_of(place: Locator) -> dict[str, float]:
    """Return where something stands in the window."""
    box = place.bounding_box()
    assert box is not None
    return {**box, "bottom": box["y"] + box["height"]}


def chain(count: int) -> dict[str, Any]:
    """Return a machine of one line."""
    names = [f"Step {number}" for number in range(count)]
    states: dict[str, Any] = {
        name: {"Type": "Pass", "Next": after} for name, after in itertools.pairwise(names)
    }
    return {"StartAt": "Step 0", "States": {**states, names[-1]: {"Type": "Succeed"}}}


def is_whole_in(page: Page, frame: str, part: str) -> bool:
    """Return whether every part stands within a frame."""
    return bool(
        page.evaluate(
            """([frame, part]) => {
              const room = document.querySelector(frame).getBoundingClientRect();
              return [...document.querySelectorAll(part)].every((each) => {
                const box = each.getBoundingClientRect();
                return box.left >= room.left && box.right <= room.right + 1
                  && box.top >= room.top && box.bottom <= room.bottom + 1;
              });
            }""",
            [frame, part],
        )
    )


def test_graph_form_and_text_are_in_view_at_once(page: Page, server: Server) -> None:
    """The lines of the chosen state are in sight, its form can be applied, nothing scrolls."""
    name = create(server, json.loads(BUILT))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/edit/")
    Mouse(page).choose("Call a function")
    expect(page.locator("#panel-title")).to_have_text("Call a function")
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
    for part, least in (
        ("#preview [data-graph]", 450),
        ("#state-panel", 250),
        (".editor.tall", 200),
    ):
        box = box_of(page.locator(part))
        assert box["height"] >= least, part
        assert box["bottom"] <= 900, part
    expect(page.get_by_role("button", name="Apply")).to_be_in_viewport(ratio=1)
    lines = page.locator(".editor .state-lines").first
    expect(lines).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0


def test_the_text_keeps_its_place_when_the_form_opens(page: Page, server: Server) -> None:
    """Opening, switching and closing a form moves neither the page nor the text's own lines."""
    name = create(server, chain(40))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/edit/")
    Mouse(page).choose("Step 1")
    expect(page.locator("#state-name")).to_have_value("Step 1")
    switch = page.get_by_role("group", name="Beside the graph")
    switch.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator("#state-panel")).to_be_hidden()
    assert box_of(page.locator(".editor.tall"))["height"] > 500
    switch.get_by_role("button", name="Form", exact=True).click()
    expect(page.locator("#text-pane")).to_be_hidden()
    expect(page.locator("#state-name")).to_have_value("Step 1")
    switch.get_by_role("button", name="Form and text").click()
    expect(page.locator(".editor .state-lines").first).to_be_in_viewport()
    switch.get_by_role("button", name="Text", exact=True).click()
    Mouse(page).choose("Step 2")
    expect(page.locator("#state-name")).to_be_in_viewport()  # a press asks for the form


def test_a_narrow_window_has_form_and_text_in_turn(page: Page, server: Server) -> None:
    """Below the graph: a press on a state leads to its form, a press on a problem to its line."""
    page.set_viewport_size({"width": 390, "height": 844})
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    wait_for_state(page, "Nap")
    expect(page.locator("#state-panel")).to_be_hidden()
    expect(page.locator(".editor.tall")).to_be_visible()
    Mouse(page).choose("Nap")
    expect(page.locator("#panel-title")).to_be_focused()
    expect(page.locator("#panel-title")).to_be_in_viewport()
    expect(page.locator("#text-pane")).to_be_hidden()
    switch = page.get_by_role("group", name="Beside the graph")
    expect(switch.get_by_role("button", name="Form and text")).to_be_hidden()
    switch.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator(".editor.tall")).to_be_visible()
    type_definition(page, json.dumps(waits(60), indent=2).replace('"Wait"', '"Weight"'))
    expect(page.locator(".problem").first).to_be_visible()
    switch.get_by_role("button", name="Form", exact=True).click()
    page.locator(".problem").first.click()
    expect(page.locator(".ace_text-input")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_buttons_have_an_order_of_importance(page: Page, server: Server) -> None:
    """One main button saves; a state shows at most six buttons, the others are in its menu."""
    name = create(server, json.loads(BUILT))
    page.goto(f"/machines/{name}/edit/")
    expect(page.locator("main .button.main:visible")).to_have_text(re.compile(r"^\s*Save\s*$"))
    hand = Keyboard(page)
    hand.choose("Call a function")
    expect(page.locator("#panel-title")).to_be_focused()
    expect(page.locator(".state-menu .button:visible")).to_have_count(4)
    hand.focus(lambda label: label == "More")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Wrap in Parallel")).to_be_visible()
    assert axe_faults(page) == []
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")  # closes the menu alone
    expect(page.get_by_role("button", name="Wrap in Parallel")).to_be_hidden()
    expect(page.locator("#panel-title")).to_have_text("Call a function")
    page.keyboard.press("Enter")
    hand.press("Wrap in Parallel")
    wait_for_text(page, '"Branches"')
    hand.press("Undo")
    expect(page.locator("#text")).to_have_value(BUILT)


@pytest.mark.parametrize(("count", "whole"), [(7, True), (40, False)])
def test_a_graph_opens_whole_if_it_is_readable_then(
    page: Page, server: Server, count: int, *, whole: bool
) -> None:
    """A smaller scale than 0.7 is not: such a graph opens readable, at its start."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{create(server, chain(count))}/edit/")
    wait_for_state(page, "Step 1")
    assert is_whole_in(page, "#preview [data-graph]", "#preview .node .box, #preview .end") is whole
    scale = page.evaluate(SCALE)
    assert 0.69 <= scale < 1
    if not whole:
        assert scale > 0.9
        expect(page.locator("#preview [data-start]")).to_be_in_viewport()


def test_an_edit_leaves_the_graph_where_it_was(page: Page, server: Server) -> None:
    """The scale stays, and the chosen state is in view."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{create(server, chain(40))}/edit/")
    hand = Mouse(page)
    page.get_by_label("Find a state").fill("Step 20")
    node = page.locator('#preview a.node[aria-label^="Step 20,"]')
    expect(node).to_be_in_viewport()
    page.get_by_role("button", name="Zoom out").click()
    hand.choose("Step 20")
    expect(page.locator("#state-name")).to_have_value("Step 20")
    before, scale = box_of(node.locator(".box")), page.evaluate(SCALE)
    hand.press_more("Duplicate")
    wait_for_state(page, "Step 20 2")
    fresh = page.locator('#preview a.node[aria-label^="Step 20 2,"]')
    expect(fresh).to_be_in_viewport()
    expect(fresh).to_have_attribute("aria-current", "true")
    after = box_of(node.locator(".box"))
    assert page.evaluate(SCALE) == pytest.approx(scale)
    assert abs(after["x"] - before["x"]) < 2
    assert abs(after["y"] - before["y"]) < 2


def test_the_changes_are_shown_before_they_are_saved(page: Page, server: Server) -> None:
    """What the text changes in the saved definition, without leaving the page."""
    page.goto(f"/machines/{create(server, waits(60))}/edit/")
    wait_for_state(page, "Nap")
    button = page.get_by_role("button", name="Changes", exact=True)
    button.click()
    expect(page.locator("#changes")).to_contain_text("No changes.")
    page.keyboard.press("Escape")
    type_definition(page, json.dumps(waits(71), indent=2))
    button.click()
    expect(page.locator("#changes .removed .text")).to_contain_text('"Seconds": 60')
    expect(page.locator("#changes .added .text")).to_contain_text('"Seconds": 71')
    assert axe_faults(page) == []
    page.get_by_role("button", name="Close", exact=True).last.click()
    expect(page.locator("#changes")).to_be_hidden()


def test_lines_that_the_editor_gave_a_text_are_no_changes(page: Page, server: Server) -> None:
    """A definition that is stored in one line is opened in lines: nothing of it was changed."""
    page.goto(f"/machines/{create(server, json.loads(BUILT))}/edit/")
    wait_for_state(page, "Call a function")
    page.get_by_role("button", name="Changes", exact=True).click()
    expect(page.locator("#changes")).to_contain_text("No changes.")


def test_a_new_machine_keeps_its_name_when_a_template_is_taken(page: Page) -> None:
    """The template is one step of the undo history; the page is not left."""
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    before = text_of(page)
    page.fill("#name", "kept")
    page.select_option("#template", "OrderProcessing")
    page.get_by_role("button", name="Use it").click()
    wait_for_state(page, "Empty order")
    expect(page.locator("#name")).to_have_value("kept")
    expect(page.locator("#begin-note")).to_contain_text("Undo")
    Mouse(page).press("Undo")
    wait_for_state(page, "Greet")
    assert text_of(page) == before


def test_a_new_machine_is_pasted_by_a_button(page: Page) -> None:
    """From the clipboard at once, or by the next Ctrl+V where a browser does not give it."""
    pasted = json.dumps(waits(60))
    for access in (["clipboard-read", "clipboard-write"], ["clipboard-write"]):
        page.context.clear_permissions()
        page.context.grant_permissions(access)
        page.goto("/machines/new/?fresh=1")
        wait_for_state(page, "Greet")
        page.evaluate("text => navigator.clipboard.writeText(text)", pasted)
        page.get_by_role("button", name="Paste", exact=True).click()
        if "clipboard-read" not in access:
            expect(page.locator("#begin-note")).to_contain_text("Ctrl+V")
            expect(page.locator(".ace_text-input")).to_be_focused()
            page.keyboard.press("Control+v")
        wait_for_state(page, "Nap")
        assert page.evaluate(SHOWN) == json.dumps(waits(60), indent=2)


def test_a_state_machine_of_a_pasted_template_is_taken(page: Page) -> None:
    """With its name, type and tags; Undo brings the template back."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    page.evaluate("text => navigator.clipboard.writeText(text)", TEMPLATE)
    page.get_by_role("button", name="Paste", exact=True).click()
    expect(page.locator("#problems-title")).to_have_text("Not a definition")
    page.get_by_role("button", name="Extract Orders").click()
    wait_for_state(page, "Pack it")
    expect(page.locator("#problems-title")).to_have_text("No problems")
    assert page.input_value("#name") == "orders"
    assert page.input_value("#type") == "EXPRESS"
    assert page.input_value("#tags") == "team=shop"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Extract Orders")).to_be_visible()
    assert page.evaluate(SHOWN) == TEMPLATE


def test_an_error_in_the_tags_stands_beside_them(page: Page) -> None:
    """The part of the page that has them is open."""
    page.goto("/machines/new/?fresh=1")
    page.fill("#name", unique("tagged"))
    page.get_by_text("Role and tags").click()
    page.fill("#tags", "no equals sign")
    page.click("[data-save]")
    expect(page.locator("#tags-error")).to_be_in_viewport()
    expect(page.locator("#tags-error")).to_contain_text("is not key=value")
    page.fill("#tags", "team=payments")
    page.click("[data-save]")
    page.wait_for_url("**/machines/tagged-*/")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_of_a_new_machine_is_accessible(page: Page, theme: str, width: int) -> None:
    """Its steps, with the optional fields open; no sideways scroll."""
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    page.get_by_text("Role and tags").click()
    assert axe_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_definition_is_read_and_saved_without_a_script(
    browser: Browser, server: Server, signed_in: Any
) -> None:
    """The plain text field stands in the page, and Save keeps what it has."""
    name = create(server, waits(60))
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"/machines/{name}/edit/")
    expect(page.locator("#text")).to_be_visible()
    expect(page.locator("#text")).to_have_value(json.dumps(waits(60), indent=2))
    page.fill("#text", json.dumps(waits(75), indent=2))
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"**/machines/{name}/definition/")
    expect(page.get_by_label("Text of the definition")).to_contain_text('"Seconds": 75')
    context.close()
