"""The page of an execution: the graph comes first, and the panel opens with what tells most."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, ended, start, unique, waits

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

CAUSE = '{"errorType": "OrderRejected", "errorMessage": "The card could not be charged"}'
FAILS = {
    "StartAt": "Look",
    "States": {
        "Look": {"Type": "Pass", "Next": "Rejected"},
        "Rejected": {"Type": "Fail", "Error": "OrderRejected", "Cause": CAUSE},
    },
}


@pytest.fixture(scope="module")
def failed(server: Server) -> str:
    """Return the page of an execution that failed."""
    return ended(server, start(server, create(server, FAILS), {"order": 4711}))


def graph_box(page: Page) -> dict[str, float]:
    """Return where the graph stands in the window."""
    box: dict[str, float] = page.locator("[data-graph]").evaluate(
        "graph => graph.getBoundingClientRect().toJSON()"
    )
    return box


def test_the_graph_is_above_the_fold(page: Page, failed: str) -> None:
    """Of a failed execution, with its banner: 600 px of it on a desk, and early on a phone."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(failed)
    box = graph_box(page)
    assert min(box["bottom"], 900) - box["top"] >= 600
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(failed)
    expect(page.locator("[data-graph]")).to_be_visible()
    assert graph_box(page)["top"] <= 400
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_smallest_text_of_the_graph_can_be_read(page: Page, failed: str) -> None:
    """It opens with no text below 11 px, whatever the size of the machine."""
    page.goto(failed)
    sizes = page.locator("svg.flow").evaluate(
        """graph => [...graph.querySelectorAll("text")].map((text) =>
            parseFloat(getComputedStyle(text).fontSize)
                * graph.getBoundingClientRect().width / graph.viewBox.baseVal.width)"""
    )
    assert min(sizes) >= 11


@pytest.mark.parametrize("width", [390, 768, 1100, 1280, 1440])
def test_the_head_of_the_page_fits(page: Page, failed: str, width: int) -> None:
    """The name of the console is one line, and nothing stands beyond the edge."""
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(failed)
    brand = page.locator(".top .brand").bounding_box()
    assert brand is not None
    assert brand["height"] < 40
    edges = page.locator(".top .tools > *").evaluate_all(
        "parts => parts.map((part) => part.getBoundingClientRect().right)"
    )
    assert max(edges) <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("size", [(844, 390), (768, 1024), (1024, 768)])
def test_the_name_of_the_execution_is_whole_beside_its_buttons(
    page: Page, server: Server, size: tuple[int, int]
) -> None:
    """On a phone in landscape and on a tablet; a generated name is a UUID."""
    machine = create(server, FAILS)
    name = str(uuid.uuid4())
    page.goto(ended(server, start(server, machine, name=name)))
    page.set_viewport_size({"width": size[0], "height": size[1]})
    shown = page.locator(".execution-name")
    expect(shown).to_have_text(name)
    assert shown.evaluate("name => name.scrollWidth <= name.clientWidth && name.clientWidth > 150")
    expect(page.get_by_role("link", name="New execution")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_on_paper_the_head_covers_nothing(page: Page, server: Server) -> None:
    """It stands above the facts, and what went wrong is whole, also when the page was scrolled."""
    cause = "\n".join(f"line {number} of the cause" for number in range(60))
    fails = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "E", "Cause": cause}}}
    page.goto(ended(server, start(server, create(server, fails))))
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("window.scrollY") > 0
    page.emulate_media(media="print")
    parts = [page.locator(part).bounding_box() for part in (".execution-bar", "main > .facts")]
    assert all(parts)
    head, facts = (part for part in parts if part)
    assert head["y"] + head["height"] <= facts["y"] + 1
    whole = "body => body.scrollHeight <= body.clientHeight + 1"
    assert page.locator(".failure-body").evaluate(whole)


def test_a_view_chosen_while_the_network_fails_is_read(
    context: BrowserContext, failed: str
) -> None:
    """The steps are on their way, the reader turns to the timeline, and the steps never come."""
    page = context.new_page()  # without the watch over faults: one is made
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(lambda address: "view=steps" in address, hold)
    page.goto(failed)
    with page.expect_request(lambda request: "view=steps" in request.url):
        page.click("[data-view-link=steps]")
    page.click("[data-view-link=timeline]")
    expect(page).to_have_url(re.compile("view=timeline"))
    while held:
        held.pop().abort()
    expect(page.locator("#timeline tr", has_text="Rejected")).to_be_visible()


