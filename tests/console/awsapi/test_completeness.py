"""Is the whole service model served: every action, every error it names, every field it answers?

(Above 300 lines: one table of the model's actions, errors and fields.)
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

import engine
from console import access, quotas
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call, Later
from console.errors import ServiceError
from console.models import Execution, Membership, Role, StateMachine
from console.store import hints, versions
from console.store.audit import Actor
from tests.console.store.helpers import PASS, ROLE, WAIT, WORK, drain, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.models import Project
    from console.worker import Embedded

    Provoke = Callable[["World"], object]

MODEL = shapes.service()
ACCOUNT = "arn:aws:states:us-east-1:123456789012"
MAP = {
    "StartAt": "M",
    "States": {
        "M": {
            "Type": "Map",
            "Label": "lab",
            "MaxConcurrency": 3,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                "StartAt": "P",
                "States": {"P": {"Type": "Pass", "End": True}},
            },
            "End": True,
        }
    },
}
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "C"}}}
REFERS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Assign": {"v": 1}, "Next": "Q"}}}
REFERS["States"]["Q"] = {"Type": "Pass", "Parameters": {"x.$": "$v"}, "End": True}

NO_KMS = "there is no KMS here: a key is kept and answered, never used"
QUEUED = "changes of one machine wait for each other; none is refused for being concurrent"
NEVER = {
    "KmsAccessDeniedException": NO_KMS,
    "KmsInvalidStateException": NO_KMS,
    "KmsThrottlingException": NO_KMS,
    "InvalidTracingConfiguration": "its only member is a boolean, which the protocol checks",
    ("CreateStateMachine", "ConflictException"): QUEUED,
    ("UpdateStateMachine", "ConflictException"): QUEUED,
    ("DeleteStateMachineAlias", "ConflictException"): QUEUED,
    ("UpdateStateMachineAlias", "ConflictException"): QUEUED,
    ("CreateStateMachine", "StateMachineTypeNotSupported"): "both types are supported",
    ("CreateStateMachineAlias", "InvalidName"): "a pattern of the protocol says it [recorded]",
    ("DeleteStateMachine", "ValidationException"): "nothing but the ARN can be wrong",
    ("DeleteStateMachineVersion", "ValidationException"): "nothing but the ARN can be wrong",
    ("DescribeStateMachineAlias", "ValidationException"): "nothing but the ARN can be wrong",
    ("DeleteStateMachineAlias", "ValidationException"): "nothing but the ARN can be wrong",
    ("UpdateStateMachine", "ServiceQuotaExceededException"): "comes with 1,000 versions, as below",
    ("ListStateMachineAliases", "StateMachineDeleting"): "a machine that goes lists what it has",
    ("StopExecution", "ValidationException"): "Express only; InvalidArn says it",
    ("ListStateMachineAliases", "ResourceNotFound"): "StateMachineDoesNotExist says it",
}
"""Error code, or (action, code), -> why no call can raise it."""


class World:
    """Something of each kind, and a way to call the API in this thread."""

    def __init__(self, project: Project, user: Any) -> None:
        Membership.objects.create(project=project, user=user, role=Role.OWNER)
        self.principal = access.Principal(user, project, Role.OWNER, "AKIATEST")
        self.machine = self.create("machine", REFERS)
        self.activity = self.ask("CreateActivity", name="work")["activityArn"]
        self.count = 0

    def ask(self, action: str, **params: Any) -> dict[str, Any]:
        """Call an action; raise its error."""
        shapes.check(MODEL.operation_model(action), params)
        actor = Actor(self.principal.user.get_username(), self.principal.key_id, "request")
        call = Call(action, params, self.principal, "us-east-1", actor)
        answer = services.STATES.handler(action)(call)
        if isinstance(answer, Later):
            return self.awaited(answer, 5 if action == "StartSyncExecution" else 0)
        return answer

    def awaited(self, answer: Later, seconds: float) -> dict[str, Any]:
        """Return a later answer, or what comes instead when it is not there in time."""
        deadline = time.monotonic() + seconds
        if answer.found is not None:
            return answer.found
        while (found := answer.look()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return answer.otherwise if found is None else found

    def create(self, name: str, definition: Any, **more: Any) -> str:
        """Create a machine and return its ARN."""
        text = json.dumps(definition)
        made = self.ask("CreateStateMachine", name=name, definition=text, roleArn=ROLE, **more)
        arn: str = made["stateMachineArn"]
        return arn

    def fresh(self, definition: Any = WAIT, **more: Any) -> str:
        """Create a machine of a new name."""
        self.count += 1
        return self.create(f"fresh-{self.count}", definition, **more)

    def start(self, machine: str, **more: Any) -> str:
        """Start an execution and return its ARN."""
        arn: str = self.ask("StartExecution", stateMachineArn=machine, **more)["executionArn"]
        return arn

    def deleting(self, **more: Any) -> str:
        """Return a machine that is being deleted."""
        arn = self.fresh(PASS, **more)
        StateMachine.objects.filter(arn=arn).update(status="DELETING")
        return arn

    def version(self, machine: str | None = None) -> str:
        """Publish a version and return its ARN."""
        made = self.ask("PublishStateMachineVersion", stateMachineArn=machine or self.fresh())
        arn: str = made["stateMachineVersionArn"]
        return arn

    def alias(self, version: str | None = None, name: str = "live") -> str:
        """Make an alias of a version and return its ARN."""
        route = routes(version or self.version())
        made = self.ask("CreateStateMachineAlias", name=name, routingConfiguration=route)
        arn: str = made["stateMachineAliasArn"]
        return arn

    def token(self) -> str:
        """Return the token of an open task."""
        arn = self.start(self.fresh(WORK))
        drain(Execution.objects.get(arn=arn))
        token: str = self.ask("GetActivityTask", activityArn=self.activity)["taskToken"]
        return token

    def closed_token(self) -> str:
        """Return the token of a task that has ended."""
        token = self.token()
        self.ask("SendTaskSuccess", taskToken=token, output="1")
        return token


def routes(*versions: str) -> list[dict[str, Any]]:
    """Return a routing configuration with equal weights."""
    weight = 100 // len(versions)
    return [{"stateMachineVersionArn": one, "weight": weight} for one in versions]


@pytest.fixture
def world(project: Project, django_user_model: Any, settings: Any) -> Iterator[World]:
    """Return a project with something of each kind."""
    settings.STEPYARD_QUOTAS = {}
    quotas.forget()
    yield World(project, django_user_model.objects.create_user("ana"))
    quotas.forget()


def test_every_action_is_served() -> None:
    """The service model's 37 actions have a handler each, and no handler is beyond it."""
    assert set(services.STATES.handlers) == set(MODEL.operation_names)


