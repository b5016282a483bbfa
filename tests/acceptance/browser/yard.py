"""Helpers of the browser tests: make machines and executions, and wait for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Error, expect

from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.acceptance.server import Server

ROOT = Path(__file__).parents[3]
ROLE = "arn:aws:iam::123456789012:role/tests"


def unique(prefix: str) -> str:
    """Return a name nobody has used."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def create(server: Server, definition: dict[str, Any], name: str | None = None) -> str:
    """Create a machine by the API and return its name."""
    name = name or unique("m")
    text = json.dumps(definition, ensure_ascii=False)
    server.client().create_state_machine(name=name, definition=text, roleArn=ROLE)
    return name


def start(server: Server, machine: str, data: Any = None, name: str = "run") -> str:
    """Start an execution by the API and return the path of its page."""
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{machine}"
    text = json.dumps({} if data is None else data)
    server.client().start_execution(stateMachineArn=arn, name=name, input=text)
    return f"/machines/{machine}/executions/{name}/"


def ended(server: Server, path: str, seconds: float = 90) -> str:
    """Wait until the execution of a page has ended and return the page's path."""
    _, _, machine, _, name, _ = path.split("/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.client().describe_execution(executionArn=arn)["status"] != "RUNNING":
            return path
        time.sleep(0.1)
    raise AssertionError(path)


def over(inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a machine that runs another one for each item, as children of a Map Run."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    each = {"Type": "Map", "ItemProcessor": {"ProcessorConfig": config, **inner}, "End": True}
    return {"StartAt": "Each", "States": {"Each": {**each, **more}}}


def map_run(server: Server, path: str, seconds: float = PATIENCE_S) -> str:
    """Wait until the execution of a page has a Map Run and return the path of that one's page."""
    _, _, machine, _, name, _ = path.split("/")
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{machine}:{name}"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = server.client().get_execution_history(executionArn=arn)["events"]
        begun = [event["id"] for event in told if event["type"] == "MapRunStarted"]
        if begun and server.client().list_map_runs(executionArn=arn)["mapRuns"]:
            return f"{path}map-runs/{begun[-1]}/"
        time.sleep(0.1)
    raise AssertionError(path)


def log_in(page: Page, link: str) -> None:
    """Log in by a one-time link: it opens a page with a button."""
    page.goto(link)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(re.compile(r"://[^/]+/$"))


def login_of(server: Server, name: str, role: str) -> str:
    """Make a person a member and return the link they log in by."""
    manage(server, "member", name, "--role", role)
    told = manage(server, "login_url", "--user", name)
    return f"{server.url}/login/{told.rpartition('/login/')[2].strip()}"


def manage(server: Server, *command: str) -> str:
    """Run a command of ``manage.py`` on the server's data and return what it printed."""
    done = subprocess.run(
        [sys.executable, "manage.py", *command, "--data", str(server.data)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE": "", **server.env},
        capture_output=True,
        text=True,
        check=True,
        timeout=3 * PATIENCE_S,
    )
    return done.stdout


def until(page: Page, script: str, *, arg: Any = None, seconds: float = PATIENCE_S) -> None:
    """Wait until a script is true of the page: an expression, or a function of ``arg``.

    Playwright's own wait looks a second time by ``eval``, which the pages' policy refuses.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            if page.evaluate(script, arg):
                return
        except Error:  # also when the page is left meanwhile
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() <= deadline, f"never true: {script}"
        page.wait_for_timeout(50)


def type_definition(page: Page, text: str) -> None:
    """Replace what is in the editor, as a person who pastes, and sees what they do."""
    page.locator(".ace_content").click()
    expect(page.locator(".ace_text-input")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    until(page, "text => ace.edit(document.querySelector('.editor')).getValue() === text", arg=text)


def waits(seconds: int, *, rounds: int = 0) -> dict[str, Any]:
    """Return a machine that waits; with ``rounds`` so many times one second, writing events."""
    if not rounds:
        return {
            "StartAt": "Before",
            "States": {
                "Before": {"Type": "Pass", "Next": "Nap"},
                "Nap": {"Type": "Wait", "Seconds": seconds, "Next": "After"},
                "After": {"Type": "Pass", "End": True},
            },
        }
    return {
        "StartAt": "Count",
        "States": {
            "Count": {"Type": "Pass", "Result": 0, "ResultPath": "$.n", "Next": "Nap"},
            "Nap": {"Type": "Wait", "Seconds": seconds, "Next": "Add"},
            "Add": {
                "Type": "Pass",
                "Parameters": {"n.$": "States.MathAdd($.n, 1)"},
                "Next": "Enough?",
            },
            "Enough?": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.n", "NumericGreaterThanEquals": rounds, "Next": "Done"}
                ],
                "Default": "Nap",
            },
            "Done": {"Type": "Succeed"},
        },
    }


def held(server: Server) -> tuple[dict[str, Any], Callable[[], None]]:
    """Return ``waits`` whose Nap is a task of an activity, and what completes one such task."""
    client = server.client()
    activity = client.create_activity(name=unique("held"))["activityArn"]
    definition = waits(0)
    definition["States"]["Nap"] = {"Type": "Task", "Resource": activity, "Next": "After"}

    def complete() -> None:
        task = client.get_activity_task(activityArn=activity)
        client.send_task_success(taskToken=task["taskToken"], output="{}")

    return definition, complete
