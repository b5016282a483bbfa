"""Faults by ``stateyard start --fault``, on a real server that is killed meanwhile."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server
from tests.acceptance.test_branches import run
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:work"
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
  - state: More
    type: delay-callback
    seconds: 5
  - state: More
    type: duplicate-callback
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """An empty server."""
    server = Server(tmp_path / "data", options=("--empty",)).start()
    yield server
    server.stop()


@pytest.fixture
def with_function(tmp_path: Path) -> Iterator[Server]:
    """An empty server with a function."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "spread_functions.py").write_text("def work(event, context):\n    return event\n")
    server = Server(
        tmp_path / "data",
        options=("--empty",),
        PYTHONPATH=f"{code}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        STATEYARD_FUNCTIONS=json.dumps({"work": "spread_functions:work"}),
    ).start()
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
    """One has its server killed while a call is held back, both while an answer is held back."""
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
    server.kill()
    server.start()
    for arn in (first, second):
        wait_until(
            lambda arn=arn: (
                server.client().describe_execution(executionArn=arn)["status"] == "SUCCEEDED"
            )
        )
    assert history(server, first) == history(server, second)
    assert "ActivityFailed Busy" in history(server, first)


SPREAD_FAULTS = """\
seed: 4
faults:
  - state: Work
    error: Busy
    rate: 0.5
  - state: Work
    type: latency
    seconds: 2
    attempts: [1]
  - state: Each
    type: fail-children
    children: 3
    error: Broken
"""


def test_children_have_the_same_history_after_a_kill(with_function: Server, tmp_path: Path) -> None:
    """The server is killed while their calls are held back, and others have not started."""
    server = with_function
    client = server.client()
    work = {"Type": "Task", "Resource": FUNCTION, "Retry": RETRY, "End": True}
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    each = {
        "Type": "Map",
        "MaxConcurrency": 20,
        "ToleratedFailureCount": 3,
        "ItemProcessor": {"ProcessorConfig": config, "StartAt": "Work", "States": {"Work": work}},
        "End": True,
    }
    client.create_state_machine(
        name="orders",
        definition=json.dumps({"StartAt": "Each", "States": {"Each": each}}),
        roleArn=ROLE,
    )
    faults, items = tmp_path / "faults.yaml", tmp_path / "items.json"
    faults.write_text(SPREAD_FAULTS)
    items.write_text(json.dumps([*range(30)]))

    def start() -> str:
        return run(server, "start", "orders", "--fault", str(faults), "--input", str(items)).strip()

    def children(arn: str) -> dict[str, list[str]]:
        """Return the history of each child, by its input; {} before there is a Map Run."""
        client = server.client()
        runs = client.list_map_runs(executionArn=arn)["mapRuns"]
        if not runs:
            return {}
        rows = client.list_executions(mapRunArn=runs[0]["mapRunArn"])["executions"]
        arns = [row["executionArn"] for row in rows]
        inputs = [client.describe_execution(executionArn=arn)["input"] for arn in arns]
        return {text: history(server, arn) for text, arn in zip(inputs, arns, strict=True)}

    first, second = start(), start()
    wait_until(
        lambda: any("LambdaFunctionScheduled" in types for types in children(second).values())
    )
    server.kill()
    server.start()
    for arn in (first, second):
        wait_until(
            lambda arn=arn: (
                server.client().describe_execution(executionArn=arn)["status"] == "SUCCEEDED"
            )
        )
    assert children(first) == children(second)
    ends = [types[-1] for types in children(first).values()]
    assert (len(ends), ends.count("ExecutionFailed")) == (30, 3)
    assert any("LambdaFunctionFailed Busy" in types for types in children(first).values())


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