def test_status_and_live_stay_in_view(page: Page, server: Server) -> None:
    """Scrolled to the end of the page, its reader still sees how the execution stands."""
    page.goto(start(server, create(server, waits(600))))
    for size in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.locator("#status")).to_be_in_viewport()
        expect(page.locator("#live")).to_be_in_viewport()
        covered = page.locator("#status").evaluate(
            """(status) => {
                const { left, top, width, height } = status.getBoundingClientRect();
                const shown = document.elementFromPoint(left + width / 2, top + height / 2);
                return !status.contains(shown);
            }"""
        )
        assert not covered, size


def test_a_failed_execution_opens_with_its_failing_step(page: Page, failed: str) -> None:
    """Without a choice in the address; its own input is one press away, and Back returns."""
    page.goto(failed)
    expect(page.locator("#panel-title")).to_contain_text("Rejected")
    expect(page.locator("[data-node][aria-current=true]")).to_have_attribute(
        "data-step", "Rejected"
    )
    expect(page.locator("#panel")).to_contain_text("The card could not be charged")
    page.click("#panel-title a")
    expect(page.locator("#panel-title")).to_contain_text("Execution input and output")
    expect(page.locator("#panel .json").first).to_contain_text("4711")
    expect(page.locator("[data-node][aria-current=true]")).to_have_count(0)
    page.reload()
    expect(page.locator("#panel-title")).to_contain_text("Execution input and output")
    page.go_back()
    expect(page.locator("#panel-title")).to_contain_text("Rejected")


def test_the_panel_follows_the_running_state_until_its_reader_chooses(
    page: Page, server: Server
) -> None:
    """It moves on to the state that runs, and ends with the output; a choice stays."""
    client = server.client()
    arn = client.create_activity(name=unique("work"))["activityArn"]

    def complete() -> None:
        """Complete the task that the execution waits for."""
        token = client.get_activity_task(activityArn=arn)["taskToken"]
        client.send_task_success(taskToken=token, output='{"made": 4711}')

    states = {
        "First": {"Type": "Task", "Resource": arn, "Next": "Second"},
        "Second": {"Type": "Task", "Resource": arn, "Next": "Last"},
        "Last": {"Type": "Pass", "End": True},
    }
    machine = create(server, {"StartAt": "First", "States": states})
    page.goto(start(server, machine))
    title = page.locator("#panel-title")
    expect(title).to_contain_text("First")
    complete()
    expect(title).to_contain_text("Second")
    expect(page.locator("[data-node][aria-current=true]")).to_have_attribute("data-step", "Second")
    complete()
    expect(title).to_contain_text("Execution input and output")
    expect(page.locator("#result .json")).to_contain_text("4711")
    page.goto(start(server, machine, name="chosen"))
    expect(title).to_contain_text("First")
    page.click("a[data-step=Last]")
    expect(title).to_contain_text("Last")
    complete()
    complete()
    expect(page.locator("#status")).to_have_text("Succeeded")
    expect(title).to_contain_text("Last")


def test_the_panel_is_as_wide_as_its_reader_wants(page: Page, failed: str) -> None:
    """Dragged and moved by keys; the next page has the same width."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(failed)
    edge, panel = page.locator("[data-panel-edge]"), page.locator("#panel")
    before = panel.bounding_box()
    place = edge.bounding_box()
    assert before is not None
    assert place is not None
    page.mouse.move(place["x"] + 3, place["y"] + 100)
    page.mouse.down()
    page.mouse.move(place["x"] - 150, place["y"] + 100, steps=4)
    page.mouse.up()
    dragged = panel.bounding_box()
    assert dragged is not None
    assert abs(dragged["width"] - before["width"] - 150) < 10
    edge.focus()
    page.keyboard.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", str(round(dragged["width"]) - 24))
    page.reload()
    expect(edge).to_have_attribute("aria-valuenow", str(round(dragged["width"]) - 24))


def test_definition_and_logs_are_one_press_away(page: Page, server: Server) -> None:
    """The definition is the one it ran with, though the machine has another one now."""
    machine = create(server, FAILS)
    path = ended(server, start(server, machine))
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    changed = '{"StartAt": "Other", "States": {"Other": {"Type": "Succeed"}}}'
    server.client().update_state_machine(stateMachineArn=arn, definition=changed)
    page.goto(path)
    page.get_by_role("link", name="Definition", exact=True).first.click()
    expect(page.locator(".definition .code")).to_contain_text("Rejected")
    expect(page.locator("main")).to_contain_text("The definition has changed since")
    assert axe_faults(page) == []
    page.goto(path)
    page.get_by_role("link", name="Logs", exact=True).click()
    expect(page).to_have_url(re.compile(r"/logs/\?execution=run$"))


@pytest.fixture(scope="module")
def mapped(server: Server) -> str:
    """Return the page of a Map over four items: #1 was caught, #2 failed."""
    connect = {"StartAt": "C", "States": {"C": {"Type": "Fail", "Error": "ConnectionError"}}}
    kinds = [
        {"Variable": "$.kind", "StringEquals": kind, "Next": name}
        for kind, name in (("caught", "Call"), ("bad", "Break"))
    ]
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Fine"}]
    states = {
        "Look": {"Type": "Choice", "Choices": kinds, "Default": "Fine"},
        "Call": {"Type": "Parallel", "Branches": [connect], "Catch": catch, "Next": "Fine"},
        "Fine": {"Type": "Pass", "End": True},
        "Break": {"Type": "Fail", "Error": "Bad"},
    }
    each = {
        "Type": "Map",
        "MaxConcurrency": 1,
        "ItemProcessor": {"StartAt": "Look", "States": states},
        "End": True,
    }
    machine = create(server, {"StartAt": "Each", "States": {"Each": each}})
    items = [{"kind": kind} for kind in ("good", "caught", "bad", "good")]
    return ended(server, start(server, machine, items))


