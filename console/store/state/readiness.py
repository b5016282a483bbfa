"""Keep how often the server was ready, by the minute, so that availability is measured.

A worker looks four times a minute (``console.worker.readiness_probe``). A minute in which nobody
looked counts as one in which the server was not ready: it was stopped, or its database was out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import F, Min

from console import clock
from console.models import ReadinessMinute
from console.store.db.writer import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MINUTE_MS = 60_000
KEPT_MS = 35 * 24 * 60 * MINUTE_MS
"""Older minutes are removed."""
NOBODY_LOOKED = "no worker measured: the server was stopped, or had no database"
_REASON = 200


@dataclass(frozen=True, slots=True)
class Availability:
    """The share of a span in which the server was ready.

    ``minutes``: the length of the span; ``lost``: minutes of it in which it was not ready.
    """

    minutes: int
    lost: float

    @property
    def share(self) -> float:
        """Return it as a number from 0 to 1; 1 of an empty span."""
        return 1 - self.lost / self.minutes if self.minutes else 1.0


@dataclass(frozen=True, slots=True)
class Interruption:
    """A time without readiness, ``until_ms`` not included."""

    from_ms: int
    until_ms: int
    reason: str

    @property
    def span_ms(self) -> int:
        """Return how long it was."""
        return self.until_ms - self.from_ms


@dataclass(frozen=True, slots=True)
class MeasuredMinute:
    """A minute: ``lost`` is the share of it without readiness."""

    minute_ms: int
    lost: float
    reason: str


def note_look(reason: str) -> None:
    """Add a look at the server to the minute it is in. ``reason``: why not ready, "" if it is."""
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


def measured_since() -> int | None:
    """Return the first minute that is kept, None if there is none."""
    first: int | None = ReadinessMinute.objects.aggregate(at=Min("minute_ms"))["at"]
    return first


def measured_minutes(since_ms: int, until_ms: int) -> list[MeasuredMinute]:
    """Return every minute of a span, also those in which nobody looked."""
    rows = ReadinessMinute.objects.filter(minute_ms__gte=since_ms, minute_ms__lt=until_ms)
    found = {
        minute: (1 - ready / looks, reason)
        for minute, looks, ready, reason in rows.values_list(
            "minute_ms", "looks", "ready", "reason"
        )
    }
    first = since_ms - since_ms % MINUTE_MS
    return [
        MeasuredMinute(minute, *found.get(minute, (1.0, NOBODY_LOOKED)))
        for minute in range(first, until_ms, MINUTE_MS)
    ]


def availability_of(minutes: Iterable[MeasuredMinute]) -> Availability:
    """Return the share of minutes with readiness."""
    lost = [minute.lost for minute in minutes]
    return Availability(len(lost), sum(lost))


def interruptions_of(minutes: Iterable[MeasuredMinute]) -> Iterator[Interruption]:
    """Yield the times without readiness, the first one first; neighbours are one."""
    current: Interruption | None = None
    for minute in minutes:
        if not minute.lost:
            if current is not None:
                yield current
            current = None
            continue
        until_ms = minute.minute_ms + MINUTE_MS
        if current is not None and current.reason != minute.reason:
            yield current
            current = None
        from_ms = minute.minute_ms if current is None else current.from_ms
        current = Interruption(from_ms, until_ms, minute.reason)
    if current is not None:
        yield current
