"""Unmodified clients, set up by the README's own lines, reach everything."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.readme import EXPORT, FIRST_STEPS, typed
from tests.acceptance.server import Server, free_port

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance
SAMPLE = "arn:aws:states:us-east-1:111111111111:stateMachine:HelloWorld"
STATE = json.dumps({"Type": "Pass", "End": True})
EXPRESS = json.dumps({"StartAt": "P", "States": {"P": json.loads(STATE)}})


def test_boto3_calls_every_action(home: Path, tmp_path: Path) -> None:
    """The README's lines make the client; it calls the 37 actions of its own service model."""
    script = tmp_path / "script.py"
    script.write_text(
        f"{FIRST_STEPS['python']}\n"
        "import json\n"
        "from tests.acceptance.every_action import call_every_action\n"
        "print(json.dumps([sorted(one) for one in call_every_action(sfn)]))\n",
        encoding="utf-8",
    )
    printed = typed(home, f"{EXPORT}\nPYTHONPATH=. python {script}")
    done, actions = json.loads(printed.splitlines()[-1])
    assert done == actions
    assert len(done) == 37


def test_the_cli_calls_what_waits_for_an_answer(home: Path) -> None:
    """The README's own lines, then start-execution, start-sync-execution and test-state."""
    assert "HelloWorld" not in typed(home, FIRST_STEPS["sh"])
    of_samples = EXPORT.replace("AWS_PROFILE=stateyard", "AWS_PROFILE=stateyard-samples")
    listed = typed(home, f"{of_samples}\naws stepfunctions list-state-machines")
    assert SAMPLE in {machine["stateMachineArn"] for machine in json.loads(listed)["stateMachines"]}

    def aws(*arguments: str, profile: str = EXPORT) -> Any:
        words = " ".join(f"'{argument}'" for argument in arguments)
        return json.loads(typed(home, f"{profile}\naws stepfunctions {words}"))

    start = ("start-execution", "--state-machine-arn", SAMPLE)
    assert aws(*start, profile=of_samples)["executionArn"]
    machine = aws(
        *("create-state-machine", "--name", "express-from-cli", "--type", "EXPRESS"),
        *("--definition", EXPRESS, "--role-arn", "arn:aws:iam::123456789012:role/any"),
    )
    arn = machine["stateMachineArn"]
    waited = aws("start-sync-execution", "--state-machine-arn", arn, "--input", "[4711]")
    assert (waited["status"], waited["output"]) == ("SUCCEEDED", "[4711]")
    tried = aws("test-state", "--definition", STATE, "--input", "[4711]")
    assert (tried["status"], tried["output"]) == ("SUCCEEDED", "[4711]")


def test_an_older_profile_is_completed_and_nothing_is_lost(tmp_path: Path) -> None:
    """A folder of before: key and comments stay, and the address follows the server's port."""
    server = Server(tmp_path / "data").start()
    key, secret = server.keys()
    server.stop()
    path = server.data / "credentials"
    old = (
        "# of the team\n[other]\nregion = eu-north-1\n\n[stateyard]\n"
        f"aws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
        "# mine\noutput = table\n"
    )
    path.write_text(old, encoding="utf-8")
    server.start()
    server.stop()
    text = path.read_text(encoding="utf-8")
    added = {
        "region = us-east-1",
        f"endpoint_url = {server.url}",
        "disable_host_prefix_injection = true",
    }
    assert [line for line in text.splitlines() if line not in added] == old.splitlines()
    assert added <= set(text.splitlines())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    server.port = free_port()
    moved = f"http://127.0.0.1:{server.port}"
    server.url = moved
    server.start()
    server.stop()
    assert path.read_text(encoding="utf-8") == text.replace(
        next(line for line in added if "endpoint" in line), f"endpoint_url = {moved}"
    )


def test_what_a_person_set_in_the_profile_stays(tmp_path: Path) -> None:
    """Another address and region are theirs; a file that is none is named and left alone."""
    server = Server(tmp_path / "data").start()
    server.stop()
    path = server.data / "credentials"
    text = path.read_text(encoding="utf-8")
    own = text.replace(server.url, "https://yard.example.com").replace("us-east-1", "eu-west-1")
    path.write_text(own, encoding="utf-8")
    server.start()
    server.stop()
    assert path.read_text(encoding="utf-8") == own
    path.write_text("region = eu-west-1\n", encoding="utf-8")
    server.start()
    server.stop()
    assert path.read_text(encoding="utf-8") == "region = eu-west-1\n"
    assert f"{path}: left as it is, for it cannot be read: " in server.log()
