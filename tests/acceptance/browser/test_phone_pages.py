"""On a phone nothing is cut: titles, facts, statuses; and what failed below is seen as failed."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, map_run, over, start, unique, until, waits

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
LONG = "customer-100181-standard-delivery-with-a-signature-1be03df0"
REFUSE = {
    "StartAt": "Bad?",
    "States": {
        "Bad?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericGreaterThan": 3, "Next": "Refuse row"}],
            "Default": "Good",
        },
        "Refuse row": {"Type": "Fail", "Error": "RowRejected", "Cause": "RowRejected: no price"},
        "Good": {"Type": "Pass", "End": True},
    },
}


@pytest.fixture
def phone(page: Page) -> Page:
    """Return a page as wide as a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    return page


@pytest.fixture(scope="module")
def imported(server: Server) -> str:
    """Return the page of an execution whose Map Run succeeded with two failed children."""
    machine = create(server, over(REFUSE, ToleratedFailurePercentage=100))
    return ended(server, start(server, machine, [1, 2, 3, 4, 5]))


def is_whole(part: Locator) -> bool:
    """Return whether nothing of a text is cut off."""
    return bool(
        part.evaluate(
            "part => part.scrollWidth <= part.clientWidth + 1"
            " && part.scrollHeight <= part.clientHeight + 1"
            " && getComputedStyle(part).textOverflow === 'clip'"
            " || getComputedStyle(part).whiteSpace === 'normal'"
        )
    )


def test_a_long_title_is_read_whole(phone: Page, server: Server) -> None:
    """The names of an execution and of a machine break into lines."""
    machine = create(server, waits(600), name=unique("customer-onboarding-and-verification-of-a"))
    path = start(server, machine, name=LONG)
    phone.goto(path)
    name = phone.locator(".execution-name")
    assert is_whole(name)
    box = name.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    expect(phone.locator("h1")).to_contain_text(LONG)
    phone.goto(f"/machines/{machine}/")
    assert is_whole(phone.locator("h1"))
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_offered_comparisons_fit(phone: Page, server: Server) -> None:
    """A failure with a long name is offered beside its last success without a sideways scroll."""
    machine = create(server, REFUSE)
    for number, name in ((1, "good"), (5, LONG)):
        ended(server, start(server, machine, number, name=name))
    phone.goto("/compare/")
    expect(phone.locator(".suggested").get_by_text(LONG)).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_line_of_facts_shows_that_it_scrolls(phone: Page, imported: str) -> None:
    """By a sign at its edge, which is gone at the end of the line."""
    for path in (imported, f"/machines/{imported.split('/')[2]}/"):
        phone.goto(path)
        line = phone.locator(".fact-line")
        assert line.evaluate("line => line.scrollWidth > line.clientWidth")
        sign = "line => Number(getComputedStyle(line, '::after').opacity)"
        shown = line.evaluate("line => getComputedStyle(line, '::after').content")
        assert shown == '"\u203a"'
        assert line.evaluate(sign) > 0.9
        line.evaluate("line => line.scrollTo(line.scrollWidth, 0)")
        until(
            phone,
            "() => getComputedStyle(document.querySelector('.fact-line'), '::after').opacity < 0.1",
        )


def test_what_failed_below_is_seen_as_failed(phone: Page, imported: str) -> None:
    """The sum of an execution's tree has the colour of a failure."""
    phone.goto(f"{imported}tree/")
    first = phone.locator("#family tbody tr").first
    below = first.locator(".second-line .status.failed")
    expect(below).to_have_text("2 failed below")
    expect(below).to_be_visible()


def test_a_status_below_its_title_is_not_indented(
    phone: Page, imported: str, server: Server
) -> None:
    """Where it has no room beside the title it begins where the title begins."""
    phone.goto(map_run(server, imported))
    indents = phone.locator("h1").evaluate(
        """(title) => {
            const status = title.querySelector(".status");
            const left = (part) => part.getBoundingClientRect().left;
            const indents = [];
            for (let width = 358; width > 150; width -= 4) {
                title.style.width = `${width}px`;
                indents.push(left(status) - left(title));
            }
            return indents;
        }"""
    )
    assert max(indents) > 50
    assert min(indents) == 0


def test_failed_children_are_counted_if_asked(phone: Page, imported: str) -> None:
    """The page says that they are not counted; then they are one kind, named once."""
    machine = imported.split("/")[2]
    phone.goto(f"/failures/?machine={machine}")
    note = phone.locator("#failed-children")
    expect(note).to_contain_text("Not counted: 2 failed children of Map Runs.")
    note.get_by_role("link").click()
    expect(phone.locator("#groups tbody tr")).to_have_count(1)
    row = phone.locator("#groups tbody tr").first
    expect(row.locator("td").first).to_have_text("2")
    expect(row).to_contain_text("Refuse row: RowRejected")
    expect(row.locator(".kind").first).to_have_text("children of Map Runs · no price")
    row.get_by_role("link").first.click()
    expect(phone.locator("#executions tbody tr")).to_have_count(2)


