"""What a newcomer copies works: quickstart, pages of tools, recipes for tests, the action."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.acceptance.readme import ROOT
from tests.acceptance.server import START_S, Server, free_port
from tests.features.deploy import projects
from tests.features.deploy.test_deploy import FUNCTIONS, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def blocks(page: str, language: str = "sh") -> list[str]:
    """Return the fenced blocks of a page of ``docs/``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str, Path], str]:
    """Return a function that types lines in a folder, where ``stateyard`` and ``python`` are known.

    It raises AssertionError with what was printed if a line fails.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("stateyard", "-m console.command_line"), ("python", "")):
        path = programs / name
        path.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} {command} "$@"\n'
        )
        path.chmod(0o755)

    def type_lines(lines: str, folder: Path, **env: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=folder,
            env=clean() | {"PATH": f"{programs}:{os.environ['PATH']}"} | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return type_lines


def wait_until_ready(url: str) -> None:
    """Return once a server answers."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
        except OSError:
            assert time.monotonic() < deadline, url
            time.sleep(0.1)
        else:
            return


def test_the_quickstart_does_what_it_says(shell: Callable[..., str], tmp_path: Path) -> None:
    """Two executions: one is paid, one goes on in the state for errors."""
    start, write, run = blocks("tutorial/quickstart.md")
    assert "stateyard up --data .stateyard" in start
    shop = tmp_path / "shop"
    shop.mkdir()
    port = free_port()
    serve = f"stateyard up --data .stateyard --port {port} > up.log 2>&1 & echo $!"
    number = int(shell(serve, shop).strip())
    try:
        wait_until_ready(f"http://127.0.0.1:{port}")
        shell(write, shop)
        printed = shell(run, shop)
    finally:
        os.kill(number, signal.SIGINT)
    assert '{"paid":5}' in printed.replace(" ", "")
    assert "Ask a person" in printed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows the projects' functions."""
    data = tmp_path_factory.mktemp("tools") / "data"
    running = Server(data, options=("--empty",), STATEYARD_FUNCTIONS=FUNCTIONS).start()
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("page", "make"),
    [
        ("sam", projects.sam_project),
        ("cdk", lambda folder: projects.cdk_project(folder / "cdk.out")),
        ("serverless", projects.serverless_project),
        ("terraform", lambda folder: projects.terraform_state(folder / "plan.json")),
    ],
)
def test_the_page_of_a_tool(
    server: Server, shell: Callable[..., str], tmp_path: Path, page: str, make: Any
) -> None:
    """Its lines for Stateyard run as they are; those of the tool made what is in the folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    make(folder)
    lines = [line for line in blocks(f"how-to/{page}.md")[0].splitlines() if "stateyard" in line]
    lines = [line for line in lines if not line.startswith("stateyard up")]
    assert [line.split()[1] for line in lines] == ["deploy", "deploy", "start"]
    printed = [shell(f"{line} --data {server.data}", folder) for line in lines]
    assert "would create" in printed[0]
    assert "created" in printed[1]
    assert "  left" in printed[2]  # and the exit code was that of SUCCEEDED


def test_the_recipe_for_javascript(shell: Callable[..., str], tmp_path: Path) -> None:
    """The runner of Node.js starts the server, calls it, and ends it."""
    (script,) = [block for block in blocks("how-to/testing.md", "js") if "node:test" in block]
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@aws-sdk/client-sfn@3"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    (tmp_path / "orders.test.mjs").write_text(script, encoding="utf-8")
    env = {"YARD_PORT": str(free_port())}
    assert "# pass 1" in shell("node --test --test-reporter=tap", tmp_path, **env)


def test_the_recipe_for_boto3(shell: Callable[..., str], tmp_path: Path) -> None:
    """It passes with the plugin, in a folder of its own."""
    (recipe,) = [block for block in blocks("how-to/testing.md", "python") if "place_order" in block]
    (tmp_path / "test_orders.py").write_text(recipe, encoding="utf-8")
    words = "-m pytest -q -p no:cacheprovider test_orders.py"
    if not entry_points(group="pytest11", name="stateyard"):  # the project is not installed here
        words += " -p console.testing.plugin"
    assert "1 passed" in shell(f"python {words}", tmp_path, PYTEST_ADDOPTS="")


def test_the_action_starts_a_server(shell: Callable[..., str], tmp_path: Path) -> None:
    """Its script leaves the environment for the next step, and deploys what it was given."""
    install, start, *_ = ACTION["runs"]["steps"]  # the others are for a shared server
    assert set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"]))) == set(ACTION["inputs"])
    assert install["run"].startswith("python -P -m pip install")
    (tmp_path / "hello.asl.json").write_text(
        '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}'
    )
    (tmp_path / "mocks.json").write_text("{}")
    port = free_port()
    env = {name: str(tmp_path / name) for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
    script = start["run"].replace("server=$!", "server=$!; echo $server > server.pid")
    try:
        printed = shell(
            script, tmp_path, RUNNER_TEMP=str(tmp_path), PORT=str(port), MOCKS="mocks.json",
            DEPLOY="hello.asl.json", WAIT_TIME_SCALE="0.5", **env,
        )  # fmt: skip
        assert "state machine hello: created" in printed
        assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"endpoint-url=http://127.0.0.1:{port}\n"
        following = dict(
            line.split("=", 1) for line in (tmp_path / "GITHUB_ENV").read_text().splitlines()
        )
        listed = "import boto3; print(boto3.client('stepfunctions').list_state_machines())"
        assert "hello" in shell(f'python -c "{listed}"', tmp_path, **following)
    finally:
        os.kill(int((tmp_path / "server.pid").read_text()), signal.SIGINT)


PASSES = '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}'
FAILS = (
    '{"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Broken", "Cause": "as meant"}}}'
)
STARTS = """
import boto3, os, sys, time
sfn = boto3.client("stepfunctions")
machines = sfn.list_state_machines()["stateMachines"]
(machine,) = [machine for machine in machines if machine["name"] == "in-branch"]
assert machine["stateMachineArn"].split(":")[4] == os.environ["AWS_ACCOUNT_ID"]
arn = sfn.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
while (status := sfn.describe_execution(executionArn=arn)["status"]) == "RUNNING":
    time.sleep(0.05)
