"""Measure how long an event takes to reach the screens of people who look at its execution.

``python -m tests.benchmarks.event_to_pixel [--pages 10] [--seconds 30]`` starts ``manage.py up``
and opens so many pages of running executions, each in a browser window of its own. An event counts
from the time in its history until the first frame that the page draws after it has painted it.
Figures are milliseconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from tests.acceptance.browser.conftest import ARGS
from tests.acceptance.browser.yard import create, log_in, manage, start, waits
from tests.acceptance.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_ROUNDS = 200
_WATCH = """
window.painted = [];
document.addEventListener("paint", () => requestAnimationFrame(() => {
  const cursor = Number(document.getElementById("poll").dataset.cursor);
  window.painted.push([cursor, Date.now()]);
}));
"""


def measure(server: Server, browser: Browser, pages: int, seconds: int) -> list[float]:
    """Return the delay of each event that a page has painted, in milliseconds."""
    link = manage(server, "login_url", "--address", server.url).strip()
    context = browser.new_context(base_url=server.url)
    log_in(context.new_page(), link)
    state: Any = context.storage_state()
    machine = create(server, waits(3, rounds=_ROUNDS), "ticks")
    windows = []
    for number in range(pages):
        path = start(server, machine, name=f"run-{number}")
        page = browser.new_context(base_url=server.url, storage_state=state).new_page()
        page.goto(path)
        page.evaluate(_WATCH)
        windows.append(page)
    windows[-1].wait_for_timeout(seconds * 1000)
    return [delay for number, page in enumerate(windows) for delay in _delays(server, page, number)]


def _delays(server: Server, page: Page, number: int) -> list[float]:
    """Return how long after its time each event was on a page."""
    painted: list[tuple[int, int]] = page.evaluate("window.painted")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:ticks:run-{number}"
    history = server.client().get_paginator("get_execution_history")
    delays: list[float] = []
    if not painted:
        return delays
    first, last = painted[0][0], painted[-1][0]
    for part in history.paginate(executionArn=arn):
        for event in part["events"]:
            if first < event["id"] <= last:
                drawn = next(at for cursor, at in painted if cursor >= event["id"])
                delays.append(drawn - event["timestamp"].timestamp() * 1000)
    return delays


def main() -> None:
    """Print the percentiles of all delays as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        server = Server(Path(folder) / "data").start()
        try:
            delays = measure(server, browser, options.pages, options.seconds)
        finally:
            server.stop()
            browser.close()
    cuts = statistics.quantiles(delays, n=100)
    figures = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "most": max(delays)}
    rounded = {name: round(value) for name, value in figures.items()}
    print(json.dumps({"pages": options.pages, "events": len(delays)} | rounded))


if __name__ == "__main__":
    main()
