"""A mock configuration answers in the place of services, functions, jobs and activities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import Server, wait_for_end
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/DummyRole"
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:approve"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:price"
QUEUE = {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"}
BROKEN = {"Throw": {"Error": "E1", "Cause": "x"}}
RESPONSES: dict[str, Any] = {
    "Counted": {"0": {"Return": 0}, "1": BROKEN, "2-9": {"Return": 2}},
    "Approved": {"0": {"Return": {"by": "ana"}}},
    "Answer": {"0": {"Return": {"StatusCode": 200, "Payload": {"price": 42}}}},
    "Done": {"0": {"Return": {"Status": "COMPLETED"}}},
    "Broken": {"0": BROKEN},
}
STATES: dict[str, Any] = {
    "Approve": {"Type": "Task", "Resource": ACTIVITY},
    "Price": {"Type": "Task", "Resource": FUNCTION},
    "Invoke": {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": FUNCTION},
    },
    "Job": {
        "Type": "Task",
        "Resource": "arn:aws:states:::glue:startJobRun.sync",
        "Parameters": {"JobName": "j"},
    },
    "Callback": {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": QUEUE,
    },
}
ANSWERS = {
    "Approve": "Approved",
    "Price": "Answer",
    "Invoke": "Answer",
    "Job": "Done",
    "Callback": "Done",
}


def configuration() -> dict[str, Any]:
    """Return the mock configuration of all state machines."""
    machines: dict[str, Any] = {
        name: {"TestCases": {"ok": {name: ANSWERS[name]}, "broken": {name: "Broken"}}}
        for name in STATES
    }
    machines["Each"] = {"TestCases": {"ok": {"Count": "Counted"}}}
    machines["Quick"] = {"TestCases": {"ok": {"Price": "Answer"}}}
    return {"StateMachines": machines, "MockedResponses": dict(RESPONSES)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a mock configuration in its data folder."""
    data = tmp_path_factory.mktemp("mocks") / "data"
    data.mkdir()
    (data / "MockConfigFile.json").write_text(json.dumps(configuration()), "utf-8")
    server = Server(data, options=("--empty",)).start()
    client = server.client()
    client.create_activity(name="approve")
    for name, state in STATES.items():
        create(client, name, {"StartAt": name, "States": {name: {**state, "End": True}}})
    count = {
        "Type": "Task",
        "Resource": FUNCTION,
        "End": True,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
    }
    each = {
        "Type": "Map",
        "MaxConcurrency": 1,
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Count",
            "States": {"Count": count, "Caught": {"Type": "Pass", "End": True}},
        },
        "End": True,
    }
    create(client, "Each", {"StartAt": "Map", "States": {"Map": each}})
    quick = {"StartAt": "Price", "States": {"Price": {**STATES["Price"], "End": True}}}
    create(client, "Quick", quick, "EXPRESS")
    yield server
    server.stop()


def create(client: Any, name: str, definition: Any, kind: str = "STANDARD") -> None:
    """Create a state machine."""
    client.create_state_machine(
        name=name, definition=json.dumps(definition), roleArn=ROLE, type=kind
    )


def arn(name: str, case: str = "ok") -> str:
    """Return the ARN of a state machine with a test case."""
    return f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}#{case}"


def run(server: Server, name: str, case: str = "ok", data: Any = None) -> tuple[Any, list[str]]:
    """Run a test case; return how it ended, and the types of its events."""
    client = server.client()
    started = client.start_execution(stateMachineArn=arn(name, case), input=json.dumps(data or {}))
    execution = started["executionArn"]
    ended = wait_for_end(client, execution)
    events = client.get_execution_history(executionArn=execution)["events"]
    return ended, [event["type"] for event in events]


def test_children_of_a_distributed_map_count_together(server: Server) -> None:
    """One after the other they get the responses of 0, 1 and 2."""
    ended, _ = run(server, "Each", data=["a", "b", "c"])
    assert json.loads(ended["output"]) == [0, {"Error": "E1", "Cause": "x"}, 2]


def test_a_mock_works_an_activity(server: Server) -> None:
    """Nobody polls: the response is the result; a thrown error fails the task."""
    ended, types = run(server, "Approve")
    assert json.loads(ended["output"]) == {"by": "ana"}
    assert types[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]
    ended, types = run(server, "Approve", "broken")
    assert (ended["status"], ended["error"]) == ("FAILED", "E1")
    assert "ActivityFailed" in types


@pytest.mark.parametrize("name", ["Job", "Callback"])
def test_a_mocked_job_or_callback_is_submitted_first(server: Server, name: str) -> None:
    """Its history has what a real one has; so has that of one that fails."""
    ended, types = run(server, name)
    assert json.loads(ended["output"]) == {"Status": "COMPLETED"}
    task = ["TaskScheduled", "TaskStarted", "TaskSubmitted"]
    assert types[2:6] == [*task, "TaskSucceeded"]
    ended, types = run(server, name, "broken")
    assert (ended["status"], ended["error"], ended["cause"]) == ("FAILED", "E1", "x")
    assert types[2:6] == [*task, "TaskFailed"]


def test_a_function_by_its_arn_gives_its_payload(server: Server) -> None:
    """``lambda:invoke`` gives the whole answer."""
    assert json.loads(run(server, "Price")[0]["output"]) == {"price": 42}
    assert json.loads(run(server, "Invoke")[0]["output"])["Payload"] == {"price": 42}


def test_a_synchronous_start_takes_a_test_case(server: Server) -> None:
    """One that is not there is refused, as at StartExecution."""
    client = server.client()
    answer = client.start_sync_execution(stateMachineArn=arn("Quick"))
    assert json.loads(answer["output"]) == {"price": 42}
    with pytest.raises(client.exceptions.ClientError, match="no test case 'none'"):
        client.start_sync_execution(stateMachineArn=arn("Quick", "none"))


def test_the_file_counts_as_it_is_now(server: Server) -> None:
    """A new response is used by the next execution; a broken file leaves what was there."""
    path = server.data / "MockConfigFile.json"
    changed = configuration()
    changed["MockedResponses"]["Answer"] = {"0": {"Return": 43}}
    path.write_text(json.dumps(changed), "utf-8")
    wait_until(lambda: json.loads(run(server, "Price")[0]["output"]) == 43)
    path.write_text("{", "utf-8")
    assert json.loads(run(server, "Price")[0]["output"]) == 43
    path.write_text(json.dumps(configuration()), "utf-8")
    wait_until(lambda: json.loads(run(server, "Price")[0]["output"]) == {"price": 42})
