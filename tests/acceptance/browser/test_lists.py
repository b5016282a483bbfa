"""Lists of executions in a browser: filter, page, act, search, compare."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.yard import create, log_in, login_of, start, unique, until, waits

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

PAY = {
    "StartAt": "Large?",
    "States": {
        "Large?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.amount", "NumericGreaterThan": 100, "Next": "Refuse"}],
            "Default": "Pay",
        },
        "Refuse": {"Type": "Fail", "Error": "Orders.TooLarge", "CausePath": "$.why"},
        "Pay": {"Type": "Pass", "End": True},
    },
}


def orders(server: Server, amounts: list[int]) -> str:
    """Start an order a given amount each; more than 100 fail. Return the machine's name."""
    machine = create(server, PAY)
    for number, amount in enumerate(amounts):
        data = {"orderId": 4700 + number, "amount": amount, "why": f"order {number} is too large"}
        start(server, machine, data, name=f"order-{number}")
    return machine


def test_E17_a_filter_narrows_in_place_and_has_an_address(page: Page, server: Server) -> None:  # noqa: N802 - named after its row
    """The form keeps its place in the page, Back undoes it, a mistake is told at its field."""
    machine = orders(server, [10, 500, 10])
    page.goto(f"/machines/{machine}/")
    expect(page.locator("#executions tbody tr")).to_have_count(3)
    page.evaluate("window.kept = true")
    page.check("input[name=status][value=FAILED]")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    assert page.url.endswith(f"/machines/{machine}/?status=FAILED")
    expect(page.locator("#status-failed")).to_be_focused()
    assert page.evaluate("window.kept")
    page.click("text=More filters")
    page.fill("#min", "soon")
    page.press("#min", "Enter")
    expect(page.locator("#min-problem")).to_contain_text("is not a duration")
    expect(page.locator("#min")).to_have_value("soon")
    page.fill("#min", "0 ms")
    page.fill("#error", "toolarge")
    page.press("#error", "Enter")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("#executions tbody")).to_contain_text("order-1")
    _back(page)
    _back(page)
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    _back(page)
    expect(page.locator("#executions tbody tr")).to_have_count(3)


@pytest.mark.parametrize(("path", "most"), [("/executions/", 330), ("machine", 420)])
def test_rows_begin_high_on_the_page(page: Page, server: Server, path: str, most: int) -> None:
    """Search, statuses and the rest of the filter stand in two lines, not in ten."""
    machine = orders(server, [10, 500])
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/machines/{machine}/" if path == "machine" else path)
    first = page.locator("#executions tbody tr").first.bounding_box()
    assert first is not None
    assert first["y"] < most
    hint = page.locator("#find-hint")
    expect(hint).to_be_hidden()
    page.focus("#find")
    expect(hint).to_be_visible()


def _back(page: Page) -> None:
    """Press Back. (The driver's own wait is cut off where htmx loads the page it goes back to.)."""
    before = page.url
    page.evaluate(
        "() => { addEventListener('beforeunload', () => { window.leaving = true; });"
        " setTimeout(() => history.back()); }"
    )
    until(
        page,
        "before => location.href !== before && document.readyState === 'complete'"
        " && !window.leaving && !document.querySelector('.htmx-request')",
        arg=before,
    )


def test_E17_thirty_that_start_on_page_two_repeat_and_hide_nothing(  # noqa: N802 - see above
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Without a script, too: every row is seen once, whatever starts meanwhile."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, java_script_enabled=False
    )
    page = context.new_page()
    machine = create(server, waits(600))
    for number in range(104):
        start(server, machine, name=f"first-{number}")
    page.goto(f"/machines/{machine}/?q=first")
    seen = page.locator("#executions td.name").all_inner_texts()
    page.click("a[rel=next]")
    for number in range(30):
        start(server, machine, name=f"late-{number}")
    seen += page.locator("#executions td.name").all_inner_texts()
    page.click("a[rel=next]")
    seen += page.locator("#executions td.name").all_inner_texts()
    context.close()
    assert sorted(seen) == sorted(f"first-{number}" for number in range(104))


