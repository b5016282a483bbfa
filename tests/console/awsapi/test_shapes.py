"""Requests are checked against the service model, with AWS's error messages."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from console.awsapi import paging, services, shapes
from console.errors import ErrorCode, InvalidToken, ValidationException
from tests.refusals import raises_code


def check(action: str, **params: Any) -> None:
    """Check a request."""
    shapes.check_params(shapes.service_model().operation_model(action), params)


ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:x"


def test_every_pattern_of_the_model_is_understood() -> None:
    """They are Java's; one that cannot be read would answer a good request with a 500."""
    for service in services.SERVICES:
        model = shapes.service_model(service.name)
        shapes_of_it = [model.shape_for(name) for name in model.shape_names]
        for pattern in filter(None, (shape.metadata.get("pattern") for shape in shapes_of_it)):
            assert hasattr(shapes._compile_pattern(pattern), "search"), pattern
    check("StartExecution", stateMachineArn=ARN, traceHeader="Root=1-5759e988-bd862e3fe1be46a9")
    with pytest.raises(ValidationException, match="traceHeader"):
        check("StartExecution", stateMachineArn=ARN, traceHeader="é")


@pytest.mark.parametrize(
    ("action", "params", "words"),
    [
        (
            "ListStateMachines",
            {"maxResults": 1001},
            (
                "1 validation error detected: Value '1001' at 'maxResults' failed to satisfy "
                "constraint: Member must have value less than or equal to 1000"
            ),
        ),
        (
            "DescribeStateMachine",
            {},
            (
                "1 validation error detected: Value null at 'stateMachineArn' failed to satisfy "
                "constraint: Member must not be null"
            ),
        ),
        (
            "ListExecutions",
            {"stateMachineArn": ARN, "statusFilter": "DONE"},
            (
                "1 validation error detected: Value 'DONE' at 'statusFilter' failed to satisfy "
                "constraint: Member must satisfy enum value set: "
            ),
        ),
        *(
            (
                action,
                params,
                (
                    "1 validation error detected: Value at 'definition' failed to satisfy "
                    "constraint: Member must have length greater than or equal to 1"
                ),
            )
            for action, params in (
                ("CreateStateMachine", {"name": "n", "definition": "", "roleArn": ARN}),
                ("UpdateStateMachine", {"stateMachineArn": ARN, "definition": ""}),
                ("ValidateStateMachineDefinition", {"definition": ""}),
                ("TestState", {"definition": ""}),
            )
        ),
        (
            "StopExecution",
            {"executionArn": ARN, "error": "x" * 257},
            "length less than or equal to 256",
        ),
    ],
)
def test_constraints_are_worded_as_aws_does(
    action: str, params: dict[str, Any], words: str
) -> None:
    """Member, value and constraint stand in the message."""
    with pytest.raises(ValidationException) as caught:
        check(action, **params)
    assert words in caught.value.message


def test_wrong_types_cannot_be_read() -> None:
    """A number where a text must be is a serialization error."""
    with raises_code(ErrorCode.SerializationException):
        check("DescribeStateMachine", stateMachineArn=5)


def test_every_handler_is_an_action_of_the_model() -> None:
    """Nothing is served that AWS does not have."""
    assert set(services.STATES.handlers) <= set(shapes.service_model().operation_names)


def asking(action: str, project: int = 1, region: str = "us-east-1") -> Any:
    """Return a call as far as its pages matter."""
    return SimpleNamespace(action=action, project=SimpleNamespace(pk=project), region=region)


CALL = asking("ListExecutions")


def test_tokens_are_bound_to_their_query() -> None:
    """A token is good for the same action and arguments only, and cannot be made up."""
    token = paging.seal_position(CALL, {"stateMachineArn": ARN}, [5, 7])
    query = {"stateMachineArn": ARN, "nextToken": token, "maxResults": 3}
    assert paging.open_position(CALL, query) == [5, 7]
    for other in (
        {**query, "stateMachineArn": ARN + "y"},
        {**query, "nextToken": token[:-4] + "AAAA"},
        {**query, "nextToken": "nonsense"},
        {**query, "nextToken": f"{token}x"},
        {**query, "nextToken": f"{token}="},
        {**query, "nextToken": f"!{token}"},
        {**query, "nextToken": ""},
    ):
        with pytest.raises(InvalidToken):
            paging.open_position(CALL, other)
    for call in (
        asking("ListActivities"),
        asking("ListExecutions", project=2),
        asking("ListExecutions", region="eu-west-1"),
    ):
        with pytest.raises(InvalidToken):
            paging.open_position(call, query)


def test_tokens_expire_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """As AWS says of them; a minute before they are still good."""
    now = time.time()
    query = {"nextToken": paging.seal_position(CALL, {}, 5)}
    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600 - 60)
    assert paging.open_position(CALL, query) == 5
    monkeypatch.setattr(time, "time", lambda: now + 24 * 3600 + 60)
    with pytest.raises(InvalidToken):
        paging.open_position(CALL, query)


@pytest.mark.parametrize(
    "target", ["", "ListExecutions", "Other.ListExecutions", "AWSStepFunctions"]
)
def test_a_target_without_the_services_name_is_no_action(target: str) -> None:
    """An action counts only behind the name of a service that is served."""
    service, action = services.find_service({"x-amz-target": [target]} if target else {})
    with raises_code(ErrorCode.UnknownOperationException):
        service.operation(action)


def test_a_target_names_service_and_action() -> None:
    """``AWSStepFunctions.ListExecutions`` is that action of Step Functions."""
    service, action = services.find_service({"x-amz-target": ["AWSStepFunctions.ListExecutions"]})
    assert (service, action) == (services.STATES, "ListExecutions")
    assert service.permission(action) == "ListExecutions"
    assert service.error_type("ValidationException").endswith("validate#ValidationException")
