"""The graph builds a definition: by mouse, by keyboard alone, and back by undo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.yard import (
    create,
    log_in,
    login_of,
    type_definition,
    unique,
    until,
    waits,
)
from tests.console.web.graph.workflows import maps

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SHOWN = "ace.edit(document.querySelector('.editor')).getValue()"
BUILT = (Path(__file__).parent / "built_by_graph.asl.json").read_text("utf-8").strip()
NAME_OF_FOCUS = """() => {
  const element = document.activeElement;
  const label = element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent;
  return (label ?? element.textContent).replace(/\\s+/g, " ").trim();
}"""


def text_of(page: Page) -> Any:
    """Return the definition in the editor."""
    return json.loads(page.evaluate(SHOWN))


def wait_for_text(page: Page, part: str) -> None:
    """Wait until the text of the editor has a part."""
    until(page, f"part => {SHOWN}.includes(part)", arg=part)


def wait_for_state(page: Page, name: str, *, there: bool = True) -> None:
    """Wait until the graph shows a state, or no longer does."""
    expect(page.locator(f'#state-list [data-name="{name}"]')).to_have_count(1 if there else 0)


class Mouse:
    """Builds by pressing."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, name: str) -> None:
        """Press a button of the panel, or something in the graph."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def press_more(self, name: str) -> None:
        """Open the menu of the state in the panel, then press one of its buttons."""
        self.page.locator("#state-panel summary", has_text="More").first.click()
        self.press(name)

    def insert(self, where: str, piece: str) -> None:
        """Press + on an edge, then a piece of the palette."""
        self.press(f"Insert a state {where}")
        self.press(piece)

    def choose(self, name: str) -> None:
        """Press the node of a state."""
        self.page.locator("#preview").get_by_role("link", name=f"{name},").first.click()

    def fill(self, label: str, text: str) -> None:
        """Type into a field of the panel."""
        self.page.locator("#state-panel").get_by_label(label, exact=True).fill(text)


class Keyboard(Mouse):
    """Builds with Tab, Enter and letters alone."""

    def focus(self, fits: Callable[[str], bool]) -> None:
        """Press Tab until something with a fitting name has the focus."""
        for _ in range(300):
            self.page.keyboard.press("Tab")
            if fits(self.page.evaluate(NAME_OF_FOCUS)):
                return
        raise AssertionError("Tab reaches nothing of this name")

    def press(self, name: str) -> None:
        """Move to a button, then Enter."""
        self.focus(lambda label: label == name)
        self.page.keyboard.press("Enter")

    def choose(self, name: str) -> None:
        """Move to the node of a state, then Enter."""
        self.focus(lambda label: label.startswith(f"{name},"))
        self.page.keyboard.press("Enter")

    def fill(self, label: str, text: str) -> None:
        """Move to a field and type over what it has."""
        self.focus(lambda name: name == label)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)


def build(hand: Mouse) -> None:
    """Build 12 states from the starter: Parallel, Choice, Map, Catch, Retry."""
    page = hand.page
    hand.choose("Greet")
    hand.fill("Name", "Receive order")
    hand.press("Apply")
    wait_for_state(page, "Receive order")
    hand.insert("after Receive order", "Choice chooses one of several paths")
    wait_for_state(page, "Done")
    hand.insert("between Choice and Done", "Parallel runs branches in parallel")
    wait_for_state(page, "Branch B")
    hand.insert("between Choice and Done", "Map runs states for each item")
    wait_for_state(page, "Each item")
    hand.insert("at the start of Parallel, part 2", "Wait waits for a time")
    wait_for_state(page, "Wait")
    hand.insert("between Wait and Branch B", "SQS message sqs:sendMessage")
    wait_for_state(page, "Send message")
    hand.insert("between Map and Done", "Lambda function lambda:invoke")
    wait_for_state(page, "Call a function")
    hand.press("Add Catch")
    wait_for_state(page, "Call a function failed")
    hand.choose("Call a function")
    expect(page.locator("#state-name")).to_have_value("Call a function")
    hand.press("Add Retry")
    expect(page.locator("#state-panel legend").first).to_have_text("Retry 1")


@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_a_machine_of_twelve_states_is_built_by_the_graph_alone(
    page: Page, server: Server, kind: type[Mouse]
) -> None:
    """What is saved is what a person would have written, by mouse and by keyboard alike."""
    name = unique("built")
    page.goto("/machines/new/?fresh=1")
    wait_for_state(page, "Greet")
    hand = kind(page)
    build(hand)
    expect(page.locator("#problems-title")).to_have_text("No problems")
    page.fill("#name", name)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    stored = server.client().describe_state_machine(stateMachineArn=arn)["definition"]
    assert stored == BUILT
    assert stored.count('"Type":') == 12  # every state has one, and nothing else has


def test_undo_and_redo_go_over_graph_and_text(page: Page, server: Server) -> None:
    """One history: an edit of the graph is one step, typed text is another."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    hand = Mouse(page)
    before = text_of(page)
    hand.insert("between Before and Nap", "Pass passes or sets data")
    wait_for_state(page, "Pass")
    inserted = text_of(page)
    hand.press_more("Duplicate")
    wait_for_state(page, "Pass 2")
    hand.press("Undo")
    wait_for_state(page, "Pass 2", there=False)
    assert text_of(page) == inserted
    hand.press("Undo")
    wait_for_state(page, "Pass", there=False)
    assert text_of(page) == before
    hand.press("Redo")
    wait_for_state(page, "Pass")
    assert text_of(page) == inserted