def test_X4_forty_that_failed_are_redriven_after_a_dry_run(page: Page, server: Server) -> None:  # noqa: N802 - see above
    """The dry run counts, the job survives a kill -9, and each was redriven exactly once."""
    machine = orders(server, [500] * 40)
    nap = create(server, waits(600))
    start(server, nap, name="untouched")
    page.goto(f"/machines/{machine}/?status=FAILED")
    expect(page.locator("#executions tbody tr")).to_have_count(40)
    page.check("#bulk input[name=all]")
    page.click("#bulk button[value=redrive]")
    expect(page.locator("#eligible")).to_have_text("40 eligible")
    expect(page.locator("#owners")).to_contain_text("40 by")
    expect(page.locator("#planned tbody tr")).to_have_count(40)
    page.click("form button.main")
    page.wait_for_url("**/executions/bulk/*/")
    path = page.url
    page.goto("about:blank")  # its poll would report the outage
    server.kill()
    server.start()
    page.goto(path)
    expect(page.locator("label[for=bar]")).to_have_text("40 of 40")
    expect(page.locator("#progress .head .status")).to_have_text("Done")
    expect(page.locator("#items tbody tr")).to_have_count(40)
    page.goto(f"/machines/{machine}/?redriven=yes")
    expect(page.locator("#executions tbody tr")).to_have_count(40)
    page.click("#executions tbody tr:first-child td.name a")
    expect(page.locator("dl.facts")).to_contain_text("1 time, last")


def test_X4_a_marked_row_stays_marked_when_it_ends(page: Page, server: Server) -> None:  # noqa: N802 - see above
    """A tick does not undo what the reader marked; only marked rows are chosen."""
    machine = create(server, waits(3))
    start(server, machine, name="one")
    start(server, machine, name="two")
    page.goto(f"/machines/{machine}/")
    page.locator("tr", has_text="two").locator("input[name=x]").check()
    ended_rows = page.locator("#executions tbody tr", has_text="Succeeded")
    expect(ended_rows).to_have_count(2)
    expect(page.locator("tr", has_text="two").locator("input[name=x]")).to_be_checked()
    page.click("#bulk button[value=start]")
    expect(page.locator("#planned tbody tr")).to_have_count(1)
    page.click("form button.main")
    expect(page.locator("#items")).to_contain_text("New execution")
    page.get_by_role("link", name="New execution").press("Enter")
    expect(page.locator("h1")).to_contain_text("Running")


def test_X3_an_order_is_found_by_its_number(page: Page, server: Server) -> None:  # noqa: N802 - see above
    """By a value of its input and by the state it is in now; the address finds it again."""
    orders(server, [10, 20, 30])
    nap = create(server, waits(600))
    start(server, nap, {"orderId": 5_000_001}, name="sleeper")
    page.goto("/executions/")
    page.keyboard.press("/")
    page.keyboard.type("input.orderId = 5000001")
    page.keyboard.press("Enter")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    expect(page.locator("#executions tbody")).to_contain_text("sleeper")
    page.reload()
    expect(page.locator("#find")).to_have_value("input.orderId = 5000001")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    page.goto(f"/machines/{nap}/")
    page.fill("#find", "state = Nap")
    page.press("#find", "Enter")
    page.wait_for_url("**find=state*")
    expect(page.locator("#executions tbody")).to_contain_text("sleeper")
    page.fill("#find", "state =")
    page.press("#find", "Enter")
    expect(page.locator("#find-problem")).to_contain_text("and a value after it")


def test_a_status_filter_applies_at_once(
    page: Page, server: Server, browser: Browser, signed_in: Path
) -> None:
    """Two ticks one after another both count; the sign of the filter stands still.

    Without a script the button applies it.
    """
    machine = orders(server, [10, 500, 10])
    page.goto(f"/machines/{machine}/")
    expect(page.locator("#executions tbody tr")).to_have_count(3)
    boxes = "() => [...document.querySelectorAll('.checks input')].slice(1, 3)"
    page.evaluate(f"({boxes})().forEach((box) => box.click())")
    until(page, "location.search === '?status=SUCCEEDED&status=FAILED'")
    expect(page.locator("#executions tbody tr")).to_have_count(3)
    expect(page.locator("#status-succeeded")).to_be_checked()
    page.uncheck("#status-succeeded")
    expect(page.locator("#executions tbody tr")).to_have_count(1)
    turns = "getComputedStyle(document.querySelector('{}')).getPropertyValue('--turns').trim()"
    assert page.evaluate(turns.format(".checks .running")) == "none"
    assert page.evaluate(turns.format("#executions .status")) == ""
    plain = browser.new_context(storage_state=signed_in, java_script_enabled=False)
    other = plain.new_page()
    other.goto(f"{server.url}/machines/{machine}/")
    other.check("#status-failed")
    other.click("button:has-text('Find')")
    expect(other.locator("#executions tbody tr")).to_have_count(1)
    plain.close()