# -- errors ----------------------------------------------------------------------------------------

UNKNOWN_MACHINE = f"{ACCOUNT}:stateMachine:nobody"
UNKNOWN = {
    "stateMachineArn": UNKNOWN_MACHINE,
    "executionArn": f"{ACCOUNT}:execution:nobody:x",
    "activityArn": f"{ACCOUNT}:activity:nobody",
    "mapRunArn": f"{ACCOUNT}:mapRun:nobody/lab:0e1a",
    "resourceArn": UNKNOWN_MACHINE,
    "stateMachineAliasArn": f"{UNKNOWN_MACHINE}:live",
    "stateMachineVersionArn": f"{UNKNOWN_MACHINE}:1",
}
"""Parameter that names a thing -> the ARN of one that is not there."""
FURTHER: dict[str, dict[str, Any]] = {
    "TagResource": {"tags": []},
    "UntagResource": {"tagKeys": ["k"]},
    "UpdateMapRun": {"maxConcurrency": 1},
    "UpdateStateMachine": {"roleArn": ROLE},
    "UpdateStateMachineAlias": {"description": "d"},
}
"""What an action needs beside the thing it acts on."""


def naming(action: str) -> str:
    """Return the parameter that names the thing an action acts on."""
    members = MODEL.operation_model(action).input_shape.members
    return next(name for name in UNKNOWN if name in members)


def named(action: str, arn: str) -> Provoke:
    """Return a call of an action on something."""
    return lambda world: world.ask(action, **{naming(action): arn}, **FURTHER.get(action, {}))


