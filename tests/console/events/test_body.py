"""The event of a status change has the fields that AWS's documentation shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from console.events.body import MOST_BYTES, StatusChange, status_change_event

MACHINE = "arn:aws:states:us-east-2:444455556666:stateMachine:state-machine-name"
ARN = "arn:aws:states:us-east-2:444455556666:execution:state-machine-name:execution-name"
RUNNING = StatusChange(
    execution_arn=ARN,
    state_machine_arn=MACHINE,
    name="execution-name",
    status="RUNNING",
    start_ms=1_551_225_271_984,
    stop_ms=None,
    input="{}",
    output=None,
    error=None,
    cause=None,
)
FAILED = replace(RUNNING, status="FAILED", stop_ms=1_551_225_146_847, error="E", cause="why")


def detail(change: StatusChange) -> dict[str, Any]:
    """Return the detail of a change's event."""
    body: dict[str, Any] = json.loads(status_change_event(change))["detail"]
    return body


def test_the_event_of_a_start_is_the_one_of_the_documentation() -> None:
    """Every member is there, unknown ones null, dates in epoch milliseconds."""
    assert json.loads(status_change_event(RUNNING)) == {
        "version": "0",
        "id": RUNNING.event_id,
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "444455556666",
        "time": "2019-02-26T23:54:31Z",
        "region": "us-east-2",
        "resources": [ARN],
        "detail": {
            "executionArn": ARN,
            "stateMachineArn": MACHINE,
            "name": "execution-name",
            "status": "RUNNING",
            "startDate": 1_551_225_271_984,
            "stopDate": None,
            "input": "{}",
            "inputDetails": {"included": True},
            "output": None,
            "outputDetails": None,
            "stateMachineVersionArn": None,
            "stateMachineAliasArn": None,
            "redriveCount": 0,
            "redriveDate": None,
            "redriveStatus": "NOT_REDRIVABLE",
            "redriveStatusReason": "Execution is RUNNING and cannot be redriven",
            "error": None,
            "cause": None,
        },
    }


@pytest.mark.parametrize(
    ("status", "redrives", "expected", "reason"),
    [
        ("SUCCEEDED", 0, "NOT_REDRIVABLE", "Execution is SUCCEEDED and cannot be redriven"),
        ("FAILED", 0, "REDRIVABLE", "Execution is FAILED and is redrivable"),
        ("TIMED_OUT", 0, "REDRIVABLE", "Execution is TIMED_OUT and is redrivable"),
        ("ABORTED", 1, "REDRIVABLE", "Execution is ABORTED and is redrivable"),
        ("RUNNING", 1, "REDRIVE_IN_PROGRESS", "Execution is RUNNING and cannot be redriven"),
    ],
)
def test_an_event_says_whether_a_redrive_is_possible(
    status: str, redrives: int, expected: str, reason: str
) -> None:
    """Always with a reason, other than DescribeExecution."""
    told = detail(replace(FAILED, status=status, redrive_count=redrives))
    assert (told["redriveStatus"], told["redriveStatusReason"]) == (expected, reason)


def test_a_time_out_is_told_with_its_error() -> None:
    """As in the documentation's example; an error of its own stays."""
    late = replace(FAILED, status="TIMED_OUT", error=None, cause=None)
    assert detail(late)["error"] == "States.Timeout"
    assert detail(FAILED)["error"] == "E"


def test_what_is_too_long_is_left_out() -> None:
    """First the input, then the output, by their escaped length."""
    half = '"' + "x" * (MOST_BYTES // 2) + '"'
    both = detail(replace(FAILED, status="SUCCEEDED", input=half, output=half))
    assert both["input"] is None
    assert both["inputDetails"] == {"included": False}
    assert both["output"] == half
    assert both["outputDetails"] == {"included": True}
    quotes = '"' + '\\"' * (MOST_BYTES // 3) + '"'  # shorter than the limit but for its escapes
    long = detail(replace(FAILED, status="SUCCEEDED", output=quotes))
    assert (long["input"], long["output"]) == (None, None)
    assert long["outputDetails"] == {"included": False}


def test_a_change_has_one_id_and_another_change_another() -> None:
    """Telling twice is seen by the receiver; a redrive is told anew."""
    again = replace(RUNNING, redrive_count=1, redrive_ms=1)
    assert len({RUNNING.event_id, FAILED.event_id, again.event_id}) == 3
    assert replace(RUNNING, input="x").event_id == RUNNING.event_id
