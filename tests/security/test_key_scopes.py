"""A key with a scope does what the scope says: every API action, and every state machine.

The tables here are reviewed by hand and stand apart from the product's own. All keys are an
owner's, so whatever is refused is refused by the scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import access
from console.awsapi import services, shapes
from console.db import clock
from console.db.audit import Actor
from console.db.writer import Change
from console.errors import ErrorCode, ServiceError, ValidationException
from console.features.access_keys import key_scopes
from console.models import AccessKey, Membership, Role
from console.models.key_scope import EVERYTHING, NOTHING, ActionSet, KeyScope
from console.store.people import people
from console.store.tasks import activities, claim
from tests.console.store.helpers import ACTIVITY, WAIT, WORK, create, drain, start
from tests.refusals import raises_code
from tests.security.test_rights import API, LEAST, send, served
from tests.security.test_signed_calls import send as send_call
from tests.security.test_signed_calls import signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

    Denied = Callable[..., set[str]]

BY = Actor("owner", "", "test")
READ = {*API["viewer"].split()}
START = READ | {"StartExecution", "StartSyncExecution"}
PLACE = "arn:aws:states:us-east-1:123456789012"
BESIDE_MACHINES = """
    CreateActivity DeleteActivity DescribeActivity GetActivityTask ListActivities ListStateMachines
    SendTaskFailure SendTaskHeartbeat SendTaskSuccess TestState ValidateStateMachineDefinition
"""
"""Actions that name no state machine, execution or Map Run. Answers to tasks name a token."""


def named(machine: str) -> dict[str, Any]:
    """Return parameter -> the thing of a state machine."""
    arn = f"{PLACE}:stateMachine:{machine}"
    return {
        "stateMachineArn": arn,
        "stateMachineVersionArn": f"{arn}:1",
        "stateMachineAliasArn": f"{arn}:live",
        "executionArn": f"{PLACE}:execution:{machine}:run",
        "mapRunArn": f"{PLACE}:mapRun:{machine}/items:6cbb1c8b-4b1c-4b1c-8b1c-4b1c8b1c4b1c",
        "resourceArn": arn,
        "name": machine,
        "routingConfiguration": [{"stateMachineVersionArn": f"{arn}:1", "weight": 100}],
    }


def params_of(service: services.ApiService, action: str, things: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an action that name things."""
    shape = shapes.service_model(service.name).operation_model(action).input_shape
    members = () if shape is None else shape.members
    if action == "StartExecution":  # its name is the execution's
        return {"stateMachineArn": things["stateMachineArn"]}
    return {name: things[name] for name in members if name in things}


@pytest.fixture
def owner(project: Project, django_user_model: Any) -> Any:
    """Return the owner of the project."""
    access.forget_principals()
    user = django_user_model.objects.create_user("owner")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    return user


@pytest.fixture
def key(project: Project, owner: Any) -> Callable[[KeyScope], str]:
    """Return a function: a scope -> the id of a new key."""

    def make(scope: KeyScope) -> str:
        AccessKey.objects.all().delete()
        return people.new_key(owner, project, BY, scope=scope)[0].key_id

    return make


def denied(key_id: str, things: dict[str, Any]) -> set[str]:
    """Return the actions that a key is refused."""
    refused = set()
    for service, action in served():
        try:
            send(service, action, key_id, **params_of(service, action, things))
        except ServiceError as error:
            if "because the scope of access key" in error.message:
                refused.add(service.permission(action))
    return refused


ACTIONS = {service.permission(action) for service, action in served()}


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        (KeyScope(ActionSet.READ), READ),
        (KeyScope(ActionSet.START), START),
        (KeyScope(ActionSet.ALL), ACTIONS),
        (KeyScope(None, frozenset({"StopExecution"})), {"StopExecution"}),
        (KeyScope(None, frozenset({"events:PutEvents"})), {"events:PutEvents"}),
        (NOTHING, set()),
    ],
    ids=["read", "start", "all", "list", "list of another service", "nothing"],
)
def test_a_key_performs_the_actions_of_its_scope(
    key: Callable[[KeyScope], str], scope: KeyScope, allowed: set[str]
) -> None:
    """These and no others, of every service that speaks AWS JSON."""
    assert denied(key(scope), named("orders-1")) == ACTIONS - allowed


@pytest.mark.parametrize("machine", ["orders-1", "refunds", "orders", "Orders-1", "payments"])
@pytest.mark.parametrize("actions", [ActionSet.READ, ActionSet.ALL])
def test_a_key_performs_actions_on_the_state_machines_of_its_scope(
    key: Callable[[KeyScope], str], actions: ActionSet, machine: str
) -> None:
    """Lists of everything, activities and other services are refused, as by IAM."""
    key_id = key(KeyScope(actions, machines=("orders-*", "refunds")))
    names = {name for name in ACTIONS if ":" not in name} - {*BESIDE_MACHINES.split()}
    if actions == ActionSet.READ:
        names &= READ
    allowed = names if machine in ("orders-1", "refunds") else set()
    assert denied(key_id, named(machine)) == ACTIONS - allowed


