"""The API serves every action of the service model and raises every error that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

import engine
from console.awsapi import services
from console.config import quotas
from console.db import signals
from console.errors import ServiceError
from console.models import Execution, StateMachine
from console.statuses import Topic
from console.store.machines import versions
from tests.console.awsapi.world import (
    ACCOUNT,
    FAIL,
    MODEL,
    World,
    definition,
)
from tests.console.store.helpers import PASS, ROLE, drain

if TYPE_CHECKING:
    from collections.abc import Callable

    Provoke = Callable[[World], object]

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
    ("DeleteStateMachineVersion", "ValidationException"): "nothing but the ARN can be wrong",
    ("DescribeStateMachineAlias", "ValidationException"): "nothing but the ARN can be wrong",
    ("DeleteStateMachineAlias", "ValidationException"): "nothing but the ARN can be wrong",
    ("UpdateStateMachine", "ServiceQuotaExceededException"): "comes with 1,000 versions, as below",
    ("ListStateMachineAliases", "StateMachineDeleting"): "a machine that goes lists what it has",
    ("StopExecution", "ValidationException"): "Express only; InvalidArn says it",
    ("ListStateMachineAliases", "ResourceNotFound"): "StateMachineDoesNotExist says it",
}
"""Error code, or (action, code), -> why no call can raise it."""


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
    return [{"key": f"k{index}", "value": "v"} for index in range(number)]


TOO_WIDE = {"encryptionConfiguration": {"type": "CUSTOMER_MANAGED_KMS_KEY"}}
NO_DESTINATION = {"loggingConfiguration": {"level": "ALL"}}
BROKEN = '{"StartAt": "A"}'


def limited(**numbers: Any) -> Callable[[World], None]:
    """Return what sets quotas."""

    def put(_: World) -> None:
        settings.STATEYARD_QUOTAS = numbers
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
    end = signals.subscribe((Topic.ACTIVITY, world.activity), lambda *_: None)
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
    ("DeleteStateMachine", "ValidationException"): lambda w: w.ask(
        "DeleteStateMachine", stateMachineArn=f"{w.machine}/lab"
    ),
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
        a, taskToken=engine.task_token(settings.STATEYARD_TOKEN_KEY, "nobody's", 3), **m
    )
    SPECIAL[_action, "TaskTimedOut"] = lambda w, a=_action, m=_more: w.ask(
        a, taskToken=w.closed_token(), **m
    )


def provoked(action: str, code: str) -> Provoke | None:
    """Return the call that raises an error, None if nobody knows one."""
    call = SPECIAL.get((action, code))
    if call is not None:
        return call
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


def test_no_excuse_is_out_of_date() -> None:
    """Each error that nobody can raise is one that the model names, for that action."""
    named_by_model = {
        (action, error.name)
        for action in MODEL.operation_names
        for error in MODEL.operation_model(action).error_shapes
    }
    codes = {code for _, code in named_by_model}
    excused = {excuse for excuse in NEVER if excuse not in codes and excuse not in named_by_model}
    assert excused == set()
