"""When is a task late, and by which of its clocks?

An activity task has four, as in SWF: from its scheduling until a worker has it, from then until it
ends, from its scheduling until it ends, and from one heartbeat to the next. Each is none unless a
tag of the activity sets it; TimeoutSeconds and HeartbeatSeconds of a state come before the tag.
No task of any kind is open for longer than a year.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.errors import ValidationException
from console.models import Tag
from console.store.db import sql

if TYPE_CHECKING:
    from collections.abc import Iterable

YEAR_S = 365 * 24 * 3600
SCHEDULE_TO_START, START_TO_CLOSE = "scheduleToStart", "startToClose"
SCHEDULE_TO_CLOSE, HEARTBEAT, YEAR = "scheduleToClose", "heartbeat", "year"
_TAGS = {
    f"stepyard:{clock}Timeout": clock
    for clock in (SCHEDULE_TO_START, START_TO_CLOSE, SCHEDULE_TO_CLOSE, HEARTBEAT)
}


_TAGGED = "SELECT arn, key, value FROM console_tag WHERE key IN ({})".format(
    ", ".join(f"'{key}'" for key in _TAGS)
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds on each clock of an activity's tasks; None: unlimited."""

    schedule_to_start: int | None = None
    start_to_close: int | None = None
    schedule_to_close: int | None = None
    heartbeat: int | None = None


NONE = Limits()


def shown_limit(arn: str) -> dict[str, str]:
    """Return tag -> seconds or NONE, for each clock of an activity."""
    known = dict(Tag.objects.filter(arn=arn, key__in=_TAGS).values_list("key", "value"))
    return {key: known.get(key, "NONE") for key in _TAGS}


def check_tag(key: str, value: str) -> None:
    """Raise ValidationException for a tag that should set a clock and does not."""
    if key in _TAGS and value != "NONE" and not _seconds(value):
        raise ValidationException(
            f"{key}: got {value!r}, wanted a number of seconds from 1 to 99999999, or NONE"
        )


def _seconds(value: str) -> int | None:
    """Return the seconds a tag says, None for NONE and for what says nothing."""
    known = value.isascii() and value.isdecimal() and len(value) <= 8  # noqa: PLR2004 - 99999999
    return int(value) or None if known else None


def limits_of(arns: Iterable[str]) -> dict[str, Limits]:
    """Return the limits of activities that have any, by ARN."""
    found: dict[str, dict[str, str]] = {}
    wanted = list(dict.fromkeys(arns))
    marks = ",".join(["%s"] * len(wanted))
    with sql.cursor() as cursor:
        cursor.execute(f"{_TAGGED} AND arn IN ({marks})", wanted)
        for arn, key, value in cursor.fetchall():
            found.setdefault(arn, {})[_TAGS[key]] = value
    return {
        arn: Limits(
            _seconds(said.get(SCHEDULE_TO_START, "")),
            _seconds(said.get(START_TO_CLOSE, "")),
            _seconds(said.get(SCHEDULE_TO_CLOSE, "")),
            _seconds(said.get(HEARTBEAT, "")),
        )
        for arn, said in found.items()
    }


def due_ms(from_ms: int, seconds: int | None) -> int | None:
    """Return when a clock that begins at ``from_ms`` runs out, at the latest after a year."""
    return None if seconds is None else from_ms + min(seconds, YEAR_S) * 1000


def close_due(scheduled_ms: int, limits: Limits) -> int:
    """Return when a task ends at the latest, however far it is."""
    return scheduled_ms + min(limits.schedule_to_close or YEAR_S, YEAR_S) * 1000


def first(
    clock: str, due_ms: int | None, scheduled_ms: int, close_due_ms: int | None
) -> tuple[int, str]:
    """Return which runs out first, and when: a clock, or the one over the task's whole life."""
    last_ms = close_due_ms or scheduled_ms + YEAR_S * 1000
    if due_ms is not None and due_ms < last_ms:
        return due_ms, clock
    return last_ms, YEAR if last_ms - scheduled_ms >= YEAR_S * 1000 else SCHEDULE_TO_CLOSE
