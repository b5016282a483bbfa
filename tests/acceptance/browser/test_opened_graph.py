"""How a graph opens: whole where it can be read so, else around the state that matters.

And the banner above it, which a telephone shows whole.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

SCALE = """() => {
  const svg = document.querySelector("svg.flow");
  return svg.clientWidth / svg.viewBox.baseVal.width;
}"""
WHOLE = """() => {
  const graph = document.querySelector("[data-graph]");
  return graph.scrollHeight <= graph.clientHeight + 1 && graph.scrollWidth <= graph.clientWidth + 1;
}"""


def failing_at(place: int, states: int) -> dict[str, Any]:
    """Return a machine of states in a row, of which one fails and is never left."""
    names = [f"State {number}" for number in range(states)]
    chain: dict[str, Any] = {
        name: {"Type": "Pass", "Next": names[number + 1]} for number, name in enumerate(names[:-1])
    }
    chain[names[-1]] = {"Type": "Succeed"}
    # a path that leads nowhere, so that the state fails and the ones after it stay
    chain[names[place]] |= {"Type": "Pass", "InputPath": "$.missing"}
    return {"StartAt": names[0], "States": chain}


@pytest.mark.parametrize("where", ["execution", "machine", "definition"])
def test_a_graph_that_can_be_read_whole_opens_whole(page: Page, server: Server, where: str) -> None:
    """Its text has 10.5 pixels at least; a graph that would have less can be scrolled."""
    machine = create(server, failing_at(2, 5))
    path = ended(server, start(server, machine))
    page.goto(
        {
            "execution": path,
            "machine": f"/machines/{machine}/definition/",
            "definition": f"{path}definition/",
        }[where]
    )
    assert page.evaluate(SCALE) * 11.5 >= 10.5
    assert page.evaluate(WHOLE)


SMALLEST = """() => {
  const svg = document.querySelector("svg.flow");
  const scale = svg.clientWidth / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")];
  const sizes = texts.map((text) => parseFloat(getComputedStyle(text).fontSize));
  return scale * Math.min(...sizes);
}"""


@pytest.mark.parametrize("wide", [390, 1440])
@pytest.mark.parametrize("states", [3, 8, 10, 11, 100])
def test_text_of_a_graph_can_be_read_when_it_opens(
    page: Page, server: Server, states: int, wide: int
) -> None:
    """It has 10.5 pixels at least, however many states there are."""
    page.set_viewport_size({"width": wide, "height": 900})
    page.goto(ended(server, start(server, create(server, failing_at(1, states)))))
    assert page.evaluate(SMALLEST) >= 10.5


def test_a_hundred_states_fit_and_a_state_that_is_found_can_be_read(
    page: Page, server: Server
) -> None:
    """Fit shows all of them; to find or select one enlarges the graph around it."""
    page.goto(ended(server, start(server, create(server, failing_at(60, 100)))))
    fit = page.get_by_role("button", name="Fit the graph")
    fit.click()
    assert page.evaluate(WHOLE)
    assert page.evaluate(SMALLEST) > 4
    page.get_by_label("Find a state").fill("State 77")
    assert page.evaluate(SMALLEST) >= 10.5
    expect(page.locator(".node.found .box")).to_be_in_viewport(ratio=1)
    fit.click()
    page.locator("a[data-step='State 5']").click()
    expect(page.locator("#panel-title")).to_contain_text("State 5")
    until(page, f"({SMALLEST})() >= 10.5")
    expect(page.locator("a[data-step='State 5'] .box")).to_be_in_viewport(ratio=1)


def test_a_larger_graph_opens_around_what_failed(page: Page, server: Server) -> None:
    """At a scale at which its text can be read; full screen keeps it in view."""
    machine = create(server, failing_at(20, 40))
    path = ended(server, start(server, machine))
    for address in (path, f"{path}?step=State+30"):
        page.goto(address)
        assert page.evaluate(SCALE) >= 0.9
        expect(page.locator("[data-graph] [aria-current='true'] .box")).to_be_in_viewport(ratio=1)
    expect(page.locator("canvas.mini-map")).to_be_visible()
    page.get_by_role("button", name="Full screen").click()
    until(page, "document.fullscreenElement !== null")
    expect(page.locator("[data-graph] [aria-current='true']")).to_be_in_viewport()


@pytest.mark.parametrize("wide", [390, 1440])
def test_the_cause_and_the_error_are_read_in_full(page: Page, server: Server, wide: int) -> None:
    """Nothing of them is cut; a long cause shows all at a press."""
    error = "com.example.payments.errors.CardRefusedByProviderException"
    words = " ".join(f"word{number}" for number in range(120))
    cause = json.dumps({"errorMessage": words, "errorType": "CardRefused"})
    state = {"Type": "Fail", "Error": error, "Cause": cause}
    machine = create(server, {"StartAt": "F", "States": {"F": state}})
    page.set_viewport_size({"width": wide, "height": 844})
    page.goto(ended(server, start(server, machine)))
    banner = page.locator("#outcome .banner")
    expect(banner.locator("h2")).to_contain_text(error)
    cut = """banner => [...banner.querySelectorAll("h2, h2 *, .cause, .cause *")].filter(
      (each) => each.checkVisibility() && getComputedStyle(each).overflow !== "visible"
        && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
    ).length"""
    top = "() => document.querySelector('[data-graph]').getBoundingClientRect().top"
    assert page.evaluate(top) <= (400 if wide < 768 else 300)
    banner.get_by_role("button", name="Show all").click()
    expect(banner.locator(".failure-body.whole")).to_contain_text("word119")
    assert banner.evaluate(cut) == 0
    body = "body => body.scrollHeight - body.clientHeight"
    assert banner.locator(".failure-body").evaluate(body) <= 1
    banner.get_by_role("button", name="Show less").click()
    assert page.evaluate(top) <= (400 if wide < 768 else 300)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_one_hidden_line_is_shown_without_a_press(page: Page, server: Server) -> None:
    """What would be left to show is the way to the reported text alone."""
    cause = json.dumps({"errorMessage": "The card was refused", "errorType": "CardRefused"})
    states = {
        "Try": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Busy"}}}],
            "Catch": [{"ErrorEquals": ["Busy"], "Next": "F"}],
            "End": True,
        },
        "F": {"Type": "Fail", "Error": "Refused", "Cause": cause},
    }
    page.goto(ended(server, start(server, create(server, {"StartAt": "Try", "States": states}))))
    banner = page.locator("#outcome .banner")
    expect(banner).to_contain_text("Caused by")
    expect(banner.get_by_role("button", name="Show all")).to_have_count(0)
    body = "body => body.scrollHeight - body.clientHeight"
    assert banner.locator(".failure-body").evaluate(body) <= 1
    expect(banner.locator("summary")).to_be_visible()


def test_a_wait_counts_down_in_its_box_and_in_the_panel(page: Page, server: Server) -> None:
    """Second by second, also when the state was entered while the page was open."""
    states = {
        "Soon": {"Type": "Wait", "Seconds": 2, "Next": "Late"},
        "Late": {"Type": "Wait", "Seconds": 900, "End": True},
    }
    machine = create(server, {"StartAt": "Soon", "States": states})
    page.goto(start(server, machine))
    box = page.locator("[data-step='Late'] .node-detail")
    expect(box).to_contain_text(re.compile(r"Waiting · 1[45] min \d\d s left"))
    shown = page.locator("#step-status .step-waits")
    expect(shown).to_contain_text(re.compile(r"1[45] min \d\d s left, until"))
    before = box.text_content() or ""
    expect(box).not_to_have_text(before)
    clipped = "text => text.getComputedTextLength() > text.ownerSVGElement.width.baseVal.value"
    assert not box.evaluate(clipped)


def test_a_telephone_shows_the_events_and_what_is_waited_for(page: Page, server: Server) -> None:
    """No table of the page is wider than it."""
    missing = "arn:aws:lambda:us-east-1:123456789012:function:nobody"
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 900}
    task = {"Type": "Task", "Resource": missing, "Retry": [retry], "End": True}
    machine = create(server, {"StartAt": "Call", "States": {"Call": task}})
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(start(server, machine))
    expect(page.locator("#step-status")).to_contain_text("Next attempt")
    expect(page.locator("#step-status .failed-word")).to_contain_text("Lambda.")
    for table in ("#waiting", "#events"):
        fits = """each => {
          const table = each.querySelector("table") ?? each.closest("table");
          return table.scrollWidth <= table.parentElement.clientWidth + 1;
        }"""
        assert page.locator(table).evaluate(fits), table


def test_the_graph_and_the_text_of_a_definition_lead_to_each_other(
    page: Page, server: Server
) -> None:
    """A box to its lines, and lines to their box; the innermost state that was pressed."""
    inner = {"StartAt": "Inner", "States": {"Inner": {"Type": "Pass", "End": True}}}
    states = {
        "Outer": {"Type": "Parallel", "Branches": [inner], "Next": "Last"},
        "Last": {"Type": "Succeed"},
    }
    machine = create(server, {"StartAt": "Outer", "States": states})
    page.goto(f"{ended(server, start(server, machine))}definition/")
    graph = page.locator("[data-graph]")
    expect(graph.locator("a.node.succeeded")).to_have_count(3)
    graph.locator("a[data-step='Last']").click()
    lines = page.locator(".src.chosen")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text('"Last"')
    page.locator(".src", has_text='"Inner"').last.get_by_text('"Pass"').click()
    expect(lines).to_have_count(1)
    expect(graph.locator("a[aria-current]")).to_have_attribute("data-step", "Inner")
    page.reload()
    expect(graph.locator("a[aria-current]")).to_have_attribute("data-step", "Inner")


def test_the_graph_beside_a_list_can_be_read(page: Page, server: Server) -> None:
    """From Start on; groups of a wide one are folded, and what is wider still can be scrolled."""
    page.set_viewport_size({"width": 1440, "height": 900})
    for machine in ("OrderProcessing", create(server, failing_at(3, 30))):
        page.goto(f"/machines/{machine}/")
        graph = page.locator(".machine-graph [data-graph]")
        expect(graph.locator("[data-start]")).to_be_in_viewport(ratio=1)
        cut = "graph => graph.scrollWidth - graph.clientWidth"
        assert graph.evaluate(cut) <= (40 if machine == "OrderProcessing" else 1), machine
        assert page.evaluate(SCALE) * 13 >= 10.5, machine
        names = ".machine-graph .title"
        wide = page.locator(names).evaluate_all(
            "titles => titles.filter(title => {"
            "  const box = title.closest('.node').querySelector('.box').getBoundingClientRect();"
            "  return title.getBoundingClientRect().right > box.right;"
            "}).length"
        )
        assert wide == 0, machine
