"""Eight clients answer the same token at once over HTTP.

One gets 200, none a 5xx, all learn who won.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import history, wait_for_end

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance

SENDERS, TOKENS = 8, 20
LATE = {"TaskTimedOut", "TaskDoesNotExist"}


def test_one_of_eight_clients_wins(up: Server, sfn: Any) -> None:
    """Seven of each eight are refused with a 400 that says so; the history is the winner's."""
    arn = sfn.create_activity(name="race")["activityArn"]
    definition = {
        "StartAt": "A",
        "States": {"A": {"Type": "Task", "Resource": arn, "HeartbeatSeconds": 60, "End": True}},
    }
    machine = sfn.create_state_machine(
        name="race",
        definition=json.dumps(definition),
        roleArn="arn:aws:iam::123456789012:role/tests",
    )["stateMachineArn"]
    clients = [up.client() for _ in range(SENDERS)]
    with ThreadPoolExecutor(SENDERS) as pool:
        for _ in range(TOKENS):
            execution = sfn.start_execution(stateMachineArn=machine)["executionArn"]
            token = sfn.get_activity_task(activityArn=arn, workerName="w")["taskToken"]
            answer = partial(send, threading.Barrier(SENDERS), token)
            check(sfn, execution, list(pool.map(answer, clients, range(SENDERS))))


def send(gate: threading.Barrier, token: str, client: Any, number: int) -> tuple[int, str]:
    """Answer, together with the others; return the HTTP status and the error's code."""
    gate.wait()
    try:
        if number % 4 == 3:
            client.send_task_heartbeat(taskToken=token)
            return 0, ""
        if number % 2:
            client.send_task_failure(taskToken=token, error=f"E{number}", cause="race")
        else:
            client.send_task_success(taskToken=token, output=str(number))
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
    return 200, ""


def check(sfn: Any, execution: str, told: list[tuple[int, str]]) -> None:
    """Check that there was one winner, that the others heard so, and that the history agrees."""
    won = [number for number, (status, _) in enumerate(told) if status == 200]
    assert len(won) == 1, told
    assert {status for status, _ in told} <= {0, 200, 400}, told
    assert {code for status, code in told if status == 400} <= LATE, told
    end = wait_for_end(sfn, execution)
    ends = [
        event
        for event in history(sfn, execution)
        if event["type"] in ("ActivitySucceeded", "ActivityFailed", "ActivityTimedOut")
    ]
    assert len(ends) == 1
    if won[0] % 2:
        assert (end["status"], end["error"]) == ("FAILED", f"E{won[0]}")
    else:
        assert (end["status"], end["output"]) == ("SUCCEEDED", str(won[0]))
