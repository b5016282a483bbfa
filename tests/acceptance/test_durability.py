"""Nothing is lost when the process is killed at the worst moments."""

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

ROLE = "arn:aws:iam::123456789012:role/test"


def function(name: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls a registered function."""
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{name}"
    return {"Type": "Task", "Resource": arn, **more}


def one(name: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return a machine or branch of one last state."""
    return {"StartAt": name, "States": {name: {**state, "End": True}}}


SLOW = {"Type": "Wait", "Seconds": 3}
SHAPES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "wait": (one("W", SLOW), {"a": 1}, {"a": 1}),
    "backoff": (
        one("F", function("fails-once", Retry=[{"ErrorEquals": ["NotYet"], "IntervalSeconds": 3}])),
        {"marker": "backoff"},
        {"marker": "backoff"},
    ),
    "parallel": (
        one("P", {"Type": "Parallel", "Branches": [one("A", SLOW), one("B", {"Type": "Pass"})]}),
        1,
        [1, 1],
    ),
    "map": (
        one(
            "M",
            {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": one("I", SLOW | {"Seconds": 2})},
        ),
        [1, 2, 3],
        [1, 2, 3],
    ),
    "task": (one("T", function("sleeps")), {"marker": "task"}, {"marker": "task"}),
}

FUNCTIONS = '''
"""Functions of the durability test."""
import pathlib, time

def fails_once(event, context):
    class NotYet(Exception):
        pass
    seen = pathlib.Path(__file__).parent / event["marker"]
    if not seen.exists():
        seen.write_text("1")
        raise NotYet("first time")
    return event

def sleeps(event, context):
    time.sleep(2.5)
    return event
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with two functions of its own."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "durable_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    data = tmp_path / "data"
    data.mkdir()
    registered = {
        name: f"durable_functions:{name.replace('-', '_')}" for name in ("fails-once", "sleeps")
    }
    (data / "functions.json").write_text(json.dumps(registered), encoding="utf-8")
    server = Server(data, PYTHONPATH=str(code)).start()
    yield server
    server.stop()


def test_kill_in_the_middle_of_everything(server: Server) -> None:
    """Kill -9 in Wait, backoff, Parallel, Map and Task: every execution ends as it would have."""
    client = server.client()
    running = {}
    for name, (definition, data, _) in SHAPES.items():
        machine = client.create_state_machine(
            name=name, definition=json.dumps(definition), roleArn=ROLE
        )
        arn = machine["stateMachineArn"]
        running[name] = client.start_execution(stateMachineArn=arn, input=json.dumps(data))
    time.sleep(1)
    before = {name: history(client, one["executionArn"]) for name, one in running.items()}
    server.kill()
    server.start()
    time.sleep(0.7)
    server.kill()
    server.start()
    for name, (_, _, wanted) in SHAPES.items():
        arn = running[name]["executionArn"]
        answer = wait_for_end(client, arn)
        assert answer["status"] == "SUCCEEDED", (name, answer)
        assert json.loads(answer["output"]) == wanted, name
        assert answer["startDate"] == running[name]["startDate"]
        events = history(client, arn)
        assert events[: len(before[name])] == before[name], "history is append-only"
        assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        assert sum(e["type"] in ("TaskScheduled", "LambdaFunctionScheduled") for e in events) <= 2


def test_waits_are_not_shortened_or_doubled_by_a_restart(server: Server) -> None:
    """A wait of 3 s that a kill falls into ends 3 s after it began, or little later."""
    client = server.client()
    machine = client.create_state_machine(
        name="timer", definition=json.dumps(one("W", SLOW)), roleArn=ROLE
    )
    arn = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    time.sleep(0.5)
    server.kill()
    server.start()
    wait_for_end(client, arn)
    entered, exited = (
        next(e["timestamp"] for e in history(client, arn) if e["type"] == kind)
        for kind in ("WaitStateEntered", "WaitStateExited")
    )
    waited = (exited - entered).total_seconds()
    assert waited >= 3
    assert waited < 6


def test_ctrl_c_ends_cleanly_and_continues_later(server: Server) -> None:
    """SIGINT ends the process with code 0; what was running goes on after the next start."""
    client = server.client()
    machine = client.create_state_machine(
        name="later", definition=json.dumps(one("W", SLOW | {"Seconds": 2})), roleArn=ROLE
    )
    arn = client.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    assert server.stop() == 0
    server.start()
    assert wait_for_end(client, arn)["status"] == "SUCCEEDED"


def test_a_deletion_outlives_the_process(server: Server) -> None:
    """Told as AWS tells it: DELETING while an execution waits, then aborted, then the name free."""
    client = server.client()
    states = {
        "W": {"Type": "Wait", "Seconds": 8, "Next": "P"},
        "P": {"Type": "Pass", "End": True},
    }
    wanted = {
        "name": "goes",
        "definition": json.dumps({"StartAt": "W", "States": states}),
        "roleArn": ROLE,
    }
    arn = client.create_state_machine(**wanted)["stateMachineArn"]
    execution = client.start_execution(stateMachineArn=arn)["executionArn"]
    deadline = time.monotonic() + 30
    while len(history(client, execution)) < len(["ExecutionStarted", "WaitStateEntered"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    client.delete_state_machine(stateMachineArn=arn)
    assert client.describe_state_machine(stateMachineArn=arn)["status"] == "DELETING"
    assert client.describe_execution(executionArn=execution)["status"] == "RUNNING"
    for refused in (
        lambda: client.start_execution(stateMachineArn=arn),
        lambda: client.update_state_machine(stateMachineArn=arn, roleArn=ROLE + "2"),
        lambda: client.publish_state_machine_version(stateMachineArn=arn),
        lambda: client.create_state_machine(**wanted),
    ):
        with pytest.raises(client.exceptions.StateMachineDeleting):
            refused()
    server.kill()
    server.start()
    client = server.client()
    assert wait_for_end(client, execution)["status"] == "ABORTED"
    kinds = [event["type"] for event in history(client, execution)]
    assert kinds[-2:] == ["WaitStateExited", "ExecutionAborted"]
    while True:
        try:
            client.describe_state_machine(stateMachineArn=arn)
        except client.exceptions.StateMachineDoesNotExist:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.create_state_machine(**wanted)["stateMachineArn"] == arn
