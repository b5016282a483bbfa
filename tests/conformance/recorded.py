"""The recorded histories as the AWS CLI prints them, with the placeholders of the recordings."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.conformance import cases

_CALLS = ["CreateStateMachine", "StartExecution", "GetExecutionHistory"]
_TEXTS = ("input", "output", "parameters", "cause")
_FIRST_S = 1_767_225_600
_CLOCK = re.compile(
    r'"(Wait|TimeoutSeconds\w*|HeartbeatSeconds\w*)"|now\(|UUID|Random|random|EnteredTime|StartTime'
)
"""What makes an outcome depend on the time or on chance."""


def list_recorded() -> list[dict[str, Any]]:
    """Return the cases of one machine that ran once, whose whole history was recorded in order."""
    return [case for case in cases.load() if _is_whole(case)]


def _is_whole(case: dict[str, Any]) -> bool:
    calls = [step["call"] for step in case["steps"]]
    if calls != _CALLS or _CLOCK.search(case["steps"][0]["params"].get("definition", "")):
        return False
    events = (case["steps"][2].get("expect") or {}).get("get_execution_history", {}).get("events")
    numbers = [event["id"] for event in events or ()]
    return bool(numbers) and numbers == list(range(1, len(numbers) + 1))


def print_case(case: dict[str, Any]) -> dict[str, str]:
    """Return history, state machine and execution of a case, as three texts of the CLI."""
    created, started, asked = case["steps"]
    events = [_printed(event) for event in asked["expect"]["get_execution_history"]["events"]]
    name = created["params"]["name"]
    arn = f"arn:aws:states:us-east-1:111111111111:stateMachine:{name}"
    return {
        "history": json.dumps({"events": events}),
        "machine": json.dumps(
            {"stateMachineArn": arn, "name": name, "definition": created["params"]["definition"]}
        ),
        "execution": json.dumps(
            {
                "executionArn": f"{arn.replace(':stateMachine:', ':execution:')}:recorded",
                "stateMachineArn": arn,
                "name": "recorded",
                "input": started["params"].get("input", "{}"),
            }
        ),
    }


def _printed(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event with a timestamp, and with its payloads as texts."""
    printed = {**event, "timestamp": _FIRST_S + event["id"] / 1000}
    for name, details in event.items():
        if isinstance(details, dict):
            printed[name] = {
                key: json.dumps(value) if key in _TEXTS and not isinstance(value, str) else value
                for key, value in details.items()
            }
    return printed
