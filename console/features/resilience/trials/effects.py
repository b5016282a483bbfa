"""Find calls that repeat their effect when repeated, and each service's throttling error."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from console.features.resilience.trials.places import TestedState

_TOKENS: dict[str, tuple[str, ...]] = {
    "sqs:sendmessage": ("MessageDeduplicationId",),
    "sqs:sendmessagebatch": ("MessageDeduplicationId",),
    "sns:publish": ("MessageDeduplicationId",),
    "sns:publishbatch": ("MessageDeduplicationId",),
    "states:startexecution": ("Name",),
    "sfn:startexecution": ("Name",),
    "ecs:runtask": ("ClientToken",),
    "batch:submitjob": (),
    "glue:startjobrun": (),
    "events:putevents": (),
    "eventbridge:putevents": (),
    "codebuild:startbuild": ("IdempotencyToken",),
    "codebuild:startbuildbatch": ("IdempotencyToken",),
    "athena:startqueryexecution": ("ClientRequestToken",),
    "kinesis:putrecord": (),
    "kinesis:putrecords": (),
    "firehose:putrecord": (),
    "sesv2:sendemail": (),
    "ses:sendemail": (),
    "emr-containers:startjobrun": ("ClientToken",),
    "ec2:runinstances": ("ClientToken",),
    "rdsdata:executestatement": (),
}
"""Call -> the parameters of which one makes a repeated call idempotent."""
_HTTP = "http:invoke"
_UNSAFE_METHODS = ("POST", "PATCH")
_COUNTS_UP = re.compile(r"\bADD\b|[+-]\s*:|list_append", re.IGNORECASE)
_THROTTLING = re.compile(
    r"Throttl|TooManyRequests|ThroughputExceeded|SlowDown|LimitExceeded|StatusCode\.429",
    re.IGNORECASE,
)
_THROTTLE_NAMES = {
    "lambda": "Lambda.TooManyRequestsException",
    "dynamodb": "DynamoDB.ProvisionedThroughputExceededException",
    "http": "States.Http.StatusCode.429",
}


def call_name(place: TestedState) -> str:
    """Return the call of a Task as ``sqs:sendMessage``; "" for an activity or no Task."""
    resource = engine.parse_resource(place.resource) if place.resource else None
    if resource is None or resource.kind == engine.TaskKind.ACTIVITY:
        return ""
    if resource.kind == engine.TaskKind.LAMBDA:
        return "lambda:invoke"
    return f"{resource.service.removeprefix('aws-sdk:')}:{resource.action}"


def repeated_effect(place: TestedState) -> str:
    """Return a Task's call if repeating it repeats its effect, else ""."""
    call = call_name(place)
    parameters = place.state.get("Parameters", place.state.get("Arguments"))
    members = parameters if isinstance(parameters, dict) else {}
    names = {str(name).removesuffix(".$") for name in _keys(members)}
    key = call.lower()
    if key == _HTTP:
        method = str(members.get("Method", "")).upper()
        headers = {name.lower() for name in names}
        return call if method in _UNSAFE_METHODS and "idempotency-key" not in headers else ""
    if key == "dynamodb:updateitem":
        update = str(members.get("UpdateExpression", ""))
        conditional = "ConditionExpression" in names
        return call if _COUNTS_UP.search(update) and not conditional else ""
    if key not in _TOKENS:
        return ""
    if isinstance(parameters, str):  # one expression yields all parameters: unknown
        return ""
    return "" if names & set(_TOKENS[key]) else call


def idempotency_parameter(place: TestedState) -> str:
    """Return the parameter that would make a repeated call idempotent, "" if there is none."""
    call = call_name(place).lower()
    return "Idempotency-Key" if call == _HTTP else next(iter(_TOKENS.get(call, ())), "")


def throttling_error(place: TestedState) -> str:
    """Return the error of a throttled call: the one in a Retrier, else the service's."""
    call = call_name(place)
    if not call:
        return ""
    for retrier in place.retriers:
        for name in retrier.get("ErrorEquals", ()):
            if isinstance(name, str) and _THROTTLING.search(name):
                return name
    service = call.partition(":")[0]
    if service in _THROTTLE_NAMES:
        return _THROTTLE_NAMES[service]
    return f"{service[:1].upper()}{service[1:]}.ThrottlingException"


def _keys(value: Any) -> set[str]:
    """Return the names of all members, also in nested objects."""
    names: set[str] = set()
    json.loads(json.dumps(value), object_hook=names.update)
    return names
