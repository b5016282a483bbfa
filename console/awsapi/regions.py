"""Separate regions: a resource of another region does not exist for a call, as with AWS.

The caller's region is the one in the signature. Lists, metrics, logs and rules are read by region
anyway; this module handles actions that name a resource by its ARN, which has its region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.errors import ErrorCode, ServiceError

if TYPE_CHECKING:
    from console.awsapi.operations.call import Call

_MACHINE = (ErrorCode.StateMachineDoesNotExist, "State Machine Does Not Exist: '{}'")
_RESOURCE = (ErrorCode.ResourceNotFound, "Resource not found: '{}'")
_REFERENCE = (
    ErrorCode.ResourceNotFound,
    "Request references a resource that does not exist.",
)
_MISSING: dict[str, tuple[tuple[str, ...], tuple[ErrorCode, str]]] = {
    "activityArn": (
        ("activity",),
        (ErrorCode.ActivityDoesNotExist, "Activity Does Not Exist: '{}'"),
    ),
    "executionArn": (
        ("execution", "express"),
        (ErrorCode.ExecutionDoesNotExist, "Execution Does Not Exist: '{}'"),
    ),
    "mapRunArn": (("mapRun",), _RESOURCE),
    "resourceArn": (("activity", "stateMachine"), _RESOURCE),
    "stateMachineAliasArn": (("stateMachine",), _REFERENCE),
    "stateMachineArn": (("stateMachine",), _MACHINE),
    "stateMachineVersionArn": (("stateMachine",), _MACHINE),
}
"""Member of a request -> kinds of ARN that it takes, and the error for one that is not there."""
_SILENT = {"DeleteActivity", "DeleteStateMachine", "DeleteStateMachineVersion"}
"""Actions that succeed for what is not there."""
_OF_CHILDREN = {"DescribeExecution"}
"""Actions that take Express children of Map Runs; others refuse the kind in any region."""
_REGION, _KIND, _PARTS = 3, 5, 7


def answer_elsewhere(call: Call) -> dict[str, Any] | None:
    """Answer an action without effect on a resource of another region.

    None if everything is of the caller's region, so that the action runs. Raise the error for
    something that is missing. Calls that belong to one that was allowed before look everywhere.
    """
    if call.trusted or not call.region:
        return None
    for member, (kinds, (code, text)) in _MISSING.items():
        arn = call.params.get(member)
        taken = kinds if call.action in _OF_CHILDREN else tuple({*kinds} - {"express"})
        if arn is None or not _is_elsewhere(arn, taken, call.region):
            continue
        if call.action in _SILENT:
            return {}
        raise ServiceError(code, text.format(arn))
    for entry in call.params.get("routingConfiguration") or ():
        if _is_elsewhere(entry["stateMachineVersionArn"], ("stateMachine",), call.region):
            raise ServiceError(*_REFERENCE)
    return None


def _is_elsewhere(arn: str, kinds: tuple[str, ...], region: str) -> bool:
    """Whether a well-formed ARN has another region; other texts are left to the action."""
    parts = arn.split(":", _PARTS - 1)
    if len(parts) < _PARTS or parts[2] != "states" or parts[_KIND] not in kinds:
        return False
    return parts[_REGION] != region
