"""The AWS services of this server, and finding the service and action of a request."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any

from console.awsapi import members, operations, shapes
from console.awsapi.operations import sts
from console.errors import ErrorCode, ProtocolError, ServiceError
from console.feature import chosen_features

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from botocore.model import OperationModel

    from console.awsapi.operations.call import Answer, Call

    Handler = Callable[[Call], Answer]
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
"""Member of a request -> kinds of ARN that it takes, and the error for a missing resource."""
_SILENT = {"DeleteActivity", "DeleteStateMachine", "DeleteStateMachineVersion"}
"""Actions that succeed for a resource that does not exist."""
_OF_CHILDREN = {"DescribeExecution"}
"""Actions that take Express children of Map Runs; others refuse the kind in any region."""
_REGION, _KIND, _PARTS = 3, 5, 7


@dataclass(frozen=True, slots=True)
class ApiService:
    """An AWS service; with AWS JSON, ``X-Amz-Target`` names the action.

    ``name``: botocore's. ``target``: the prefix of the action in ``X-Amz-Target``. ``scope``: its
    name in signatures and permissions. ``version``: of AWS JSON. ``handlers``: action -> handler
    function. ``error_namespace``: the prefix of error codes in ``__type``. ``invalid_member``: the
    error code for an unsupported member.
    """

    name: str
    target: str
    scope: str
    version: str
    handlers: Mapping[str, Handler]
    error_namespace: str = ""
    invalid_member: ErrorCode = ErrorCode.ValidationException

    @property
    def content_type(self) -> str:
        """Return the media type of its requests and answers."""
        return f"application/x-amz-json-{self.version}"

    @property
    def speaks_cbor(self) -> bool:
        """Whether the service model has the CBOR protocol."""
        return "smithy-rpc-v2-cbor" in shapes.service_model(self.name).metadata.get("protocols", ())

    def permission(self, action: str) -> str:
        """Return the permission of an action for ``access.authorize``: bare for Step Functions."""
        return action if self is STATES else f"{self.scope}:{action}"

    def operation(self, action: str) -> OperationModel:
        """Return the model of an action; raise ``ProtocolError`` if it is unknown."""
        model = shapes.operations(self.name).get(action)
        if model is None:
            raise ProtocolError(
                ErrorCode.UnknownOperationException,
                f"The operation {action!r} is not one of this service",
            )
        return model

    def handler(self, action: str) -> Handler:
        """Return the function that answers an action; raise ``ProtocolError`` without one."""
        handler = self.handlers.get(action)
        if handler is None:
            raise ProtocolError(
                ErrorCode.UnknownOperationException, f"The operation {action} is not served yet"
            )
        return handler

    def check_members(self, action: str, params: Mapping[str, Any]) -> None:
        """Raise the service's error for members that the action's handler does not support."""
        refusals = members.refusals(self.handler(action), params)
        if refusals:
            raise ServiceError(self.invalid_member, f"{action}: {'; '.join(refusals[:10])}")

    def run(self, call: Call) -> Answer:
        """Run the action of a call, unless its resource is in another region."""
        handler = self.handler(call.action)
        elsewhere = answer_elsewhere(call) if self is STATES else None
        return handler(call) if elsewhere is None else elsewhere

    def error_answer(self, error: ServiceError) -> tuple[int, dict[str, Any]]:
        """Return HTTP status and members of the answer to a refused request.

        To a caller without permission, services with a JSON protocol answer 400, REST services 403.
        Source: an answer of StartExecution that a user of AWS's SDK for JavaScript printed in 2019.
        """
        answer = {"__type": self.error_type(error.code), "message": error.message}
        shape = shapes.error_shapes(self.name).get(error.code)
        if error.reason and shape is not None and "reason" in shape.members:
            answer["reason"] = error.reason
        modelled = {} if shape is None else shape.metadata.get("error", {})
        denied = error.code == ErrorCode.AccessDeniedException
        status = HTTPStatus.BAD_REQUEST if denied else error.status
        return modelled.get("httpStatusCode", int(status)), answer

    def error_type(self, code: str) -> str:
        """Return the ``__type`` of an error code."""
        if not self.error_namespace:
            return code
        if code == "ValidationException":
            namespace = "com.amazon.coral.validate"
        elif code in shapes.error_shapes(self.name):
            namespace = self.error_namespace
        else:  # no error of an operation, but of the framework in front of it
            namespace = "com.amazon.coral.service"
        return f"{namespace}#{code}"


def _handlers_of_features(service: str) -> dict[str, Handler]:
    """Return the actions of a service that features of this server add."""
    modules = [
        import_module(feature.operations[service])
        for feature in chosen_features()
        if service in feature.operations
    ]
    return {action: handler for module in modules for action, handler in module.HANDLERS.items()}


STATES = ApiService(
    "stepfunctions",
    "AWSStepFunctions",
    "states",
    "1.0",
    {**operations.HANDLERS, **_handlers_of_features("stepfunctions")},
    "com.amazonaws.swf.service.v2.model",
)
CLOUDWATCH = ApiService(
    *("cloudwatch", "GraniteServiceVersion20100801", "monitoring", "1.0"),
    _handlers_of_features("cloudwatch"),
    invalid_member=ErrorCode.InvalidParameterValue,
)
EVENTS = ApiService("events", "AWSEvents", "events", "1.1", _handlers_of_features("events"))
LOGS = ApiService(
    *("logs", "Logs_20140328", "logs", "1.1"),
    _handlers_of_features("logs"),
    invalid_member=ErrorCode.InvalidParameterException,
)
SERVICES = (STATES, CLOUDWATCH, EVENTS, LOGS)
STS = ApiService("sts", "", "sts", "", sts.HANDLERS)
"""STS uses XML (``other_services``), so it is not one of ``SERVICES``."""
SCHEDULER = ApiService("scheduler", "", "scheduler", "", _handlers_of_features("scheduler"))
"""EventBridge Scheduler uses REST-JSON (``rest_json``), so it is not one of ``SERVICES`` either."""
SCOPES = frozenset(service.scope for service in SERVICES)
_BY_TARGET = {service.target: service for service in SERVICES}


def find_service(headers: Mapping[str, list[str]]) -> tuple[ApiService, str]:
    """Return the service and the action that ``X-Amz-Target`` names.

    If the header names no service of this endpoint, return Step Functions and the whole header as
    the action, so that the call is refused as an unknown operation.
    """
    target, dot, action = headers.get("x-amz-target", [""])[0].partition(".")
    service = _BY_TARGET.get(target)
    return (STATES, f"{target}{dot or '.'}{action}") if service is None else (service, action)


# -- regions ---------------------------------------------------------------------------------------

# A resource of another region does not exist for a call, as with AWS. The caller's region is that
# of the signature. Lists, metrics, logs and rules are read by region anyway; these functions handle
# actions that name a resource by its ARN, which has its region.


def answer_elsewhere(call: Call) -> dict[str, Any] | None:
    """Answer an action without effect on a resource of another region.

    None if everything is of the caller's region, so that the action runs. Raise the error for
    something that is missing. Trusted calls, by which a Task waits for its execution, are not
    limited to a region.
    """
    if call.trusted or not call.region:
        return None
    for member, (kinds, (code, text)) in _MISSING.items():
        arn = call.params.get(member)
        resource_kinds = kinds if call.action in _OF_CHILDREN else tuple({*kinds} - {"express"})
        if arn is None or not _is_elsewhere(arn, resource_kinds, call.region):
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
