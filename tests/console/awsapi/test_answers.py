"""Every output field of the service model appears in some answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from console.models import Execution
from console.store.machines import log_groups
from tests.console.awsapi.world import (
    ACCOUNT,
    FAIL,
    MAP,
    MODEL,
    REFERS,
    World,
    definition,
    routes,
)
from tests.console.store.helpers import PASS, ROLE, WAIT, WORK, ended, function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.worker import Embedded


KEY = {
    "type": "CUSTOMER_MANAGED_KMS_KEY",
    "kmsKeyId": "alias/key",
    "kmsDataKeyReusePeriodSeconds": 300,
}
GROUP = "arn:aws:logs:us-east-1:123456789012:log-group:/all:*"
LOGGING = {
    "level": "ALL",
    "includeExecutionData": True,
    "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": GROUP}}],
}
ACTIVITIES = {name: f"{ACCOUNT}:activity:{name}" for name in ("good", "bad", "slow")}
UNSEEN = "never in a recording of the service: docs/reference/asl.md tells by which event instead"
NO_CAUSE = "a timeout has no cause [recorded]"
NEVER = {
    "activityScheduleFailedEventDetails": UNSEEN,
    "lambdaFunctionScheduleFailedEventDetails": UNSEEN,
    "lambdaFunctionStartFailedEventDetails": UNSEEN,
    "taskStartFailedEventDetails": UNSEEN,
    "activityTimedOutEventDetails.cause": NO_CAUSE,
    "executionTimedOutEventDetails.cause": NO_CAUSE,
    "lambdaFunctionTimedOutEventDetails.cause": NO_CAUSE,
    "taskTimedOutEventDetails.cause": NO_CAUSE,
}
"""Detail of an event, or all of them -> why no history has it."""


def good(event: Any, context: Any) -> Any:
    """A function that answers."""
    del context
    return event


def bad(event: Any, context: Any) -> Any:
    """A function that fails."""
    raise RuntimeError("why")


def slow(event: Any, context: Any) -> Any:
    """A function that takes longer than its state allows."""
    del event, context
    time.sleep(1.5)


def answers(world: World) -> list[tuple[str, dict[str, Any]]]:
    """Return answers that together have every field."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def ask(action: str, **params: Any) -> dict[str, Any]:
        answer = world.ask(action, **params)
        seen.append((action, answer))
        return answer

    _machines(world, ask)
    _executions(world, ask)
    _map_runs(world, ask)
    _batches(world, ask)
    _histories(world, ask)
    _others(world, ask)
    return seen


