"""Measure the availability of the server: store per minute how often a check found it ready.

A worker checks four times a minute (``readiness_probe``). A minute without a check counts as not
ready: the server was stopped, or its database was down.

A minute in which a worker started or stopped counts in part. A server that starts at 10:00:20
checks first at 10:00:35, so one of the four checks of its minute is missing:

1. in the first minute of all, measuring begins at 10:00:15, not at 10:00:00;
2. after minutes without a check, 10:00:00 to 10:00:15 counts as not ready as well.

Elsewhere three checks are a whole minute, as a check may fall into the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import F

from console.db import clock
from console.db.writer import write
from console.models import ReadinessMinute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MINUTE_MS = 60_000
LOOKS = 4
"""Number of checks per minute."""
KEPT_MS = 35 * 24 * 60 * MINUTE_MS
"""The time for which minutes are kept."""
NOBODY_LOOKED = "no worker measured: the server was stopped, or had no database"
_REASON = 200


@dataclass(frozen=True, slots=True)
class Availability:
    """The share of a period in which the server was ready.

    ``minutes``: the length of the span; ``lost``: minutes of it in which it was not ready.
    """

    minutes: float
    lost: float

    @property
    def share(self) -> float:
        """Return the share from 0 to 1; 1 for an empty period."""
        return 1 - self.lost / self.minutes if self.minutes else 1.0


@dataclass(frozen=True, slots=True)
class Interruption:
    """A period in which the server was not ready, ``until_ms`` excluded.

    ``lost_ms``: how long the server was not ready: less than the time, if it was so in between.
    """

    from_ms: int
    until_ms: int
    lost_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class MeasuredMinute:
    """A minute. ``measured``: its share since measuring began; ``lost``: that without readiness."""

    minute_ms: int
    lost: float
    reason: str
    measured: float = 1.0

    @property
    def lost_ms(self) -> int:
        """Return for how long the server was not ready in it."""
        return round(self.lost * MINUTE_MS)


def note_look(reason: str) -> None:
    """Record a check of the server. ``reason``: why it is not ready, "" if it is."""
    now_ms = clock.now_ms()
    minute_ms = now_ms - now_ms % MINUTE_MS
    ready = 0 if reason else 1

    def store() -> None:
        changes: dict[str, Any] = {"looks": F("looks") + 1, "ready": F("ready") + ready}
        if reason:
            changes["reason"] = reason[:_REASON]
        if ReadinessMinute.objects.filter(pk=minute_ms).update(**changes):
            return
        row = ReadinessMinute(minute_ms=minute_ms, looks=1, ready=ready, reason=reason[:_REASON])
        # another worker that leads by mistake may have been first: its look is as good
        ReadinessMinute.objects.bulk_create([row], ignore_conflicts=True)
        ReadinessMinute.objects.filter(minute_ms__lt=now_ms - KEPT_MS).delete()

    write(store)


def note_stop() -> None:
    """Record one failed check, at the start of the server's only process, for the stop before.

    A restart of a few seconds leaves no minute without a check. The first start of all ends no
    stop.
    """
    if ReadinessMinute.objects.exists():
        note_look(NOBODY_LOOKED)


def measured_since() -> int | None:
    """Return when the stored measurement begins; None without one."""
    first = ReadinessMinute.objects.order_by("minute_ms").first()
    if first is None:
        return None
    return first.minute_ms + round((1 - _share_looked(first.looks)) * MINUTE_MS)


def measured_minutes(since_ms: int, until_ms: int) -> list[MeasuredMinute]:
    """Return every minute of a period, also minutes without a check."""
    first_ms = since_ms - since_ms % MINUTE_MS
    stored = ReadinessMinute.objects.filter(minute_ms__gte=first_ms, minute_ms__lt=until_ms)
    fields = ("minute_ms", "looks", "ready", "reason")
    rows = {row.minute_ms: row for row in stored.values_list(*fields, named=True)}
    minutes = []
    for minute_ms in range(first_ms, until_ms, MINUTE_MS):
        row = rows.get(minute_ms)
        if row is None:
            minutes.append(MeasuredMinute(minute_ms, 1.0, NOBODY_LOOKED))
            continue
        is_first, is_last = minute_ms == first_ms, minute_ms + MINUTE_MS >= until_ms
        beside_gap = (not is_first and minute_ms - MINUTE_MS not in rows) or (
            not is_last and minute_ms + MINUTE_MS not in rows
        )
        measured = 1 - (since_ms - first_ms) / MINUTE_MS if is_first else 1.0
        minutes.append(_measured_minute(row, measured, beside_gap=beside_gap))
    return minutes


def _measured_minute(row: Any, measured: float, *, beside_gap: bool) -> MeasuredMinute:
    """Return the minute of a row; ``beside_gap``: there were none in the minute before or after."""
    looked = measured
    if beside_gap or row.looks < LOOKS - 1:
        looked = min(measured, _share_looked(row.looks))
    lost = measured - looked * row.ready / row.looks
    reason = row.reason or (NOBODY_LOOKED if lost else "")
    return MeasuredMinute(row.minute_ms, lost, reason, measured)


def _share_looked(looks: int) -> float:
    """Return the share of a minute that this number of checks covers."""
    return min(looks / LOOKS, 1.0)


def availability_of(minutes: Iterable[MeasuredMinute]) -> Availability:
    """Return the share of minutes with readiness."""
    measured = list(minutes)
    return Availability(
        sum(minute.measured for minute in measured), sum(minute.lost for minute in measured)
    )


def interruptions_of(minutes: Iterable[MeasuredMinute]) -> Iterator[Interruption]:
    """Yield the interruptions, oldest first; adjacent minutes with one reason are joined."""
    neighbours: list[MeasuredMinute] = []
    for minute in minutes:
        if neighbours and (not minute.lost or minute.reason != neighbours[-1].reason):
            yield _interruption(neighbours)
            neighbours = []
        if minute.lost:
            neighbours.append(minute)
    if neighbours:
        yield _interruption(neighbours)


def _interruption(minutes: list[MeasuredMinute]) -> Interruption:
    """Return the interruption of adjacent minutes.

    Where it is within a single minute is not known.
    """
    first, last = minutes[0], minutes[-1]
    from_ms, until_ms = first.minute_ms, last.minute_ms + MINUTE_MS
    if len(minutes) > 1:
        from_ms += MINUTE_MS - first.lost_ms
        until_ms -= MINUTE_MS - last.lost_ms
    return Interruption(from_ms, until_ms, sum(minute.lost_ms for minute in minutes), first.reason)
