"""People answer tasks in the list; others by a link, without an account or a script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, unique

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def refunds(server: Server) -> str:
    """Return a machine whose executions wait for a person."""
    arn = server.client().create_activity(name=unique("refund"))["activityArn"]
    approve = {"Type": "Task", "Resource": arn, "End": True}
    return create(server, {"StartAt": "Approve refund", "States": {"Approve refund": approve}})


def test_a_task_is_approved_in_the_list_and_back_answers_nothing(
    page: Page, server: Server, refunds: str
) -> None:
    """The list keeps its columns, the row is gone, and Back shows the list, not the form again."""
    names = ("first", "second")
    paths = [start(server, refunds, {"order": {"id": name}}, name) for name in names]
    page.goto("/tasks/?columns=order.id")
    expect(page.locator("th", has_text="order.id")).to_be_visible()
    row = page.locator("tbody tr", has_text="first")
    row.locator("[name=comment]").fill("as agreed")
    row.locator("[value=approve]").click()
    expect(page.locator("body")).to_contain_text("The task of first was approved.")
    expect(page.locator("#columns")).to_have_value("order.id")
    expect(page.locator("tbody tr", has_text="first")).to_have_count(0)
    ended(server, paths[0])
    page.goto(paths[0])
    page.go_back()
    expect(page.locator("tbody tr", has_text="first")).to_have_count(0)
    expect(page.locator("tbody tr", has_text="second")).to_have_count(1)
    page.locator("tbody tr", has_text="second").locator("[value=ask-reject]").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reject this task?")
    expect(page.locator("main")).to_contain_text("The task Approve refund of")
    page.locator("[value=reject]").click()
    expect(page.get_by_role("status").get_by_role("link", name="second")).to_be_visible()
    ended(server, paths[1])
    page.goto(paths[1])
    expect(page.locator("#outcome")).to_contain_text("Rejected by owner")


def test_the_list_follows_while_a_comment_is_typed(
    page: Page, server: Server, refunds: str
) -> None:
    """What somebody else answers loses its buttons; the comment beside another task stays."""
    for name in ("theirs", "mine"):
        start(server, refunds, {}, name)
    page.goto("/tasks/")
    mine, theirs = (page.locator("tbody tr", has_text=name) for name in ("mine", "theirs"))
    mine.locator("[name=comment]").fill("let me think")
    other = page.context.new_page()
    other.goto("/tasks/")
    other.locator("tbody tr", has_text="theirs").locator("[value=approve]").click()
    expect(other.locator("body")).to_contain_text("The task of theirs was approved.")
    expect(theirs).to_contain_text("owner approved this task")
    expect(theirs.locator("button")).to_have_count(0)
    expect(mine.locator("[name=comment]")).to_have_value("let me think")
    start(server, refunds, {}, "newcomer")
    page.get_by_role("link", name=re.compile("Show 1 new task")).click()
    expect(page.locator("tbody tr", has_text="newcomer")).to_have_count(1)
    expect(theirs).to_have_count(0)


def test_a_link_is_answered_without_an_account_and_without_a_script(
    page: Page, browser: Browser, server: Server, refunds: str
) -> None:
    """The maker sees the link once; its reader gives a name and a reason; Back says it is over."""
    path = start(server, refunds, {"order": {"id": 4713}}, "third")
    page.goto("/tasks/")
    page.locator("tbody tr", has_text="third").locator("td.name a").first.click()
    page.get_by_text("Link for an approver without an account").click()
    page.fill("#note", "Refund order 4713?")
    page.check("[name=show]")
    page.click("#make-link")
    link = page.locator("#approval-link").inner_text().strip()
    guest = browser.new_context(java_script_enabled=False)
    reader = guest.new_page()
    reader.goto(link)
    expect(reader.locator("main")).to_contain_text("Refund order 4713?")
    expect(reader.locator("pre")).to_contain_text("4713")
    reader.fill("#name", "Grace")
    reader.fill("#comment", "too late")
    expect(reader.locator("[value=reject]")).to_be_hidden()
    reader.locator("summary", has_text="Reject").click()
    expect(reader.locator("details.reject")).to_contain_text("You cannot undo this")
    reader.click("[value=reject]")
    expect(reader.locator("h1")).to_have_text("You rejected it.")
    reader.go_back()
    reader.reload()
    expect(reader.locator("h1")).to_contain_text("has been answered")
    guest.close()
    ended(server, path)
    page.goto(path)
    expect(page.locator("#outcome")).to_contain_text("Rejected by Grace, by a link of owner")
