"""The form of a state: what is typed into it is never lost, and never sets anything back."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.test_editor_layout import chain
from tests.acceptance.browser.test_graph_editor import (
    BUILT,
    SHOWN,
    Mouse,
    text_of,
    wait_for_state,
    wait_for_text,
)
from tests.acceptance.browser.yard import create, type_definition, unique, until, waits

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

YAML = """Comment: hello
StartAt: A
States:
  # a comment
  A:
    Type: Pass
    End: true
"""


def opened(page: Page, server: Server) -> tuple[str, Mouse]:
    """Open the editor of a machine with a Wait."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    wait_for_state(page, "Nap")
    return name, Mouse(page)


def shows(page: Page, state: str) -> None:
    """Wait until the panel shows a state."""
    expect(page.locator("#panel-title")).to_have_text(state)


def stored(server: Server, name: str) -> str:
    """Return the definition that the server has."""
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    return str(server.client().describe_state_machine(stateMachineArn=arn)["definition"])


def test_a_form_is_applied_when_it_is_left(page: Page, server: Server) -> None:
    """Press another state, +, Escape or Save without Apply: what was typed is in the text."""
    name, hand = opened(page, server)
    hand.choose("Nap")
    hand.fill("Seconds", "61")
    hand.choose("After")
    shows(page, "After")
    wait_for_text(page, '"Seconds": 61')
    hand.choose("Nap")
    shows(page, "Nap")
    hand.fill("Name", "Rest")
    hand.press("Add after")
    shows(page, "Edge between Rest and After")
    hand.choose("Rest")
    shows(page, "Rest")
    hand.fill("Seconds", "62")
    page.keyboard.press("Escape")
    wait_for_text(page, '"Seconds": 62')
    expect(page.locator('#preview a[aria-label="Rest, Wait"]')).to_be_focused()
    page.keyboard.press("Enter")
    shows(page, "Rest")
    hand.fill("Seconds", "63")
    page.keyboard.press("Control+s")
    page.wait_for_url(f"**/machines/{name}/definition/")
    assert json.loads(stored(server, name))["States"]["Rest"]["Seconds"] == 63


def test_what_is_refused_stays_in_the_form(page: Page, server: Server) -> None:
    """The reason stands above; nothing else is done until it is mended or discarded."""
    _, hand = opened(page, server)
    hand.choose("Before")
    hand.fill("Result", "{oops")
    hand.choose("After")
    expect(page.locator("#state-panel [role=alert]")).to_contain_text("Result: this is not JSON")
    shows(page, "Before")
    result = page.locator("#state-panel").get_by_label("Result", exact=True)
    expect(result).to_have_value("{oops")
    hand.press("Discard changes")
    expect(result).to_have_value("")
    hand.choose("After")
    shows(page, "After")


def test_a_broken_text_loses_nothing_of_the_form(page: Page, server: Server) -> None:
    """The graph says that it is older, the form keeps what was typed until the text is mended."""
    _, hand = opened(page, server)
    hand.choose("Nap")
    hand.fill("Seconds", "61")
    type_definition(page, json.dumps(waits(60), indent=2)[:-1])
    expect(page.locator("#preview-note")).to_have_text("Last valid version")
    expect(page.locator("#preview svg.flow")).to_have_css("opacity", "0.55")
    hand.choose("After")
    expect(page.locator("#state-panel [role=alert]")).to_contain_text("not JSON")
    seconds = page.locator("#state-panel").get_by_label("Seconds", exact=True)
    expect(seconds).to_have_value("61")
    type_definition(page, json.dumps(waits(60), indent=2))
    expect(page.locator("#preview-note")).to_be_empty()
    expect(seconds).to_have_value("61")
    hand.choose("After")
    shows(page, "After")
    assert text_of(page)["States"]["Nap"]["Seconds"] == 61


