"""An execution as the AWS CLI prints it, recorded by a run in memory."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from pathlib import Path

_ARN = "arn:aws:states:eu-west-1:999999999999"


def call(name: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls a function of another account."""
    arn = f"arn:aws:lambda:eu-west-1:999999999999:function:{name}"
    return {"Type": "Task", "Resource": arn, **more}


ORDERS: dict[str, Any] = {
    "StartAt": "Check",
    "States": {
        "Check": call(
            "check",
            ResultPath="$.checked",
            Retry=[{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 2}],
            Catch=[{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Sorry"}],
            Next="Big?",
        ),
        "Big?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.total", "NumericGreaterThan": 100, "Next": "Approve"}],
            "Default": "Each",
        },
        "Approve": call("approve", ResultPath="$.by", Next="Each"),
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": {
                "StartAt": "Pack",
                "States": {
                    "Pack": call("pack", Next="Label"),
                    "Label": {"Type": "Pass", "Parameters": {"box.$": "$.box"}, "End": True},
                },
            },
            "ResultPath": "$.boxes",
            "Next": "Ship",
        },
        "Ship": call("ship", OutputPath="$", Next="Done"),
        "Done": {"Type": "Pass", "Parameters": {"shipped.$": "$.id"}, "End": True},
        "Sorry": {"Type": "Fail", "Error": "OrderFailed", "Cause": "the check failed"},
    },
}
ANSWERS: dict[str, Any] = {
    "Check": lambda _: "fine",
    "Approve": lambda _: "ada",
    "Pack": lambda item: {"box": item},
    "Ship": lambda _: {"id": 7},
}


def busy_once() -> Any:
    """Return a function that fails with Busy the first time."""
    answers = iter([engine.StatesError("Busy", "later"), "fine"])

    def answer(_: Any) -> Any:
        outcome = next(answers)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return answer


def refuse(_: Any) -> Any:
    """Fail with an error."""
    raise engine.StatesError("Refused", "no such order")


def printed(
    definition: dict[str, Any], data: Any, answers: dict[str, Any], name: str = "run-7"
) -> dict[str, str]:
    """Return the output of the three CLI commands for an execution."""
    result = engine.run(definition, data, answers)
    events = []
    for event in result.events:
        member = engine.DETAILS[event.type]
        entry = {
            "timestamp": event.at_ms / 1000 + 1_767_225_600,
            "type": event.type,
            "id": event.id,
            "previousEventId": event.previous,
        }
        events.append(entry | ({member: dict(event.details or {})} if member else {}))
    machine = {
        "stateMachineArn": f"{_ARN}:stateMachine:orders",
        "name": "orders",
        "definition": json.dumps(definition),
        "roleArn": "arn:aws:iam::999999999999:role/orders",
    }
    execution = {
        "executionArn": f"{_ARN}:execution:orders:{name}",
        "stateMachineArn": machine["stateMachineArn"],
        "name": name,
        "status": result.status,
        "input": json.dumps(data),
    }
    whole = {"history": {"events": events}, "machine": machine, "execution": execution}
    return {kind: json.dumps(value) for kind, value in whole.items()}


def write_files(folder: Path, texts: dict[str, str], name: str = "run-7") -> Path:
    """Write the three files of an execution; return that of its history."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in texts.items():
        (folder / f"{name}.{kind}.json").write_text(text, encoding="utf-8")
    return folder / f"{name}.history.json"


def changed(definition: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with another value at a path such as ``States/Check/Next``; None removes."""
    copied = copy.deepcopy(definition)
    *names, last = path.split("/")
    part: Any = copied
    for name in names:
        part = part[int(name) if isinstance(part, list) else name]
    if value is None:
        del part[last]
    else:
        part[int(last) if isinstance(part, list) else last] = value
    return copied