def test_every_thing_of_a_request_must_be_in_the_scope(key: Callable[[KeyScope], str]) -> None:
    """An alias of an allowed state machine may not lead to another one."""
    key_id = key(KeyScope(machines=("orders-*",)))
    own, foreign = named("orders-1"), named("payments")
    mixed = {**own, "routingConfiguration": foreign["routingConfiguration"]}
    both = [*own["routingConfiguration"], *foreign["routingConfiguration"]]
    assert "UpdateStateMachineAlias" in denied(key_id, mixed)
    assert "CreateStateMachineAlias" in denied(key_id, {**own, "routingConfiguration": both})
    activity = {**own, "resourceArn": f"{PLACE}:activity:orders-1"}
    assert {"TagResource", "ListTagsForResource"} <= denied(key_id, activity)
    odd = {**own, "stateMachineArn": 7, "resourceArn": "orders-1", "executionArn": "a:b:c"}
    assert {"StartExecution", "TagResource", "DescribeExecution"} <= denied(key_id, odd)


def test_an_unread_member_grants_nothing(key: Callable[[KeyScope], str]) -> None:
    """The ARN of an allowed state machine, in an action that takes none."""
    key_id = key(KeyScope(machines=("orders-*",)))
    arn = named("orders-1")["stateMachineArn"]
    for action in ("ListStateMachines", "ListActivities", "TestState", "CreateActivity"):
        with raises_code(ErrorCode.AccessDeniedException):
            send(services.STATES, action, key_id, stateMachineArn=arn)


@pytest.mark.parametrize(
    ("action", "params", "resource"),
    [
        ("StartExecution", {"stateMachineArn": f"{PLACE}:stateMachine:pay"}, "stateMachine:pay"),
        ("DescribeExecution", {"executionArn": f"{PLACE}:execution:pay:x"}, "execution:pay:x"),
        ("ListStateMachines", {}, "stateMachine:*"),
        ("ListActivities", {}, "activity:*"),
        ("CreateStateMachine", {"name": "pay"}, "stateMachine:pay"),
        ("GetActivityTask", {"activityArn": f"{PLACE}:activity:work"}, "activity:work"),
    ],
)
def test_a_refusal_names_action_and_resource(
    key: Callable[[KeyScope], str], action: str, params: dict[str, Any], resource: str
) -> None:
    """In the words of IAM, and with the key whose scope it is."""
    key_id = key(KeyScope(machines=("orders-*",)))
    with pytest.raises(ServiceError) as caught:
        send(services.STATES, action, key_id, **params)
    assert caught.value.message == (
        f"User: owner is not authorized to perform: states:{action} on resource:"
        f" {PLACE}:{resource} because the scope of access key {key_id} does not allow it"
    )


@pytest.mark.postgres_too
def test_the_answer_to_a_task_belongs_to_the_state_machine_that_waits(
    project: Project, key: Callable[[KeyScope], str]
) -> None:
    """A worker's key may be limited to the state machines that it works for."""
    activities.create_activity(project, "us-east-1", "work")
    execution = start(create(project, WORK, "orders-1"))
    drain(execution)
    token = claim.take_activity_task(ACTIVITY, "w").token
    payments = key(KeyScope(machines=("payments",)))
    for action in ("SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"):
        with raises_code(ErrorCode.AccessDeniedException, f"{PLACE}:execution:orders-1:"):
            send(services.STATES, action, payments, taskToken=token, output="1")
    orders = key(KeyScope(machines=("orders-*",)))
    with raises_code(ErrorCode.AccessDeniedException):
        send(services.STATES, "SendTaskSuccess", orders, taskToken="A" * 44, output="1")
    answer = send(services.STATES, "SendTaskSuccess", orders, taskToken=token, output="1")
    assert isinstance(answer, Change)
    assert answer.result() == {}


def test_the_identity_is_told_to_every_key(owner: Any, project: Project) -> None:
    """AWS asks for no permission either."""
    principal = access.Principal(owner, project, Role.OWNER, scope=NOTHING)
    access.authorize(principal, "sts:GetCallerIdentity")
    with pytest.raises(access.Denied):
        access.authorize(principal, "scheduler:GetSchedule")


def test_what_names_no_resource_is_denied_to_a_key_of_some_state_machines(
    owner: Any, project: Project
) -> None:
    """An API that asks for the right alone, today or later, is shut for such a key."""
    scope = KeyScope(machines=("orders-*",))
    principal = access.Principal(owner, project, Role.OWNER, scope=scope)
    for action in sorted(LEAST.keys() - {"sts:GetCallerIdentity"}):
        with pytest.raises(access.Denied):
            access.authorize(principal, action)


