"""boto3 gets what it would get from AWS."""

from __future__ import annotations

import http.client
import json
import socket
import time
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import Server, history, wait_for_end

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/test"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 600, "End": True}}}


def create(sfn: Any, definition: dict[str, Any]) -> str:
    """Create a machine of a fresh name and return its ARN."""
    name = f"m-{uuid.uuid4().hex[:8]}"
    machine = sfn.create_state_machine(name=name, definition=json.dumps(definition), roleArn=ROLE)
    arn: str = machine["stateMachineArn"]
    return arn


def code(call: Any, **params: Any) -> tuple[str, str]:
    """Return error code and message of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_poller_that_went_away_takes_no_task(sfn: Any, up: Server) -> None:
    """The next poller gets it at once, though the first would have waited for a minute."""
    arn = sfn.create_activity(name=uuid.uuid4().hex)["activityArn"]
    gone = up.client()
    gone.meta.events.register("before-send.sfn.GetActivityTask", _hang_up(up))
    with pytest.raises(ValueError, match="gone"):
        gone.get_activity_task(activityArn=arn)
    machine = {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": arn, "End": True}}}
    started = sfn.start_execution(stateMachineArn=create(sfn, machine), input='{"n": 1}')
    time.sleep(1.5)  # whoever still looks for the dead has looked by now
    begun = time.monotonic()
    task = sfn.get_activity_task(activityArn=arn)
    assert time.monotonic() - begun < 30
    sfn.send_task_success(taskToken=task["taskToken"], output="2")
    assert wait_for_end(sfn, started["executionArn"])["output"] == "2"


def _hang_up(up: Server) -> Any:
    """Send a signed request on a connection that is closed a moment later."""

    def send(request: Any, **_: Any) -> None:
        headers = "".join(
            f"{name}: {value.decode() if isinstance(value, bytes) else value}\r\n"
            for name, value in request.headers.items()
        )
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\n{headers}"
        with socket.create_connection(("127.0.0.1", up.port)) as wire:
            wire.sendall(f"{head}\r\n".encode() + request.body)
            time.sleep(0.5)
        time.sleep(0.2)
        raise ValueError("gone")

    return send


def test_half_characters_are_refused(sfn: Any) -> None:
    """No database could store them; the answer is a 400, not a 500."""
    arn = create(sfn, PASS)
    for data in ('"\ud800"', '"\\ud800"'):
        told, _ = code(sfn.start_execution, stateMachineArn=arn, input=data)
        assert told in ("SerializationException", "InvalidExecutionInput")
    started = sfn.start_execution(stateMachineArn=arn, traceHeader="Root=1-5759e988-bd862e3f")
    assert wait_for_end(sfn, started["executionArn"])["status"] == "SUCCEEDED"


def test_machine_life(sfn: Any) -> None:
    """Create, describe, update, list and delete, with AWS's members."""
    arn = create(sfn, PASS)
    described = sfn.describe_state_machine(stateMachineArn=arn)
    assert json.loads(described["definition"]) == PASS
    assert described["loggingConfiguration"] == {"level": "OFF", "includeExecutionData": False}
    assert "revisionId" not in described
    updated = sfn.update_state_machine(stateMachineArn=arn, definition=json.dumps(WAIT))
    again = sfn.describe_state_machine(stateMachineArn=arn)
    assert again["revisionId"] == updated["revisionId"]
    names = [
        m["stateMachineArn"]
        for page in sfn.get_paginator("list_state_machines").paginate(
            PaginationConfig={"PageSize": 2}
        )
        for m in page["stateMachines"]
    ]
    assert arn in names
    assert len(names) == len(set(names))
    sfn.delete_state_machine(stateMachineArn=arn)
    assert code(sfn.describe_state_machine, stateMachineArn=arn)[0] == "StateMachineDoesNotExist"


def test_execution_life(sfn: Any) -> None:
    """Start, describe, list, history forwards and backwards in pages."""
    arn = create(sfn, PASS)
    started = sfn.start_execution(stateMachineArn=arn, input='{"a": 1}', name="first")
    ended = wait_for_end(sfn, started["executionArn"])
    assert (ended["status"], ended["output"]) == ("SUCCEEDED", '{"a": 1}')
    assert ended["startDate"] == started["startDate"]
    events = history(sfn, started["executionArn"])
    assert [event["type"] for event in events] == [
        "ExecutionStarted",
        "PassStateEntered",
        "PassStateExited",
        "ExecutionSucceeded",
    ]
    backwards = sfn.get_execution_history(
        executionArn=started["executionArn"], reverseOrder=True, maxResults=3
    )
    assert [event["id"] for event in backwards["events"]] == [4, 3, 2]
    rest = sfn.get_execution_history(
        executionArn=started["executionArn"], reverseOrder=True, nextToken=backwards["nextToken"]
    )
    assert [event["id"] for event in rest["events"]] == [1]
    listed = sfn.list_executions(stateMachineArn=arn, statusFilter="SUCCEEDED")["executions"]
    assert [row["name"] for row in listed] == ["first"]


def test_stop_and_definition_for_execution(sfn: Any) -> None:
    """StopExecution's date is DescribeExecution's; an edit does not touch what runs."""
    arn = create(sfn, WAIT)
    execution = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    sfn.update_state_machine(stateMachineArn=arn, definition=json.dumps(PASS))
    description = sfn.describe_state_machine_for_execution(executionArn=execution)
    assert json.loads(description["definition"]) == WAIT
    stopped = sfn.stop_execution(executionArn=execution, error="E", cause="C")
    ended = sfn.describe_execution(executionArn=execution)
    assert (ended["status"], ended["error"], ended["cause"]) == ("ABORTED", "E", "C")
    assert ended["stopDate"] == stopped["stopDate"]


