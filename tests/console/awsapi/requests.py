"""Requests of any action of any service: made of botocore's model and of what exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.db.writer import Change, settled
from console.errors import ServiceError
from console.models import Execution, MapRun, TaskRow
from console.own_api import LongPoll
from console.store.map_runs import map_runs
from tests.console.awsapi.world import MAP, World, definition
from tests.console.store.helpers import PASS, REGION, ROLE, drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from botocore.model import Shape

Path = tuple[str | int, ...]
GROUP = "/aws/vendedlogs/states/x"


def filled(shape: Shape, samples: dict[str, Any], path: Path, value: Any) -> Any:
    """Return what a shape requires, with a value at the end of the path."""
    if not path and value is not None:
        return value
    if shape.type_name == "list":
        return [filled(shape.member, samples, path[1:], value if path else None)]
    if shape.type_name != "structure":
        return {"integer": 60, "timestamp": 1_700_000_000}.get(shape.type_name, "x")
    names = {*shape.required_members, *(path[:1] if path else ())}
    members = {name: sample for name, sample in samples.items() if name in shape.members}
    for name in sorted(names):
        on_path = bool(path) and name == path[0]
        if on_path or name not in members:
            member = shape.members[name]
            members[name] = filled(
                member, samples, path[1:] if on_path else (), value if on_path else None
            )
    return members


def existing(world: World) -> dict[str, Any]:
    """Return member -> something that exists."""
    execution = world.start(world.create("mapped", MAP), input="[1]")
    parent = drain(Execution.objects.get(arn=execution))
    map_runs.begin_map_run(parent.pk, TaskRow.objects.get(execution=parent).task)
    version = world.version(world.machine)
    ask(world, services.LOGS, "CreateLogGroup", {"logGroupName": GROUP})
    ask(world, services.EVENTS, "PutRule", {"Name": "rule", "ScheduleExpression": "rate(1 day)"})
    return {
        "stateMachineArn": world.machine,
        "resourceArn": world.machine,
        "executionArn": execution,
        "mapRunArn": MapRun.objects.get().arn,
        "stateMachineVersionArn": version,
        "stateMachineAliasArn": world.alias(version),
        "activityArn": world.activity,
        "definition": definition(PASS),
        "roleArn": ROLE,
        "MetricName": "ExecutionsStarted",
        "Namespace": "AWS/States",
        "Statistics": ["Sum"],
        "Statistic": "Sum",
        "Stat": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Dimensions": [{"Name": "StateMachineArn", "Value": world.machine}],
        "ComparisonOperator": "GreaterThanThreshold",
        "StartTime": 1_700_000_000,
        "EndTime": 1_700_003_600,
        "logGroupName": GROUP,
        "logStreamName": "x",
        "logGroupArn": f"arn:aws:logs:us-east-1:123456789012:log-group:{GROUP}:*",
        "Rule": "rule",
        "TargetArn": world.machine,
        "Arn": world.machine,
        "RoleArn": ROLE,
        "Source": "test",
        "DetailType": "test",
        "Detail": "{}",
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "GroupName": "default",
        "Event": "{}",
        "EventPattern": '{"source": ["x"]}',
        "AlarmName": "alarm",
        "StateValue": "OK",
        "MetricStat": {
            "Metric": {"Namespace": "AWS/States", "MetricName": "ExecutionsStarted"},
            "Period": 60,
            "Stat": "Sum",
        },
        "Threshold": 1,
    }


def ask(world: World, service: services.ApiService, action: str, params: dict[str, Any]) -> Any:
    """Call an action of any service; raise its error."""
    shapes.check_params(service.operation(action), params)
    service.check_members(action, params)
    actor = Actor("ana", "AKIATEST", "request")
    call = Call(action, params, world.principal, REGION, actor)
    answer = settled(service.handler(action)(call))
    result = answer.look() if isinstance(answer, LongPoll) else answer
    return result.result() if isinstance(result, Change) else result


def outcome(call: Callable[[], object]) -> tuple[ServiceError | None, object]:
    """Return how a call is refused, which is never our fault, or its answer."""
    try:
        return None, call()
    except ServiceError as error:
        refused = error
    assert 400 <= refused.status < 500, refused
    assert refused.message
    return refused, None


def put(params: Any, path: Path, value: object) -> None:
    """Put a value at the end of a path."""
    *way, last = path
    for step in way:
        params = params[step]
    params[last] = value