def test_a_form_rewrites_its_own_lines(page: Page, server: Server) -> None:
    """Everything else keeps its formatting; what is wrong is said beside the form."""
    definition = json.dumps(waits(60), indent=4).replace('"Seconds": 60', '"Seconds":   60')
    name = unique("m")
    page.goto("/machines/new/?fresh=1")
    type_definition(page, definition)
    wait_for_state(page, "Nap")
    hand = Mouse(page)
    hand.choose("Nap")
    hand.fill("Seconds", "61")
    hand.fill("Name", "After")
    hand.press("Apply")
    expect(page.locator("#state-panel [role=alert]")).to_contain_text("already")
    assert page.evaluate(SHOWN) == definition
    hand.fill("Name", "Nap")
    hand.fill("Seconds", "61")
    hand.press("Apply")
    expect(page.locator("#text")).to_have_value(definition.replace("  60", "  61"))
    assert page.evaluate(SHOWN) == definition.replace("  60", "  61")
    page.fill("#name", name)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/")


def test_text_and_graph_show_the_same_state(page: Page, server: Server) -> None:
    """A node marks its lines; the caret marks its node."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    type_definition(page, json.dumps(waits(60), indent=2))
    expect(page.locator('#state-list [data-name="Nap"]')).to_have_attribute("data-first", "8")
    Mouse(page).choose("After")
    expect(page.locator(".editor .state-lines")).not_to_have_count(0)
    page.evaluate("ace.edit(document.querySelector('.editor')).gotoLine(8)")
    page.evaluate("ace.edit(document.querySelector('.editor')).focus()")
    page.evaluate("ace.edit(document.querySelector('.editor')).gotoLine(9)")
    expect(page.locator("#preview .at-caret")).to_have_attribute("aria-label", "Nap, Wait")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_panels_are_accessible_and_narrow(
    page: Page, server: Server, theme: str, width: int
) -> None:
    """The form and the palette: no violation, no sideways scroll."""
    name = create(server, json.loads(BUILT))
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/machines/{name}/edit/")
    hand = Mouse(page)
    for step in (
        lambda: hand.choose("Call a function"),
        lambda: hand.choose("Choice"),
        lambda: hand.press("Add to default"),
    ):
        step()
        expect(page.locator("#panel-title")).to_be_focused()
        assert axe_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_groups_of_a_large_machine_are_folded(page: Page) -> None:
    """A press unfolds one and leaves the text alone; an edit inside keeps it open and in place."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, json.dumps(json.loads(maps(60)), indent=2))
    wait_for_state(page, "map60")
    before = page.evaluate(SHOWN)
    inside = page.locator('#preview a.node[aria-label^="second9,"]')
    expect(inside).to_have_count(0)
    sign = page.get_by_role("link", name="Unfold map9, 2 states")
    sign.focus()
    page.keyboard.press("Enter")
    expect(inside).to_be_in_viewport()
    expect(page.get_by_role("link", name="Fold map9", exact=True)).to_be_focused()
    assert page.evaluate(SHOWN) == before
    hand = Mouse(page)
    hand.choose("second9")
    expect(page.locator("#state-name")).to_have_value("second9")
    hand.press_more("Duplicate")
    expect(page.locator('#preview a.node[aria-label^="second9 2,"]')).to_be_in_viewport()
    hand.press("Undo")
    wait_for_state(page, "second9 2", there=False)
    assert page.evaluate(SHOWN) == before
    page.get_by_role("link", name="Fold map9", exact=True).click()
    expect(inside).to_have_count(0)


def test_problems_stand_in_the_gutter_in_short_words(page: Page) -> None:
    """A mistake in the JSON names its place, not the whole definition."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, BUILT.replace('"Retry": [', '"Retry": '))
    expect(page.locator(".problem").first).to_contain_text(
        "Unexpected close marker ']': expected '}' (for Object at line 37)"
    )
    expect(page.locator(".problem").first).not_to_contain_text("StartAt")
    page.locator(".problem").first.click()
    expect(page.locator(".editor .ace_gutter-cell.ace_error")).to_have_count(1)


def test_ctrl_space_completes(page: Page) -> None:
    """Names of states as the value of Next, fields as a key."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, BUILT)
    wait_for_state(page, "Each item")
    page.evaluate("ace.edit(document.querySelector('.editor')).gotoLine(8, 15)")
    page.keyboard.press("Control+Space")
    popup = page.locator(".ace_autocomplete")
    expect(popup).to_be_visible()
    expect(popup).to_contain_text("Parallel")


