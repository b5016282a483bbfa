"""Every action accepts any number or refuses it in AWS's shape."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi import services, shapes
from console.awsapi.operations.call import Call, Later
from console.errors import ServiceError
from console.models import Execution, MapRun, TaskRow
from console.store.db.audit import Actor
from console.store.db.writer import Pending, settled
from console.store.map_runs import map_runs
from tests.console.awsapi.world import MAP, World, definition
from tests.console.store.helpers import PASS, REGION, ROLE, drain
from tests.extremes import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.model import Shape

_KINDS = frozenset({"integer", "long", "float", "double", "timestamp"})
Path = tuple[str | int, ...]
GROUP = "/aws/vendedlogs/states/x"


def numbers_in(shape: Shape, path: Path = (), above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield the way to every number in a shape."""
    kind = shape.type_name
    if kind in _KINDS:
        yield path
    elif shape.name in above:
        return
    elif kind == "structure":
        for name, member in shape.members.items():
            yield from numbers_in(member, (*path, name), (*above, shape.name))
    elif kind == "list":
        yield from numbers_in(shape.member, (*path, 0), (*above, shape.name))
    elif kind == "map":
        yield from numbers_in(shape.value, (*path, "key"), (*above, shape.name))


NUMERIC = [
    (service, action, path)
    for service in services.SERVICES
    for action in sorted(service.handlers)
    for path in numbers_in(service.operation(action).input_shape)
]


def filled(shape: Shape, known: dict[str, Any], path: Path, value: Any) -> Any:
    """Return what a shape requires, with a value at the end of the path."""
    if not path and value is not None:
        return value
    if shape.type_name == "list":
        return [filled(shape.member, known, path[1:], value if path else None)]
    if shape.type_name != "structure":
        return {"integer": 60, "timestamp": 1_700_000_000}.get(shape.type_name, "x")
    wanted = {*shape.required_members, *(path[:1] if path else ())}
    found = {name: one for name, one in known.items() if name in shape.members}
    for name in sorted(wanted):
        on_path = bool(path) and name == path[0]
        if on_path or name not in found:
            member = shape.members[name]
            found[name] = filled(
                member, known, path[1:] if on_path else (), value if on_path else None
            )
    return found


@pytest.fixture
def known(world: World) -> dict[str, Any]:
    """Member -> something that exists."""
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
        "Rule": "rule",
        "TargetArn": world.machine,
        "Arn": world.machine,
        "RoleArn": ROLE,
        "Source": "test",
        "DetailType": "test",
        "Detail": "{}",
    }


def ask(world: World, service: services.ApiService, action: str, params: dict[str, Any]) -> object:
    """Call an action of any service; raise its error."""
    shapes.check_params(service.operation(action), params)
    actor = Actor("ana", "AKIATEST", "request")
    call = Call(action, params, world.principal, REGION, actor)
    answer = settled(service.handler(action)(call))
    found = answer.look() if isinstance(answer, Later) else answer
    return found.now() if isinstance(found, Pending) else found


@pytest.mark.parametrize(
    ("service", "action", "path"),
    [
        pytest.param(*one, id=f"{one[0].name}-{one[1]}-{'.'.join(map(str, one[2]))}")
        for one in NUMERIC
    ],
)
def test_a_number_is_refused_in_the_shape_of_aws_or_taken(
    world: World, known: dict[str, Any], service: services.ApiService, action: str, path: Path
) -> None:
    """A 4xx that names what is wrong, or an answer that can be written as JSON; never a failure."""
    shape = service.operation(action).input_shape
    for value in (*NUMBERS, math.inf, -math.inf, math.nan):
        params = json.loads(json.dumps(filled(shape, known, path, None)))
        _put(params, path, value)
        refused, answer = _outcome(lambda params=params: ask(world, service, action, params))
        if refused is None:
            json.dumps(answer, allow_nan=False)
        elif not -(2**63) <= value < 2**63:
            assert refused.code in ("SerializationException", "ValidationException"), value


def _outcome(call: Callable[[], object]) -> tuple[ServiceError | None, object]:
    """Return how a call is refused, which is never our fault, or its answer."""
    try:
        return None, call()
    except ServiceError as error:
        refused = error
    assert 400 <= refused.status < 500, refused
    assert refused.message
    return refused, None


def _put(params: Any, path: Path, value: object) -> None:
    *way, last = path
    for step in way:
        params = params[step]
    params[last] = value


@pytest.mark.parametrize(
    ("action", "member"),
    [
        ("DescribeStateMachine", "stateMachineArn"),
        ("StartExecution", "stateMachineArn"),
        ("DeleteStateMachineVersion", "stateMachineVersionArn"),
        ("ListStateMachineAliases", "stateMachineArn"),
        ("ListExecutions", "stateMachineArn"),
        ("ListTagsForResource", "resourceArn"),
    ],
)
def test_a_version_that_no_database_can_hold_does_not_exist(
    world: World, action: str, member: str
) -> None:
    """Its number stands in an ARN, in as many digits as anybody likes."""
    for number in ("0", "99999999999", "9" * 19, "9" * 30, "9" * 200, "٣"):
        arn = f"{world.machine}:{number}"
        _outcome(lambda arn=arn: world.ask(action, **{member: arn}))


def test_a_number_beyond_all_columns_in_a_map_run(world: World, known: dict[str, Any]) -> None:
    """What is taken by UpdateMapRun is kept by either database."""
    most = {"maxConcurrency": 2**31 - 1, "toleratedFailureCount": 2**31 - 1}
    world.ask("UpdateMapRun", mapRunArn=known["mapRunArn"], **most)
    found = world.ask("DescribeMapRun", mapRunArn=known["mapRunArn"])
    assert {name: found[name] for name in most} == most