def test_a_chosen_iteration_repaints_the_inside_of_the_map(page: Page, mapped: str) -> None:
    """The states inside show that iteration alone, and all of them again without a choice."""
    page.goto(f"{mapped}?step=Look")
    node = page.locator
    expect(node("a[data-step=Call]")).to_contain_class("caught")
    expect(node("a[data-step=Break]")).to_contain_class("failed")
    lines = node(".edge.taken").count()
    page.fill("#iteration", "0")
    page.keyboard.press("Enter")
    expect(node("a[data-step=Call]")).to_contain_class("idle")
    expect(node("a[data-step=Break]")).to_contain_class("idle")
    expect(node("a[data-step=Fine]")).to_contain_class("succeeded")
    expect(node(".edge.taken")).not_to_have_count(lines)  # those of the other iterations are out
    page.reload()
    expect(node("a[data-step=Break]")).to_contain_class("idle")
    page.click("a[data-step=Each] .title >> nth=0")
    expect(node("a[data-step=Break]")).to_contain_class("failed")


def test_a_node_in_error_opens_its_worst_visit(page: Page, mapped: str) -> None:
    """Not the last one: the Map went on to other iterations after the error was caught."""
    page.goto(mapped)
    page.click("a[data-step=Call] .title >> nth=0")
    expect(page.locator("#step-status")).to_contain_text("iteration #1")
    expect(page.locator("#panel")).to_contain_text("ConnectionError")


def test_f_steps_through_failed_and_caught(page: Page, mapped: str) -> None:
    """In the order they happened, over all states, and round again."""
    page.goto(f"{mapped}?step=")
    title = page.locator("#panel-title")
    seen = []
    for _ in range(4):
        before = title.inner_text()
        page.keyboard.press("f")
        expect(title).not_to_have_text(before)
        seen.append(title.locator("bdi").inner_text())
    assert seen == ["Call", "C", "Break", "Call"]


def test_the_banner_leads_to_the_caught_error(page: Page, server: Server) -> None:
    """What was caught, where and after how many attempts; one press opens that state."""
    fail = {"StartAt": "C", "States": {"C": {"Type": "Fail", "Error": "ConnectionError"}}}
    charge = {
        "Type": "Parallel",
        "Branches": [fail],
        "Retry": [{"ErrorEquals": ["ConnectionError"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Rejected"}],
        "End": True,
    }
    states = {"Charge card": charge, "Rejected": {"Type": "Fail", "Error": "OrderRejected"}}
    machine = create(server, {"StartAt": "Charge card", "States": states})
    page.goto(ended(server, start(server, machine)))
    root = page.locator("#root-cause")
    expect(root).to_contain_text(re.compile(r"Caused by\s+ConnectionError\s+at"))
    expect(root).to_contain_text(re.compile(r"at\s+C,\s+caught by\s+Charge card\s+\(2 attempts\)"))
    root.get_by_role("link", name="Charge card").click()
    expect(page.locator("#panel-title")).to_contain_text("Charge card")
    expect(page.locator("#panel")).to_contain_text("ConnectionError")
    root.get_by_role("link", name="C", exact=True).click()
    expect(page.locator("#panel-title > span").first).to_have_text("C")
    expect(page.locator("#panel")).to_contain_text("ConnectionError")
    page.goto("/failures/")
    expect(page.locator("#groups")).to_contain_text("ConnectionError at C, caught by Charge card")
