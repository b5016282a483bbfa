"""Machines of one state, and how their executions ended."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.acceptance.server import wait_for_end

ROLE = "arn:aws:iam::123456789012:role/test"


def run_task(sfn: Any, resource: str, parameters: Any, data: Any = None) -> dict[str, Any]:
    """Run a machine of one Task; return how it ended."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "End": True}
    definition = {"StartAt": "T", "States": {"T": {**state, "Parameters": parameters}}}
    machine = sfn.create_state_machine(
        name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
    )
    started = sfn.start_execution(
        stateMachineArn=machine["stateMachineArn"], input=json.dumps({} if data is None else data)
    )
    return wait_for_end(sfn, started["executionArn"])


def output_of(ended: dict[str, Any]) -> Any:
    """Return the output of what must have succeeded."""
    assert ended["status"] == "SUCCEEDED", ended
    return json.loads(ended["output"])


def create_machine(sfn: Any, **state: Any) -> str:
    """Create a machine of one state; return its ARN."""
    definition = {"StartAt": "C", "States": {"C": {"End": True, **state}}}
    if state["Type"] == "Fail":
        del definition["States"]["C"]["End"]
    machine = sfn.create_state_machine(
        name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
    )
    arn: str = machine["stateMachineArn"]
    return arn