def listed(action: str) -> Provoke:
    """Return a call of a list action with a token that is none."""

    def ask(world: World) -> object:
        members = MODEL.operation_model(action).input_shape.members
        whose = {
            "stateMachineArn": world.machine,
            "executionArn": None,
        }
        params = {name: arn for name, arn in whose.items() if name in members and arn}
        if "executionArn" in members:
            params["executionArn"] = world.start(world.machine)
        return world.ask(action, **params, nextToken="nonsense")

    return ask


def many(number: int) -> list[dict[str, str]]:
    """Return so many tags."""
    return [{"key": f"k{one}", "value": "v"} for one in range(number)]


def definition(value: Any) -> str:
    """Return a definition's text."""
    return json.dumps(value)


TOO_WIDE = {"encryptionConfiguration": {"type": "CUSTOMER_MANAGED_KMS_KEY"}}
NO_DESTINATION = {"loggingConfiguration": {"level": "ALL"}}
BROKEN = '{"StartAt": "A"}'


def limited(**found: Any) -> Callable[[World], None]:
    """Return what sets quotas."""

    def put(_: World) -> None:
        settings.STEPYARD_QUOTAS = found
        quotas.forget()

    return put


def after(setup: Callable[[World], object], act: Provoke) -> Provoke:
    """Return a call after something else."""

    def both(world: World) -> object:
        setup(world)
        return act(world)

    return both


def crowded(world: World) -> object:
    """Poll an activity beside as many others as may."""
    limited(activity_pollers=1)(world)
    end = hints.listen(("activity", world.activity), lambda *_: None)
    try:
        return world.ask("GetActivityTask", activityArn=world.activity)
    finally:
        end()


def full_of_versions(world: World) -> object:
    """Publish beyond what a machine may have."""
    machine = world.fresh()
    most, versions._MAX_VERSIONS = versions._MAX_VERSIONS, 0
    try:
        return world.version(machine)
    finally:
        versions._MAX_VERSIONS = most


def full_of_aliases(world: World) -> object:
    """Make an alias beyond what a machine may have."""
    most, versions._MAX_ALIASES = versions._MAX_ALIASES, 0
    try:
        return world.alias()
    finally:
        versions._MAX_ALIASES = most


def create(**more: Any) -> Provoke:
    """Return a CreateStateMachine that differs from a good one."""
    good = {"name": "new", "definition": definition(PASS), "roleArn": ROLE}
    return lambda world: world.ask("CreateStateMachine", **{**good, **more})


def update(**more: Any) -> Provoke:
    """Return an UpdateStateMachine of a machine that is there."""
    return lambda world: world.ask("UpdateStateMachine", stateMachineArn=world.machine, **more)


def begin(**more: Any) -> Provoke:
    """Return a StartExecution of a machine that is there."""
    return lambda world: world.ask("StartExecution", stateMachineArn=world.machine, **more)


def sync(**more: Any) -> Provoke:
    """Return a StartSyncExecution of an Express machine."""

    def ask(world: World) -> object:
        machine = world.fresh(PASS, type="EXPRESS")
        return world.ask("StartSyncExecution", **{"stateMachineArn": machine, **more})

    return ask


def trial(**more: Any) -> Provoke:
    """Return a TestState of a Pass."""
    good = {"definition": definition({"Type": "Pass", "End": True})}
    return lambda world: world.ask("TestState", **{**good, **more})


def again(world: World) -> object:
    """Start under a name that is taken, with another input."""
    world.start(world.machine, name="x", input="1")
    return world.ask("StartExecution", stateMachineArn=world.machine, name="x", input="2")


def used_version(world: World) -> object:
    """Delete a version that an alias leads to."""
    version = world.version()
    world.alias(version)
    return world.ask("DeleteStateMachineVersion", stateMachineVersionArn=version)


def taken_alias(world: World) -> object:
    """Make an alias of a name that is taken, for something else."""
    machine = world.fresh()
    world.alias(world.version(machine))
    world.ask("UpdateStateMachine", stateMachineArn=machine, definition=definition(PASS))
    return world.alias(world.version(machine))


