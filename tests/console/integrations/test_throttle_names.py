"""The engine's errors of throttling are called as the integrations call a real answer."""

from __future__ import annotations

import pytest

import engine
from console.integrations import names
from engine.runtime.faults import throttle_error


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ("lambda:invoke", "TooManyRequestsException"),
        ("dynamodb:getItem", "ProvisionedThroughputExceededException"),
        ("sns:publish", "Throttled"),
        ("sqs:sendMessage", "RequestThrottled"),
        ("aws-sdk:lambda:invoke", "TooManyRequestsException"),
        ("aws-sdk:dynamodb:getItem", "ProvisionedThroughputExceededException"),
        ("aws-sdk:sns:publish", "Throttled"),
        ("aws-sdk:sqs:sendMessage", "RequestThrottled"),
    ],
)
def test_throttling_is_called_as_a_real_answer_is(resource: str, code: str) -> None:
    """The engine's table says the same as the names of the integrations."""
    service, _, action = resource.rpartition(":")
    operation = names.find_operation(service, action)
    assert operation is not None
    task = engine.Resource("", engine.TaskKind.SERVICE, service, action)
    assert throttle_error(task) == names.exception_name(operation, code)
