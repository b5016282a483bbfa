"""One call of each action of Step Functions, by whatever client is given."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.waiting import wait_until

ROLE = "arn:aws:iam::123456789012:role/any"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
WAIT = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 600, "End": True}}}
MAP = {
    "StartAt": "M",
    "States": {
        "M": {
            "Type": "Map",
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                **WAIT,
            },
            "End": True,
        }
    },
}


class Caller:
    """A client of boto3 that notes which actions were answered."""

    def __init__(self, sfn: Any) -> None:
        self.sfn = sfn
        self.names = {method: name for name, method in _methods(sfn).items()}
        self.done: set[str] = set()

    def __getattr__(self, method: str) -> Any:
        """Return the client's method of this name."""
        called = getattr(self.sfn, method)

        def call(**parameters: Any) -> Any:
            answer = called(**parameters)
            self.done.add(self.names[method])
            return answer

        return call


def _methods(sfn: Any) -> dict[str, str]:
    """Return action -> method of a client."""
    return {name: method for method, name in sfn.meta.method_to_api_mapping.items()}


def call_every_action(sfn: Any) -> tuple[set[str], set[str]]:
    """Call all actions that the client knows; return those that were answered, and those there are.

    An error of any call is raised.
    """
    caller = Caller(sfn)
    _machines(caller)
    _executions(caller)
    _activities(caller)
    _map_runs(caller)
    return caller.done, set(sfn.meta.service_model.operation_names)


def _create(caller: Caller, definition: dict[str, Any], **more: Any) -> str:
    machine = caller.create_state_machine(
        name=f"m-{uuid.uuid4().hex[:8]}", definition=json.dumps(definition), roleArn=ROLE, **more
    )
    arn: str = machine["stateMachineArn"]
    return arn


def _machines(caller: Caller) -> None:
    """Make, read, change, publish, tag and delete a state machine."""
    caller.validate_state_machine_definition(definition=json.dumps(PASS))
    arn = _create(caller, PASS)
    caller.list_state_machines()
    caller.describe_state_machine(stateMachineArn=arn)
    caller.update_state_machine(stateMachineArn=arn, definition=json.dumps(WAIT))
    versions = [
        caller.publish_state_machine_version(stateMachineArn=arn)["stateMachineVersionArn"],
    ]
    caller.list_state_machine_versions(stateMachineArn=arn)
    routes = [{"stateMachineVersionArn": versions[0], "weight": 100}]
    alias = caller.create_state_machine_alias(name="live", routingConfiguration=routes)
    alias_arn = alias["stateMachineAliasArn"]
    caller.list_state_machine_aliases(stateMachineArn=arn)
    caller.describe_state_machine_alias(stateMachineAliasArn=alias_arn)
    caller.update_state_machine_alias(stateMachineAliasArn=alias_arn, description="d")
    caller.delete_state_machine_alias(stateMachineAliasArn=alias_arn)
    caller.delete_state_machine_version(stateMachineVersionArn=versions[0])
    caller.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "b"}])
    assert caller.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "b"}]
    caller.untag_resource(resourceArn=arn, tagKeys=["a"])
    caller.delete_state_machine(stateMachineArn=arn)


def _executions(caller: Caller) -> None:
    """Start, read, stop and redrive executions; try a state; run an Express machine at once."""
    arn = _create(caller, WAIT)
    execution = {"executionArn": caller.start_execution(stateMachineArn=arn)["executionArn"]}
    caller.describe_execution(**execution)
    caller.list_executions(stateMachineArn=arn)
    caller.describe_state_machine_for_execution(**execution)
    caller.stop_execution(**execution)
    caller.get_execution_history(**execution)
    caller.redrive_execution(**execution)
    caller.stop_execution(**execution)
    state = json.dumps({"Type": "Pass", "End": True})
    assert caller.test_state(definition=state, input="[4711]")["output"] == "[4711]"
    express = _create(caller, PASS, type="EXPRESS")
    told = caller.start_sync_execution(stateMachineArn=express, input="[4711]")
    assert (told["status"], told["output"]) == ("SUCCEEDED", "[4711]")


def _activities(caller: Caller) -> None:
    """Make an activity, work two of its tasks, and delete it."""
    activity = {"activityArn": caller.create_activity(name=uuid.uuid4().hex)["activityArn"]}
    caller.list_activities()
    caller.describe_activity(**activity)
    task = {"Type": "Task", "Resource": activity["activityArn"], "End": True}
    arn = _create(caller, {"StartAt": "T", "States": {"T": task}})
    for _ in range(2):
        caller.start_execution(stateMachineArn=arn)
    first, second = (caller.get_activity_task(**activity)["taskToken"] for _ in range(2))
    caller.send_task_heartbeat(taskToken=first)
    caller.send_task_success(taskToken=first, output="{}")
    caller.send_task_failure(taskToken=second, error="E", cause="C")
    caller.delete_activity(**activity)


def _map_runs(caller: Caller) -> None:
    """Look at the Map Run of a distributed Map and change it while it runs."""
    arn = _create(caller, MAP)
    execution = caller.start_execution(stateMachineArn=arn, input="[1]")["executionArn"]
    map_runs = wait_until(lambda: caller.list_map_runs(executionArn=execution)["mapRuns"])
    run = {"mapRunArn": map_runs[0]["mapRunArn"]}
    caller.describe_map_run(**run)
    caller.update_map_run(**run, maxConcurrency=3)
    caller.stop_execution(executionArn=execution)
