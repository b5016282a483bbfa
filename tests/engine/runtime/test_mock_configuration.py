"""A mock configuration of Step Functions Local drives ``engine.run``, and time is skipped."""

from __future__ import annotations

from typing import Any

import pytest

import engine

MACHINE: dict[str, Any] = {
    "StartAt": "Charge",
    "States": {
        "Charge": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": "charge", "Payload.$": "$"},
            "OutputPath": "$.Payload",
            "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 600, "MaxAttempts": 3}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Lost"}],
            "Next": "Rest",
        },
        "Rest": {"Type": "Wait", "Seconds": 3600, "End": True},
        "Lost": {"Type": "Fail", "ErrorPath": "$.Error", "CausePath": "$.Cause"},
    },
}
BUSY = {"Throw": {"Error": "Busy", "Cause": "later"}}
PAID = {"Return": {"StatusCode": 200, "Payload": {"paid": True}}}
CONFIGURATION = {
    "StateMachines": {
        "Orders": {
            "TestCases": {
                "Patient": {"Charge": "BusyTwice"},
                "Short": {"Charge": "Once"},
                "Empty": {"Charge": "Nothing"},
                "Lost": {"Charge": "Nowhere"},
            }
        }
    },
    "MockedResponses": {
        "BusyTwice": {"0-1": BUSY, "2": PAID},
        "Once": {"0": BUSY},
        "Nothing": {"0": {}},
    },
}


def test_a_test_case_answers_by_invocation() -> None:
    """The Return is what the service returns; an hour and half an hour of pauses take no time."""
    tasks = engine.mocked_tasks(CONFIGURATION, "Orders", "Patient")
    result = engine.run(MACHINE, {"n": 1}, tasks=tasks)
    assert (result.status, result.output) == ("SUCCEEDED", {"paid": True})
    assert [call.error for call in result.calls] == ["Busy", "Busy", None]
    assert result.slept == 600 + 1200 + 3600


@pytest.mark.parametrize(
    ("case", "cause"), [("Short", "no answer for invocation 1"), ("Empty", "neither Return nor")]
)
def test_a_response_that_is_not_there_fails_the_state(case: str, cause: str) -> None:
    """With the same words as on the server."""
    tasks = engine.mocked_tasks(CONFIGURATION, "Orders", case)
    result = engine.run(MACHINE, tasks=tasks)
    assert result.status == "FAILED"
    assert cause in (result.cause or "")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("Order", "Patient"), "StateMachines: got 'Order', wanted one of ['Orders']"),
        (("Orders", "Happy"), "TestCases of Orders: got 'Happy', wanted one of"),
        (("Orders", "Lost"), "MockedResponses: got 'Nowhere', wanted one of"),
    ],
)
def test_a_wrong_name_is_said_with_the_right_ones(names: tuple[str, str], said: str) -> None:
    """Before anything runs."""
    with pytest.raises(KeyError) as caught:
        engine.mocked_tasks(CONFIGURATION, *names)
    assert said in str(caught.value)
