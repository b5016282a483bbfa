"""Every action accepts any number or refuses it in AWS's shape."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi import services
from tests.console.awsapi.requests import Path, ask, filled, outcome, put
from tests.extremes import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import Shape

    from tests.console.awsapi.world import World

_KINDS = frozenset({"integer", "long", "float", "double", "timestamp"})


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


@pytest.mark.parametrize(
    ("service", "action", "path"),
    [
        pytest.param(*case, id=f"{case[0].name}-{case[1]}-{'.'.join(map(str, case[2]))}")
        for case in NUMERIC
    ],
)
@pytest.mark.postgres_too
@pytest.mark.slow
def test_a_number_is_refused_in_the_shape_of_aws_or_taken(
    world: World, samples: dict[str, Any], service: services.ApiService, action: str, path: Path
) -> None:
    """A 4xx that names what is wrong, or an answer that can be written as JSON; never a failure."""
    shape = service.operation(action).input_shape
    for value in (*NUMBERS, math.inf, -math.inf, math.nan):
        params = json.loads(json.dumps(filled(shape, samples, path, None)))
        put(params, path, value)
        refused, answer = outcome(lambda params=params: ask(world, service, action, params))
        if refused is None:
            json.dumps(answer, allow_nan=False)
        elif not -(2**63) <= value < 2**63:
            assert refused.code in ("SerializationException", "ValidationException"), value


EVERY = [
    pytest.param(service, action, id=f"{service.name}-{action}")
    for service in (*services.SERVICES, services.SCHEDULER)
    for action in sorted(service.handlers)
]


def texts_in(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """Yield the way to every text in a shape."""
    if shape.type_name == "string":
        yield path, shape
    elif shape.type_name == "structure" and len(path) < 8:
        for name, member in shape.members.items():
            yield from texts_in(member, (*path, name))
    elif shape.type_name == "list":
        yield from texts_in(shape.member, (*path, 0))


@pytest.mark.parametrize(("service", "action"), EVERY)
@pytest.mark.postgres_too
@pytest.mark.slow
def test_a_request_without_one_of_its_members_is_refused_or_taken(
    world: World, samples: dict[str, Any], service: services.ApiService, action: str
) -> None:
    """Each member that a good request has, also what the model does not require."""
    whole = filled(service.operation(action).input_shape, samples, (), None)
    for member in whole:
        params = {name: value for name, value in whole.items() if name != member}
        for lacking in (params, params | {member: None}):
            outcome(lambda lacking=lacking: ask(world, service, action, lacking))
    outcome(lambda: ask(world, service, action, {}))


@pytest.mark.parametrize(("service", "action"), EVERY)
@pytest.mark.postgres_too
@pytest.mark.slow
def test_a_text_that_is_none_of_its_values_or_has_a_nul_is_refused_or_taken(
    world: World, samples: dict[str, Any], service: services.ApiService, action: str
) -> None:
    """In each text of a request: no database fails, and no enum is looked up in vain."""
    shape = service.operation(action).input_shape
    for path, text in texts_in(shape):
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        good = samples.get(name) or (text.metadata.get("enum") or ["x"])[0]
        for value in ("WRONG", f"{good}\x00", "\x00", "a" * 3_000, "\U0001f600" * 2):
            params = json.loads(json.dumps(filled(shape, samples, path, None)))
            put(params, path, value)
            outcome(lambda params=params: ask(world, service, action, params))


@pytest.mark.parametrize("member", ["EvaluationPeriods", "ComparisonOperator", "Threshold"])
@pytest.mark.postgres_too
def test_an_alarm_on_a_metric_has_members_that_the_model_does_not_require(
    world: World, samples: dict[str, Any], member: str
) -> None:
    """The model leaves them out for alarms of other kinds."""
    names = ("AlarmName", "MetricName", "Namespace", "Statistic", "Period", "Dimensions")
    more = ("EvaluationPeriods", "ComparisonOperator", "Threshold")
    params = {name: samples[name] for name in (*names, *more) if name != member}
    refused, _ = outcome(lambda: ask(world, services.CLOUDWATCH, "PutMetricAlarm", params))
    assert refused is not None
    assert refused.code == "MissingParameter"
    assert member in refused.message


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
@pytest.mark.postgres_too
def test_a_version_that_no_database_can_hold_does_not_exist(
    world: World, action: str, member: str
) -> None:
    """Its number stands in an ARN, in as many digits as anybody likes."""
    for number in ("0", "99999999999", "9" * 19, "9" * 30, "9" * 200, "٣"):
        arn = f"{world.machine}:{number}"
        outcome(lambda arn=arn: world.ask(action, **{member: arn}))


@pytest.mark.postgres_too
def test_a_number_beyond_all_columns_in_a_map_run(world: World, samples: dict[str, Any]) -> None:
    """What is taken by UpdateMapRun is kept by either database."""
    most = {"maxConcurrency": 2**31 - 1, "toleratedFailureCount": 2**31 - 1}
    world.ask("UpdateMapRun", mapRunArn=samples["mapRunArn"], **most)
    answer = world.ask("DescribeMapRun", mapRunArn=samples["mapRunArn"])
    assert {name: answer[name] for name in most} == most
