"""Paused executions survive a kill of the server, by the commands, on a real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import Server
from tests.acceptance.test_branches import run
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
COUNT = 8


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An empty server."""
    server = Server(tmp_path / "data", options=("--empty",)).start()
    yield server
    server.stop()


def test_a_kill_while_paused_loses_nothing(server: Server) -> None:
    """Outcomes that come during the pause count after the resume; the status stays RUNNING."""
    client = server.client()
    activity = client.create_activity(name="work")["activityArn"]
    states = {
        "A": {"Type": "Task", "Resource": activity, "Next": "W"},
        "W": {"Type": "Wait", "Seconds": 1, "End": True},
    }
    machine = client.create_state_machine(
        name="orders",
        definition=json.dumps({"StartAt": "A", "States": states}),
        roleArn="arn:aws:iam::123456789012:role/x",
    )["stateMachineArn"]
    arns = [
        client.start_execution(stateMachineArn=machine, name=f"e{number}")["executionArn"]
        for number in range(COUNT)
    ]
    tasks = [client.get_activity_task(activityArn=activity) for _ in arns]
    assert "would be paused" in run(server, "pause", "--machine", "orders", "--dry-run")
    assert "0 paused executions" in run(server, "status")
    printed = run(server, "pause", arns[0], "--timers", "still", "--note", "look first")
    assert printed == f"{arns[0]}: paused\n"
    assert "It is paused already" in run(server, "pause", arns[0], "--dry-run", code=1)
    run(server, "pause", arns[0], "--machine", "orders", code=2)
    printed = run(server, "pause", "--machine", "orders")
    assert f"{COUNT - 1} executions paused by bulk job 1" in printed
    assert "1 excluded: It is paused already" in printed
    wait_until(lambda: f"{COUNT} paused executions" in run(server, "status"))
    for task in tasks:
        client.send_task_success(taskToken=task["taskToken"], output=task["input"])
    server.kill()
    server.start()
    words = run(server, "status", arns[0])
    assert "RUNNING, paused since" in words
    assert "timers still: look first" in words
    histories = {arn: client.get_execution_history(executionArn=arn)["events"] for arn in arns}
    assert {client.describe_execution(executionArn=arn)["status"] for arn in arns} == {"RUNNING"}
    assert {events[-1]["type"] for events in histories.values()} == {"ActivityStarted"}
    assert run(server, "resume", arns[0]) == f"{arns[0]}: resumed\n"
    run(server, "resume", "--machine", "orders")
    for arn in arns:
        wait_until(
            lambda arn=arn: client.describe_execution(executionArn=arn)["status"] == "SUCCEEDED"
        )
        events = client.get_execution_history(executionArn=arn)["events"]
        before = histories[arn]
        assert events[: len(before)] == before
        types = [event["type"] for event in events]
        assert types.count("ActivitySucceeded") == 1
    assert "0 paused executions" in run(server, "status")
    assert run(server, "pause", "--schedules", "--note", "deploy") == "all schedules paused\n"
    assert "schedules, paused since" in run(server, "status")
    assert "already paused" in run(server, "pause", "--schedules", code=1)
    assert run(server, "resume", "--schedules") == "all schedules resumed\n"