def test_X1_a_failure_is_compared_with_a_success(  # noqa: N802 - see above
    page: Page, server: Server, browser: Browser, signed_in: Path
) -> None:
    """From the failed execution, from two marked rows, and by the address in another session."""
    machine = orders(server, [500, 10])
    page.goto(f"/machines/{machine}/executions/order-0/")
    page.click("text=Compare with last success")
    expect(page.locator("#divergence-title")).to_have_text(
        "The paths diverge at Choice Large?: rule 1 against Default"
    )
    expect(page.locator("#divergence li")).to_contain_text(["continued to Refuse", "to Pay"])
    expect(page.locator("[data-diff=input] tbody tr")).to_have_count(3)
    address = page.url
    page.goto(f"/machines/{machine}/")
    for box in page.locator("input[name=x]").all():
        box.check()
    page.click("text=Compare two")
    expect(page.locator("#divergence li")).to_contain_text(["continued to Pay", "to Refuse"])
    again = browser.new_context(storage_state=signed_in, java_script_enabled=False)
    other = again.new_page()
    other.goto(address)
    expect(other.locator("#divergence-title")).to_have_text(
        "The paths diverge at Choice Large?: rule 1 against Default"
    )
    again.close()


def test_X8_failures_of_one_kind_are_redriven_together(page: Page, server: Server) -> None:  # noqa: N802 - see above
    """Two kinds, of 3 and 2; the redrive of the first touches exactly its 3."""
    machine = orders(server, [500] * 3)
    for number in range(2):
        start(server, machine, {"amount": 500}, name=f"odd-{number}")
    page.goto(f"/machines/{machine}/?status=FAILED")
    expect(page.locator("#executions tbody tr")).to_have_count(5)
    page.goto(f"/failures/?machine={machine}")
    expect(page.locator("#groups tbody tr")).to_have_count(2)
    first = page.locator("#groups tbody tr").first
    expect(first).to_contain_text("Refuse: Orders.TooLarge")
    expect(first.locator("td").first).to_have_text("3")
    first.locator("text=Redrive").click()
    expect(page.locator("#eligible")).to_have_text("3 eligible")
    page.click("form button.main")
    expect(page.locator("label[for=bar]")).to_have_text("3 of 3")
    page.goto(f"/machines/{machine}/?redriven=yes")
    expect(page.locator("#executions tbody tr")).to_have_count(3)
    expect(page.locator("#executions tbody")).not_to_contain_text("odd")


def test_x16_a_view_is_saved_by_one_and_opened_by_another(
    page: Page, browser: Browser, server: Server
) -> None:
    """Ana keeps a list; Ben finds it with its count, also by the address without its name."""
    machine = create(server, {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}})
    for name in ("apple", "pear", "apricot"):
        start(server, machine, {}, name)
    view = unique("view")
    page.goto(f"/machines/{machine}/")
    page.fill("#q", "ap")
    page.click("button:has-text('Find')")
    expect(page.locator("#executions tbody tr")).to_have_count(2)
    page.click("summary:has-text('Save as a view')")
    page.fill("#view-name", view)
    page.check("text=Default view of this page")
    page.click("button:has-text('Save for everybody')")
    current = page.locator(".saved-views a[aria-current]")
    expect(current).to_have_text(re.compile(rf"{view}\s*2"))
    address = page.url
    assert axe_faults(page) == []

    reader = browser.new_context(base_url=server.url)
    ben = reader.new_page()
    log_in(ben, login_of(server, "ben", "viewer"))
    ben.goto(f"/executions/?view={view}")
    rows = ben.locator("#executions tbody tr")
    expect(rows).to_have_count(2)
    ben.goto(address.replace(f"&view={view}", ""))
    expect(rows).to_have_count(2)
    ben.goto(f"/machines/{machine}/")
    expect(ben.locator(".saved-views a[aria-current]")).to_contain_text(view)
    expect(rows).to_have_count(2)
    ben.click("text=Clear filters")
    expect(rows).to_have_count(3)
    reader.close()


def test_x15_who_looks_is_seen_by_others_within_a_tick(
    page: Page, browser: Browser, server: Server
) -> None:
    """In a list and on a page that are open, with what was typed there left alone."""
    path = start(server, create(server, waits(600)))
    machine = path.split("/")[2]
    page.goto(f"/machines/{machine}/")
    row = page.locator("#executions tbody tr")
    expect(row).to_have_count(1)
    watching = page.context.new_page()
    watching.goto(path)
    watching.click("summary:has-text('Add note')")
    watching.fill("#note", "half a sent")

    colleague = browser.new_context(base_url=server.url)
    ana = colleague.new_page()
    log_in(ana, login_of(server, "ana", "operator"))
    ana.goto(path)
    ana.click("button:has-text('Assign to me')")
    expect(ana.locator("button:has-text('Unassign')")).to_be_visible()
    expect(row).to_contain_text("Assigned to ana")
    expect(watching.locator("#note-list")).to_contain_text("Assigned to ana")
    expect(watching.locator("#note")).to_have_value("half a sent")
    ana.click("summary:has-text('Add note')")
    ana.fill("#note", "the shop knows")
    ana.click("button:has-text('Save note')")
    expect(row).to_contain_text("the shop knows")
    assert axe_faults(watching) == []
    colleague.close()