def _machines(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    machine = ask(
        "CreateStateMachine",
        name="all",
        definition=definition(MAP),
        roleArn=ROLE,
        encryptionConfiguration=KEY,
        loggingConfiguration=LOGGING,
        publish=True,
        versionDescription="first",
    )
    version = machine["stateMachineVersionArn"]
    ask("DescribeStateMachine", stateMachineArn=version)
    ask("DescribeStateMachine", stateMachineArn=f"{machine['stateMachineArn']}/lab")
    changed = {"definition": definition(REFERS), "publish": True}
    ask("UpdateStateMachine", stateMachineArn=machine["stateMachineArn"], **changed)
    ask("DescribeStateMachine", stateMachineArn=machine["stateMachineArn"])
    updated = world.start(machine["stateMachineArn"])
    ask("DescribeStateMachineForExecution", executionArn=updated)
    ask("PublishStateMachineVersion", stateMachineArn=world.machine)
    alias = ask(
        "CreateStateMachineAlias",
        name="live",
        description="d",
        routingConfiguration=routes(version),
    )["stateMachineAliasArn"]
    ask("UpdateStateMachineAlias", stateMachineAliasArn=alias, description="e")
    ask("DescribeStateMachineAlias", stateMachineAliasArn=alias)
    world.alias(version, "other")
    for action in ("ListStateMachineVersions", "ListStateMachineAliases"):
        ask(action, stateMachineArn=machine["stateMachineArn"], maxResults=1)
    ask("ListStateMachines", maxResults=1)
    world.ask("TagResource", resourceArn=world.machine, tags=[{"key": "k", "value": "v"}])
    ask("ListTagsForResource", resourceArn=world.machine)


def _executions(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    alias = world.alias(world.version(world.fresh(PASS)))
    started = ask("StartExecution", stateMachineArn=alias, traceHeader="Root=1")["executionArn"]
    failed = world.start(world.fresh(FAIL))
    for arn in (started, failed):
        ended(Execution.objects.get(arn=arn))
        ask("DescribeExecution", executionArn=arn)
        ask("DescribeStateMachineForExecution", executionArn=arn)
        ask("GetExecutionHistory", executionArn=arn, maxResults=1)
    refers = world.start(world.machine)
    ended(Execution.objects.get(arn=refers))
    ask("DescribeStateMachineForExecution", executionArn=refers)
    world.start(world.machine)
    ask("ListExecutions", stateMachineArn=world.machine, maxResults=1)
    ask("StopExecution", executionArn=world.start(world.fresh()))
    ask("RedriveExecution", executionArn=failed)
    redriven = ended(Execution.objects.get(arn=failed))
    ask("DescribeExecution", executionArn=failed)
    ask("GetExecutionHistory", executionArn=failed)
    ask("ListExecutions", stateMachineArn=alias)
    ask("ListExecutions", stateMachineArn=redriven.state_machine_arn)
    for inner in (PASS, FAIL):
        machine = world.fresh(inner, type="EXPRESS")
        ask("StartSyncExecution", stateMachineArn=machine, traceHeader="Root=1")


def _map_runs(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    state = {**MAP["States"]["M"], "ToleratedFailurePercentage": 50}
    inner = {"StartAt": "Q", "States": {"Q": FAIL["States"]["F"]}}
    processor = {**state["ItemProcessor"], **inner}
    twice = {
        "StartAt": "M",
        "States": {
            "M": {**state, "Next": "N"},
            "N": {**state, "Label": "two", "ItemProcessor": processor},
        },
    }
    del twice["States"]["M"]["End"]
    parent = world.start(world.fresh(twice), input="[1, 2]")
    ended(Execution.objects.get(arn=parent))
    runs = ask("ListMapRuns", executionArn=parent, maxResults=1)["mapRuns"]
    runs += ask("ListMapRuns", executionArn=parent)["mapRuns"]
    ask("DescribeMapRun", mapRunArn=runs[0]["mapRunArn"])
    child = ask("ListExecutions", mapRunArn=runs[0]["mapRunArn"])["executions"][0]
    ask("DescribeExecution", executionArn=child["executionArn"])
    ask("DescribeStateMachineForExecution", executionArn=child["executionArn"])
    ask("RedriveExecution", executionArn=parent)
    ended(Execution.objects.get(arn=parent))
    for run in runs:
        ask("DescribeMapRun", mapRunArn=run["mapRunArn"])
    ask("GetExecutionHistory", executionArn=parent, maxResults=1000)


def _batches(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    state = {**MAP["States"]["M"], "ItemBatcher": {"MaxItemsPerBatch": 2}}
    parent = world.start(world.fresh({"StartAt": "M", "States": {"M": state}}), input="[1, 2, 3]")
    ended(Execution.objects.get(arn=parent))
    (run,) = world.ask("ListMapRuns", executionArn=parent)["mapRuns"]
    children = ask("ListExecutions", mapRunArn=run["mapRunArn"])["executions"]
    assert sorted(child["itemCount"] for child in children) == [1, 2]


def _histories(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    """Ask for the histories of executions in which everything happens."""
    for name in ACTIVITIES:
        world.ask("CreateActivity", name=name)
    everything = world.start(world.fresh(everything_at_once()))
    stopped = world.start(world.fresh())
    ask("StopExecution", executionArn=stopped, error="Enough", cause="why")
    late = world.start(world.fresh({**WAIT, "TimeoutSeconds": 1}))
    answered: set[str] = set()
    while Execution.objects.get(arn=everything).status == "RUNNING":
        answered |= set(_serve(world, set(ACTIVITIES) - answered))
        time.sleep(0.1)
    ended(Execution.objects.get(arn=late))
    for arn in (everything, stopped, late):
        ask("GetExecutionHistory", executionArn=arn, maxResults=1000)


def _serve(world: World, names: set[str]) -> Iterator[str]:
    """Take the tasks of these activities, and end those that are to end."""
    for name in names:
        asked = {"activityArn": ACTIVITIES[name], "workerName": "me"}
        task = world.ask("GetActivityTask", **asked)
        if task.get("taskToken"):
            yield name
        if task.get("taskToken") and name == "good":
            world.ask("SendTaskSuccess", taskToken=task["taskToken"], output="1")
        elif task.get("taskToken") and name == "bad":
            world.ask("SendTaskFailure", taskToken=task["taskToken"], error="E", cause="why")


def everything_at_once() -> dict[str, Any]:
    """Return a machine with a branch for each thing that may happen to a state."""
    role = {"Credentials": {"RoleArn": ROLE}, "TimeoutSeconds": 60}
    call = "arn:aws:states:::lambda:invoke"
    states: list[dict[str, Any]] = [
        function("good", Assign={"v": 1}, **role),
        function("bad"),
        function("slow", TimeoutSeconds=1),
        task(call, Parameters={"FunctionName": "good"}, HeartbeatSeconds=50, **role),
        task(call, Parameters={"FunctionName": "bad"}),
        task(
            f"{call}.waitForTaskToken",
            Parameters={"FunctionName": "good", "Payload": {"t.$": "$$.Task.Token"}},
            TimeoutSeconds=2,
        ),
        task(
            f"{call}.waitForTaskToken",
            Parameters={"FunctionName": "bad", "Payload": {"t.$": "$$.Task.Token"}},
        ),
        task(ACTIVITIES["good"], TimeoutSeconds=60, HeartbeatSeconds=50),
        task(ACTIVITIES["bad"]),
        task(ACTIVITIES["slow"], TimeoutSeconds=1),
        task(call, QueryLanguage="JSONata", Arguments="{% $error('no') %}"),
        MAP["States"]["M"] | {"ItemProcessor": {**PROCESSOR, **FAIL}, "ItemsPath": "$.items"},
        {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": ITERATION},
    ]
    branches = [
        {
            "StartAt": f"S{at}",
            "States": {f"S{at}": caught(state, at), f"C{at}": {"Type": "Succeed"}},
        }
        for at, state in enumerate(states)
    ]
    begin = {"Type": "Pass", "Result": {"items": [0, 1, 2]}, "Next": "All"}
    all_ = {"Type": "Parallel", "Branches": branches, "End": True}
    return {"StartAt": "Begin", "States": {"Begin": begin, "All": all_}}


PROCESSOR: dict[str, Any] = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
}
ITERATION = {
    "StartAt": "Which",
    "States": {
        "Which": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$", "NumericEquals": 0, "Next": "Quick"},
                {"Variable": "$", "NumericEquals": 1, "Next": "Later"},
            ],
            "Default": "Waits",
        },
        "Quick": {"Type": "Succeed"},
        "Later": {"Type": "Wait", "Seconds": 1, "Next": "No"},
        "No": {"Type": "Fail", "Error": "E", "Cause": "why"},
        "Waits": {"Type": "Wait", "Seconds": 60, "End": True},
    },
}


def task(resource: str, **more: Any) -> dict[str, Any]:
    """Return a Task."""
    return {"Type": "Task", "Resource": resource, **more}


def caught(state: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a state whose failure ends its branch well."""
    text = {name: value for name, value in state.items() if name not in ("End", "Label")}
    catch = [{"ErrorEquals": ["States.ALL"], "Next": f"C{number}"}]
    return {**text, "Catch": catch, "Next": f"C{number}"}


def _others(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    ask("CreateActivity", name="second")
    ask("ListActivities", maxResults=1)
    world.ask("CreateActivity", name="secret", encryptionConfiguration=KEY)
    ask("DescribeActivity", activityArn=f"{ACCOUNT}:activity:secret")
    world.start(world.fresh(WORK))
    deadline = time.monotonic() + 10
    task: dict[str, Any] = {}
    while not task and time.monotonic() < deadline:
        task = world.ask("GetActivityTask", activityArn=world.activity)
    ask("SendTaskHeartbeat", taskToken=task["taskToken"])
    ask("SendTaskSuccess", taskToken=task["taskToken"], output="1")
    asked = {"definition": definition({"Type": "Pass", "Next": "N"}), "inspectionLevel": "DEBUG"}
    ask("TestState", **asked)
    ask("TestState", definition=definition(FAIL["States"]["F"]))
    ask("ValidateStateMachineDefinition", definition="{}")


def described(shape: Any, before: str = "") -> Iterator[str]:
    """Return the dotted names of the fields that the model gives an answer, nested ones too."""
    while shape is not None and shape.type_name == "list":
        shape = shape.member
    if shape is None or shape.type_name != "structure":
        return
    for name, member in shape.members.items():
        yield before + name
        yield from described(member, f"{before}{name}.")


def filled(shape: Any, value: Any, before: str = "") -> Iterator[str]:
    """Return the dotted names of the fields that an answer has; the keys of a map are none."""
    if shape is not None and shape.type_name == "list":
        for item in value:
            yield from filled(shape.member, item, before)
    elif isinstance(value, dict) and (shape is None or shape.type_name == "structure"):
        members = {} if shape is None else shape.members
        for name, inner in value.items():
            yield before + name
            yield from filled(members.get(name), inner, f"{before}{name}.")


@pytest.mark.slow
def test_every_field_is_answered(world: World, worker: Embedded, settings: Any) -> None:
    """Over these calls, each member of each answer of the model has been there."""
    del worker
    settings.STATEYARD_FUNCTIONS = {name: f"{__name__}:{name}" for name in ("good", "bad", "slow")}
    log_groups.create_group(world.principal.project, "us-east-1", "/all")
    expected = {
        action: set(described(MODEL.operation_model(action).output_shape))
        for action in MODEL.operation_names
    }
    seen: dict[str, set[str]] = {action: set() for action in MODEL.operation_names}
    for action, answer in answers(world):
        names = set(filled(MODEL.operation_model(action).output_shape, answer))
        assert names <= expected[action], f"{action} answers what the model does not have"
        seen[action] |= names
    seen["GetActivityTask"] |= {"taskToken", "input"}  # taken above, until there was one
    missing = {
        (action, name)
        for action in expected
        for name in expected[action] - seen[action]
        if not excused(action, name)
    }
    assert missing == set()


def excused(action: str, name: str) -> bool:
    """Return whether a field needs no answer here: all of inspectionData is in ``test_trials``."""
    parts = name.split(".")
    if action == "TestState":
        return parts[0] == "inspectionData" and len(parts) > 1
    if action != "GetExecutionHistory":
        return False
    return any(".".join(parts[1 : count + 1]) in NEVER for count in range(1, len(parts)))


def test_no_excuse_is_out_of_date() -> None:
    """Each field that is never filled is one of the model."""
    members = set(described(MODEL.operation_model("GetExecutionHistory").output_shape))
    assert {f"events.{name}" for name in NEVER} <= members
