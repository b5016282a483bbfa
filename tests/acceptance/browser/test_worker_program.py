"""The program on the page of an activity works its tasks, as it stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import create, ended, start, unique

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]


def test_the_program_of_the_page_works_the_activity(
    page: Page, server: Server, tmp_path: Path
) -> None:
    """Copied into a file and run with the profile that the server has written."""
    name = unique("label")
    arn = server.client().create_activity(name=name)["activityArn"]
    task = {"Type": "Task", "Resource": arn, "End": True}
    machine = create(server, {"StartAt": "Print", "States": {"Print": task}})
    execution = start(server, machine)
    page.goto(f"/activities/{name}/")
    expect(page.locator(".tile").first).to_contain_text("1")
    page.get_by_role("link", name="Start a worker").click()
    file = tmp_path / "worker.py"
    file.write_text(page.locator("#worker pre").inner_text(), encoding="utf-8")
    credentials = {"AWS_SHARED_CREDENTIALS_FILE": str(server.data / "credentials")}
    worker = subprocess.Popen([sys.executable, str(file)], env=os.environ | credentials)
    try:
        ended(server, execution)
        page.goto(execution)
        expect(page.locator("main")).to_contain_text("Succeeded")
        page.goto(f"/activities/{name}/")
        expect(page.locator(".tile").nth(2)).to_contain_text("1")
        expect(page.locator(".banner")).to_have_count(0)
    finally:
        worker.kill()
        worker.wait()
