"""The page of the role rehearsal, and Tasks of a role that the server enforces."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import project_settings
from console.db.audit import Actor
from console.features.roles import role_rehearsal
from console.models import AuditEntry, Execution
from console.store.machines import machines
from tests.console.store.helpers import PASS, create, drain, function, one, start, types
from tests.console.web.helpers import markup
from tests.console.worker.nesting import worked

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client
    from pytest_django.fixtures import Settings

    from console.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/machines/machine/role/"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:note"
ALLOW = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": FUNCTION}
UNUSED = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
CALLED: list[Any] = []


def note(event: Any, _context: Any) -> Any:
    """Note that it was called."""
    CALLED.append(event)
    return event


@pytest.fixture(autouse=True)
def registered(settings: Settings) -> None:
    """Register the function of the tests."""
    CALLED.clear()
    settings.STATEYARD_FUNCTIONS = {"note": f"{__name__}:note"}


@pytest.fixture
def client(signed_in: Callable[[str], Client]) -> Client:
    """Return a browser in which an owner is signed in."""
    return signed_in("owner")


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a policy."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def save(client: Client, *statements: dict[str, Any], **fields: str) -> Any:
    """Save a policy on the page; return the response."""
    sent = {"policies": json.dumps(policy(*statements)), "revision": "", **fields}
    return client.post(ADDRESS, sent)


def test_without_policies_nothing_is_said_to_be_allowed(client: Client, project: Project) -> None:
    """Each permission is unknown; the least policy is there."""
    create(project, one("T", **function("note")))
    text = markup(client.get(ADDRESS))
    assert "are not known here, so no permission was checked" in text
    assert "the policies of this role are unknown" in text
    assert "lambda:InvokeFunction" in text
    assert FUNCTION in text


def test_allowed_missing_and_never_used(client: Client, project: Project) -> None:
    """Owners save the policies; the table has a verdict for each permission."""
    create(project, one("T", **function("note")))
    assert save(client, UNUSED).status_code == 302
    text = markup(client.get(ADDRESS))
    assert "Missing" in text
    assert '<td class="name">s3:*</td>' in text
    assert "Not enforced: Tasks make their calls." in text
    row = project_settings.find_setting(project, role_rehearsal.KIND, "machine")
    assert row is not None
    assert save(client, ALLOW, revision=row.revision).status_code == 302
    text = markup(client.get(ADDRESS))
    assert "Allowed" in text
    assert 'id="unused"' not in text
    summary = AuditEntry.objects.filter(action="PutProjectSetting").latest("pk")
    assert "1 policies, not enforced" in str(vars(summary))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "policies: no JSON: Expecting property name"),
        ("{}", "policy 1: got no Statement, wanted a policy"),
        ('[{"Statement": [{"Effect": "Maybe"}]}]', "wanted Allow or Deny"),
        ('{"Statement": [{"Effect": "\\ud800"}]}', "wanted Allow or Deny"),
        ("x" * 100_001, "policies: got 100001 characters, wanted at most 100000"),
        ("[" * 100_000, "policies: no JSON: it is nested too deep"),
        (json.dumps(["*"] * 3_001), "policies: got 6002 quotes, wanted at most 6000"),
        (json.dumps(["\\u0024{a}" * 201]).replace("\\\\", "\\"), "got 201 variables, wanted at"),
    ],
)
def test_a_bad_policy_is_refused(client: Client, project: Project, text: str, problem: str) -> None:
    """The form keeps the text and names the place; nothing is saved."""
    create(project, PASS)
    answer = client.post(ADDRESS, {"policies": text, "revision": ""})
    assert answer.status_code == 422
    assert problem in html.unescape(answer.content.decode())
    assert project_settings.find_setting(project, role_rehearsal.KIND, "machine") is None


@pytest.mark.postgres_too
def test_two_owners_at_once(client: Client, project: Project) -> None:
    """The second form has an old revision: it is refused, the first change stays."""
    create(project, PASS)
    assert save(client, ALLOW).status_code == 302
    answer = save(client, UNUSED)
    assert answer.status_code == 409
    assert "was changed meanwhile" in answer.content.decode()
    row = project_settings.find_setting(project, role_rehearsal.KIND, "machine")
    assert row is not None
    assert row.value["policies"] == [policy(ALLOW)]
    assert client.post(ADDRESS, {"remove": "", "revision": row.revision}).status_code == 302
    assert project_settings.find_setting(project, role_rehearsal.KIND, "machine") is None


def enforce(project: Project, *statements: dict[str, Any], enforced: bool = True) -> None:
    """Save and enforce a policy for the state machine of the tests."""
    rehearsal = role_rehearsal.RoleRehearsal((policy(*statements),), enforced=enforced)
    actor = Actor("test")
    project_settings.put_setting(
        project, role_rehearsal.KIND, "machine", rehearsal.value, actor, revision=""
    )


def run_task(project: Project, state: dict[str, Any]) -> Execution:
    """Run a Task that catches States.Permissions; return its execution."""
    catch = [{"ErrorEquals": ["States.Permissions"], "Next": "Denied"}]
    states = {
        "T": {**state, "Catch": catch, "End": True},
        "Denied": {"Type": "Pass", "End": True},
    }
    return worked(drain(start(create(project, {"StartAt": "T", "States": states}))))


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (
            (UNUSED,),
            "because no identity-based policy allows the lambda:InvokeFunction action",
        ),
        (
            (ALLOW, {**ALLOW, "Effect": "Deny"}),
            "with an explicit deny in an identity-based policy",
        ),
    ],
)
def test_an_enforced_role_fails_the_task(
    project: Project, statements: tuple[dict[str, Any], ...], why: str
) -> None:
    """The function is not called; the cause is IAM's."""
    enforce(project, *statements)
    execution = run_task(project, function("note"))
    output = json.loads(execution.output or "")
    assert output == {
        "Error": "States.Permissions",
        "Cause": f"User: arn:aws:sts::123456789012:assumed-role/test/{execution.name} is not "
        f"authorized to perform: lambda:InvokeFunction on resource: {FUNCTION} {why}",
    }
    assert "LambdaFunctionFailed" in types(execution)
    assert CALLED == []


