"""What rules, schedules and tags of a template say, as the API takes it."""

from __future__ import annotations

from typing import Any

from console.cli.documents import SourceError, as_object, kind_of
from console.cli.parameters import text_of

_DEFAULT_BUS = "default"
_RETRY_NUMBERS = ("MaximumEventAgeInSeconds", "MaximumRetryAttempts")
_SCHEDULE_SETTINGS = (
    "ActionAfterCompletion",
    "Description",
    "EndDate",
    "FlexibleTimeWindow",
    "KmsKeyArn",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "StartDate",
    "State",
)


def is_elsewhere(said: dict[str, Any]) -> bool:
    """Tell whether a rule is of another event bus than the default one, the only one here."""
    bus = said.get("EventBusName") or _DEFAULT_BUS
    return str(bus).rpartition("/")[2] != _DEFAULT_BUS


def schedule_settings(said: dict[str, Any], target: dict[str, Any], place: str) -> dict[str, Any]:
    """Return what CreateSchedule takes; YAML and parameters may have numbers as texts."""
    if not isinstance(said.get("ScheduleExpression"), str):
        kind = kind_of(said.get("ScheduleExpression"))
        raise SourceError(f"{place}.ScheduleExpression: got {kind}, wanted a text")
    settings: dict[str, Any] = {"FlexibleTimeWindow": {"Mode": "OFF"}}
    settings |= {key: said[key] for key in _SCHEDULE_SETTINGS if key in said}
    window = as_object(settings["FlexibleTimeWindow"], f"{place}.FlexibleTimeWindow")
    settings["FlexibleTimeWindow"] = _with_integers(window, "MaximumWindowInMinutes")
    if "RetryPolicy" in target:
        policy = _with_integers(target["RetryPolicy"], *_RETRY_NUMBERS)
        target = {**target, "RetryPolicy": policy}
    return {**settings, "Target": target}


def _with_integers(said: dict[str, Any], *keys: str) -> dict[str, Any]:
    numbers = {key: int(said[key]) for key in keys if str(said.get(key)).isdigit()}
    return {**said, **numbers}


def without(said: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object without one of its members."""
    return {name: value for name, value in said.items() if name != key}


def target_members(target: dict[str, Any], place: str) -> dict[str, Any]:
    """Return what PutTargets takes of a target; the queue that SAM would make is left out."""
    known = ("Arn", "Input", "InputPath", "InputTransformer")
    members = {key: target[key] for key in known if key in target}
    if "RetryPolicy" in target:
        policy = as_object(target["RetryPolicy"], f"{place}.RetryPolicy")
        members["RetryPolicy"] = _with_integers(policy, *_RETRY_NUMBERS)
    queue = as_object(target.get("DeadLetterConfig"), f"{place}.DeadLetterConfig").get("Arn")
    return members | ({"DeadLetterConfig": {"Arn": queue}} if queue else {})


def is_enabled(said: dict[str, Any]) -> bool:
    """Tell whether a rule is switched on."""
    return (
        said.get("State", "ENABLED") != "DISABLED" and as_switch(said.get("Enabled")) is not False
    )


def as_switch(value: Any) -> bool | None:
    """Return a switch, None if it is not there."""
    return None if value is None else str(value).lower() == "true"


def read_tags(value: Any, place: str) -> dict[str, str]:
    """Return tags as an object: SAM has one, CloudFormation a list."""
    try:
        if isinstance(value, list):
            return {str(tag["Key"]): text_of(tag["Value"]) for tag in value}
        tags = as_object(value, f"{place}.Tags")
        return {str(key): text_of(tag) for key, tag in tags.items()}
    except (LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{place}.Tags: got {error}, wanted keys with texts") from None
