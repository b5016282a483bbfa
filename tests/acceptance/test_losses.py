"""Kill -9 while a function runs: it is called again or never, as its machine says."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server, history, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/tests"
PAY = '''
"""A function that notes each call and takes its time."""
import pathlib, time

def pay(event, context):
    with (pathlib.Path(__file__).parent / event["order"]).open("a") as notes:
        notes.write(context.idempotency_key + "\\n")
    time.sleep(1.5)
    return "paid"
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of its own with the function, to be killed."""
    code, data = tmp_path / "code", tmp_path / "data"
    code.mkdir()
    data.mkdir()
    (code / "lossy_functions.py").write_text(PAY, encoding="utf-8")
    (data / "functions.json").write_text('{"pay": "lossy_functions:pay"}', encoding="utf-8")
    server = Server(data, PYTHONPATH=str(code)).start()
    yield server
    server.stop()


def pay(sfn: Any, policy: str) -> str:
    """Start an execution that pays for an order named as the policy; return its ARN."""
    state = {
        "Type": "Task",
        "Resource": "arn:aws:lambda:us-east-1:123456789012:function:pay",
        "End": True,
    }
    machine = sfn.create_state_machine(
        name=policy,
        roleArn=ROLE,
        definition=json.dumps({"StartAt": "Pay", "States": {"Pay": state}}),
        tags=[{"key": "stateyard:onWorkerLoss", "value": policy}],
    )["stateMachineArn"]
    text = json.dumps({"order": policy})
    return str(sfn.start_execution(stateMachineArn=machine, input=text)["executionArn"])


def test_a_killed_call_is_made_again_or_never(server: Server, tmp_path: Path) -> None:
    """Redispatch: two calls with one key, then success. Fail: one call, and nobody knows."""
    sfn = server.client()
    again, never = pay(sfn, "redispatch"), pay(sfn, "fail")
    notes = {policy: tmp_path / "code" / policy for policy in ("redispatch", "fail")}
    while not all(note.exists() and note.read_text() for note in notes.values()):
        time.sleep(0.02)
    server.kill()
    server.start()
    end = wait_for_end(sfn, again)
    assert (end["status"], end["output"]) == ("SUCCEEDED", '"paid"')
    end = wait_for_end(sfn, never)
    assert (end["status"], end["error"]) == ("FAILED", "States.TaskFailed")
    assert "outcome unknown" in end["cause"]
    keys = {policy: note.read_text().split() for policy, note in notes.items()}
    assert len(keys["redispatch"]) == 2
    assert len(set(keys["redispatch"])) == 1
    assert len(keys["fail"]) == 1
    kinds = [event["type"] for event in history(sfn, never)]
    assert kinds.count("LambdaFunctionFailed") == 1
    assert kinds[-1] == "ExecutionFailed"