def test_the_words_of_the_search_are_not_cut(phone: Page) -> None:
    """What the field asks for fits into it."""
    for width in (390, 1440):
        phone.set_viewport_size({"width": width, "height": 844})
        phone.goto("/executions/")
        free = phone.locator("#find").evaluate(
            """(field) => {
                const canvas = document.createElement("canvas").getContext("2d");
                const style = getComputedStyle(field);
                canvas.font = style.font;
                const sides = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
                return field.clientWidth - sides - canvas.measureText(field.placeholder).width;
            }"""
        )
        assert free >= 0, width


def test_the_list_of_state_machines_is_read_and_sorted_on_a_phone(
    phone: Page, server: Server
) -> None:
    """A name has the whole width, how its executions ended is beside its status, times sort."""
    machine = create(server, waits(0), name=unique("customer-onboarding-and-verification-of"))
    ended(server, start(server, machine))
    phone.goto(f"/machines/?q={machine}")
    row = phone.locator("main table tbody tr")
    expect(row).to_have_count(1)
    name, status = row.locator("td.name").bounding_box(), row.locator(".status").bounding_box()
    assert name is not None
    assert status is not None
    assert name["width"] > 300
    assert status["y"] >= name["y"] + name["height"]
    expect(row).to_contain_text("100 %", use_inner_text=True)
    expect(row.locator(".recent svg")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    phone.get_by_role("link", name="Started").click()
    phone.wait_for_url("**sort=-started**")


def test_revisions_and_bulk_actions_are_cards_on_a_phone(phone: Page, server: Server) -> None:
    """No column of theirs is cut; each value stands after its name."""
    machine = create(server, waits(0))
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    server.client().update_state_machine(stateMachineArn=arn, definition=json.dumps(waits(1)))
    phone.goto(f"/machines/{machine}/versions/")
    rows = phone.locator("#revisions .scroll")
    expect(rows.locator("tbody tr")).to_have_count(2)
    assert rows.evaluate("part => part.scrollWidth <= part.clientWidth")
    expect(rows.get_by_text("changes")).to_be_visible()
    ended(server, start(server, machine))
    phone.goto(f"/machines/{machine}/")
    phone.locator("#executions tbody input[type=checkbox]").first.check()
    phone.locator('.bulk-actions button[name="action"][value="start"]').click()
    phone.get_by_role("button", name=re.compile("^Start")).last.click()
    phone.wait_for_url("**/executions/bulk/*/")
    phone.goto("/executions/bulk/")
    jobs = phone.locator("main .scroll")
    assert jobs.evaluate("part => part.scrollWidth <= part.clientWidth")
    expect(jobs.locator("td[data-label=Started] time").first).to_be_visible()


def test_the_menu_of_a_phone_is_a_press_away_and_whole(phone: Page) -> None:
    """All its entries at once, the current one marked, nothing cut off at the side."""
    phone.goto("/schedules/")
    menu = phone.get_by_role("navigation", name="Main")
    expect(menu).to_be_hidden()
    phone.get_by_role("button", name="Menu", exact=True).click()
    links = menu.get_by_role("link")
    expect(links).to_have_count(6)
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)
    expect(menu.locator("[aria-current]")).to_have_text("Rules & schedules")
    menu.get_by_role("link", name="Executions").click()
    phone.wait_for_url("**/executions/")
    phone.set_viewport_size({"width": 1440, "height": 900})
    expect(menu).to_be_visible()
    expect(phone.get_by_role("button", name="Menu", exact=True)).to_be_hidden()


def test_the_actions_of_an_execution_are_words(phone: Page, server: Server) -> None:
    """Short ones, in one line with the status; their whole names are read out."""
    path = start(server, create(server, waits(600)))
    phone.goto(path)
    for short, name in (("Stop", "Stop execution"), ("New", "New execution")):
        action = phone.locator("#actions").get_by_role("link", name=name, exact=True)
        expect(action).to_be_in_viewport(ratio=1)
        box = action.bounding_box()
        assert box is not None
        assert box["width"] > 36, short
    lines = phone.locator("#status, #live, [data-pause], #actions").evaluate_all(
        """parts => parts.map((part) => part.getBoundingClientRect())
            .map((box) => [box.left, box.right])"""
    )
    assert all(left[1] <= right[0] for left, right in pairwise(sorted(lines)))
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_opens_a_graph_around_the_state_that_failed(phone: Page, server: Server) -> None:
    """Its text can be read, so two columns have no room beside each other: the graph scrolls."""
    inner = {
        "StartAt": "Fine?",
        "States": {
            "Fine?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$", "NumericGreaterThan": 1, "Next": "Refuse"}],
                "Default": "Accept",
            },
            "Refuse": {"Type": "Fail", "Error": "Refused"},
            "Accept": {"Type": "Pass", "End": True},
        },
    }
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    machine = create(server, {"StartAt": "Each", "States": {"Each": each}})
    phone.goto(ended(server, start(server, machine, [1, 2])))
    graph = phone.locator("[data-graph]")
    expect(graph.locator("[data-step='Refuse']")).to_be_in_viewport(ratio=1)
    scale = "svg => svg.clientWidth / svg.viewBox.baseVal.width"
    assert graph.locator("svg.flow").evaluate(scale) * 11.5 >= 10.5
    graph.locator("[data-step='Accept']").scroll_into_view_if_needed()
    expect(graph.locator("[data-step='Accept']")).to_be_in_viewport(ratio=1)