def test_rows_are_selected_one_by_one_as_a_range_and_all_at_once(
    server: Server, page: Page
) -> None:
    """The bar says how many, and stays in view while the rows scroll away."""
    machine = create(server, waits(600))
    for number in range(24):
        start(server, machine, name=f"row-{number:02}")
    page.set_viewport_size({"width": 1440, "height": 600})
    page.goto(f"/machines/{machine}/")
    rows = page.locator("#executions tbody input[type=checkbox]")
    count = page.locator("#selected-count")
    rows.nth(1).check()
    expect(count).to_have_text("1 selected row")
    expect(count).to_be_in_viewport()
    rows.nth(5).click(modifiers=["Shift"])
    expect(count).to_have_text("5 selected rows")
    every = page.locator("[data-select-all]")
    assert every.evaluate("box => box.indeterminate")
    every.check()
    expect(count).to_have_text("24 selected rows")
    page.get_by_role("button", name="Select none").click()
    expect(count).to_have_text("Select rows")
    expect(every).not_to_be_checked()


def test_no_column_is_cut_on_a_narrow_screen(page: Page, server: Server) -> None:
    """Each row of a list is a small card there, so its table never scrolls sideways."""
    machine = orders(server, [500] * 2)
    name = "a-rule-with-a-name-that-is-long-enough-to-be-squeezed-by-columns"
    events = server.client("events")
    pattern = {"source": ["aws.states"], "detail": {"status": ["FAILED"]}}
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    address = "https://hooks.example.com/a/long/path/of/a/web/address?token=x"
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": address}])
    page.set_viewport_size({"width": 390, "height": 844})
    for path in (
        *("/", "/notifications/", "/audit/", "/activities/", "/targets/", "/executions/"),
        *(f"/failures/?machine={machine}", f"/machines/{machine}/"),
    ):
        page.goto(path)
        cut = page.evaluate(
            "[...document.querySelectorAll('.scroll:has(> .stacked)')]"
            ".map((part) => part.scrollWidth - part.clientWidth)"
        )
        assert cut, path
        assert max(cut) <= 1, path


@pytest.mark.parametrize("width", [1440, 1280])
def test_words_of_narrow_columns_are_whole(page: Page, server: Server, width: int) -> None:
    """The type of a state, in the insights; what a task waits for, on the overview."""
    arn = server.client().create_activity(name=unique("work"))["activityArn"]
    states = {
        "Choose whether an express delivery is offered": {
            "Type": "Parallel",
            "Branches": [waits(0)],
            "Next": "Work",
        },
        "Work": {"Type": "Task", "Resource": arn, "End": True},
    }
    machine = create(server, {"StartAt": next(iter(states)), "States": states})
    start(server, machine)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/machines/{machine}/insights/")
    kind = page.locator("table.states td", has_text=re.compile("^Parallel$"))
    lines = """cell => { const words = document.createRange(); words.selectNodeContents(cell);
                         return words.getClientRects().length }"""
    assert kind.evaluate(lines) == 1
    page.goto("/")
    expect(page.locator("#waiting tbody tr").first).to_be_visible()
    cut = """table => { for (const one of table.querySelectorAll('.status'))
                          one.lastChild.textContent = 'Waiting for its task token';
                        return table.scrollWidth - table.clientWidth }"""
    assert page.locator("#waiting .scroll").evaluate(cut) <= 1


def test_comparing_takes_two_rows(page: Page, server: Server) -> None:
    """The buttons of the selection say what they need instead of leading to an error."""
    machine = orders(server, [500] * 3)
    page.goto(f"/machines/{machine}/")
    compare = page.get_by_role("button", name="Compare two")
    redrive = page.locator("#bulk").get_by_role("button", name="Redrive")
    marks = page.locator("#executions tbody input[type=checkbox]")
    expect(compare).to_have_attribute("aria-disabled", "true")
    expect(redrive).to_have_attribute("aria-disabled", "true")
    marks.nth(0).check()
    expect(redrive).to_have_attribute("aria-disabled", "false")
    compare.dispatch_event("click")
    expect(page.locator("#announce")).to_have_text("Select two executions")
    assert page.url.endswith(f"/machines/{machine}/")
    marks.nth(1).check()
    expect(compare).to_have_attribute("aria-disabled", "false")
    compare.click()
    page.wait_for_url("**/compare/**")
