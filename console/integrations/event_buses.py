"""Separate PutEvents entries for the server's default event bus from those for other buses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

import engine
from console import arns

if TYPE_CHECKING:
    from console.integrations.outcome import TaskAttempt

DEFAULT_BUS = "default"
_SERVICES = frozenset({"events", "aws-sdk:eventbridge"})
_REGION, _ACCOUNT = 3, 4  # arn:aws:states:REGION:ACCOUNT


def bus_arn(region: str, account: str) -> str:
    """Return the ARN of an account's default event bus."""
    return f"arn:{arns.partition_of(region)}:events:{region}:{account}:event-bus/{DEFAULT_BUS}"


def other_buses(task: TaskAttempt) -> list[bool]:
    """Return for each PutEvents entry whether it is for another bus; [] for other calls."""
    if task.service not in _SERVICES or task.action != "putEvents":
        return []
    parameters = engine.loads(task.input)
    entries = parameters.get("Entries") if isinstance(parameters, dict) else None
    if not isinstance(entries, list):
        return []
    own = (None, DEFAULT_BUS, _own_arn(task))
    return [isinstance(entry, dict) and entry.get("EventBusName") not in own for entry in entries]


def _own_arn(task: TaskAttempt) -> str:
    parts = task.execution_arn.split(":")
    if len(parts) <= _ACCOUNT:  # a state that is only tried
        return bus_arn(settings.STATEYARD_REGION, settings.STATEYARD_ACCOUNT)
    return bus_arn(parts[_REGION], parts[_ACCOUNT])
