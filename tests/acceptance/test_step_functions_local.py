"""Tests written for Step Functions Local run as they are: its options, test cases and TestState.

They make the calls that AWS's own samples make (``serverless-test-samples``: the projects for Step
Functions Local; ``sample-stepfunctions-testing-with-testStateAPI``): the first machine of the list,
``<arn>#<TestCase>``, and the history, asked for until an ``ExecutionSucceeded`` is in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.acceptance.aws import Moto
from tests.acceptance.server import ROOT, Server, free_port, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/DummyRole"
ACCOUNT = "111122223333"
SCALE = "0.001"
NOTIFY = "arn:aws:states:::sqs:sendMessage"


def invoke(function: str, following: str, **more: Any) -> dict[str, Any]:
    """Return a Task that calls a function and goes on with its payload."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": function, "Payload.$": "$"},
        "OutputPath": "$.Payload",
        "Next": following,
        **more,
    }


RETRY = {"ErrorEquals": ["Lambda.TooBusyException"], "IntervalSeconds": 600, "MaxAttempts": 3}
MACHINE: dict[str, Any] = {
    "StartAt": "Score",
    "States": {
        "Score": invoke("score", "Cool down", Retry=[RETRY]),
        "Cool down": {"Type": "Wait", "Seconds": 3600, "Next": "Happy?"},
        "Happy?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.score", "NumericLessThan": 0, "Next": "Apologise"}],
            "Default": "Thank",
        },
        "Apologise": {"Type": "Pass", "End": True},
        "Thank": {
            "Type": "Task",
            "Resource": NOTIFY,
            "Parameters": {"QueueUrl.$": "$.queue", "MessageBody": "thanks"},
            "End": True,
        },
    },
}
BUSY = {"Throw": {"Error": "Lambda.TooBusyException", "Cause": "busy"}}
SENT = {"Sent": {"0": {"Return": {"MessageId": "m-1"}}}}


def scored(score: int) -> dict[str, Any]:
    """Return what ``lambda:invoke`` returns."""
    return {"Return": {"StatusCode": 200, "Payload": {"score": score, "queue": "q"}}}


MOCKS = {
    "StateMachines": {
        "Feedback": {
            "TestCases": {
                "HappyPathTest": {"Score": "Good", "Thank": "Sent"},
                "NegativeTest": {"Score": "Bad"},
                "RetryTest": {"Score": "BusyThenGood", "Thank": "Sent"},
                "HybridTest": {"Thank": "Sent"},
            }
        }
    },
    "MockedResponses": {
        "Good": {"0": scored(1)},
        "Bad": {"0": scored(-1)},
        "BusyThenGood": {"0": BUSY, "1-2": BUSY, "3": scored(1)},
        **SENT,
    },
}


@pytest.fixture(scope="module")
def queues() -> Iterator[Moto]:
    """An SQS of moto's."""
    moto = Moto().start()
    yield moto
    moto.stop()


class Scoring(BaseHTTPRequestHandler):
    """What ``sam local start-lambda`` is: the invoke protocol on a local port."""

    def do_POST(self) -> None:
        """Answer the function ``score``."""
        assert self.path == "/2015-03-31/functions/score/invocations"
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"score": 1, "queue": event["queue"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def functions() -> Iterator[str]:
    """Return the address of the functions."""
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Scoring)
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.server_port}"
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture(scope="module")
def server(
    queues: Moto, functions: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """``up --empty`` with the variables of a ``aws-stepfunctions-local-credentials.txt``."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "MockConfigFile.json").write_text(json.dumps(MOCKS), encoding="utf-8")
    port = free_port()
    running = Server(
        folder / "data",
        port,
        options=("--empty",),
        SFN_MOCK_CONFIG=str(folder / "MockConfigFile.json"),
        WAIT_TIME_SCALE=SCALE,
        AWS_ACCOUNT_ID=ACCOUNT,
        LAMBDA_ENDPOINT=functions,
        SQS_ENDPOINT=queues.url,
        STEP_FUNCTIONS_ENDPOINT=f"http://localhost:{port}",
        BATCH_ENDPOINT="",
    ).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def sfn(server: Server) -> Any:
    """A client that is made as the samples make it; key and region are in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(server.data / "credentials"))
        patch.setenv("AWS_PROFILE", "stateyard")
        client = boto3.Session().client("stepfunctions", endpoint_url=server.url)
        machine = client.create_state_machine(
            name="Feedback", definition=json.dumps(MACHINE), roleArn=ROLE
        )
        assert machine["stateMachineArn"].split(":")[4] == ACCOUNT
    return client  # other clients of the test have keys of their own


def run(sfn: Any, case: str, data: Any) -> list[dict[str, Any]]:
    """Start a test case of the first machine of the list; return the history of its success."""
    machine = sfn.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    started = sfn.start_execution(
        name=f"{case}Execution", stateMachineArn=f"{machine}#{case}", input=json.dumps(data)
    )
    deadline = time.monotonic() + 60
    while True:
        answer = sfn.get_execution_history(executionArn=started["executionArn"])
        events: list[dict[str, Any]] = answer["events"]
        if any(event["type"] == "ExecutionSucceeded" for event in events):
            return events
        assert time.monotonic() < deadline, events[-3:]
        time.sleep(0.05)


def exits(events: list[dict[str, Any]]) -> list[str]:
    """Return the names of the states that were left."""
    return [
        event["stateExitedEventDetails"]["name"]
        for event in events
        if event["type"].endswith("StateExited")
    ]


