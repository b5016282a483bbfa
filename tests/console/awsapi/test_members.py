"""Each member of each served action is read or refused: a walk over botocore's models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi import members, services
from console.awsapi.members import Only
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.db.writer import Change, settled
from console.errors import ServiceError
from console.models import Execution
from console.own_api import LongPoll
from tests.console.awsapi.requests import GROUP, Path, ask, filled
from tests.console.store.helpers import PASS, REGION, drain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import Shape

    from console.awsapi.services import ApiService
    from tests.console.awsapi.world import World

ACTIONS = [
    pytest.param(service, action, id=f"{service.name}-{action}")
    for service in (*services.SERVICES, services.SCHEDULER, services.STS)
    for action in sorted(service.handlers)
]


def tree_of(service: ApiService, action: str) -> members.Tree:
    """Return the declared members of an action."""
    return members.declared_members(service.handlers[action])


def element(shape: Shape) -> Shape:
    """Return the shape of the items of a list, the shape itself for everything else."""
    return element(shape.member) if shape.type_name == "list" else shape


def steps(shape: Shape) -> Path:
    """Return the steps from a member to what its members stand in."""
    return (0, *steps(shape.member)) if shape.type_name == "list" else ()


def unserved(shape: Shape, tree: members.Tree, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path of each member that is not declared, with a value that must be refused."""
    for name, member in shape.members.items():
        served = tree.get(name)
        inner = element(member)
        if served is None:
            yield (*path, name), full(member)
        elif isinstance(served, Only):
            other = not served.value if isinstance(served.value, bool) else "OTHER"
            yield (*path, name), other
        elif served and inner.type_name == "structure":
            yield from unserved(inner, served, (*path, name, *steps(member)))


def full(shape: Shape, above: tuple[str, ...] = ()) -> Any:
    """Return a value of a shape that says something in each of its members."""
    kind = shape.type_name
    if kind == "structure":
        inner = {
            name: full(member, (*above, shape.name))
            for name, member in shape.members.items()
            if shape.name not in above
        }
        return inner or {"x": {}}
    if kind == "list":
        return [full(shape.member, above)]
    if kind == "map":
        return {"key": full(shape.value, above)}
    return {"boolean": True, "string": "x"}.get(kind, 1)


def nested(path: Path, value: Any) -> Any:
    """Return a request in which only the path has something."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def spelled(path: Path) -> str:
    """Return a path as an error spells it."""
    return ".".join("1.member" if isinstance(step, int) else step for step in path)


@pytest.mark.parametrize(("service", "action"), ACTIONS)
def test_a_declared_member_is_one_of_the_model(service: ApiService, action: str) -> None:
    """A slip in a declaration, and a model that is too old, are seen."""

    def check(shape: Shape, tree: members.Tree) -> None:
        assert set(tree) <= set(shape.members)
        for name, served in tree.items():
            if isinstance(served, dict) and served:
                check(element(shape.members[name]), served)

    shape = service.operation(action).input_shape
    check(shape, tree_of(service, action))


@pytest.mark.parametrize(("service", "action"), ACTIONS)
def test_a_member_that_is_not_declared_is_refused_by_name(service: ApiService, action: str) -> None:
    """Also inside lists and structures; with the service's own code."""
    shape = service.operation(action).input_shape
    for path, value in unserved(shape, tree_of(service, action)):
        with pytest.raises(ServiceError, match=f"'{spelled(path)}'") as caught:
            service.check_members(action, nested(path, value))
        assert caught.value.code == service.invalid_member


