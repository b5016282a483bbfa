"""What becomes of an execution afterwards: as a test, over days, as a picture, again."""

# ruff: noqa: N802 - each test is named after the row it proves

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.acceptance.browser.yard import ROLE, create, ended, start, unique

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ROOT = Path(__file__).parents[3]


def replay(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py replay``."""
    command = [sys.executable, "manage.py", "replay", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def asked(server: Server) -> tuple[dict[str, Any], str]:
    """Return a definition with an activity, and the path of an execution in which it was done."""
    client = server.client()
    worker = client.create_activity(name=unique("a"))["activityArn"]
    big = {"Variable": "$.sum", "NumericGreaterThan": 100, "Next": "Ask"}
    definition = {
        "StartAt": "Count",
        "States": {
            "Count": {"Type": "Task", "Resource": worker, "Next": "Big?"},
            "Big?": {"Type": "Choice", "Choices": [big], "Default": "Done"},
            "Ask": {"Type": "Wait", "Seconds": 1, "Next": "Done"},
            "Done": {"Type": "Pass", "End": True},
        },
    }
    path = start(server, create(server, definition), {"n": 1})
    task = client.get_activity_task(activityArn=worker)
    client.send_task_success(taskToken=task["taskToken"], output='{"sum": 120}')
    return definition, ended(server, path)


def test_X11_an_execution_is_downloaded_as_a_test(
    page: Page, server: Server, tmp_path: Path
) -> None:
    """It runs again to the same end; with a changed definition it fails and says where."""
    definition, path = asked(server)
    page.goto(path)
    page.locator("details.cli > summary").click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download it as a test").click()
    file, changed = tmp_path / waiting.value.suggested_filename, tmp_path / "changed.json"
    assert file.name == "run.scenario.json"
    waiting.value.save_as(file)
    done = replay(str(file))
    assert (done.returncode, done.stdout) == (0, f"{file}: same path, same output\n"), done.stderr
    definition["States"]["Big?"]["Choices"][0]["NumericGreaterThan"] = 1000
    changed.write_text(json.dumps(definition), encoding="utf-8")
    failed = replay(str(file), "--definition", str(changed))
    assert failed.returncode == 1
    assert failed.stdout == f"{file}: path, state 3 (after Big?): got Done, wanted Ask\n"
    scenario = json.loads(file.read_text(encoding="utf-8"))
    for one in scenario["TestState"]:
        whole = json.dumps(scenario["Scenario"]["Definition"])
        tried = server.client().test_state(definition=whole, roleArn=ROLE, **one)
        assert (tried["status"], tried["nextState"]) == ("SUCCEEDED", "Big?")
    expect(page.locator("h1")).to_contain_text("run")
