"""A person sets up notifications and schedules in a browser, and sees how they went."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, start, unique

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}


def test_a_rule_tells_and_its_dead_letter_is_sent_again(page: Page, server: Server) -> None:
    """Made by the form, it tells of the next execution; nobody named the address, so it dies."""
    machine, name = create(server, PASS), unique("rule")
    page.goto("/notifications/")
    page.get_by_role("link", name="Create rule").first.click()
    page.fill("#name", name)
    page.get_by_label("Failed").uncheck()
    page.get_by_label("Succeeded").check()
    page.select_option("#machine", label=machine)
    page.fill("#target", "https://hooks.example.com/yard")
    page.click("button:has-text('Create rule')")
    row = page.locator("tr", has_text=name).first
    expect(row).to_contain_text("Succeeded")
    expect(row).to_contain_text("Enabled")
    start(server, machine)
    page.goto("/notifications/?letters=all")
    letter = page.locator("#letters tr", has_text=machine)
    reason = page.locator("#letters tr.day", has_text=name)
    for _ in range(300):
        page.reload()
        if letter.count():
            break
        page.wait_for_timeout(100)
    expect(reason).to_contain_text("not among the endpoints of targets.json")
    event = letter.locator("code").inner_text()
    letter.get_by_role("button", name="Send again").click()
    expect(page.locator(".banner[role=status]")).to_contain_text("The event was sent again")
    page.get_by_role("link", name=name).first.click()
    expect(page.locator("main")).to_contain_text(event)
    page.click("text=Signing secret")
    page.click("button[value=disable]")
    expect(page.locator("h1")).to_contain_text("Disabled")
    page.click("text=Delete")
    page.click("button.danger")
    expect(page.locator(".banner[role=status]")).to_contain_text("was deleted")


def test_a_schedule_is_made_and_says_when_it_is_due(page: Page, server: Server) -> None:
    """A wrong expression comes back with the reason and everything as it was typed."""
    machine, name = create(server, PASS), unique("nightly")
    page.goto("/schedules/")
    page.get_by_role("link", name="Create schedule").first.click()
    page.fill("#name", name)
    page.fill("#schedule", "cron(0 3 * * *)")
    page.fill("#timezone", "Europe/Rome")
    page.select_option("#machine", label=machine)
    page.fill("#input", '{"night": true}')
    page.click("button:has-text('Create schedule')")
    expect(page.locator("#problem")).to_contain_text("5 fields instead of six")
    assert page.input_value("#input") == '{"night": true}'
    page.fill("#schedule", "cron(0 3 * * ? *)")
    page.click("button:has-text('Create schedule')")
    row = page.locator("tr", has_text=name)
    expect(row).to_contain_text("Europe/Rome")
    page.get_by_role("link", name=name).first.click()
    expect(page.locator("dt:has-text('Next five times') + dd time")).to_have_count(5)
    expect(page.locator("main")).to_contain_text('Input {"night": true}')


def test_the_next_times_are_shown_while_an_expression_is_typed(page: Page) -> None:
    """Five of them in the zone that is chosen; a wrong one says what is wrong, before any press."""
    page.goto("/schedules/?create=1")
    times = page.locator("#next-times")
    page.locator("#schedule").press_sequentially("cron(0 9 ? * MON-FRI *)")
    expect(times.locator("li")).to_have_count(5)
    expect(times.locator("li").first).to_contain_text("09:00:00 UTC")
    page.fill("#timezone", "Europe/Rome")
    expect(times.locator("li").first).to_contain_text(" CE")
    page.fill("#schedule", "cron(0 9 * * *)")
    expect(page.locator("#schedule-problem")).to_contain_text("5 fields instead of six")
    expect(times.locator("li")).to_have_count(0)


def test_a_schedule_is_run_by_hand(page: Page, server: Server) -> None:
    """One press: the list of deliveries follows by itself, and the machine has run."""
    machine, name = create(server, PASS), unique("hand")
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    events = server.client("events")
    events.put_rule(Name=name, ScheduleExpression="rate(10 days)")
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": arn}])
    page.goto(f"/rules/{name}/")
    page.click("button:has-text('Run now')")
    expect(page.locator("#deliveries")).to_contain_text("Delivered")
    page.goto(f"/machines/{machine}/")
    expect(page.locator("#executions tbody tr")).to_have_count(1)


def test_a_target_is_tested(page: Page, server: Server) -> None:
    """Its outcome, here that nobody named the address, is on the page without a reload."""
    name = unique("tested")
    events = server.client("events")
    events.put_rule(Name=name, EventPattern=json.dumps({"source": ["aws.states"]}))
    hook = {"Id": "1", "Arn": "slack+https://hooks.example.com/services/secret"}
    events.put_targets(Rule=name, Targets=[hook])
    page.goto(f"/rules/{name}/")
    page.click("button:has-text('Send a test')")
    expect(page.locator("#deliveries")).to_contain_text("Dead letter")
    expect(page.locator("#deliveries")).to_contain_text("not among the endpoints of targets.json")
    expect(page.locator("#deliveries")).not_to_contain_text("services/secret")


def test_a_start_link_starts_the_machine(page: Page, server: Server) -> None:
    """What the page shows once works as it stands; revoked it opens nothing."""
    machine = create(server, PASS)
    page.goto(f"/machines/{machine}/")
    page.click(".tabs >> text=Triggers")
    page.fill("#name", "shop")
    page.click("button:has-text('Create start link')")
    shown = page.locator("pre.code", has_text="curl -X POST").inner_text()
    url = shown.rpartition("'")[0].rpartition("'")[2]
    answer = page.request.post(url, data={"order": 7})
    assert answer.status == 200
    assert json.loads(answer.text())["executionArn"].split(":")[6] == machine
    page.goto(f"/machines/{machine}/triggers/")
    page.click("text=Revoke")
    expect(page.get_by_role("row").filter(has_text="shop")).to_contain_text("Revoked")
    assert page.request.post(url, data={}).status == 404


def test_the_menu_shows_where_one_is_on_a_phone(page: Page) -> None:
    """Its entry is in sight and marked as soon as the menu is opened; keys lead there, too."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/schedules/")
    page.get_by_role("button", name="Menu", exact=True).click()
    expect(page.locator(".nav [aria-current]")).to_have_text("Rules & schedules")
    expect(page.locator(".nav [aria-current]")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("path", ["/activities/", "/notifications/"])
def test_what_creates_leads_into_the_form(page: Page, path: str) -> None:
    """What is typed next goes into the name, not to the shortcuts of single letters."""
    page.goto(path)
    page.locator("main a.main[href$='#name']").first.click()
    expect(page.locator("#name")).to_be_focused()