def structures(tree: members.Tree, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every declared structure."""
    yield path
    for name, inner in tree.items():
        if isinstance(inner, dict) and inner:
            yield from structures(inner, (*path, name))


@pytest.mark.parametrize(("service", "action"), ACTIONS)
def test_a_member_that_the_model_does_not_have_is_refused_by_name(
    service: ApiService, action: str
) -> None:
    """A newer SDK may send what AWS would act on."""
    for path in structures(tree_of(service, action)):
        with pytest.raises(ServiceError, match="newMember"):
            service.check_members(action, nested((*path, "newMember"), 1))
        service.check_members(action, nested((*path, "newMember"), None))


@pytest.mark.parametrize(
    ("service", "action", "member", "value"),
    [
        (services.CLOUDWATCH, "PutMetricAlarm", "EvaluationWindow", {"SlidingWindow": {}}),
        (
            services.CLOUDWATCH,
            "PutMetricAlarm",
            "WarmUpConfiguration",
            {"WarmUpPeriodDurationInMinutes": 5},
        ),
        (
            services.CLOUDWATCH,
            "PutMetricAlarm",
            "ActionConfiguration",
            {"AlarmTagsPropagation": {"Enabled": True}},
        ),
        (services.LOGS, "FilterLogEvents", "startFromHead", False),
        (services.LOGS, "CreateLogGroup", "kmsKeyId", "arn:aws:kms:us-east-1:1:key/k"),
        (services.EVENTS, "PutEvents", "EndpointId", "abcde.veo"),
    ],
)
def test_members_that_were_once_dropped_are_refused(
    service: ApiService, action: str, member: str, value: Any
) -> None:
    """Each was accepted and changed nothing."""
    with pytest.raises(ServiceError, match=f"'{member}'"):
        service.check_members(action, {member: value})


@pytest.mark.parametrize(
    ("service", "action", "sent"),
    [
        (services.CLOUDWATCH, "GetMetricData", {"LabelOptions": {"Timezone": "+0200"}}),
        (services.LOGS, "CreateLogGroup", {"tags": {"team": "orders"}}),
    ],
)
def test_members_that_clients_always_send_change_nothing(
    service: ApiService, action: str, sent: dict[str, Any]
) -> None:
    """Grafana sends the one, Terraform with default tags the other."""
    service.check_members(action, sent)


class Recorder(dict[str, Any]):
    """A request that notes which of its members are asked for by name."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        """Note the name."""
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Note the name."""
        self.read.add(name)
        return super().get(name, default)


INSTEAD = {
    "logGroupIdentifier": "logGroupName",
    "mapRunArn": "stateMachineArn",
    "ExtendedStatistic": "Statistic",
    "redriveFilter": "stateMachineArn",
}
"""Member -> the member that must be absent for it to be read."""


def request(
    world: World, samples: dict[str, Any], service: ApiService, action: str, member: str
) -> dict[str, Any]:
    """Return a request that has a member and goes as far as its handler reads it."""
    shape = service.operation(action).input_shape
    params: dict[str, Any] = filled(shape, samples, (), None)
    if action == "StartSyncExecution":
        params["stateMachineArn"] = world.fresh(PASS, type="EXPRESS")
    if action == "TestState":
        params["definition"] = json.dumps({"Type": "Pass", "End": True})
    if action == "GetMetricData":
        params["MetricDataQueries"] = [{"Id": "a", "MetricStat": samples["MetricStat"]}]
    if action == "ListExecutions" and member not in ("redriveFilter", "mapRunArn"):
        del params["mapRunArn"]
    if action == "CreateStateMachine":
        params["name"] = member
    if action == "GetLogEvents":
        group, stream = logged(world)
        params |= {"logGroupName": group, "logStreamName": stream}
    params[member] = params.get(member) or samples.get(member) or full(shape.members[member])
    params.pop(INSTEAD.get(member, ""), None)
    return params


def logged(world: World) -> tuple[str, str]:
    """Return a log group with a stream in it."""
    arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{GROUP}:*"
    destination = {"cloudWatchLogsLogGroup": {"logGroupArn": arn}}
    logging = {"level": "ALL", "includeExecutionData": True, "destinations": [destination]}
    machine = world.fresh(PASS, loggingConfiguration=logging)
    drain(Execution.objects.get(arn=world.start(machine)))
    answer = ask(world, services.LOGS, "DescribeLogStreams", {"logGroupName": GROUP})
    return GROUP, answer["logStreams"][0]["logStreamName"]


@pytest.mark.parametrize(("service", "action"), ACTIONS)
@pytest.mark.postgres_too
def test_a_declared_member_is_read(
    world: World, samples: dict[str, Any], service: ApiService, action: str
) -> None:
    """Its handler asks for it by name, whatever comes of the call."""
    ignored = members._IGNORED[service.handlers[action]]
    for member, served in tree_of(service, action).items():
        if member in ignored or isinstance(served, Only):
            continue
        recorder = Recorder(request(world, samples, service, action, member))
        actor = Actor("ana", "AKIATEST", "request")
        call = Call(action, recorder, world.principal, REGION, actor)
        try:
            answer = settled(service.handlers[action](call))
            answer = answer.look() if isinstance(answer, LongPoll) else answer
            if isinstance(answer, Change):
                answer.result()
        except ServiceError:
            pass
        assert member in recorder.read, member
