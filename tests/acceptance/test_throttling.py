"""Limits hold on a real server, survive its death, and show in CloudWatch by AWS's names."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server, history, wait_for_end

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance
STATES, RUNS = 6, 5
BUCKET, REFILL = 5, 10


def sums(client: Any, name: str, **dimensions: str) -> float:
    """Return the sum of a metric over the last hour."""
    now = datetime.now(UTC)
    answer = client.get_metric_statistics(
        Namespace="AWS/States",
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
        Period=7200,
        Statistics=["Sum"],
    )
    return float(sum(point["Sum"] for point in answer["Datapoints"]))


def test_throttled_executions_survive_kill_9_and_are_counted(tmp_path: Path) -> None:
    """Transitions wait, starts are refused; after a kill in between all go on at the same rate."""
    limits = {
        "state_transition": {"bucket": BUCKET, "refill": REFILL},
        "start_execution": {"bucket": RUNS, "refill": 0.01},
    }
    server = Server(tmp_path / "data", STATEYARD_QUOTAS=json.dumps(limits)).start()
    try:
        client = server.client()
        states: dict[str, Any] = {
            f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(1, STATES)
        }
        states[f"S{STATES}"] = {"Type": "Succeed"}
        text = json.dumps({"StartAt": "S1", "States": states})
        role = "arn:aws:iam::123456789012:role/any"
        machine = client.create_state_machine(name="chain", definition=text, roleArn=role)
        arn = machine["stateMachineArn"]
        runs = [client.start_execution(stateMachineArn=arn)["executionArn"] for _ in range(RUNS)]
        with pytest.raises(client.exceptions.ClientError) as refused:
            client.start_execution(stateMachineArn=arn)
        assert refused.value.response["Error"]["Code"] == "ThrottlingException"
        server.kill()
        server.start()
        ends = [wait_for_end(client, execution)["status"] for execution in runs]
        assert ends == ["SUCCEEDED"] * RUNS
        assert_rate(
            [
                event["timestamp"].timestamp()
                for execution in runs
                for event in entries(client, execution)
            ]
        )
        watch = server.client("cloudwatch")
        waited = sums(watch, "ThrottledEvents", ServiceMetric="StateTransition")
        assert 0 < waited <= STATES * RUNS
        assert waited == sums(
            watch, "ThrottledEvents", ServiceMetric="StateTransition", StateMachineArn=arn
        )
        assert sums(watch, "ThrottledEvents", APIName="StartExecution") == 1
        assert sums(watch, "ExecutionThrottled", StateMachineArn=arn) == waited + 1
        listed = watch.list_metrics(Namespace="AWS/States", MetricName="ThrottledEvents")["Metrics"]
        names = sorted(
            [sorted(dimension["Name"] for dimension in each["Dimensions"]) for each in listed]
        )
        assert names == [["APIName"], ["ServiceMetric"], ["ServiceMetric", "StateMachineArn"]]
    finally:
        server.stop()


def entries(client: Any, run: str) -> list[dict[str, Any]]:
    """Return the events that entered a state."""
    return [event for event in history(client, run) if event["type"].endswith("StateEntered")]


def assert_rate(moments: list[float]) -> None:
    """Check that no stretch of time has more entries than the bucket and its refill allow."""
    moments.sort()
    assert len(moments) == STATES * RUNS
    for first, begun in enumerate(moments):
        for number, at in enumerate(moments[first:], 1):
            assert number <= BUCKET + (at - begun) * REFILL + 2
