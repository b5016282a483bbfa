"""Does the AWS CLI work against the server?  The transcript of Step Functions Local, on ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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


def aws(server: Server, *arguments: str) -> Any:
    """Run the AWS CLI with the credentials file of the server and return its JSON answer."""
    command = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", server.url]
    command += ["--region", "us-east-1", "--output", "json", "stepfunctions", *arguments]
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "AWS_SHARED_CREDENTIALS_FILE": str(server.data / "credentials"),
            "AWS_PROFILE": "stepyard",
            "AWS_PAGER": "",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_transcript(up: Server) -> None:
    """create-state-machine, start-execution, describe-execution, get-execution-history."""
    made = aws(
        up,
        "create-state-machine",
        *("--name", "Sample", "--definition", json.dumps(DEFINITION)),
        *("--role-arn", "arn:aws:iam::012345678901:role/DummyRole"),
    )
    assert made["stateMachineArn"].endswith(":stateMachine:Sample")
    started = aws(up, "start-execution", "--state-machine-arn", made["stateMachineArn"])
    time.sleep(0.5)
    arn = started["executionArn"]
    described = aws(up, "describe-execution", "--execution-arn", arn)
    assert described["status"] == "SUCCEEDED"
    assert json.loads(described["output"]) == {"axis": {"x-axis": 10, "y-axis": 20}}
    events = aws(up, "get-execution-history", "--execution-arn", arn)["events"]
    assert events[0]["executionStartedEventDetails"]["roleArn"].endswith("role/DummyRole")
    assert [event["type"] for event in events][-1] == "ExecutionSucceeded"