print(status)
assert status == "SUCCEEDED"
"""


@pytest.fixture
def in_branch(server: Server, shell: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs the two steps for a shared server, as a runner does."""
    _, _, deploying, testing, _ = ACTION["runs"]["steps"]
    (tmp_path / "workflows").mkdir()
    (tmp_path / "starts.py").write_text(STARTS)
    key, secret = server.keys()

    def run(definition: str, **env: str) -> str:
        (tmp_path / "workflows" / "in-branch.asl.json").write_text(definition)
        inputs = {
            "SERVER": server.url,
            "BRANCH": "feature/action",
            "DEPLOY": "workflows/",
            "TTL": "1h",
            "TESTS": "python starts.py || exit 5",
            "GITHUB_ACTIONS": "true",
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "STATEYARD_DATA": str(tmp_path / "nothing"),  # a runner has no server of its own
            **env,
        }
        printed = [shell(step["run"], tmp_path, **inputs) for step in (deploying, testing)]
        return "".join(printed)

    return run


def test_the_action_tests_in_a_branch(server: Server, in_branch: Callable[..., str]) -> None:
    """Its steps deploy to the branch and run the tests there; a failed execution is named."""
    before = server.client().list_state_machines()["stateMachines"]
    printed = in_branch(PASSES)
    assert "state machine in-branch: created" in printed
    assert printed.index("::add-mask::") < printed.index("AWS_SECRET_ACCESS_KEY=")
    assert "SUCCEEDED" in printed
    with pytest.raises(AssertionError, match=r"FAILED arn:aws:states:.*Broken: as meant"):
        in_branch(FAILS)
    assert server.client().list_state_machines()["stateMachines"] == before


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"SERVER": "http://127.0.0.1:1"}, 'stateyard: Could not connect .*"http://127.0.0.1:1/'),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "stateyard: The request signature we calculated"),
        ({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, "stateyard: The security token .* is invalid"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "::error::.* has no secrets"),
        ({"BRANCH": ""}, "::error::server: needs branch and deploy"),
        ({"BRANCH": "a b"}, "is not the name of a branch"),
    ],
)
def test_the_action_says_why_it_cannot_test(
    in_branch: Callable[..., str], env: dict[str, str], words: str
) -> None:
    """A server that is down, a refused key, and a pull request from a fork, without secrets."""
    with pytest.raises(AssertionError, match=words):
        in_branch(PASSES, **env)


def test_workflows_are_yaml_with_steps() -> None:
    """The recipes of the page, and the workflow of this repository."""
    texts = [*blocks("how-to/testing.md", "yaml"), (ROOT / ".github/workflows/ci.yml").read_text()]
    assert len(texts) == 3
    for text in texts:
        jobs = yaml.safe_load(text)["jobs"]
        assert all(step.keys() & {"run", "uses"} for job in jobs.values() for step in job["steps"])
    assert set(yaml.safe_load(texts[1])["jobs"]["workflows"]["steps"][2]["with"]) <= set(
        ACTION["inputs"]
    )
