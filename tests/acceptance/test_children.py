"""A server treats nested executions as the machine's child policy says."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import wait_for_end
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/tests"
CALL = "arn:aws:states:::states:startExecution"
NAP = {"StartAt": "N", "States": {"N": {"Type": "Wait", "Seconds": 60, "End": True}}}
EXPECTED = {
    # policy: status of a child that was waited for, of one that was only started
    "terminate": ("ABORTED", "ABORTED"),
    "requestCancel": ("ABORTED", "RUNNING"),
    "abandon": ("RUNNING", "RUNNING"),
}


def create(sfn: Any, definition: dict[str, Any], policy: str = "") -> str:
    """Create a machine with a child policy; return its ARN."""
    machine = sfn.create_state_machine(
        name=f"c-{uuid.uuid4().hex[:12]}",
        definition=json.dumps(definition),
        roleArn=ROLE,
        tags=[{"key": "stateyard:childPolicy", "value": policy}] if policy else [],
    )
    return str(machine["stateMachineArn"])


def running(sfn: Any, arn: str) -> bool:
    """Return whether an execution is there and runs."""
    try:
        return bool(sfn.describe_execution(executionArn=arn)["status"] == "RUNNING")
    except ClientError:
        return False


def test_the_children_of_a_stopped_execution(up: Server) -> None:
    """The one that was waited for and the one that was only started, by each policy."""
    sfn = up.client()
    child = create(sfn, NAP)
    place = child.replace(":stateMachine:", ":execution:")
    parents: dict[str, str] = {}
    for policy in EXPECTED:
        parameters = {"StateMachineArn": child, "Name": f"{policy}-free"}
        free = {"Type": "Task", "Resource": CALL, "Parameters": parameters, "Next": "Waited"}
        parameters = {"StateMachineArn": child, "Name": f"{policy}-waited"}
        waited = {"Type": "Task", "Resource": f"{CALL}.sync", "Parameters": parameters, "End": True}
        definition = {"StartAt": "Free", "States": {"Free": free, "Waited": waited}}
        machine = create(sfn, definition, policy)
        parents[policy] = sfn.start_execution(stateMachineArn=machine)["executionArn"]
    for policy, parent in parents.items():
        wait_until(lambda policy=policy: running(sfn, f"{place}:{policy}-waited"))
        time.sleep(0.3)
        sfn.stop_execution(executionArn=parent)
    for policy, statuses in EXPECTED.items():
        for kind, status in zip(("waited", "free"), statuses, strict=True):
            arn = f"{place}:{policy}-{kind}"
            if status == "ABORTED":
                assert wait_for_end(sfn, arn, 10)["status"] == "ABORTED"
    time.sleep(1.5)  # a sweep goes by
    for policy, statuses in EXPECTED.items():
        for kind, status in zip(("waited", "free"), statuses, strict=True):
            arn = f"{place}:{policy}-{kind}"
            assert sfn.describe_execution(executionArn=arn)["status"] == status, arn


def test_a_policy_that_is_none_creates_nothing(up: Server) -> None:
    """The refusal says what there is, and no machine is left behind."""
    sfn = up.client()
    before = len(sfn.list_state_machines()["stateMachines"])
    with pytest.raises(ClientError, match="must be one of abandon, requestCancel, terminate"):
        create(sfn, NAP, "explode")
    assert len(sfn.list_state_machines()["stateMachines"]) == before