@pytest.mark.parametrize(
    "statements",
    [(ALLOW,), ({**ALLOW, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}},)],
)
def test_allowed_and_unknown_calls_are_made(
    project: Project, statements: tuple[dict[str, Any], ...]
) -> None:
    """What is not known before the call does not fail it."""
    enforce(project, *statements)
    assert run_task(project, function("note")).status == "SUCCEEDED"
    assert len(CALLED) == 1


def test_a_role_that_is_not_enforced_fails_nothing(project: Project) -> None:
    """The page reports it, the Task is called."""
    enforce(project, UNUSED, enforced=False)
    run_task(project, function("note"))
    assert len(CALLED) == 1


@pytest.mark.postgres_too
def test_a_nested_start_without_its_rule(project: Project) -> None:
    """``.sync`` needs events:PutRule and the others, as on AWS; the child is not started."""
    child = create(project, PASS, "child")
    statement = {"Effect": "Allow", "Action": "states:*", "Resource": "*"}
    enforce(project, statement)
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": child.arn},
    }
    execution = run_task(project, state)
    assert "perform: events:PutTargets on resource: " in json.loads(execution.output or "")["Cause"]
    assert Execution.objects.filter(state_machine_arn=child.arn).count() == 0


def test_parameters_are_taken_as_evaluated(project: Project) -> None:
    """A name that the input has is compared; a text like an expression is a text here."""
    enforce(project, {**ALLOW, "Resource": f"{FUNCTION}:live"})
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "note", "Payload": {}},
    }
    assert "States.Permissions" in str(run_task(project, state).output)
    assert CALLED == []


def test_a_variable_in_a_value_is_a_text(project: Project) -> None:
    """``${a}`` of an input is no value that is not known: the call fails as on AWS."""
    enforce(project, {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::box/public"})
    parameters = {"Bucket": "box", "Key.$": "$.key", "Body": "x"}
    resource = "arn:aws:states:::aws-sdk:s3:putObject"
    states = {"T": {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}}
    machine = create(project, {"StartAt": "T", "States": states})
    for key in ("${}", "${a}", "#{a}", "{{resolve:a}}"):
        execution = worked(drain(start(machine, {"key": key})))
        assert execution.error == "States.Permissions", execution.cause
        assert f"on resource: arn:aws:s3:::box/{key} because" in str(execution.cause)


def test_a_task_with_credentials_is_called_by_another_role(project: Project) -> None:
    """The policies of that role are not known, so nothing is enforced."""
    enforce(project, UNUSED)
    role = {"RoleArn": "arn:aws:iam::123456789012:role/other"}
    run_task(project, function("note") | {"Credentials": role})
    assert len(CALLED) == 1


def test_viewers_read_and_change_nothing(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """They see the verdicts and the policies, but no form."""
    create(project, one("T", **function("note")))
    save(client, UNUSED)
    viewer = signed_in("viewer")
    text = markup(viewer.get(ADDRESS))
    assert "Missing" in text
    assert "Show the policies" in text
    assert "<textarea" not in text
    assert save(viewer, ALLOW).status_code == 403


def test_the_policies_go_with_the_state_machine(project: Project, client: Client) -> None:
    """A new state machine of the name begins without; one of another region keeps them."""
    machine = create(project, PASS)
    elsewhere = machines.create_machine(
        project, "eu-west-1", name="machine", definition=json.dumps(PASS), role_arn=machine.role_arn
    )
    assert save(client, ALLOW, enforced="on").status_code == 302
    machines.delete_machine(project, machine.arn)
    assert role_rehearsal.enforces(project.name, "machine")
    machines.delete_machine(project, elsewhere.arn)
    assert project_settings.find_setting(project, role_rehearsal.KIND, "machine") is None
    removed = AuditEntry.objects.filter(action=project_settings.REMOVE).get()
    assert removed.target == "role machine"