def test_a_form_follows_undo_and_typed_text(page: Page, server: Server) -> None:
    """A form never sets back what it did not change; a state that is gone closes it."""
    _, hand = opened(page, server)
    hand.choose("Nap")
    hand.fill("Seconds", "61")
    hand.press("Apply")
    wait_for_text(page, '"Seconds": 61')
    hand.press("Undo")
    seconds = page.locator("#state-panel").get_by_label("Seconds", exact=True)
    expect(seconds).to_have_value("60")
    page.get_by_text("More fields").click()
    hand.fill("Comment", "a nap")
    type_definition(page, json.dumps(waits(59), indent=2))
    expect(page.locator("#draft-note")).to_have_text("Draft kept")
    hand.press("Apply")
    wait_for_text(page, "a nap")
    assert text_of(page)["States"]["Nap"] == {
        "Type": "Wait",
        "Comment": "a nap",
        "Seconds": 59,
        "Next": "After",
    }
    hand.insert("between Before and Nap", "Pass passes or sets data")
    shows(page, "Pass")
    page.keyboard.press("Control+z")
    wait_for_state(page, "Pass", there=False)
    expect(page.locator("#panel-title")).to_have_count(0)
    page.keyboard.press("Control+z")
    until(page, f"!{SHOWN}.includes('a nap')")


def test_states_are_copied_from_one_editor_to_another(page: Page, server: Server) -> None:
    """Ctrl+C in one tab, Ctrl+V in the other: names stay unique, targets exist."""
    first = create(server, json.loads(BUILT))
    page.goto(f"/machines/{first}/edit/")
    Mouse(page).choose("Call a function")
    shows(page, "Call a function")
    page.keyboard.press("Control+c")
    expect(page.locator("#announce")).to_have_text("Copied Call a function.")
    name, hand = opened(page, server)
    hand.press("Insert a state between Before and Nap")
    shows(page, "Edge between Before and Nap")
    page.keyboard.press("Control+v")
    shows(page, "Call a function")
    page.keyboard.press("Control+v")
    shows(page, "Call a function 2")
    expect(page.locator("#problems-title")).to_have_text("No problems")
    states = text_of(page)["States"]
    assert list(states) == ["Before", "Call a function", "Call a function 2", "Nap", "After"]
    assert [states[each]["Next"] for each in list(states)[:3]] == list(states)[1:4]
    page.keyboard.press("Control+s")
    page.wait_for_url(f"**/machines/{name}/definition/")


def test_the_conversion_of_yaml_is_undone(page: Page) -> None:
    """Undo brings the YAML with its comments back, redo the JSON."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, YAML)
    hand = Mouse(page)
    hand.press("Convert to JSON")
    wait_for_state(page, "A")
    expect(page.locator("#announce")).to_have_text("Converted to JSON.")
    converted = text_of(page)
    hand.press("Undo")
    expect(page.get_by_role("button", name="Convert to JSON")).to_be_visible()
    assert page.evaluate(SHOWN) == YAML
    hand.press("Redo")
    expect(page.locator("#problems-title")).to_have_text("No problems")
    assert text_of(page) == converted


def test_the_graph_has_the_tools_of_the_other_graphs(page: Page, server: Server) -> None:
    """Find a state, small map, direction: unsaved text and undo stay."""
    name = create(server, json.loads(BUILT))
    page.goto(f"/machines/{name}/edit/")
    hand = Mouse(page)
    expect(page.locator(".mini-map")).to_be_visible()
    hand.choose("Receive order")
    hand.press_more("Duplicate")
    wait_for_state(page, "Receive order 2")
    hand.press("Draw the graph from left to right")
    expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "right")
    wait_for_state(page, "Receive order 2")
    expect(page.locator(".mini-map")).to_have_count(1)
    page.get_by_label("Find a state").fill("send")
    expect(page.locator("#preview .found")).to_be_in_viewport()
    page.keyboard.press("Enter")
    shows(page, "Send message")
    hand.press("Draw the graph from the top down")
    expect(page.locator("[data-graph]")).to_have_attribute("data-direction", "down")
    hand.press("Undo")
    wait_for_state(page, "Receive order 2", there=False)


def test_nothing_breaks_the_security_policy(page: Page, server: Server) -> None:
    """A reader's own size of a text field is no style to copy; see ``Watch`` for the console."""
    name = create(server, json.loads(BUILT))
    page.goto(f"/machines/{name}/edit/")
    hand = Mouse(page)
    hand.choose("Receive order")
    expect(page.locator("#panel-title")).to_be_focused()
    field = page.locator("#f-Result")
    box = field.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] + 60, steps=4)
    page.mouse.up()
    until(page, "document.getElementById('f-Result').style.height !== ''")
    hand.choose("Branch A")
    shows(page, "Branch A")
    page.locator(".ace_content").click()
    page.keyboard.press("Control+f")
    page.keyboard.type("Pass")
    page.keyboard.press("Escape")
    type_definition(page, '{"StartAt": ')
    expect(page.locator("#problems-title")).to_have_text("1 problem")
    page.locator(".ace_gutter-cell").first.hover()
    expect(page.locator(".ace_tooltip")).to_be_visible()


