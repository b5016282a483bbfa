"""Many state machines of a branch are compared and changed by one call, as by AWS's API."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import access
from console.awsapi import in_process
from console.config import quotas
from console.db import project_settings
from console.db.audit import Actor
from console.db.writer import settled
from console.errors import ServiceError
from console.features.branches import deployments
from console.features.projects import store as projects
from console.features.versions.definition_diff import DEPLOYED
from console.models import AuditEntry, MachineRevision, Project, StateMachine
from console.models.key_scope import ActionSet, KeyScope
from console.own_api import Caller
from console.store.machines import machines, tags
from console.store.people import people
from tests.console.store.helpers import PASS, REGION, ROLE, create, one
from tests.features.branches.conftest import BY
from tests.features.projects.test_api import call

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = json.dumps(PASS)
OTHER = json.dumps(one("Q", Type="Pass"))
CALLS_FUNCTION = json.dumps(
    one("L", Type="Task", Resource="arn:aws:lambda:us-east-1:222222222222:function:no-such")
)
ARN = "arn:aws:states:us-east-1:222222222222:stateMachine:{}"
Change = list[tuple[str, dict[str, Any]]]


def creation(name: str = "new", **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a call that creates a state machine."""
    return "CreateStateMachine", {"name": name, "definition": PLAIN, "roleArn": ROLE, **more}


