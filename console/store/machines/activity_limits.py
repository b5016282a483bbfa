"""Time limits of an activity's tasks, set by tags of the activity.

A tag such as ``stateyard:scheduleToStartTimeout`` has seconds or ``NONE``. As tags, the limits are
part of an export and can be set with the AWS CLI.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.arns import account_of
from console.db import rows
from console.errors import ValidationException
from console.models import Tag
from console.statuses import TaskClock

if TYPE_CHECKING:
    from collections.abc import Iterable

_TAGS = {
    f"stateyard:{clock}Timeout": clock
    for clock in (
        TaskClock.SCHEDULE_TO_START,
        TaskClock.START_TO_CLOSE,
        TaskClock.SCHEDULE_TO_CLOSE,
        TaskClock.HEARTBEAT,
    )
}


_TAGGED = (
    "SELECT a.arn, t.key, t.value FROM console_activity a LEFT JOIN console_tag t"
    " ON t.arn = a.arn AND t.key IN ({}) WHERE a.arn IN"
).format(", ".join(f"'{key}'" for key in _TAGS))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an activity's tasks in seconds; None for no limit."""

    schedule_to_start: int | None = None
    start_to_close: int | None = None
    schedule_to_close: int | None = None
    heartbeat: int | None = None


NO_LIMITS = Limits()


def limit_tags(arn: str) -> dict[str, str]:
    """Return tag -> seconds or ``NONE`` (as text), for all four limits of an activity."""
    values = dict(Tag.objects.filter(arn=arn, key__in=_TAGS).values_list("key", "value"))
    return {key: values.get(key, "NONE") for key in _TAGS}


def check_tag(key: str, value: str) -> None:
    """Raise ValidationException for a limit tag with a value other than seconds or NONE."""
    if key in _TAGS and value != "NONE" and not _seconds(value):
        raise ValidationException(
            f"{key} must be a number of seconds from 1 to 99999999 or NONE, not {value!r}"
        )


def _seconds(value: str) -> int | None:
    """Return the seconds of a tag's value, None for NONE, zero and non-numbers."""
    is_number = value.isascii() and value.isdecimal() and len(value) <= 8  # noqa: PLR2004 - 99999999
    return int(value) or None if is_number else None


def limits_of(execution_arn: str, activity_arns: Iterable[str]) -> dict[str, Limits]:
    """Return ARN -> limits, for the existing activities that an execution may use.

    Activities of other accounts are left out. Otherwise a project could send tasks to the workers
    of another project, and keep them from their own tasks.
    """
    by_arn: dict[str, list[tuple[str, str]]] = {}
    account = account_of(execution_arn)
    distinct = [arn for arn in dict.fromkeys(activity_arns) if account_of(arn) == account]
    if not distinct:
        return {}
    marks = ",".join(["%s"] * len(distinct))
    for arn, key, value in rows.fetch_rows(f"{_TAGGED} ({marks})", distinct):
        tags = by_arn.setdefault(arn, [])
        if key is not None:
            tags.append((key, value))
    return {arn: _limits(tags) for arn, tags in by_arn.items()}


def _limits(stored: list[tuple[str, str]]) -> Limits:
    if not stored:
        return NO_LIMITS
    tags = {_TAGS[key]: value for key, value in stored}
    return Limits(
        _seconds(tags.get(TaskClock.SCHEDULE_TO_START, "")),
        _seconds(tags.get(TaskClock.START_TO_CLOSE, "")),
        _seconds(tags.get(TaskClock.SCHEDULE_TO_CLOSE, "")),
        _seconds(tags.get(TaskClock.HEARTBEAT, "")),
    )
