"""A real server, a real chromium, and pages that fail their test on any script error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from console.samples import MACHINES, sample_role
from console.samples.functions import FUNCTIONS
from tests.acceptance.browser.yard import log_in, manage
from tests.acceptance.server import Server
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=1000 * PATIENCE_S)


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """Start the system's chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start ``manage.py up`` on a free port with an empty data folder."""
    yield from running_server(tmp_path_factory)


def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with the samples, and stop it at the end."""
    data = tmp_path_factory.mktemp("yard") / "data"
    # for the pages that there are with a mail server only; no mail is taken there
    # for its form only, too: nothing is fetched
    profiles = "*=production-read-only"
    server = Server(
        data, STATEYARD_MAIL="smtp://127.0.0.1:9", STATEYARD_FETCH_PROFILES=profiles
    ).start()
    _copy_samples(server)
    yield server
    server.stop()


def _copy_samples(server: Server) -> None:
    """Give the default project the samples, too, as servers of earlier releases have them."""
    client = server.client()
    for name in FUNCTIONS:
        if name.startswith("activity:"):
            client.create_activity(name=name.removeprefix("activity:"))
    for sample in MACHINES:
        client.create_state_machine(
            name=sample.name, definition=sample.definition, roleArn=sample_role("123456789012")
        )


@pytest.fixture(scope="package")
def signed_in(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log in by the one-time link and return the file with the cookies."""
    return saved_login(browser, server, tmp_path_factory)


def saved_login(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log in to a server by a one-time link and return the file with the cookies."""
    state = tmp_path_factory.mktemp("browser") / "state.json"
    context = browser.new_context()
    page = context.new_page()
    # not the link in the file: a test may have made one for somebody else meanwhile
    log_in(page, manage(server, "login_url", "--address", server.url).strip())
    assert page.url.rstrip("/") == server.url
    context.storage_state(path=state)
    context.close()
    return state


class Watch:
    """What went wrong in a page: script errors, console errors, CSP reports, failed requests."""

    def __init__(self, page: Page) -> None:
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def _console(self, message: Any) -> None:
        # Who leaves a page ends its poll: htmx reports two events then. A request that fails for
        # another reason has a third one, htmx:sendError.
        if message.text.startswith(("htmx:sendAbort", "htmx:afterRequest")):
            return
        if message.type == "error" and "status of 4" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _response(self, response: Any) -> None:
        # A refused form answers 422 with the form, a link that was used 410; a missing page is
        # somebody's own test.
        if response.status >= 400 and response.status not in (404, 410, 422):
            self.faults.append(f"{response.status} {response.url}")


@pytest.fixture
def context(browser: Browser, server: Server, signed_in: Path) -> Iterator[BrowserContext]:
    """Return a signed-in browser window of a common size."""
    context = browser.new_context(
        base_url=server.url, storage_state=signed_in, viewport={"width": 1440, "height": 1000}
    )
    context.set_default_timeout(1000 * PATIENCE_S)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Return a page; at the end of the test nothing may have gone wrong in it."""
    page = context.new_page()
    watch = Watch(page)
    yield page
    assert not watch.faults