def deleting_alias(world: World) -> object:
    """Change an alias of a machine that is being deleted."""
    alias = world.alias()
    StateMachine.objects.filter(arn=alias.rpartition(":")[0]).update(status="DELETING")
    return world.ask("UpdateStateMachineAlias", stateMachineAliasArn=alias, description="d")


def deleting_version(world: World) -> object:
    """Make an alias on a machine that is being deleted."""
    version = world.version()
    StateMachine.objects.filter(arn=version.rpartition(":")[0]).update(status="DELETING")
    return world.alias(version)


def not_redrivable(world: World) -> object:
    """Redrive what still runs."""
    return world.ask("RedriveExecution", executionArn=world.start(world.fresh()))


def redriven_beyond(world: World) -> object:
    """Redrive where as many executions run as may."""
    arn = world.start(world.fresh(FAIL))
    drain(Execution.objects.get(arn=arn))
    limited(open_executions=0)(world)
    return world.ask("RedriveExecution", executionArn=arn)


def express_list(world: World) -> object:
    """List the executions of an Express machine."""
    machine = world.fresh(PASS, type="EXPRESS")
    return world.ask("ListExecutions", stateMachineArn=machine)


SPECIAL: dict[tuple[str, str], Provoke] = {
    ("CreateActivity", "ActivityLimitExceeded"): after(
        limited(activities=1), lambda w: w.ask("CreateActivity", name="more")
    ),
    ("CreateActivity", "ActivityAlreadyExists"): lambda w: w.ask(
        "CreateActivity",
        name="work",
        encryptionConfiguration={"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "k"},
    ),
    ("CreateActivity", "InvalidName"): lambda w: w.ask("CreateActivity", name="a b"),
    ("CreateActivity", "TooManyTags"): lambda w: w.ask("CreateActivity", name="t", tags=many(51)),
    ("CreateActivity", "InvalidEncryptionConfiguration"): lambda w: w.ask(
        "CreateActivity", name="e", **TOO_WIDE
    ),
    ("CreateStateMachine", "InvalidArn"): create(roleArn="nonsense"),
    ("CreateStateMachine", "InvalidDefinition"): create(definition=BROKEN),
    ("CreateStateMachine", "InvalidName"): create(name="a b"),
    ("CreateStateMachine", "InvalidLoggingConfiguration"): create(**NO_DESTINATION),
    ("CreateStateMachine", "InvalidEncryptionConfiguration"): create(**TOO_WIDE),
    ("CreateStateMachine", "StateMachineAlreadyExists"): create(name="machine"),
    ("CreateStateMachine", "StateMachineLimitExceeded"): after(limited(state_machines=1), create()),
    ("CreateStateMachine", "StateMachineDeleting"): lambda w: create(
        name=w.deleting().rpartition(":")[2]
    )(w),
    ("CreateStateMachine", "TooManyTags"): create(tags=many(51)),
    ("CreateStateMachine", "ValidationException"): create(versionDescription="d"),
    ("CreateStateMachineAlias", "InvalidArn"): lambda w: w.alias("nonsense:1"),
    ("CreateStateMachineAlias", "ValidationException"): lambda w: w.ask(
        "CreateStateMachineAlias", name="a", routingConfiguration=[]
    ),
    ("CreateStateMachineAlias", "StateMachineDeleting"): deleting_version,
    ("CreateStateMachineAlias", "ResourceNotFound"): lambda w: w.alias(f"{w.machine}:7"),
    ("CreateStateMachineAlias", "ConflictException"): taken_alias,
    ("CreateStateMachineAlias", "ServiceQuotaExceededException"): full_of_aliases,
    ("DeleteStateMachineVersion", "ConflictException"): used_version,
    ("GetActivityTask", "ActivityWorkerLimitExceeded"): crowded,
    ("ListExecutions", "StateMachineTypeNotSupported"): express_list,
    ("ListExecutions", "ValidationException"): lambda w: w.ask("ListExecutions"),
    ("ListExecutions", "ResourceNotFound"): lambda w: w.ask(
        "ListExecutions", mapRunArn=UNKNOWN["mapRunArn"]
    ),
    ("ListStateMachineVersions", "ValidationException"): lambda w: w.ask(
        "ListStateMachineVersions", stateMachineArn=w.machine, maxResults=1001
    ),
    ("PublishStateMachineVersion", "ValidationException"): lambda w: w.ask(
        "PublishStateMachineVersion", stateMachineArn=w.machine, description="d" * 257
    ),
    ("PublishStateMachineVersion", "StateMachineDeleting"): lambda w: w.version(w.deleting()),
    ("PublishStateMachineVersion", "ServiceQuotaExceededException"): full_of_versions,
    ("PublishStateMachineVersion", "ConflictException"): lambda w: w.ask(
        "PublishStateMachineVersion", stateMachineArn=w.machine, revisionId="other"
    ),
    ("RedriveExecution", "ExecutionNotRedrivable"): not_redrivable,
    ("RedriveExecution", "ExecutionLimitExceeded"): redriven_beyond,
    ("RedriveExecution", "ValidationException"): lambda w: w.ask(
        "RedriveExecution", executionArn=UNKNOWN["executionArn"], clientToken="c" * 65
    ),
    ("SendTaskSuccess", "InvalidOutput"): lambda w: w.ask(
        "SendTaskSuccess", taskToken=w.token(), output="{not"
    ),
    ("StartExecution", "ExecutionLimitExceeded"): after(limited(open_executions=0), begin()),
    ("StartExecution", "ExecutionAlreadyExists"): again,
    ("StartExecution", "InvalidExecutionInput"): begin(input="{not"),
    ("StartExecution", "InvalidName"): begin(name="a b"),
    ("StartExecution", "StateMachineDeleting"): lambda w: w.start(w.deleting()),
    ("StartExecution", "ValidationException"): lambda w: w.ask("StartExecution"),
    ("StartSyncExecution", "InvalidExecutionInput"): sync(input="{not"),
    ("StartSyncExecution", "InvalidName"): sync(name="a b"),
    ("StartSyncExecution", "StateMachineDeleting"): lambda w: w.ask(
        "StartSyncExecution", stateMachineArn=w.deleting(type="EXPRESS")
    ),
    ("StartSyncExecution", "StateMachineTypeNotSupported"): lambda w: w.ask(
        "StartSyncExecution", stateMachineArn=w.machine
    ),
    ("TagResource", "TooManyTags"): lambda w: w.ask(
        "TagResource", resourceArn=w.machine, tags=many(51)
    ),
    ("TestState", "InvalidArn"): trial(
        definition=definition({"Type": "Pass", "End": True}), roleArn="nonsense"
    ),
    ("TestState", "InvalidDefinition"): trial(definition="{}"),
    ("TestState", "InvalidExecutionInput"): trial(input="{not"),
    ("TestState", "ValidationException"): trial(stateName="other"),
    ("UpdateMapRun", "ValidationException"): lambda w: w.ask(
        "UpdateMapRun", mapRunArn=UNKNOWN["mapRunArn"], maxConcurrency=-1
    ),
    ("UpdateStateMachine", "InvalidDefinition"): update(definition=BROKEN),
    ("UpdateStateMachine", "InvalidLoggingConfiguration"): update(**NO_DESTINATION),
    ("UpdateStateMachine", "InvalidEncryptionConfiguration"): update(roleArn=ROLE, **TOO_WIDE),
    ("UpdateStateMachine", "MissingRequiredParameter"): update(),
    ("UpdateStateMachine", "StateMachineDeleting"): lambda w: w.ask(
        "UpdateStateMachine", stateMachineArn=w.deleting(), roleArn=ROLE
    ),
    ("UpdateStateMachine", "ValidationException"): update(roleArn=ROLE, versionDescription="d"),
    ("UpdateStateMachineAlias", "ValidationException"): lambda w: w.ask(
        "UpdateStateMachineAlias", stateMachineAliasArn=w.alias(), routingConfiguration=[]
    ),
    ("UpdateStateMachineAlias", "StateMachineDeleting"): deleting_alias,
    ("ValidateStateMachineDefinition", "ValidationException"): lambda w: w.ask(
        "ValidateStateMachineDefinition", definition="{}", type="OTHER"
    ),
}
for _action in ("SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"):
    _more = {"output": "1"} if _action == "SendTaskSuccess" else {}
    SPECIAL[_action, "InvalidToken"] = lambda w, a=_action, m=_more: w.ask(a, taskToken="?", **m)
    SPECIAL[_action, "TaskDoesNotExist"] = lambda w, a=_action, m=_more: w.ask(
        a, taskToken=engine.task_token(settings.STEPYARD_TOKEN_KEY, "nobody's", 3), **m
    )
    SPECIAL[_action, "TaskTimedOut"] = lambda w, a=_action, m=_more: w.ask(
        a, taskToken=w.closed_token(), **m
    )


def provoked(action: str, code: str) -> Provoke | None:
    """Return the call that raises an error, None if nobody knows one."""
    found = SPECIAL.get((action, code))
    if found is not None:
        return found
    if code == "InvalidArn":
        return named(action, "nonsense")
    if code == "InvalidToken":
        return listed(action)
    if code.endswith("DoesNotExist") or code == "ResourceNotFound":
        return named(action, UNKNOWN[naming(action)])
    return None


def pairs() -> list[tuple[str, str]]:
    """Return every action with every error its model names, but for those nobody can raise."""
    return [
        (action, error.name)
        for action in MODEL.operation_names
        for error in MODEL.operation_model(action).error_shapes
        if error.name not in NEVER and (action, error.name) not in NEVER
    ]


@pytest.mark.parametrize(("action", "code"), pairs())
def test_every_documented_error_is_raised(world: World, action: str, code: str) -> None:
    """One call for each error that the model names for an action."""
    call = provoked(action, code)
    assert call is not None, "no call is known to raise it"
    with pytest.raises(ServiceError) as caught:
        call(world)
    assert caught.value.code == code


# -- answers ---------------------------------------------------------------------------------------


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
    _others(world, ask)
    return seen


def _machines(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    made = ask(
        "CreateStateMachine",
        name="all",
        definition=definition(MAP),
        roleArn=ROLE,
        publish=True,
        versionDescription="first",
    )
    version = made["stateMachineVersionArn"]
    ask("DescribeStateMachine", stateMachineArn=version)
    ask("DescribeStateMachine", stateMachineArn=f"{made['stateMachineArn']}/lab")
    changed = {"definition": definition(REFERS), "publish": True}
    ask("UpdateStateMachine", stateMachineArn=made["stateMachineArn"], **changed)
    ask("DescribeStateMachine", stateMachineArn=made["stateMachineArn"])
    updated = world.start(made["stateMachineArn"])
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
        ask(action, stateMachineArn=made["stateMachineArn"], maxResults=1)
    ask("ListStateMachines", maxResults=1)
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
    ended(Execution.objects.get(arn=failed))
    ask("DescribeExecution", executionArn=failed)
    for inner in (PASS, FAIL):
        machine = world.fresh(inner, type="EXPRESS")
        ask("StartSyncExecution", stateMachineArn=machine, traceHeader="Root=1")


def _map_runs(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    state = {**MAP["States"]["M"], "ToleratedFailurePercentage": 50}
    inner = {"StartAt": "P", "States": {"P": FAIL["States"]["F"]}}
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


def _others(world: World, ask: Callable[..., dict[str, Any]]) -> None:
    ask("CreateActivity", name="second")
    ask("ListActivities", maxResults=1)
    ask("DescribeActivity", activityArn=world.activity)
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


def members(action: str) -> set[str]:
    """Return the fields that the model gives an action's answer."""
    shape = MODEL.operation_model(action).output_shape
    return set(shape.members) if shape else set()


def test_every_field_is_answered(world: World, worker: Embedded) -> None:
    """Over these calls, each member of each answer of the model has been there."""
    del worker
    seen: dict[str, set[str]] = {action: set() for action in MODEL.operation_names}
    for action, answer in answers(world):
        assert set(answer) <= members(action), f"{action} answers what the model does not have"
        seen[action] |= set(answer)
    seen["GetActivityTask"] |= {"taskToken", "input"}  # taken above, until there was one
    missing = {
        (action, name)
        for action in MODEL.operation_names
        for name in members(action) - seen[action]
    }
    assert missing == set()