def test_a_scope_costs_a_start_no_statement(
    project: Project, key: Callable[[KeyScope], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read with the key, and kept as long."""
    monkeypatch.setattr(access, "_KEPT_S", 3600.0)
    arn = create(project, WAIT, "orders-1").arn
    reads = []
    for scope in (EVERYTHING, KeyScope(ActionSet.START, machines=("orders-*",))):
        key_id = key(scope)
        access.forget_principals()
        with CaptureQueriesContext(connection) as statements:
            for _ in range(2):
                answer = send(services.STATES, "StartExecution", key_id, stateMachineArn=arn)
                assert answer.result()["executionArn"]
        texts = [statement["sql"] for statement in statements.captured_queries]
        reads.append([text.split(" FROM ")[1].split()[0] for text in texts if _reads_rights(text)])
    assert len(reads[0]) == 2
    assert reads[0] == reads[1]


def _reads_rights(statement: str) -> bool:
    is_of_rights = "console_accesskey" in statement or "console_membership" in statement
    return statement.startswith("SELECT") and is_of_rights


def test_an_expired_key_says_so_to_its_holder(
    owner: Any, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8: the end comes at its moment, also for a key that was used just before."""
    ends_ms = clock.now_ms() + 60_000
    row, _ = people.new_key(owner, project, BY, expires_ms=ends_ms)
    assert send(services.STATES, "ListStateMachines", row.key_id)
    monkeypatch.setattr(clock, "now_ms", lambda: ends_ms)
    with raises_code(ErrorCode.ExpiredTokenException, "is expired"):
        send(services.STATES, "ListStateMachines", row.key_id)
    assert access.principal_of_key(row.key_id) is None
    with raises_code(ErrorCode.InvalidSignatureException):
        send_call(signed(row.key_id, "another secret"))
    monkeypatch.undo()
    AccessKey.objects.update(disabled_ms=1)
    access.forget_principals()
    with raises_code(ErrorCode.UnrecognizedClientException):
        send(services.STATES, "ListStateMachines", row.key_id)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"read"',
        "{}",
        '{"actions": "write"}',
        '{"actions": "read", "regions": ["us-east-1"]}',
        '{"actions": 7}',
    ],
)
def test_a_scope_that_cannot_be_read_allows_nothing(text: str) -> None:
    """Also the scope of a later version, with a limit that this one does not know."""
    assert KeyScope.of_text(text) == NOTHING


@pytest.mark.parametrize(
    "scope",
    [
        EVERYTHING,
        NOTHING,
        KeyScope(ActionSet.READ),
        KeyScope(None, frozenset({"StartExecution", "events:PutEvents"}), ("a", "b-*")),
        KeyScope(machines=("orders-*",)),
    ],
)
def test_a_scope_is_kept_as_it_is(scope: KeyScope) -> None:
    """Written into a row and read again."""
    assert KeyScope.of_text(scope.as_text()) == scope


@pytest.mark.parametrize(
    ("actions", "listed", "machines", "words"),
    [
        ("write", [], [], "'write' is not a set of actions (read, start, all)"),
        (None, [], [], "name at least one action"),
        (None, ["StartExecutions"], [], "no action 'StartExecutions'"),
        (None, ["dynamodb:PutItem"], [], "no action 'dynamodb:PutItem'"),
        (None, ["*"], [], "no action '*'"),
        ("read", ["StartExecution"], [], "does not go together"),
        ("all", [], ["or*ders"], "'or*ders' is no name"),
        ("all", [], ["*"], "'*' is no name"),
        ("all", [], ["arn:aws:states:us-east-1:1:stateMachine:x"], "is no name"),
        ("all", [], [f"m{number}" for number in range(51)], "at most 50"),
    ],
)
def test_a_scope_with_something_unknown_is_refused(
    actions: str | None, listed: list[str], machines: list[str], words: str
) -> None:
    """By its name, before a key is made."""
    with pytest.raises(ValidationException) as caught:
        key_scopes.read_scope(actions, listed, machines)
    assert words in str(caught.value)


def test_a_list_may_have_every_action_of_the_api() -> None:
    """With or without the prefix of Step Functions, and the actions on projects."""
    names = {*LEAST} - {"sts:GetCallerIdentity"}
    assert key_scopes.read_scope(None, names, []).listed == names
    prefixed = key_scopes.read_scope(None, ["states:StartExecution"], [])
    assert prefixed.listed == {"StartExecution"}
    further = ["stateyard:CreateProject", "RevealSecrets"]
    assert key_scopes.read_scope(None, further, []).listed == {*further}
    for name in (
        "CreateProject",
        "ViewPages",
        "states",
        "stateyard:StartExecution",
        "s3:GetObject",
    ):
        assert not key_scopes.is_api_action(name), name