def test_the_note_of_a_text_in_one_line_stands_at_the_top(page: Page, server: Server) -> None:
    """No empty band is above it."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    note = page.get_by_text("Shown formatted; stored unchanged.")
    note_box, body = note.bounding_box(), page.locator(".definition-text").bounding_box()
    assert note_box is not None
    assert body is not None
    assert note_box["y"] - body["y"] <= 16


def test_a_name_that_exists_keeps_what_was_typed(page: Page, server: Server) -> None:
    """The message stands at the name, the text and the form of a state are in the editor."""
    name = create(server, waits(60))
    page.goto("/machines/new/?fresh=1")
    hand = Mouse(page)
    hand.choose("Greet")
    hand.fill("Name", 'Grüß "dich" \\ 日本')
    page.fill("#name", name)
    page.click("[data-save]")
    expect(page.locator("#name-error")).to_contain_text("Already Exists")
    assert list(text_of(page)["States"]) == ['Grüß "dich" \\ 日本']
    page.fill("#name", unique("other"))
    page.click("[data-save]")
    page.wait_for_url("**/machines/other-*/")


def test_a_definition_pasted_in_one_line_is_formatted(page: Page) -> None:
    """Two hundred states, whole; a part of a line stays as it is."""
    page.goto("/machines/new/?fresh=1")
    names = [f"Step {number}" for number in range(200)]
    following = itertools.pairwise(names)
    states: dict[str, Any] = {name: {"Type": "Pass", "Next": after} for name, after in following}
    definition = {"StartAt": "Step 0", "States": {**states, names[-1]: {"Type": "Succeed"}}}
    type_definition(page, json.dumps(definition))
    page.locator(".ace_text-input").focus()
    for key in ("Control+a", "Control+x", "Control+v"):
        page.keyboard.press(key)
    wait_for_text(page, '{\n  "StartAt"')
    assert page.evaluate(SHOWN) == json.dumps(definition, indent=2)
    wait_for_state(page, "Step 199")
    expect(page.locator("#problems-title")).to_have_text("No problems")


def test_what_to_insert_is_found_by_typing(page: Page, server: Server) -> None:
    """By a part of its name or its service; Enter inserts the first."""
    _, hand = opened(page, server)
    hand.press("Insert a state between Before and Nap")
    hand.fill("Find a state to insert", "batch")
    expect(page.locator("#state-panel .piece:visible")).to_have_count(1)
    page.keyboard.press("Enter")
    shows(page, "Run a batch job")
    expect(page.locator("#problems-title")).to_have_text("No problems")


def test_a_form_begins_at_its_top_after_apply(page: Page, server: Server) -> None:
    """Also where the reader had scrolled to its end; and so does the form of another state."""
    page.set_viewport_size({"width": 1440, "height": 640})
    _, hand = opened(page, server)
    scroll = "document.getElementById('state-panel').scrollTop"
    to_end = "document.getElementById('state-panel').scrollTop = 10_000"
    hand.choose("Nap")
    shows(page, "Nap")
    hand.fill("Seconds", "61")
    page.evaluate(to_end)
    assert page.evaluate(scroll) > 0
    page.get_by_role("button", name="Apply").click()
    wait_for_text(page, '"Seconds": 61')
    expect(page.locator("#panel-title")).to_be_focused()
    assert page.evaluate(scroll) == 0
    page.evaluate(to_end)
    hand.choose("After")
    shows(page, "After")
    expect(page.locator("#panel-title")).to_be_focused()
    assert page.evaluate(scroll) == 0


def test_the_delete_key_deletes_a_state_and_undo_brings_it_back(page: Page, server: Server) -> None:
    """The chosen one, or that with the focus in the graph; in a field it deletes characters."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    hand = Mouse(page)
    hand.choose("Nap")
    expect(page.locator("#panel-title")).to_be_focused()
    page.keyboard.press("Delete")
    wait_for_state(page, "Nap", there=False)
    assert text_of(page)["States"]["Before"]["Next"] == "After"
    expect(page.locator("#state-panel [data-selected]")).to_have_count(0)
    hand.press("Undo")
    wait_for_state(page, "Nap")
    assert text_of(page) == waits(60)
    hand.choose("Nap")
    expect(page.locator("#state-name")).to_have_value("Nap")
    page.locator("#state-name").press("End")
    page.keyboard.press("Backspace")
    expect(page.locator("#state-name")).to_have_value("Na")
    page.get_by_role("button", name="Discard changes").click()
    page.locator("#preview").get_by_role("link", name="After,").focus()
    page.keyboard.press("Backspace")
    wait_for_state(page, "After", there=False)
    hand.press("Insert a state between Before and Nap")
    expect(page.locator("#panel-title")).to_be_focused()
    page.keyboard.press("Delete")  # the panel of an edge has no state
    page.keyboard.press("Escape")
    expect(page.locator("#state-panel .empty")).to_be_visible()
    assert list(text_of(page)["States"]) == ["Before", "Nap"]


