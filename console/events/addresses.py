"""Addresses of rule targets: ARNs of services, and web addresses such as ``slack+https://...``."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

KINDS = {
    "machine": "State machine",
    "lambda": "Lambda function",
    "webhook": "Webhook",
    "slack": "Slack message",
    "teams": "Teams card",
    "email": "E-mail",
    "sns": "SNS topic",
    "sqs": "SQS queue",
    "events": "Event bus",
}
_ARN = re.compile(r"arn:aws[a-z-]*:(states|lambda|sns|sqs|events):[a-z0-9-]*:\d{12}:(.+)")
UNIVERSAL_END = ":scheduler:::aws-sdk:sfn:startExecution"
"""The part after the partition in the universal target that starts executions."""
_UNIVERSAL = re.compile(rf"arn:aws[a-z-]*{UNIVERSAL_END}")
_CHATS = ("slack", "teams")
_MAIL = re.compile(r"mailto:[^@\s,;<>\"]+@[^@\s,;<>\"]+")


class AddressError(ValueError):
    """An address is invalid; the message has the accepted forms."""


def is_universal(address: str) -> bool:
    """Whether an address is Scheduler's universal target that starts executions.

    The input of such a target of EventBridge Scheduler is the parameters of StartExecution.
    """
    return _UNIVERSAL.fullmatch(address) is not None


def web_address(address: str) -> str:
    """Return the URL of a request's address: ``slack+https://...`` without its prefix."""
    kind, plus, url = address.partition("+")
    return url if plus and kind in _CHATS else address


def address_kind(address: str, *, universal: bool = False) -> str:
    """Return the kind of an address, a member of ``KINDS``; raise ``AddressError``.

    ``universal``: the universal target of EventBridge Scheduler is one, too.
    """
    if universal and is_universal(address):
        return "machine"
    match = _ARN.fullmatch(address)
    if match is not None:
        return _kind_of_arn(match[1], match[2], address)
    url = web_address(address)
    if url.startswith(("http://", "https://")):
        parts = urlsplit(url)
        if parts.hostname and not parts.username and not parts.fragment:
            return "webhook" if url == address else address.partition("+")[0]
    if _MAIL.fullmatch(address):
        return "email"
    raise AddressError(
        f"'{address[:100]}' is not a target. Enter the ARN of a state machine, topic, queue, event "
        "bus or function, an https address, slack+https: or teams+https: and an address, or "
        "mailto: and an address"
    )


def kind_of_row(address: str) -> str:
    """Return the kind of a row's address, "" for an address of an earlier release."""
    try:
        return address_kind(address, universal=True)
    except AddressError:
        return ""


def _kind_of_arn(service: str, rest: str, address: str) -> str:
    if service == "states" and rest.startswith("stateMachine:"):
        return "machine"
    if service == "events" and rest.startswith("event-bus/"):
        return "events"
    if service == "lambda" and rest.startswith("function:"):
        return "lambda"
    if service in ("sns", "sqs"):
        return service
    raise AddressError(f"'{address[:100]}' is not a target of a rule")