def test_ctrl_space_inserts_a_pattern(page: Page) -> None:
    """Among states a pattern with its commas; its name is typed over wherever it stands."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, json.dumps(waits(60), indent=2))
    wait_for_state(page, "Nap")
    editor = "ace.edit(document.querySelector('.editor'))"
    page.evaluate(f"{editor}.gotoLine(12, 6)")  # behind the state Nap and its comma
    page.keyboard.press("Enter")
    page.keyboard.type("Poll")
    page.keyboard.press("Control+Space")
    popup = page.locator(".ace_autocomplete")
    expect(popup).to_contain_text("Poll until done")
    page.keyboard.press("Enter")
    page.keyboard.type("Ask")
    wait_for_text(page, '"Next": "Ask"')
    after = json.loads(page.evaluate(SHOWN))["States"]
    assert list(after) == [
        *("Before", "Nap", "Ask", "Is it done?", "Wait for the job", "Job failed", "After"),
    ]
    assert after["Wait for the job"]["Next"] == "Ask"


def test_ctrl_space_completes_fields_of_a_state(page: Page) -> None:
    """In quotes or not, a field's snippet stands with its comma before what follows."""
    page.goto("/machines/new/?fresh=1")
    type_definition(page, json.dumps(waits(60), indent=2))
    wait_for_state(page, "Nap")
    editor = "ace.edit(document.querySelector('.editor'))"
    page.evaluate(f"{editor}.gotoLine(5, 21)")  # after the Type of Before, and its comma
    page.keyboard.press("Enter")
    page.keyboard.type('"Assign')
    page.keyboard.press("Control+Space")
    expect(page.locator(".ace_autocomplete")).to_contain_text("Assign a variable")
    page.keyboard.press("Enter")
    wait_for_text(page, '"answer.$"')
    after = json.loads(page.evaluate(SHOWN))["States"]["Before"]
    assert list(after) == ["Type", "Assign", "Next"]


def test_a_new_express_machine_begins_with_a_template_and_runs(page: Page, server: Server) -> None:
    """Type, template, Create and go on to start in one press."""
    name = unique("quick")
    page.goto("/machines/new/?template=HelloWorld")
    page.fill("#name", name)
    page.select_option("#type", "EXPRESS")
    page.get_by_role("button", name="Create and run").click()
    page.wait_for_url(f"**/machines/{name}/start/")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    assert server.client().describe_state_machine(stateMachineArn=arn)["type"] == "EXPRESS"


def test_a_definition_in_one_line_is_opened_formatted(page: Page, server: Server) -> None:
    """Saving it unchanged changes nothing; a state of it is tested from its node."""
    name = create(server, waits(60))
    page.goto(f"/machines/{name}/edit/")
    assert page.evaluate(SHOWN) == json.dumps(waits(60), indent=2)
    page.click("[data-save]")
    page.wait_for_url(f"**/machines/{name}/definition/")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    stored = server.client().describe_state_machine(stateMachineArn=arn)["definition"]
    assert stored == json.dumps(waits(60))
    page.goto(f"/machines/{name}/edit/")
    Mouse(page).choose("After")
    page.get_by_role("button", name="Test this state").click()
    expect(page.locator("select[name=state]")).to_have_value("After")


def test_a_file_is_uploaded_into_the_editor(page: Page) -> None:
    """One in a single line is formatted."""
    page.goto("/machines/new/?fresh=1")
    content = json.dumps(waits(60)).encode()
    page.set_input_files(
        "#upload", {"name": "a.asl.json", "mimeType": "application/json", "buffer": content}
    )
    wait_for_state(page, "Nap")
    assert page.evaluate(SHOWN) == json.dumps(waits(60), indent=2)


def test_a_viewer_sees_no_edit(browser: Browser, server: Server) -> None:
    """Neither the editor nor its addresses, nor a restore beside the revisions."""
    name = create(server, waits(60))
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    watch = Watch(page)
    log_in(page, login_of(server, unique("viewer"), "viewer"))
    page.goto(f"/machines/{name}/versions/")
    expect(page.locator("#revisions tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    expect(page.locator("#revisions form")).to_have_count(0)
    assert not watch.faults
    for address in ("edit/_draft", "edit/"):
        answer = page.request.post(f"/machines/{name}/{address}", form={"text": "{}"})
        assert answer.status == 403
    answer = page.request.get(f"/machines/{name}/edit/")
    assert answer.status == 403
    context.close()
