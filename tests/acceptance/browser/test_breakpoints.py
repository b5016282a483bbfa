"""The page of breakpoints in a browser, without a script and at the width of a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.yard import create, start, unique
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def asks(server: Server) -> str:
    """Create a machine that waits for an activity, and then passes; return its name."""
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    states = {
        "Ask": {"Type": "Task", "Resource": activity, "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    }
    return create(server, {"StartAt": "Ask", "States": states})


def finish_task(server: Server, path: str, output: str) -> None:
    """Answer the open task of an execution as its worker."""
    client = server.client()
    name = path.split("/")[2]
    machine = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    states = client.describe_state_machine(stateMachineArn=machine)["definition"]
    arn = states.partition('"Resource": "')[2].partition('"')[0]
    token = client.get_activity_task(activityArn=arn)["taskToken"]
    client.send_task_success(taskToken=token, output=output)


def await_part(page: Page, target: Locator) -> None:
    """Wait for a part of the page; without a script the page has to be loaded again for it."""

    def shown() -> bool:
        if not target.is_visible():
            page.reload()
        return target.is_visible()

    wait_until(shown)


def stop_before_done(page: Page, server: Server) -> str:
    """Set a breakpoint by the page, and let a line reach it; return the page's address."""
    path = start(server, asks(server))
    page.goto(path)
    page.get_by_role("link", name="Breakpoints").click()
    page.select_option("#state", "Done")
    page.get_by_role("button", name="Set breakpoint").click()
    expect(page.locator("main")).to_contain_text("Done, before")
    finish_task(server, path, '{"paid": true}')
    page.goto(f"{path}breakpoints/")
    await_part(page, page.locator("#line-1", has_text="Done"))
    return path


def test_a_line_is_skipped_without_a_script_on_a_phone(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Set, look, edit and skip by plain forms; nothing scrolls sideways."""
    context = browser.new_context(
        base_url=server.url,
        storage_state=signed_in,
        java_script_enabled=False,
        viewport={"width": 390, "height": 800},
    )
    page = context.new_page()
    path = stop_before_done(page, server)
    page.fill("#answer-1", '{"by": "hand"}')
    page.get_by_role("button", name="Skip the state").click()
    await_part(page, page.get_by_text("The execution has ended."))
    expect(page.locator("main")).to_contain_text("Done: skip by")
    page.goto(path)
    await_part(page, page.locator("#status", has_text="Succeeded"))
    context.close()


def test_a_line_that_stands_breaks_no_accessibility_rule(page: Page, server: Server) -> None:
    """Light and dark, with every form open."""
    stop_before_done(page, server)
    page.locator("details summary", has_text="Edit").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert axe_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("main")).to_contain_text("Done continues.")


def test_the_start_form_breaks_no_accessibility_rule(page: Page, server: Server) -> None:
    """Light and dark, with the fields of all breakpoints and faults open; also on a phone."""
    page.goto(f"/machines/{asks(server)}/start/")
    for title in ("More breakpoints", "Inject faults", "More faults"):
        page.locator("summary", has_text=title).click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert axe_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    fits(page)


# -- journeys --------------------------------------------------------------------------------------

READERS: dict[str, dict[str, Any]] = {
    "keyboard": {"viewport": {"width": 1440, "height": 1000}},
    "phone": {"viewport": {"width": 390, "height": 800}},
    "no script": {"viewport": {"width": 390, "height": 800}, "java_script_enabled": False},
}
WAYS = {
    "continue": ("Continue", None, "Done continues.", "{}"),
    "skip": ("Skip the state", '{"by": "skip"}', "Done is skipped.", '{"by": "skip"}'),
    "answer": ("Answer the task", '{"by": "hand"}', "Call is answered.", '{"by": "hand"}'),
}
"""Way -> its button, the output that is typed, the message, and the output of the execution."""
_MOST_TABS = 150


@pytest.fixture(params=READERS)
def reader(
    browser: Browser, server: Server, signed_in: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Page, str]]:
    """Return the page of a reader, and which reader that is."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, **READERS[request.param]
    )
    page = context.new_page()
    watch = Watch(page)
    yield page, request.param
    context.close()
    assert not watch.faults


def reach(page: Page, target: Locator) -> None:
    """Press Tab until a part of the page has the focus."""
    expect(target).to_be_visible()
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if target.evaluate("part => part === document.activeElement"):
            return
    raise AssertionError(f"no Tab leads to {target}")


def press(page: Page, who: str, target: Locator) -> None:
    """Press a button or link: with Enter by the keyboard, else with the pointer."""
    if who != "keyboard":
        target.click()
        return
    reach(page, target)
    page.keyboard.press("Enter")


def fill(page: Page, who: str, target: Locator, text: str) -> None:
    """Replace the text of a field."""
    if who != "keyboard":
        target.fill(text)
        return
    reach(page, target)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def choose(page: Page, who: str, target: Locator, option: str) -> None:
    """Select an option of a list."""
    if who != "keyboard":
        target.select_option(option)
        return
    reach(page, target)
    page.keyboard.type(option)
    expect(target).to_have_value(option)


def fits(page: Page) -> None:
    """Check that nothing scrolls sideways."""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(wide)


@pytest.mark.parametrize("way", WAYS)
def test_a_breakpoint_is_set_reached_and_left(
    reader: tuple[Page, str], server: Server, way: str
) -> None:
    """From the start form to the end of the execution, by mouse, keyboard, phone, no script."""
    page, who = reader

    def arrive(target: Locator) -> None:
        if who == "no script":
            await_part(page, target)
        expect(target).to_be_visible()

    button, output, said, result = WAYS[way]
    activity = server.client().create_activity(name=unique("ask"))["activityArn"]
    states = {
        "Call": {"Type": "Task", "Resource": activity, "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    }
    if way != "answer":
        states = {"Done": {"Type": "Pass", "End": True}}
    state = next(iter(states))
    name = create(server, {"StartAt": state, "States": states})
    page.goto(f"/machines/{name}/start/")
    fits(page)
    choose(page, who, page.locator("#break_state"), state)
    press(page, who, page.get_by_role("button", name="Start execution"))
    opens = page.get_by_role("link", name="Open breakpoints")
    arrive(opens)
    fits(page)
    press(page, who, opens)
    line = page.get_by_role("region", name=state)
    arrive(line.filter(has_text="Before its work"))
    fits(page)
    if output is not None:
        fill(page, who, line.get_by_label("Output in place of the work"), output)
    press(page, who, line.get_by_role("button", name=button))
    expect(page.locator("main, [role=status]").filter(has_text=said).first).to_be_visible()
    arrive(page.get_by_text("The execution has ended."))
    press(page, who, page.get_by_role("link", name="Back to the execution"))
    arrive(page.locator("#status", has_text="Succeeded"))
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{name}:{page.url.split('/')[-2]}"
    assert server.client().describe_execution(executionArn=arn)["output"] == result
