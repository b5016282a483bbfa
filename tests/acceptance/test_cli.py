"""The AWS CLI works against the server, by the transcript that Step Functions Local documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import wait_for_end

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance
DEFINITION = {
    "StartAt": "Show Axis",
    "States": {
        "Show Axis": {
            "Type": "Pass",
            "Result": {"x-axis": 10, "y-axis": 20},
            "ResultPath": "$.axis",
            "End": True,
        }
    },
}


def aws(server: Server, *arguments: str, url: str = "") -> Any:
    """Run the AWS CLI with the credentials file of the server and return its JSON answer."""
    command = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", url or server.url]
    command += ["--region", "us-east-1", "--output", "json", "stepfunctions", *arguments]
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "AWS_SHARED_CREDENTIALS_FILE": str(server.data / "credentials"),
            "AWS_PROFILE": "stateyard",
            "AWS_PAGER": "",
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_transcript(up: Server) -> None:
    """create-state-machine, start-execution, describe-execution, get-execution-history."""
    machine = aws(
        up,
        "create-state-machine",
        *("--name", "Sample", "--definition", json.dumps(DEFINITION)),
        *("--role-arn", "arn:aws:iam::012345678901:role/DummyRole"),
    )
    assert machine["stateMachineArn"].endswith(":stateMachine:Sample")
    started = aws(up, "start-execution", "--state-machine-arn", machine["stateMachineArn"])
    arn = started["executionArn"]
    wait_for_end(up.client(), arn)
    described = aws(up, "describe-execution", "--execution-arn", arn)
    assert described["status"] == "SUCCEEDED"
    assert json.loads(described["output"]) == {"axis": {"x-axis": 10, "y-axis": 20}}
    events = aws(up, "get-execution-history", "--execution-arn", arn)["events"]
    assert events[0]["executionStartedEventDetails"]["roleArn"].endswith("role/DummyRole")
    assert [event["type"] for event in events][-1] == "ExecutionSucceeded"


ROLE = "arn:aws:iam::012345678901:role/DummyRole"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:Deck"
EXECUTION = (
    "arn:aws:states:us-east-1:000000000000:execution:Deck:788f9517-3a09-4399-b18f-93944db559da"
)
ANSWERS: dict[str, Any] = {
    "create-state-machine": {"stateMachineArn": MACHINE, "creationDate": 1558312491.113},
    "start-execution": {"executionArn": EXECUTION, "startDate": 1558312503.407},
    "describe-execution": {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "name": "788f9517-3a09-4399-b18f-93944db559da",
        "status": "SUCCEEDED",
        "startDate": 1558312503.407,
        "stopDate": 1558312503.442,
        "input": "{}",
        "output": '{"axis":{"x-axis":10,"y-axis":20}}',
    },
    "get-execution-history": {
        "events": [
            {
                "timestamp": 1558312503.41,
                "type": "ExecutionStarted",
                "id": 1,
                "previousEventId": 0,
                "executionStartedEventDetails": {"input": "{}", "roleArn": ROLE},
            }
        ]
    },
}
"""What Step Functions Local printed in 2019 for each command of the transcript."""


def assert_shape(was: Any, now: Any, where: str) -> None:
    """Check that an answer has what the old one had: names, and values of the same kind."""
    if isinstance(was, dict):
        assert set(was) <= set(now), where
        for name, old in was.items():
            assert_shape(old, now[name], f"{where}.{name}")
    elif isinstance(was, list):
        for old, new in zip(was, now, strict=False):
            assert_shape(old, new, f"{where}[]")
    elif isinstance(was, str) and was.startswith("arn:aws:states:"):
        parts, new = was.split(":"), now.split(":")
        assert len(parts) == len(new), where
        assert [parts[at] for at in (0, 1, 2, 3, 5, 6)] == [new[at] for at in (0, 1, 2, 3, 5, 6)]
    elif isinstance(was, str) and where.endswith(".name"):
        assert str(uuid.UUID(now)) == now, where
    elif isinstance(was, float):
        assert isinstance(now, int | float), where
        assert now > was, where
    else:
        assert was == now, where


def test_the_transcript_gives_the_same_shapes(up: Server, tmp_path: Path) -> None:
    """Command by command at ``localhost``, the definition from a file, no name, no input."""
    path = tmp_path / "Pass.json"
    path.write_text(json.dumps(DEFINITION), encoding="utf-8")
    url = f"http://localhost:{up.port}"
    options = ("--definition", f"file://{path}", "--name", "Deck", "--role-arn", ROLE)
    answers = {"create-state-machine": aws(up, "create-state-machine", *options, url=url)}
    machine = answers["create-state-machine"]["stateMachineArn"]
    started = aws(up, "start-execution", "--state-machine-arn", machine, url=url)
    answers["start-execution"] = started
    wait_for_end(up.client(), started["executionArn"])
    for command in ("describe-execution", "get-execution-history"):
        answers[command] = aws(up, command, "--execution-arn", started["executionArn"], url=url)
    for command, was in ANSWERS.items():
        assert_shape(was, answers[command], command)
    kinds = [event["type"] for event in answers["get-execution-history"]["events"]]
    assert kinds == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "ExecutionSucceeded",
    ]
