"""Faults by ``stateyard start --fault``, on a real server that is killed meanwhile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server
from tests.acceptance.test_branches import run
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/x"
RETRY = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 9}]
FAULTS = """\
seed: 11
faults:
  - state: Work
    error: Busy
    rate: 0.6
  - state: Work
    type: latency
    seconds: 2
    attempts: [2]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An empty server."""
    server = Server(tmp_path / "data", options=("--empty",)).start()
    yield server
    server.stop()


def history(server: Server, arn: str) -> list[str]:
    """Return the types of the events, with their errors."""
    events = server.client().get_execution_history(executionArn=arn, maxResults=1000)["events"]
    details = ("lambdaFunctionFailedEventDetails", "activityFailedEventDetails")
    errors = [
        next((event[key]["error"] for key in details if key in event), "") for event in events
    ]
    return [f"{event['type']} {error}".strip() for event, error in zip(events, errors, strict=True)]


def test_the_same_seed_gives_the_same_history_also_after_a_kill(
    server: Server, tmp_path: Path
) -> None:
    """One execution runs through, the other one has its server killed while a call is held back."""
    client = server.client()
    activity = client.create_activity(name="work")["activityArn"]
    work = {"Type": "Task", "Resource": activity, "Retry": RETRY}
    states = {
        f"{name}": {**work, "Next": following}
        for name, following in (("Work", "More"), ("More", "Done"))
    }
    states["Done"] = {"Type": "Pass", "End": True}
    client.create_state_machine(
        name="orders", definition=json.dumps({"StartAt": "Work", "States": states}), roleArn=ROLE
    )
    path = tmp_path / "faults.yaml"
    path.write_text(FAULTS)

    def start() -> str:
        return run(server, "start", "orders", "--fault", str(path)).strip()

    def answer() -> Any:
        task = server.client().get_activity_task(activityArn=activity)
        return server.client().send_task_success(taskToken=task["taskToken"], output="1")

    first, second = start(), start()
    wait_until(lambda: "ActivityScheduled" in history(server, second))
    server.kill()
    server.start()
    for _ in range(4):
        answer()
    for arn in (first, second):
        wait_until(
            lambda arn=arn: (
                server.client().describe_execution(executionArn=arn)["status"] == "SUCCEEDED"
            )
        )
    assert history(server, first) == history(server, second)
    assert "ActivityFailed Busy" in history(server, first)


def test_a_file_that_is_no_plan_is_refused(server: Server, tmp_path: Path) -> None:
    """By its name and the place in it; nothing is started."""
    client = server.client()
    states = {"P": {"Type": "Pass", "End": True}}
    machine = client.create_state_machine(
        name="orders", definition=json.dumps({"StartAt": "P", "States": states}), roleArn=ROLE
    )["stateMachineArn"]
    path = tmp_path / "faults.yaml"
    path.write_text("- state: P\n  error: Busy\n")
    printed = run(server, "start", "orders", "--fault", str(path), code=2)
    reason = "faults[0].state: got P, a Pass, wanted a Task or Parallel or Map for the type fail"
    assert f"{path}: {reason}" in printed
    path.write_text("- [")
    assert f"{path}: no YAML" in run(server, "start", "orders", "--fault", str(path), code=2)
    assert "No such file" in run(server, "start", "orders", "--fault", "none.yaml", code=2)
    assert client.list_executions(stateMachineArn=machine)["executions"] == []
