"""Nothing is lost when the process is killed at the worst moments."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import Server, history, wait_for_end
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/test"
WAITING = len(["ExecutionStarted", "WaitStateEntered"])


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
    before = {
        name: history(client, execution["executionArn"]) for name, execution in running.items()
    }
    server.kill()
    server.start()
    time.sleep(0.7)
    server.kill()
    server.start()
    for name, (_, _, output) in SHAPES.items():
        arn = running[name]["executionArn"]
        answer = wait_for_end(client, arn)
        assert answer["status"] == "SUCCEEDED", (name, answer)
        assert json.loads(answer["output"]) == output, name
        assert answer["startDate"] == running[name]["startDate"]
        events = history(client, arn)
        assert events[: len(before[name])] == before[name], "history is append-only"
        assert [event["id"] for event in events] == list(range(1, len(events) + 1))
        assert sum(e["type"] in ("TaskScheduled", "LambdaFunctionScheduled") for e in events) <= 2


def test_waits_are_not_shortened_or_doubled_by_a_restart(server: Server) -> None:
    """What became due while no server ran goes on at once; one that is not due yet waits on."""
    client = server.client()
    seconds = 12  # one that began anew would last so long again, even on a loaded machine
    arns = {}
    for name, wait in (("due", seconds), ("later", 2 * seconds)):
        machine = client.create_state_machine(
            name=name,
            definition=json.dumps(one("W", {"Type": "Wait", "Seconds": wait})),
            roleArn=ROLE,
        )["stateMachineArn"]
        arns[name] = client.start_execution(stateMachineArn=machine)["executionArn"]
    wait_until(lambda: all(len(history(client, arn)) == WAITING for arn in arns.values()))
    server.kill()
    time.sleep(seconds)
    server.start()
    ready = datetime.now(UTC)
    moments = {}
    for name, arn in arns.items():
        wait_for_end(client, arn)
        moments[name] = [
            next(e["timestamp"] for e in history(client, arn) if e["type"] == kind)
            for kind in ("WaitStateEntered", "WaitStateExited")
        ]
    assert (moments["due"][1] - ready).total_seconds() < seconds
    entered, exited = moments["later"]
    assert (exited - entered).total_seconds() >= 2 * seconds
    assert (exited - ready).total_seconds() < 2 * seconds


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


def test_who_waits_for_an_answer_is_sent_away_at_the_end(server: Server) -> None:
    """Soon, by an answer that SDKs make the call again for, and not by 500."""
    client = server.client()
    machine = client.create_state_machine(
        name="sync",
        definition=json.dumps(one("W", SLOW | {"Seconds": 60})),
        roleArn=ROLE,
        type="EXPRESS",
    )

    def begun() -> bool:
        with contextlib.closing(sqlite3.connect(server.data / "stateyard.sqlite3")) as database:
            return bool(database.execute("SELECT 1 FROM console_runrow").fetchall())

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(
            client.start_sync_execution, stateMachineArn=machine["stateMachineArn"]
        )
        wait_until(begun)
        assert server.stop() == 0
        with pytest.raises(ClientError) as refused:
            waiting.result()
    answer = refused.value.response
    assert answer["Error"]["Code"] == "ServiceUnavailable"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Cancel" not in server.log()


def test_a_deletion_outlives_the_process(server: Server) -> None:
    """Told as AWS tells it: DELETING while an execution waits, then aborted, then the name free."""
    client = server.client()
    states = {
        "W": {"Type": "Wait", "Seconds": 8, "Next": "P"},
        "P": {"Type": "Pass", "End": True},
    }
    parameters = {
        "name": "goes",
        "definition": json.dumps({"StartAt": "W", "States": states}),
        "roleArn": ROLE,
    }
    arn = client.create_state_machine(**parameters)["stateMachineArn"]
    execution = client.start_execution(stateMachineArn=arn)["executionArn"]
    wait_until(lambda: len(history(client, execution)) == WAITING)
    client.delete_state_machine(stateMachineArn=arn)
    assert client.describe_state_machine(stateMachineArn=arn)["status"] == "DELETING"
    assert client.describe_execution(executionArn=execution)["status"] == "RUNNING"
    for refused in (
        lambda: client.start_execution(stateMachineArn=arn),
        lambda: client.update_state_machine(stateMachineArn=arn, roleArn=ROLE + "2"),
        lambda: client.publish_state_machine_version(stateMachineArn=arn),
        lambda: client.create_state_machine(**parameters),
    ):
        with pytest.raises(client.exceptions.StateMachineDeleting):
            refused()
    server.kill()
    server.start()
    client = server.client()
    assert wait_for_end(client, execution)["status"] == "ABORTED"
    kinds = [event["type"] for event in history(client, execution)]
    assert kinds[-2:] == ["WaitStateExited", "ExecutionAborted"]

    def deleted() -> bool:
        try:
            client.describe_state_machine(stateMachineArn=arn)
        except client.exceptions.StateMachineDoesNotExist:
            return True
        return False

    wait_until(deleted)
    assert client.create_state_machine(**parameters)["stateMachineArn"] == arn
