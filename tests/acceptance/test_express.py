"""Express machines behave as AWS's do, by boto3, the AWS CLI and the page's address."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.test_boto3 import PASS, ROLE, code

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}
NAP = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 1, "End": True}}}


def express(sfn: Any, definition: dict[str, Any]) -> str:
    """Create an Express machine and return its ARN."""
    machine = sfn.create_state_machine(
        name=f"x-{uuid.uuid4().hex[:8]}",
        definition=json.dumps(definition),
        roleArn=ROLE,
        type="EXPRESS",
    )
    arn: str = machine["stateMachineArn"]
    return arn


def test_a_synchronous_run_answers_with_its_end(sfn: Any) -> None:
    """Output, dates and what AWS would bill."""
    arn = express(sfn, NAP)
    answer = sfn.start_sync_execution(stateMachineArn=arn, input='{"n": 1}', name="twice")
    assert (answer["status"], answer["output"], answer["name"]) == (
        "SUCCEEDED",
        '{"n": 1}',
        "twice",
    )
    assert answer["executionArn"].startswith(arn.replace(":stateMachine:", ":express:") + ":twice:")
    assert answer["billingDetails"]["billedDurationInMilliseconds"] >= 1000
    assert answer["billingDetails"]["billedDurationInMilliseconds"] % 100 == 0
    assert answer["billingDetails"]["billedMemoryUsedInMB"] == 64
    again = sfn.start_sync_execution(stateMachineArn=arn, name="twice")
    assert again["executionArn"] != answer["executionArn"]


def test_a_synchronous_run_that_fails(sfn: Any) -> None:
    """The call succeeds; the answer says FAILED with error and cause."""
    answer = sfn.start_sync_execution(stateMachineArn=express(sfn, FAIL))
    assert (answer["status"], answer["error"], answer["cause"]) == ("FAILED", "E", "C")
    bare = sfn.start_sync_execution(
        stateMachineArn=express(sfn, PASS), includedData="METADATA_ONLY", input='{"n": 1}'
    )
    assert "input" not in bare
    assert "output" not in bare


def test_many_wait_at_once_without_a_thread_each(sfn: Any, up: Server) -> None:
    """Forty runs of a second, in little more than a second."""
    arn = express(sfn, NAP)
    begun = time.monotonic()
    with ThreadPoolExecutor(40) as pool:
        clients = [up.client() for _ in range(40)]
        answers = list(
            pool.map(lambda client: client.start_sync_execution(stateMachineArn=arn), clients)
        )
    assert {answer["status"] for answer in answers} == {"SUCCEEDED"}
    assert time.monotonic() - begun < 30


def test_what_express_does_not_support(sfn: Any) -> None:
    """DescribeExecution, histories, stops and lists are for Standard machines."""
    arn = express(sfn, PASS)
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    assert ":express:" in started
    for call in (sfn.describe_execution, sfn.get_execution_history, sfn.stop_execution):
        assert code(call, executionArn=started)[0] == "InvalidArn"
    assert code(sfn.list_executions, stateMachineArn=arn)[0] == "StateMachineTypeNotSupported"


def test_the_host_that_sdks_make_up_is_taken(up: Server) -> None:
    """SDKs put ``sync-`` before the host's name; other strange names stay refused."""
    for host, status in (("sync-127.0.0.1", 403), ("sync-evil.example", 400)):
        connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60)
        headers = {"Host": host, "X-Amz-Target": "AWSStepFunctions.StartSyncExecution"}
        headers["Content-Type"] = "application/x-amz-json-1.0"
        connection.request("POST", "/", "{}", headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        assert ("Host" in body["message"]) == (status == 400), body


def test_a_run_longer_than_five_minutes_is_never_begun(sfn: Any) -> None:
    """TimeoutSeconds beyond it is cut to five minutes; a shorter one counts."""
    definition = {**NAP, "TimeoutSeconds": 1}
    definition["States"] = {"W": {"Type": "Wait", "Seconds": 60, "End": True}}
    answer = sfn.start_sync_execution(stateMachineArn=express(sfn, definition))
    assert answer["status"] == "TIMED_OUT"
