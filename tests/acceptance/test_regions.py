"""A region is a scope: a client of another region finds nothing of what was made in the first."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import wait_for_end

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/test"
HERE, THERE = "us-east-1", "us-west-2"
MAP = {
    "StartAt": "M",
    "States": {
        "M": {
            "Type": "Map",
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "P",
                "States": {"P": {"Type": "Pass", "End": True}},
            },
            "End": True,
        }
    },
}


@pytest.fixture(scope="module")
def things(up: Server) -> dict[str, str]:
    """Something of each kind in the first region: member of a request -> ARN."""
    client = up.client()
    group = f"/regions/{time.time_ns()}"
    up.client("logs").create_log_group(logGroupName=group)
    account = client.create_activity(name="regional")["activityArn"].split(":")[4]
    destination = f"arn:aws:logs:{HERE}:{account}:log-group:{group}:*"
    machine = client.create_state_machine(
        name="regional",
        definition=json.dumps(MAP),
        roleArn=ROLE,
        tags=[{"key": "k", "value": "v"}],
        loggingConfiguration={
            "level": "ALL",
            "includeExecutionData": True,
            "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": destination}}],
        },
    )["stateMachineArn"]
    version = client.publish_state_machine_version(stateMachineArn=machine)
    route = [{"stateMachineVersionArn": version["stateMachineVersionArn"], "weight": 100}]
    alias = client.create_state_machine_alias(name="live", routingConfiguration=route)
    execution = client.start_execution(stateMachineArn=machine, input="[1]")["executionArn"]
    assert wait_for_end(client, execution)["status"] == "SUCCEEDED"
    return {
        "stateMachineArn": machine,
        "stateMachineVersionArn": version["stateMachineVersionArn"],
        "stateMachineAliasArn": alias["stateMachineAliasArn"],
        "activityArn": f"arn:aws:states:{HERE}:{account}:activity:regional",
        "executionArn": execution,
        "mapRunArn": client.list_map_runs(executionArn=execution)["mapRuns"][0]["mapRunArn"],
        "resourceArn": machine,
        "group": group,
    }


NAMING: list[tuple[str, str, dict[str, Any], str]] = [
    ("describe_state_machine", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("update_state_machine", "stateMachineArn", {"roleArn": ROLE}, "StateMachineDoesNotExist"),
    ("start_execution", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("start_sync_execution", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("list_executions", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("list_executions", "mapRunArn", {}, "ResourceNotFound"),
    ("list_state_machine_versions", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("list_state_machine_aliases", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("publish_state_machine_version", "stateMachineArn", {}, "StateMachineDoesNotExist"),
    ("delete_state_machine", "stateMachineArn", {}, ""),
    ("delete_state_machine_version", "stateMachineVersionArn", {}, ""),
    ("describe_state_machine_alias", "stateMachineAliasArn", {}, "ResourceNotFound"),
    (
        "update_state_machine_alias",
        "stateMachineAliasArn",
        {"description": "d"},
        "ResourceNotFound",
    ),
    ("delete_state_machine_alias", "stateMachineAliasArn", {}, "ResourceNotFound"),
    ("describe_execution", "executionArn", {}, "ExecutionDoesNotExist"),
    ("describe_state_machine_for_execution", "executionArn", {}, "ExecutionDoesNotExist"),
    ("get_execution_history", "executionArn", {}, "ExecutionDoesNotExist"),
    ("list_map_runs", "executionArn", {}, "ExecutionDoesNotExist"),
    ("redrive_execution", "executionArn", {}, "ExecutionDoesNotExist"),
    ("stop_execution", "executionArn", {}, "ExecutionDoesNotExist"),
    ("describe_map_run", "mapRunArn", {}, "ResourceNotFound"),
    ("update_map_run", "mapRunArn", {"maxConcurrency": 1}, "ResourceNotFound"),
    ("describe_activity", "activityArn", {}, "ActivityDoesNotExist"),
    ("get_activity_task", "activityArn", {}, "ActivityDoesNotExist"),
    ("delete_activity", "activityArn", {}, ""),
    ("list_tags_for_resource", "resourceArn", {}, "ResourceNotFound"),
    (
        "tag_resource",
        "resourceArn",
        {"tags": [{"key": "k", "value": "theirs"}]},
        "ResourceNotFound",
    ),
    ("untag_resource", "resourceArn", {"tagKeys": ["k"]}, "ResourceNotFound"),
]


@pytest.mark.parametrize(("method", "member", "more", "code"), NAMING)
def test_what_is_named_is_missing(
    up: Server, things: dict[str, str], method: str, member: str, more: dict[str, Any], code: str
) -> None:
    """With the error for what nobody made; a deletion succeeds and deletes nothing."""
    client = up.client(region=THERE)
    params = {member: things[member], **more}
    if not code:
        getattr(client, method)(**params)
        return
    with pytest.raises(ClientError) as caught:
        getattr(client, method)(**params)
    assert caught.value.response["Error"]["Code"] == code


def test_every_action_that_names_a_thing_is_in_the_list(up: Server) -> None:
    """By the service model; a new one comes into this test."""
    client = up.client()
    members = {"activityArn", "executionArn", "mapRunArn", "resourceArn", "stateMachineArn"}
    members |= {"stateMachineAliasArn", "stateMachineVersionArn"}
    naming = set()
    for method, action in client.meta.method_to_api_mapping.items():
        shape = client.meta.service_model.operation_model(action).input_shape
        naming |= {(method, member) for member in members & set(shape.members)}
    assert naming == {(method, member) for method, member, _, _ in NAMING}


def test_nothing_was_deleted_or_changed(up: Server, things: dict[str, str]) -> None:
    """After all these calls the first region is as it was."""
    client = up.client()
    machine = things["stateMachineArn"]
    assert client.describe_state_machine(stateMachineArn=machine)["status"] == "ACTIVE"
    tags = client.list_tags_for_resource(resourceArn=machine)["tags"]
    assert tags == [{"key": "k", "value": "v"}]
    alias = things["stateMachineAliasArn"]
    assert "description" not in client.describe_state_machine_alias(stateMachineAliasArn=alias)
    client.describe_activity(activityArn=things["activityArn"])
    versions = client.list_state_machine_versions(stateMachineArn=machine)
    assert len(versions["stateMachineVersions"]) == 1


def test_an_alias_of_another_regions_version_is_refused(up: Server, things: dict[str, str]) -> None:
    """The version is as missing there as the machine."""
    client = up.client(region=THERE)
    route = [{"stateMachineVersionArn": things["stateMachineVersionArn"], "weight": 100}]
    with pytest.raises(ClientError) as caught:
        client.create_state_machine_alias(name="other", routingConfiguration=route)
    assert caught.value.response["Error"]["Code"] == "ResourceNotFound"


def test_no_list_has_it(up: Server, things: dict[str, str]) -> None:
    """Machines, activities, log groups and metrics."""
    client = up.client(region=THERE)
    assert client.list_state_machines()["stateMachines"] == []
    assert client.list_activities()["activities"] == []
    assert up.client("logs", region=THERE).describe_log_groups()["logGroups"] == []
    with pytest.raises(ClientError) as caught:
        up.client("logs", region=THERE).filter_log_events(logGroupName=things["group"])
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
    assert up.client("logs").filter_log_events(logGroupName=things["group"])["events"]
    watch = up.client("cloudwatch", region=THERE)
    assert watch.list_metrics(Namespace="AWS/States")["Metrics"] == []
    now = datetime.now(UTC)
    query: dict[str, Any] = {
        "Namespace": "AWS/States",
        "MetricName": "ExecutionsStarted",
        "Dimensions": [{"Name": "StateMachineArn", "Value": things["stateMachineArn"]}],
        "StartTime": now - timedelta(hours=1),
        "EndTime": now + timedelta(minutes=5),
        "Period": 60,
        "Statistics": ["Sum"],
    }
    assert watch.get_metric_statistics(**query)["Datapoints"] == []
    assert up.client("cloudwatch").get_metric_statistics(**query)["Datapoints"]


def test_the_same_name_is_free_there(up: Server, things: dict[str, str]) -> None:
    """A machine of the same name in the other region is another one."""
    client = up.client(region=THERE)
    definition = json.dumps({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}})
    machine = client.create_state_machine(name="regional", definition=definition, roleArn=ROLE)
    assert machine["stateMachineArn"] == things["stateMachineArn"].replace(HERE, THERE)
    client.delete_state_machine(stateMachineArn=machine["stateMachineArn"])


def test_a_nested_start_stays_in_its_region(up: Server, things: dict[str, str]) -> None:
    """A Task cannot start a machine of another region either."""
    client = up.client(region=THERE)
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution",
        "Parameters": {"StateMachineArn": things["stateMachineArn"]},
        "End": True,
    }
    definition = json.dumps({"StartAt": "T", "States": {"T": task}})
    machine = client.create_state_machine(name="caller", definition=definition, roleArn=ROLE)
    started = client.start_execution(stateMachineArn=machine["stateMachineArn"])
    execution = wait_for_end(client, started["executionArn"])
    assert execution["error"] == "StepFunctions.StateMachineDoesNotExistException"
    client.delete_state_machine(stateMachineArn=machine["stateMachineArn"])
