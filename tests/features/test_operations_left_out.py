"""A server without a feature does not know the feature's actions; the core's work as ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from console.feature import chosen_features
from console.features import NAMES
from tests.acceptance.server import Server, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow
LEFT_OUT = {"alarms", "logs", "metrics", "notifications", "test_state"}
ROLE = "arn:aws:iam::123456789012:role/r"
PASS = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
ACTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "cloudwatch of alarms": ("describe_alarms", {}),
    "cloudwatch of metrics": ("list_metrics", {}),
    "events": ("list_rules", {}),
    "logs": ("describe_log_groups", {}),
    "scheduler": ("list_schedules", {}),
    "stepfunctions": ("test_state", {"definition": '{"Type": "Pass", "End": true}'}),
}
"""Service, of a feature -> the method of one action, and what it is called with."""
TASKS = {
    "arn:aws:states:::events:putEvents": {
        "Entries": [{"Source": "s", "DetailType": "d", "Detail": {}}]
    },
    "arn:aws:states:::aws-sdk:scheduler:listSchedules": {},
    "arn:aws:states:::aws-sdk:sfn:testState": {"Definition": PASS},
}
"""Resource of a Task that calls this server's own API -> its parameters."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running ``manage.py up`` without the features that have actions, and what needs them."""
    needs = {feature.name: {*feature.needs} for feature in chosen_features()}
    chosen = (name for name in NAMES if not {name, *needs[name]} & LEFT_OUT)
    features = ",".join(chosen)
    up = Server(tmp_path_factory.mktemp("left-out") / "data", STATEYARD_FEATURES=features).start()
    yield up
    up.stop()


@pytest.mark.parametrize("of", ACTIONS)
def test_an_action_of_a_feature_is_unknown(server: Server, of: str) -> None:
    """An SDK gets the error of an action that no server has."""
    method, params = ACTIONS[of]
    client = server.client(of.partition(" ")[0])
    with pytest.raises(ClientError) as refused:
        getattr(client, method)(**params)
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


def test_an_action_of_a_feature_is_unknown_before_its_members(server: Server) -> None:
    """Nobody is told what is wrong with a call that would not be answered anyway."""
    with pytest.raises(ClientError) as refused:
        server.client("scheduler").list_schedules(MaxResults=1_000)
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


@pytest.mark.parametrize("resource", TASKS)
def test_a_task_cannot_call_it_either(server: Server, resource: str) -> None:
    """The state fails with the service's own error, whose cause names the action."""
    state = {"Type": "Task", "Resource": resource, "Parameters": TASKS[resource], "End": True}
    ended = run(server, json.dumps({"StartAt": "A", "States": {"A": state}}))
    action = resource.rpartition(":")[2]
    assert ended["status"] == "FAILED"
    assert f"This server does not serve {action[0].upper()}{action[1:]} of" in ended["cause"]


def test_actions_of_the_core_work(server: Server) -> None:
    """A machine that asks for logs is made and runs; its group is noted for a server with logs."""
    group = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/vendedlogs/states/kept:*"
    logging = {
        "level": "ALL",
        "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": group}}],
    }
    ended = run(server, PASS, loggingConfiguration=logging)
    assert (ended["status"], json.loads(ended["output"])) == ("SUCCEEDED", {"tea": 1})


def run(server: Server, definition: str, **more: Any) -> dict[str, Any]:
    """Return an execution of a new machine after its end."""
    client = server.client()
    name = f"m{len(client.list_state_machines()['stateMachines'])}"
    machine = client.create_state_machine(name=name, definition=definition, roleArn=ROLE, **more)
    started = client.start_execution(
        stateMachineArn=machine["stateMachineArn"], input=json.dumps({"tea": 1})
    )
    return wait_for_end(client, started["executionArn"])