def test_a_refusal_is_gone_when_the_text_has_changed(page: Page) -> None:
    """It was said of the text that was no JSON."""
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    type_definition(page, '{"StartAt": ')
    expect(page.locator("#problems-title")).to_have_text("1 problem")
    Mouse(page).choose("Greet")
    expect(page.locator("#state-panel [role=alert]")).to_contain_text("The text is not JSON")
    type_definition(page, json.dumps(waits(60), indent=2))
    wait_for_state(page, "Nap")
    expect(page.locator("#state-panel [role=alert]")).to_have_count(0)


def test_what_to_insert_is_in_sight_on_the_page_of_a_new_machine(page: Page) -> None:
    """The first pieces stand in the window, under the field that finds the others."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    Mouse(page).press("Insert a state after Greet")
    pieces = page.locator(".palette .piece")
    for place in range(6):
        expect(pieces.nth(place)).to_be_in_viewport(ratio=1)
    expect(page.locator(".editor.tall")).to_be_in_viewport(ratio=0.95)


def test_the_lines_of_an_inserted_state_are_shown(page: Page, server: Server) -> None:
    """As those of a state that is pressed: the reader sees what an insertion wrote."""
    name = create(server, chain(40))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{name}/edit/")
    expect(page.locator(".editor .ace_line").first).to_be_in_viewport()
    hand = Mouse(page)
    hand.insert("between Step 30 and Step 31", "Wait waits for a time")
    shows(page, "Wait")
    expect(page.locator(".editor .state-lines").first).to_be_in_viewport()
    until(
        page,
        """() => {
          const editor = ace.edit(document.querySelector('.editor'));
          const lines = editor.getValue().split('\\n');
          const row = lines.findIndex((line) => line.includes('"Wait": {'));
          return editor.isRowFullyVisible(row);
        }""",
    )
