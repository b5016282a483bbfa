"""The server works where Python lacks what POSIX alone has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import ROOT, Server, wait_for_end
from tests.acceptance.windows_like import MODULES
from tests.test_wheel import Browser

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/tests"
PROGRAM = (sys.executable, "-m", "tests.acceptance.windows_like")
IMPORTS = """
import importlib, pkgutil, sys
from tests.acceptance.windows_like import MODULES, be_like_windows
be_like_windows()
import django, console, engine
django.setup()
for package in (engine, console):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
print(len([name for name in sys.modules if name.startswith(("engine.", "console."))]))
"""
_PROVIDER = '{"corp": {"issuer": "https://sso.example.com", "client_id": "yard"}}'
DEFINITION = {
    "QueryLanguage": "JSONata",
    "StartAt": "Long",
    "States": {
        # a function of functions is evaluated in a child process
        "Long": {
            "Type": "Pass",
            "Output": "{% $reduce([1..$states.input.n], function($a, $b) {$a + $b}) %}",
            "Next": "Talk",
        },
        "Talk": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Arguments": {"FunctionName": "talk", "Payload": "{% $states.input %}"},
            "Output": "{% $states.result.Payload %}",
            "End": True,
        },
    },
}
TALK = "def talk(event, context):\n    print('said', event)\n    return event + 1\n"


class WindowsLike(Server):
    """``up``, started by ``windows_like``."""

    def _command(self) -> list[str]:
        return [*PROGRAM, "up"]


def test_every_module_is_imported(tmp_path: Path) -> None:
    """None needs what POSIX alone has."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "console.config.settings",
            "STATEYARD_DATA": str(tmp_path),
            "STATEYARD_OIDC": _PROVIDER,  # the apps of django-allauth are there for one only
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_help_of_up_is_shown() -> None:
    """The taken modules are really gone: the same process cannot import them."""
    assert "fcntl" in MODULES
    done = subprocess.run(
        [*PROGRAM, "up", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--port" in done.stdout
    code = "from tests.acceptance import windows_like as w; w.be_like_windows(); import fcntl"
    refused = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False
    )
    assert b"No module named 'fcntl'" in refused.stderr


def test_workers_that_would_be_forked_are_refused() -> None:
    """In one line that says what to do in their place."""
    done = subprocess.run(
        [*PROGRAM, "worker", "--processes", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--processes: got 2, wanted 1" in done.stderr


def test_up_runs_executions_and_draws_them(tmp_path: Path) -> None:
    """JSONata, a function in its own process, a page with its graph, and a clean end."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "talking.py").write_text(TALK, encoding="utf-8")
    (data / "functions.json").write_text(json.dumps({"talk": "talking:talk"}), encoding="utf-8")
    server = WindowsLike(data, options=("--empty",)).start()
    try:
        client = server.client()
        machine = client.create_state_machine(
            name="Sum", definition=json.dumps(DEFINITION), roleArn=ROLE
        )["stateMachineArn"]
        started = client.start_execution(stateMachineArn=machine, name="x", input='{"n": 100}')
        ended = wait_for_end(client, started["executionArn"], 60)
        assert (ended["status"], ended.get("output")) == ("SUCCEEDED", "5051"), ended.get("cause")
        browser = Browser(server.url)
        browser.log_in(server.login_url().removeprefix(server.url))
        page = browser.open("/machines/Sum/executions/x/")
        assert "<svg" in page
        assert "Talk" in page
    finally:
        assert server.stop() == 0, server.log()