def test_errors_have_the_codes_of_the_model(sfn: Any) -> None:
    """Every refusal is an error of the service model, with AWS's words."""
    arn = create(sfn, PASS)
    missing = arn.replace(":stateMachine:", ":stateMachine:no-")
    execution = arn.replace(":stateMachine:", ":execution:") + ":nobody"
    assert code(sfn.start_execution, stateMachineArn=missing) == (
        "StateMachineDoesNotExist",
        f"State Machine Does Not Exist: '{missing}'",
    )
    assert code(sfn.describe_execution, executionArn=execution)[0] == "ExecutionDoesNotExist"
    assert code(sfn.describe_execution, executionArn="nonsense") == (
        "InvalidArn",
        "Invalid Arn: 'Invalid ARN prefix: nonsense'",
    )
    assert code(sfn.start_execution, stateMachineArn=arn, input="{")[0] == "InvalidExecutionInput"
    assert code(sfn.start_execution, stateMachineArn=arn, name="a b")[0] == "InvalidName"
    bad = {"StartAt": "A", "States": {}}
    refused = code(sfn.create_state_machine, name="x", definition=json.dumps(bad), roleArn=ROLE)
    assert refused[0] == "InvalidDefinition"
    assert refused[1].startswith("Invalid State Machine Definition: 'SCHEMA_VALIDATION_FAILED: ")
    assert code(sfn.list_state_machines, nextToken="x")[0] == "InvalidToken"


def test_activity_worker_by_long_poll(sfn: Any) -> None:
    """A worker that polls before there is work gets it as soon as there is."""
    activity = sfn.create_activity(name=f"a-{uuid.uuid4().hex[:8]}")["activityArn"]
    state = {"Type": "Task", "Resource": activity, "End": True}
    arn = create(sfn, {"StartAt": "T", "States": {"T": state}})
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(sfn.get_activity_task, activityArn=activity, workerName="w")
        execution = sfn.start_execution(stateMachineArn=arn, input="7")["executionArn"]
        task = polled.result(timeout=50)
    assert task["input"] == "7"
    sfn.send_task_heartbeat(taskToken=task["taskToken"])
    sfn.send_task_success(taskToken=task["taskToken"], output="14")
    assert wait_for_end(sfn, execution)["output"] == "14"


def test_wrong_secret_and_unknown_key(up: Server) -> None:
    """The real client with a wrong secret or a made-up key gets AWS's errors."""
    wrong = up.client(secret="wrong")
    assert code(wrong.list_state_machines)[0] == "InvalidSignatureException"
    unknown = up.client(key="AKIAUNKNOWN")
    assert code(unknown.list_state_machines)[0] == "UnrecognizedClientException"


@pytest.mark.parametrize(
    ("headers", "body", "status", "error"),
    [
        ({}, b"{}", 400, "MissingAuthenticationTokenException"),
        ({"Host": "evil.example"}, b"{}", 400, ""),
        ({"Content-Encoding": "gzip"}, b"{}", 400, "SerializationException"),
        ({}, b"x" * 1_200_000, 413, "RequestEntityTooLargeException"),
    ],
)
def test_refusals_on_the_wire(
    up: Server, headers: dict[str, str], body: bytes, status: int, error: str
) -> None:
    """A request that reaches no operation is answered in AWS's JSON shape, never by a page."""
    connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60)
    base = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "AWSStepFunctions.ListStateMachines",
    }
    connection.request("POST", "/", body, {**base, **headers})
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert answer.status == status
    assert answer.headers["content-type"] == "application/x-amz-json-1.0"
    assert answer.headers["x-amzn-requestid"]
    assert error in told["__type"]


def test_cross_site_form_reaches_nothing(up: Server) -> None:
    """A text/plain POST, as a foreign page can send, is no API call and has no CSRF token."""
    connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=60)
    connection.request("POST", "/", b"{}", {"Content-Type": "text/plain"})
    assert connection.getresponse().status in (302, 403, 405)
    connection.close()


def test_port_is_loopback_only(up: Server) -> None:
    """By default nobody outside this machine can connect."""
    host = socket.gethostbyname(socket.gethostname())
    if not host.startswith("127."):
        with socket.socket() as probe:
            probe.settimeout(1)
            assert probe.connect_ex((host, up.port)) != 0


def test_one_state_is_tried(sfn: Any) -> None:
    """TestState answers as boto3 expects and refuses a mock that cannot be."""
    state = json.dumps({"Type": "Pass", "Result": {"n": 1}, "Next": "B"})
    got = sfn.test_state(definition=state, inspectionLevel="DEBUG", input="{}")
    assert (got["status"], got["nextState"]) == ("SUCCEEDED", "B")
    assert json.loads(got["output"]) == {"n": 1}
    assert json.loads(got["inspectionData"]["input"]) == {}
    task = json.dumps(
        {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {},
            "End": True,
        }
    )
    assert code(sfn.test_state, definition=task)[0] == "ValidationException"
    bad = {"result": "{", "errorOutput": {"error": "E", "cause": "c"}}
    assert code(sfn.test_state, definition=task, mock=bad)[0] == "ValidationException"
