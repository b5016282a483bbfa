"""People come in by invitations, choose passwords and keep others out, without a shell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.accessibility import axe_faults
from tests.acceptance.browser.conftest import Watch
from tests.acceptance.browser.yard import create, log_in, login_of, start, unique, waits
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]

FIRST, SECOND = "seven red bicycles", "eleven blue trams"
# a link that is used up, too many passwords, and a part of a page whose session has ended
EXPECTED = ("410", "429", "401", "console: Response Status Error Code 401")


@pytest.fixture
def visitor(browser: Browser, server: Server) -> Iterator[Page]:
    """Return the page of somebody who is not signed in; nothing may go wrong in it."""
    context = browser.new_context(base_url=server.url)
    context.set_default_timeout(1000 * PATIENCE_S)
    page = context.new_page()
    watch = Watch(page)
    yield page
    context.close()
    # Who is removed: 1. a poll finds the session, 2. the membership goes, 3. the poll misses it and
    # is refused with 403. The next one finds no session and is sent to the sign-in.
    refused_poll = re.compile(r"(403 |console: .* 403 from ).*/_delta\?")
    expected = [fault.startswith(EXPECTED) or refused_poll.match(fault) for fault in watch.faults]
    assert all(expected), watch.faults


def fine(page: Page) -> None:
    """No rule of accessibility is broken, and a phone shows the page without scrolling sideways."""
    assert axe_faults(page) == []
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size(size)


def sign_in(page: Page, name: str, password: str) -> None:
    """Sign in by name and password."""
    page.goto("/login/")
    page.fill("#username", name)
    page.fill("#password", password)
    page.get_by_role("button", name="Sign in").click()


def invited(page: Page, name: str) -> str:
    """Invite an operator on the Members page and return the link, which is shown once."""
    page.goto("/members/")
    page.fill("#invited-name", name)
    page.select_option("#invited-role", "operator")
    page.select_option("#invited-hours", "168")
    page.get_by_role("button", name="Create invitation").click()
    link: str = page.locator("[aria-label='The new invitation'] pre").inner_text().strip()
    return link


def choose(page: Page, password: str, button: str, old: str = "") -> None:
    """Fill in the form of a new password and send it."""
    if old:
        page.get_by_label("Old password").fill(old)
    page.get_by_label("New password", exact=True).fill(password)
    page.get_by_label("New password confirmation").fill(password)
    page.get_by_role("button", name=button).click()


def test_an_owner_invites_somebody_who_joins_once(page: Page, visitor: Page) -> None:
    """From the Members page to a member with a password of their own; the link is used up."""
    name = unique("ana")
    link = invited(page, name)
    fine(page)
    page.goto("/members/")
    assert link not in page.content()
    row = page.locator("tr", has_text=name)
    expect(row).to_contain_text("Operator")
    visitor.goto(link)
    fine(visitor)
    choose(visitor, "short", "Join")
    expect(visitor.locator(".error").last).to_contain_text("at least 12 characters")
    fine(visitor)
    choose(visitor, FIRST, "Join")
    expect(visitor.locator(".banner")).to_contain_text("You are operator of default")
    expect(visitor.locator(".user")).to_have_text(name)
    page.reload()
    expect(row).to_contain_text("Remove")
    expect(row.get_by_text("Revoke")).to_have_count(0)
    visitor.goto(link)
    expect(visitor.locator("h1")).to_contain_text("no longer works")
    fine(visitor)


def test_a_new_password_ends_the_other_sessions(
    page: Page, visitor: Page, browser: Browser, server: Server
) -> None:
    """The browser in which it was changed stays signed in; the old password lets nobody in."""
    name = unique("ana")
    visitor.goto(invited(page, name))
    choose(visitor, FIRST, "Join")
    elsewhere = browser.new_context(base_url=server.url)
    other = elsewhere.new_page()
    sign_in(other, name, FIRST)
    expect(other.locator("h1")).to_contain_text("Overview")
    visitor.get_by_label("Display and account").click()
    visitor.get_by_role("link", name="Password").click()
    fine(visitor)
    choose(visitor, SECOND, "Change the password", old=FIRST)
    expect(visitor.locator(".banner")).to_contain_text("Your password is set")
    other.goto("/executions/")
    assert "/login/" in other.url
    sign_in(other, name, FIRST)
    expect(other.locator("#refused")).to_contain_text("not correct")
    sign_in(other, name, SECOND)
    expect(other.locator("h1")).to_contain_text("Overview")
    elsewhere.close()


def test_a_revoked_invitation_refuses_a_form_that_is_open(page: Page, visitor: Page) -> None:
    """What was typed there makes nobody a member."""
    name = unique("eve")
    visitor.goto(invited(page, name))
    page.locator("tr", has_text=name).get_by_role("button", name="Revoke").click()
    expect(page.locator(".banner")).to_contain_text("was revoked")
    choose(visitor, FIRST, "Join")
    expect(visitor.locator("h1")).to_contain_text("no longer works")
    page.goto("/members/")
    expect(page.locator("tr", has_text=name)).to_have_count(0)


def test_whoever_is_removed_is_out_of_an_open_page(
    page: Page, visitor: Page, server: Server
) -> None:
    """The page that polls says so by itself, and the next click leads to the login."""
    name = unique("ben")
    path = start(server, create(server, waits(600)))
    log_in(visitor, login_of(server, name, "viewer"))
    visitor.goto(path)
    expect(visitor.locator("#status")).to_have_text("Running")
    page.goto("/members/")
    row = page.locator("tr", has_text=name)
    row.locator("summary").click()
    row.get_by_role("button", name=f"Remove {name}").click()
    expect(page.locator(".banner")).to_contain_text("was removed")
    expect(visitor.get_by_text("you are signed out. Load the page again.")).to_be_visible()
    visitor.goto("/executions/")
    assert "/login/" in visitor.url
    expect(visitor.locator("h1")).to_have_text("Sign in")


def test_a_page_whose_session_ends_keeps_what_it_shows(
    browser: Browser, server: Server, signed_in: Path
) -> None:
    """Poll, filter and palette put no sign-in into a part of the page, which says it is out."""
    context = browser.new_context(base_url=server.url, storage_state=signed_in)
    page = context.new_page()
    page.goto("/executions/")
    context.clear_cookies(name="stateyard_session")
    said = page.locator("main > .signed-out")
    expect(said).to_contain_text("You are signed out")  # by the poll
    page.fill("#find", "input.n = 1")
    with page.expect_response("**/executions/?find=**"):
        page.keyboard.press("Enter")
    expect(page.locator("#list #find")).to_have_value("input.n = 1")
    with page.expect_response("**/palette/**"):
        page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.locator("input[type=password]")).to_have_count(0)
    expect(said).to_have_count(1)
    said.get_by_role("link", name="sign in").click()
    page.wait_for_url("**/login/?next=%2Fexecutions%2F")
    context.close()
