"""A role that is denied an action makes its tasks fail with States.Permissions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.features.test_state.state import try_state
from console.integrations import permissions
from console.models import Execution
from tests.console.store.helpers import PASS, ROLE, create, drain, function, one, start, types
from tests.console.worker.nesting import worked

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from console.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
CALLED: list[Any] = []


def note(event: Any, _context: Any) -> Any:
    """Note that it was called."""
    CALLED.append(event)
    return event


@pytest.fixture(autouse=True)
def denying(settings: Settings) -> None:
    """The role of the tests may not do these."""
    CALLED.clear()
    settings.STATEYARD_FUNCTIONS = {"note": f"{__name__}:note"}
    settings.STATEYARD_PERMISSIONS = {
        "deny": {
            "test": ["lambda:invokefunction", "sqs:*", "states:StartExecution"],
            "other": ["*"],
        }
    }


@pytest.mark.parametrize(
    ("state", "ending", "action"),
    [
        (function("note"), "LambdaFunctionFailed", "lambda:InvokeFunction"),
        ("lambda:invoke", "TaskFailed", "lambda:InvokeFunction"),
        ("sqs:sendMessage", "TaskFailed", "sqs:SendMessage"),
        ("aws-sdk:sqs:listQueues", "TaskFailed", "sqs:ListQueues"),
        ("states:startExecution", "TaskFailed", "states:StartExecution"),
        ("states:startExecution.sync:2", "TaskSubmitFailed", "states:StartExecution"),
        ("sqs:sendMessage.waitForTaskToken", "TaskSubmitFailed", "sqs:SendMessage"),
    ],
)
def test_the_task_fails_with_states_permissions(
    project: Project, state: Any, ending: str, action: str
) -> None:
    """The cause names role, execution and action as IAM does; a Catcher takes the error."""
    child = create(project, PASS, "child")
    if isinstance(state, str):
        parameters = {
            "lambda": {"FunctionName": "note"},
            "states": {"StateMachineArn": child.arn},
        }.get(state.partition(":")[0], {"QueueUrl": "https://q", "MessageBody": "$$.Task.Token"})
        parameters = {} if state.startswith("aws-sdk") else parameters
        if state.endswith("Token"):
            parameters = {"QueueUrl": "https://q", "MessageBody.$": "$$.Task.Token"}
        arn = f"arn:aws:states:::{state}"
        state = {"Type": "Task", "Resource": arn, "Parameters": parameters}
    catch = [{"ErrorEquals": ["States.Permissions"], "Next": "Denied"}]
    definition = {
        "StartAt": "T",
        "States": {
            "T": {**state, "Catch": catch, "End": True},
            "Denied": {"Type": "Pass", "End": True},
        },
    }
    execution = worked(drain(start(create(project, definition))))
    assert execution.status == "SUCCEEDED"
    output = json.loads(execution.output or "")
    assert output["Error"] == "States.Permissions"
    assert output["Cause"] == (
        f"User: arn:aws:sts::123456789012:assumed-role/test/{execution.name} is not authorized to "
        f"perform: {action} because no identity-based policy allows the {action} action"
    )
    assert ending in types(execution)
    assert CALLED == []
    assert Execution.objects.filter(state_machine_arn=child.arn).count() == 0


def test_what_is_not_denied_is_called(project: Project, settings: Settings) -> None:
    """Other actions, other roles, and a server without the setting."""
    others: list[dict[str, Any]] = [{}, {"deny": {}}, {"deny": {"test": ["sqs:*"], "tes": ["*"]}}]
    for denied in others:
        settings.STATEYARD_PERMISSIONS = denied
        machine = create(project, one("T", **function("note")), f"m{len(CALLED)}")
        assert worked(drain(start(machine, {"n": 1}))).status == "SUCCEEDED"
    assert len(CALLED) == 3


@pytest.mark.parametrize("role", ["test", "te*", ROLE, "arn:aws:iam::*:role/test", "*"])
def test_a_role_is_named_or_matched(settings: Settings, role: str) -> None:
    """By its name, its ARN, or a pattern of either."""
    settings.STATEYARD_PERMISSIONS = {"deny": {role: ["s3:Get*"]}}
    assert permissions.denies("default", ROLE, "s3:GetObject")
    assert not permissions.denies("default", ROLE, "s3:PutObject")
    assert not permissions.denies("default", ROLE, "")  # an activity needs none


@pytest.mark.parametrize(
    ("call", "action"),
    [
        (("service", "http", "invoke"), "states:InvokeHTTPEndpoint"),
        (("service", "apigateway", "invoke"), "execute-api:Invoke"),
        (("service", "dynamodb", "putItem"), "dynamodb:PutItem"),
        (("service", "aws-sdk:sfn", "describeExecution"), "states:DescribeExecution"),
        (("service", "aws-sdk:s3", "listObjectsV2"), "s3:ListBucket"),
        (("service", "aws-sdk:cloudwatch", "putMetricData"), "cloudwatch:PutMetricData"),
        (("service", "eks", "call"), "eks:Call"),
    ],
)
def test_actions_have_iam_s_names(call: tuple[str, str, str], action: str) -> None:
    """Service prefixes and actions of the Service Authorization Reference."""
    assert permissions.needed_action(*call) == action


def test_a_state_is_tested_with_its_role(project: Project, django_user_model: Any) -> None:
    """TestState fails as the execution would."""
    user = django_user_model.objects.create(username="ana")
    principal = access.Principal(user, project, "editor")
    definition = json.dumps({**function("note"), "End": True})
    answer = try_state(principal, "us-east-1", {"definition": definition, "roleArn": ROLE})
    assert (answer["status"], answer["error"]) == ("FAILED", "States.Permissions")
    assert "assumed-role/test/TestState" in answer["cause"]
    free = {"definition": definition, "roleArn": ROLE.replace("test", "free")}
    assert try_state(principal, "us-east-1", free)["status"] == "SUCCEEDED"