@pytest.mark.parametrize(
    ("case", "last"), [("HappyPathTest", "Thank"), ("NegativeTest", "Apologise")]
)
def test_a_test_case_takes_its_way(sfn: Any, case: str, last: str) -> None:
    """A Wait of an hour is over after four seconds, by ``WAIT_TIME_SCALE``."""
    assert exits(run(sfn, case, {}))[-1] == last


def test_a_test_case_is_retried_until_it_succeeds(sfn: Any) -> None:
    """Three errors, whose pauses would be half an hour and more, and the fourth answer."""
    events = run(sfn, "RetryTest", {})
    failed = [event["taskFailedEventDetails"] for event in events if event["type"] == "TaskFailed"]
    assert [details["error"] for details in failed] == ["Lambda.TooBusyException"] * 3
    succeeded = [
        event["taskSucceededEventDetails"] for event in events if event["type"] == "TaskSucceeded"
    ]
    assert [details["resource"] for details in succeeded] == ["invoke", "sendMessage"]


def test_a_state_that_is_not_mocked_calls_the_endpoint(sfn: Any) -> None:
    """Score is called at LAMBDA_ENDPOINT; Thank is mocked."""
    events = run(sfn, "HybridTest", {"queue": "mine"})
    assert exits(events) == ["Score", "Cool down", "Happy?", "Thank"]
    outputs = [
        json.loads(event["stateExitedEventDetails"]["output"])
        for event in events
        if event["type"] == "TaskStateExited"
    ]
    assert outputs[0] == {"score": 1, "queue": "mine"}


def test_without_a_test_case_all_endpoints_are_called(sfn: Any, queues: Moto) -> None:
    """The message is in the queue of SQS_ENDPOINT."""
    queue = queues.client("sqs").create_queue(QueueName="thanks")["QueueUrl"]
    machine = sfn.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    started = sfn.start_execution(stateMachineArn=machine, input=json.dumps({"queue": queue}))
    ended = wait_for_end(sfn, started["executionArn"])
    assert ended["status"] == "SUCCEEDED", ended
    assert len(queues.client("sqs").receive_message(QueueUrl=queue)["Messages"]) == 1


def test_nested_executions_run_here_though_the_endpoint_is_named(sfn: Any) -> None:
    """STEP_FUNCTIONS_ENDPOINT is the address of this very server, as Step Functions Local needs."""
    child = sfn.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    parent = {
        "StartAt": "Start",
        "States": {
            "Start": {
                "Type": "Task",
                "Resource": "arn:aws:states:::states:startExecution",
                "Parameters": {"StateMachineArn": child, "Input": {"queue": "q"}},
                "End": True,
            }
        },
    }
    machine = sfn.create_state_machine(name="Parent", definition=json.dumps(parent), roleArn=ROLE)
    started = sfn.start_execution(stateMachineArn=machine["stateMachineArn"])
    ended = wait_for_end(sfn, started["executionArn"])
    sfn.delete_state_machine(stateMachineArn=machine["stateMachineArn"])
    assert ended["status"] == "SUCCEEDED", ended


def test_a_state_is_tested_with_mocks(sfn: Any) -> None:
    """TestState with a mocked result, an error that is retried, and one that is caught."""
    state = json.dumps(MACHINE["States"]["Thank"])
    mocked = {
        "result": '{"MessageId": "m-1", "MD5OfMessageBody": "5d41402abc4b2a76b9719d911017c592"}'
    }
    done = sfn.test_state(
        definition=state, input='{"queue": "q"}', mock=mocked, inspectionLevel="DEBUG", roleArn=ROLE
    )
    assert (done["status"], json.loads(done["output"])["MessageId"]) == ("SUCCEEDED", "m-1")
    state = json.dumps(MACHINE["States"]["Score"])
    error = {"errorOutput": {"error": "Lambda.TooBusyException", "cause": "busy"}}
    retried = sfn.test_state(
        definition=state,
        input="{}",
        mock=error,
        inspectionLevel="DEBUG",
        stateConfiguration={"retrierRetryCount": 1},
    )
    assert retried["status"] == "RETRIABLE"
    assert retried["inspectionData"]["errorDetails"]["retryBackoffIntervalSeconds"] == 1200


def test_the_words_of_the_command_line_are_taken(functions: str, tmp_path: Path) -> None:
    """In either spelling, before a variable; a wrong value is said as that of the variable is."""
    words = ("-account", ACCOUNT, "-region", "eu-west-1", f"--wait-time-scale={SCALE}")
    running = Server(
        tmp_path / "data",
        options=("--empty", *words, "-lambdaEndpoint", functions),
        WAIT_TIME_SCALE="1",
    ).start()
    try:
        client = running.client(region="eu-west-1")
        states = {
            "Score": invoke("score", "Cool down"),
            "Cool down": {"Type": "Wait", "Seconds": 3600, "End": True},
        }
        machine = client.create_state_machine(
            name="Words",
            definition=json.dumps({"StartAt": "Score", "States": states}),
            roleArn=ROLE,
        )["stateMachineArn"]
        assert machine.split(":")[3:5] == ["eu-west-1", ACCOUNT]
        started = client.start_execution(stateMachineArn=machine, input='{"queue": "q"}')
        ended = wait_for_end(client, started["executionArn"])
        assert ended["status"] == "SUCCEEDED", ended
        profile = (running.data / "credentials").read_text(encoding="utf-8")
        assert "region = eu-west-1" in profile
    finally:
        running.stop()
    command = [sys.executable, "manage.py", "up", "-waitTimeScale", "fast"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "WAIT_TIME_SCALE: got 'fast', wanted a number of times" in refused.stderr
    missing = subprocess.run(command[:-1], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "expected one argument" in missing.stderr