def update(name: str = "plain", **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a call that changes a state machine."""
    return "UpdateStateMachine", {"stateMachineArn": ARN.format(name), **more}


def tagging(name: str = "plain", **values: str) -> tuple[str, dict[str, Any]]:
    """Return a call that sets tags."""
    listed = [{"key": key, "value": value} for key, value in values.items()]
    return "TagResource", {"resourceArn": ARN.format(name), "tags": listed}


def deploy(key: str, *changes: Change, status: int = 200) -> Any:
    """Send changes; return the answers."""
    sent = [[{"action": name, "parameters": params} for name, params in each] for each in changes]
    answer = call(key, "POST", "/api/branches/deploy", {"machines": sent})
    assert answer[0] == status, answer
    return answer[1]["machines"]


def principal_of(key: str) -> access.Principal:
    """Return who has a key."""
    principal = access.principal_of_key(key)
    assert principal is not None
    return principal


def answer_of_aws(key: str, change: Change) -> dict[str, Any]:
    """Return the answer of AWS's API to the calls of a change, the first error if there is one."""
    caller = Caller(principal_of(key), BY, REGION)
    try:
        for action, params in change:
            settled(in_process.answer(caller, action, params))
    except ServiceError as error:
        return {"__type": error.code, "message": error.message}
    return {"warnings": []}


def rows_of(project: Project) -> list[Any]:
    """Return what state machines and their revisions, tags and audit are, but for times."""
    left_out = {"id", "created_ms", "updated_ms", "revision_id", "saved_ms", "state_machine_id"}
    left_out |= {"at_ms", "key_id", "request_id"}
    stored = StateMachine.objects.filter(project=project).order_by("name")
    groups: list[Any] = [
        *stored.values(),
        *MachineRevision.objects.filter(state_machine__in=stored)
        .order_by("state_machine__name", "number")
        .values(),
        *AuditEntry.objects.filter(project=project, target__contains=":stateMachine:")
        .order_by("target", "pk")
        .values(),
    ]
    shown = [{name: row[name] for name in row.keys() - left_out} for row in groups]
    return [*shown, *(tags.get_tags(row.arn) for row in stored)]


CHANGES: list[list[Change]] = [
    [[creation(tags=[{"key": "a", "value": "b"}])], [creation("second", type="EXPRESS")]],
    [[creation(tracingConfiguration={"enabled": True})]],
    [[update(definition=OTHER, roleArn=ROLE), tagging(a="b", team="x")]],
    [[update(roleArn=ROLE.replace("test", "another"))]],
    [[update(tracingConfiguration={"enabled": True})]],
    [[update(definition=PLAIN, roleArn=ROLE)]],
    [[tagging(a="c")], [creation()]],
    [[("UntagResource", {"resourceArn": ARN.format("plain"), "tagKeys": ["team"]})]],
    [[creation("plain")]],
]


@pytest.mark.postgres_too
@pytest.mark.parametrize("changes", CHANGES)
def test_the_rows_are_those_of_the_same_calls_of_aws(
    payments: Project, key_of: Callable[[str], str], changes: list[Change]
) -> None:
    """State machines, revisions, tags and audit; also of one that is older than revisions."""
    key = key_of("olga")

    def begin() -> None:
        StateMachine.objects.all().delete()
        MachineRevision.objects.all().delete()
        AuditEntry.objects.filter(target__contains=":stateMachine:").delete()
        machine = create(payments, PASS, "plain")
        tags.remove_tags(machine.arn, ["a", "team", DEPLOYED])
        tags.put_tags(machine.arn, {"team": "x"})

    begin()
    expected = [answer_of_aws(key, each) for each in changes]
    rows = rows_of(payments)
    begin()
    assert deploy(key, *changes) == expected
    assert rows_of(payments) == rows
    assert not any("__type" in each for each in expected)


REFUSED: list[Change] = [
    [creation("a b")],
    [creation("n" * 81)],
    [creation(roleArn="role")],
    [creation(definition="{}")],
    [creation(definition=json.dumps({"StartAt": "X", "States": {}}))],
    [creation(definition=json.dumps(one("W", Type="Wait")))],
    [creation(definition=PLAIN + " " * 1_048_576)],
    [creation(type="FAST")],
    [creation(type="EXPRESS", definition=json.dumps(one("A", Type="Task", Resource=
        "arn:aws:states:us-east-1:222222222222:activity:work")))],
    [creation(tags=[{"key": "aws:x", "value": "y"}])],
    [creation(tags=[{"key": str(number), "value": ""} for number in range(51)])],
    [creation("plain", definition=OTHER)],
    [creation("plain", type="EXPRESS")],
    [("CreateStateMachine", {"name": "new"})],
    [update("no-such", definition=OTHER)],
    [update(definition=json.dumps({"StartAt": "X"}))],
    [update(definition=7)],
    [update(roleArn="role")],
    [update()],
    [update("plain/label", definition=OTHER)],
    [("UpdateStateMachine", {"stateMachineArn": "plain", "definition": OTHER})],
    [("UpdateStateMachine", {"stateMachineArn": ARN.format("p").replace("stateMachine", "activity"),
                             "definition": OTHER})],
    [tagging(**{"aws:x": "y"})],
    [tagging(**{str(number): "" for number in range(51)})],
    [tagging(**{"stateyard:childPolicy": "never"})],
]  # fmt: skip


@pytest.mark.postgres_too
@pytest.mark.parametrize("change", REFUSED)
def test_what_aws_refuses_is_refused(
    payments: Project, key_of: Callable[[str], str], change: Change
) -> None:
    """With the same code and words; the change beside it is made, and nothing else."""
    create(payments, PASS, "plain")
    key = key_of("olga")
    expected = answer_of_aws(key, change)
    assert "__type" in expected
    before = rows_of(payments)
    answers = deploy(key, change, [creation("beside")])
    assert answers == [expected, {"warnings": []}]
    StateMachine.objects.get(name="beside").delete()
    AuditEntry.objects.filter(target=ARN.format("beside")).delete()
    assert rows_of(payments) == before


def test_quotas_and_deletions_count(
    payments: Project, key_of: Callable[[str], str], settings: Any
) -> None:
    """The last ones of a deployment find no room; one that is being deleted takes no change."""
    going = create(payments, PASS, "going")
    StateMachine.objects.filter(pk=going.pk).update(status="DELETING")
    settings.STATEYARD_QUOTAS = {"projects": {"payments": {"state_machines": 3}}}
    quotas.forget()
    key = key_of("ed")
    answers = deploy(key, *([creation(name)] for name in "abc"), [creation("going")])
    answers += deploy(key, [update("going", definition=OTHER)])
    quotas.forget()
    assert [each.get("__type") for each in answers] == [
        *(None, None, "StateMachineLimitExceeded", "StateMachineDeleting", "StateMachineDeleting")
    ]
    assert StateMachine.objects.filter(project=payments).count() == 3


def test_rights_are_those_of_each_action(payments: Project, key_of: Callable[[str], str]) -> None:
    """By role, by the scope of the key for each state machine, and not in an archived project."""
    create(payments, PASS, "plain")
    for name in ("vera", "otto"):
        (answer,) = deploy(key_of(name), [creation()])
        assert answer["__type"] == "AccessDeniedException"
        assert AuditEntry.objects.filter(action="Refused", actor=name).exists()
    ed = payments.membership_set.get(user__username="ed").user
    scope = KeyScope(ActionSet.ALL, machines=("pl*",))
    key = people.new_key(ed, payments, BY, scope=scope)[0].key_id
    answers = deploy(key, [update(definition=OTHER)], [creation()], [tagging("other", a="b")])
    denied = "AccessDeniedException"
    assert [each.get("__type") for each in answers] == [None, denied, denied]
    assert describe(key, "plain")[0] == 200
    assert describe(key, "plain", "new")[1]["__type"] == denied
    owner = key_of("olga")
    projects.archive_project("payments", BY)
    (answer,) = deploy(owner, [creation()])
    assert "is archived" in answer["message"]


def test_nobody_reaches_another_project(
    payments: Project, project: Project, key_of: Callable[[str], str]
) -> None:
    """Neither by a name nor by an ARN."""
    other = create(project, PASS, "plain")
    key = key_of("olga")
    changes = [("UpdateStateMachine", {"stateMachineArn": other.arn, "definition": OTHER})]
    moved = [("UntagResource", {"resourceArn": other.arn, "tagKeys": ["a"]})]
    codes = {each["__type"] for each in deploy(key, changes, moved)}
    assert codes == {"StateMachineDoesNotExist"}
    assert describe(key, "plain") == (200, {"machines": {"plain": None}})
    other.refresh_from_db()
    assert other.definition.text == PLAIN
    del payments


def describe(key: str, *names: str, hashes: str = "") -> Any:
    """Ask what the state machines of some names are."""
    return call(key, "POST", "/api/branches/machines", {"machines": dict.fromkeys(names, hashes)})


def test_an_unchanged_definition_is_left_out(
    payments: Project, key_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hash is enough; a long answer ends early, and the rest is asked for again."""
    for name in ("a", "b", "c"):
        tags.put_tags(create(payments, PASS, name).arn, {"team": name})
    key = key_of("vera")
    answer = describe(key, "a", "gone", hashes=hashlib.sha256(PLAIN.encode()).hexdigest())[1]
    tracing = {"enabled": False}
    same = {"type": "STANDARD", "roleArn": ROLE, "tracingConfiguration": tracing}
    plain = {**same, "tags": {"team": "a"}, "warnings": []}
    assert answer == {"machines": {"a": plain, "gone": None}}
    assert describe(key, "b")[1]["machines"]["b"]["definition"] == PLAIN
    monkeypatch.setattr(deployments, "_MOST_CHARACTERS", len(PLAIN))
    assert [*describe(key, "a", "b", "c")[1]["machines"]] == ["a", "b"]


def test_functions_that_nobody_registered_are_told(
    payments: Project, key_of: Callable[[str], str]
) -> None:
    """After a change, and of what is there already."""
    key = key_of("olga")
    warning = "State 'L' calls no-such: registered nowhere"
    assert deploy(key, [creation(definition=CALLS_FUNCTION)]) == [{"warnings": [warning]}]
    answer = describe(key, "new", hashes=hashlib.sha256(CALLS_FUNCTION.encode()).hexdigest())[1]
    assert answer["machines"]["new"]["warnings"] == [warning]
    del payments


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("machines", {}, "an object with machines only"),
        ("machines", {"machines": ["a"]}, "an object of names and hashes"),
        ("machines", {"machines": {"a": 1}}, "an object of names and hashes"),
        ("deploy", {"machines": {}, "x": 1}, "an object with machines only"),
        ("deploy", {"machines": {}}, "must be a list"),
    ],
)
def test_another_body_is_refused(
    key_of: Callable[[str], str], path: str, body: Any, words: str
) -> None:
    """With what is wanted."""
    status, answer = call(key_of("ed"), "POST", f"/api/branches/{path}", body)
    assert (status, answer["__type"]) == (400, "ValidationException")
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ([], "no list of calls"),
        ([("DeleteStateMachine", {"stateMachineArn": ARN.format("plain")})], "got the action"),
        ([creation(publish=True)], "publish: a deployment has no such parameter"),
        ([update(definition=OTHER), tagging("other", a="b")], "are about one state machine"),
    ],
)
def test_another_change_is_refused(
    payments: Project, key_of: Callable[[str], str], change: Change, words: str
) -> None:
    """By itself."""
    create(payments, PASS, "plain")
    (answer,) = deploy(key_of("ed"), change)
    assert answer["__type"] == "ValidationException"
    assert words in answer["message"]
    assert StateMachine.objects.get().definition.text == PLAIN


def test_a_state_machine_stands_once(payments: Project, key_of: Callable[[str], str]) -> None:
    """Else its last change would win, or not."""
    sent = [[{"action": name, "parameters": params}] for name, params in (creation(), creation())]
    status, answer = call(key_of("ed"), "POST", "/api/branches/deploy", {"machines": sent})
    assert (status, answer["__type"]) == (400, "ValidationException")
    assert not StateMachine.objects.exists()
    del payments


@pytest.mark.postgres_too
def test_more_state_machines_take_no_more_statements(
    payments: Project, key_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two and forty, compared, created and changed; settings are read once, not each second."""
    monkeypatch.setattr(project_settings, "_KEPT_S", float("inf"))
    project_settings._remembered.clear()
    project_settings._used.clear()
    key = key_of("ed")
    caller = deployments.Deployer(principal_of(key), REGION, Actor("ed"))

    def statements(count: int, prefix: str) -> int:
        names = [f"{prefix}{number}" for number in range(count)]

        def send(make: Callable[[str], Change]) -> None:
            calls = [[{"action": name, "parameters": params} for name, params in make(each)]
                     for each in names]  # fmt: skip
            answers = deployments.deploy_machines(caller, calls, "/")
            assert answers == [{"warnings": []}] * count

        with CaptureQueriesContext(connection) as queries:
            deployments.describe_machines(caller, dict.fromkeys(names, ""))
            send(lambda name: [creation(name, tags=[{"key": "a", "value": "b"}])])
            send(lambda name: [update(name, definition=OTHER), tagging(name, a="c")])
        return len(queries)

    statements(1, "warm")
    assert statements(40, "many") == statements(2, "few")
    assert machines.get_machine(payments, ARN.format("many39")).definition.text == OTHER
