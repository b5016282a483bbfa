"""Show the health of targets: last success, and since when deliveries fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Min, Q

from console.models import Delivery, EventTarget
from console.statuses import DeliveryStatus
from console.web.core.formatting import StatusLabel

if TYPE_CHECKING:
    from collections.abc import Collection

_FAILING = StatusLabel("failed", "Failing")
_DELIVERED = StatusLabel("succeeded", "Delivered")
_SENDING = StatusLabel("running", "Sending")
_WAITING = StatusLabel("running", "Waiting")
_UNUSED = StatusLabel("idle", "Nothing sent yet")


@dataclass(slots=True)
class TargetHealth:
    """The deliveries of a target in the last seven days, by outcome.

    ``counts``: deliveries by status. ``delivered_ms``: time of the last successful delivery, epoch
    ms. ``failing_ms``: since when every delivery has failed, epoch ms; None if the target accepts
    deliveries. ``retried``: pending deliveries with a failed attempt. ``newest``: the id of the
    last delivery, None without one. ``timeouts``: attempts in a row without an answer in time;
    ``paused_until_ms``: when the next attempt may begin, epoch ms.
    """

    counts: dict[str, int] = field(default_factory=dict)
    delivered_ms: int | None = None
    failing_ms: int | None = None
    retried: int = 0
    newest: int | None = None
    timeouts: int = 0
    paused_until_ms: int | None = None

    @property
    def waiting(self) -> int:
        """Return the number of pending deliveries."""
        return self.counts.get(DeliveryStatus.WAITING, 0) + self.counts.get(
            DeliveryStatus.SENDING, 0
        )

    @property
    def dead(self) -> int:
        """Return the number of dead letters."""
        return self.counts.get(DeliveryStatus.DEAD, 0)

    @property
    def delivered(self) -> int:
        """Return the number of successful deliveries."""
        return self.counts.get(DeliveryStatus.DELIVERED, 0)

    @property
    def status(self) -> StatusLabel:
        """Return icon and word of the health."""
        if self.failing_ms is not None:
            return _FAILING
        if self.delivered_ms is not None:
            return _DELIVERED
        if self.counts.get(DeliveryStatus.SENDING):
            return _SENDING
        return _WAITING if self.counts else _UNUSED


def health_of_targets(targets: Collection[int]) -> dict[int, TargetHealth]:
    """Return target -> health, in at most three queries."""
    health = {target: TargetHealth() for target in targets}
    first_ended, last_dead = _read_counts(health)
    silent = EventTarget.objects.filter(pk__in=list(health), timeouts__gt=0)
    for target, timeouts, paused_ms in silent.values_list("pk", "timeouts", "paused_until_ms"):
        health[target].timeouts, health[target].paused_until_ms = timeouts, paused_ms
    # targets that failed after their last success -> time of that success
    again: dict[int, int] = {}
    for target, dead_ms in last_dead.items():
        row = health[target]
        if row.delivered_ms is None or first_ended[target] > row.delivered_ms:
            _fails_since(row, first_ended[target])
        elif dead_ms > row.delivered_ms:
            again[target] = row.delivered_ms
    for target, since_ms in _first_after(again).items():
        _fails_since(health[target], since_ms)
    return health


def _fails_since(row: TargetHealth, since_ms: int) -> None:
    row.failing_ms = since_ms if row.failing_ms is None else min(row.failing_ms, since_ms)


def _read_counts(health: dict[int, TargetHealth]) -> tuple[dict[int, int], dict[int, int]]:
    """Fill in the counts; return each target's first and last dead letter times."""
    is_retried = Q(attempts__gt=0)
    rows = Delivery.objects.filter(target__in=list(health)).order_by()
    grouped = rows.values_list("target", "status").annotate(
        number=Count("pk"),
        retried=Count("pk", filter=is_retried),
        first_ms=Min("ended_ms"),
        last_ms=Max("ended_ms"),
        oldest_ms=Min("created_ms", filter=is_retried),
        newest_ms=Max("created_ms", filter=is_retried),
        newest=Max("pk"),
    )
    first_ended, last_dead, waits = {}, {}, {}
    for target, status, count, retried, first_ms, last_ms, oldest_ms, newest_ms, newest in grouped:
        row = health[target]
        row.newest = max(newest, row.newest or 0)
        row.counts[status] = count
        if status == DeliveryStatus.DELIVERED:
            row.delivered_ms = last_ms
        elif status == DeliveryStatus.DEAD:
            first_ended[target], last_dead[target] = first_ms or 0, last_ms or 0
        elif retried:
            row.retried += retried
            waits[target] = (oldest_ms, newest_ms)
    for target, (oldest_ms, newest_ms) in waits.items():
        row = health[target]
        if row.delivered_ms is None or newest_ms > row.delivered_ms:
            row.failing_ms = max(oldest_ms, row.delivered_ms or 0)
    return first_ended, last_dead


def _first_after(moments: dict[int, int]) -> dict[int, int]:
    """Return target -> the end of its first dead letter after a time."""
    if not moments:
        return {}
    later = Q()
    for target, after_ms in moments.items():
        later |= Q(target=target, ended_ms__gt=after_ms)
    dead = Delivery.objects.filter(later, status=DeliveryStatus.DEAD).order_by()
    return dict(dead.values_list("target").annotate(Min("ended_ms")))
