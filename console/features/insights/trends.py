"""State machines whose durations drift, or that have not started for long."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import TYPE_CHECKING

from django.db.models import F, OuterRef, Subquery

from console.db import clock
from console.models import Execution, StateMachine
from console.statuses import ExecutionStatus, MachineStatus
from console.web.core.formatting import DAY, MINUTE, StatusLabel, rough_duration
from console.web.search.lists import newest_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.web.core.scope import Scope
    from console.web.search.lists import MachinePage

MOST_MACHINES = 100
"""The number of state machines, the last started, that are examined for drift and silence."""
_MOST_TRENDS = 5
LOOKED_AT = 60
"""The number of latest executions read per machine."""
NEW = 10
"""The number of latest successes that are compared with the successes before them."""
BEFORE = 30
LEAST_BEFORE = 10
_FACTOR = 1.5
_LEAST_MS = 500
_ROUND = 10
STARTS = 12
"""The gaps between how many of the newest starts are a state machine's rhythm."""
LEAST_GAPS = 5
_REGULAR = 3
SILENT_MS = 7 * DAY
"""The time after which a state machine without a rhythm counts as silent."""


@dataclass(frozen=True, slots=True)
class DurationDrift:
    """A state machine whose latest successes are slower or faster than its earlier successes.

    ``now``, ``before``: the medians in milliseconds; ``since_ms``: when the first of the newest
    started.
    """

    machine: str
    now: int
    before: int
    since_ms: int

    @property
    def factor(self) -> float:
        """Return the new duration divided by the old one."""
        return max(self.now, 1) / max(self.before, 1)

    @property
    def strength(self) -> float:
        """Return the factor of the change in either direction, at least 1."""
        return max(self.factor, 1 / self.factor)

    @property
    def status(self) -> StatusLabel:
        """Return icon and words of the change."""
        if self.factor < 1:
            return StatusLabel("succeeded", f"{_times(1 / self.factor)} faster")
        return StatusLabel("caught", f"{_times(self.factor)} slower")


@dataclass(frozen=True, slots=True)
class SilentMachine:
    """A state machine that has not run for a long time.

    ``usual``: the median time between its starts in milliseconds, None without a regular interval.
    """

    machine: str
    last_ms: int
    usual: int | None

    @property
    def status(self) -> StatusLabel:
        """Return icon and word; a broken rhythm needs attention."""
        return StatusLabel("idle", "Quiet") if self.usual is None else StatusLabel("caught", "Late")

    @property
    def rhythm(self) -> str:
        """Return its usual interval between starts, "" if unknown."""
        return "" if self.usual is None else f"Usually every {rough_duration(self.usual)}"


@dataclass(frozen=True, slots=True)
class MachineTrends:
    """The overview's drifting and silent state machines, the most striking first.

    ``compared``: how many of them have enough successes to be compared with their past.
    """

    drifts: tuple[DurationDrift, ...]
    silent: tuple[SilentMachine, ...]
    compared: int
    needed: int = NEW + LEAST_BEFORE


def trend_context(scope: Scope, listed: MachinePage) -> dict[str, MachineTrends]:
    """Return the trends for the overview."""
    return {"trends": machine_trends(scope, listed)}


def machine_trends(scope: Scope, listed: MachinePage) -> MachineTrends:
    """Return drifting and silent state machines.

    State machines that have never run are not examined. ``listed``: the first state machines by
    name, reused if there are no others.
    """
    names = _last_started(scope) if listed.after else _names(listed)
    newest = newest_rows(list(names), ("stop_ms", "status"), LOOKED_AT)
    now = clock.now_ms()
    drifts, silent, compared = [], [], 0
    for machine, rows in newest.items():
        succeeded = [
            (start, stop) for start, stop, status in rows if status == ExecutionStatus.SUCCEEDED
        ]
        drifts.append(_drift(names[machine], succeeded[: NEW + BEFORE]))
        compared += len(succeeded) >= NEW + LEAST_BEFORE
        starts = [start for start, _, _ in rows[:STARTS]]
        silent.append(_silence(names[machine], starts, now))
    return MachineTrends(
        tuple(sorted(filter(None, drifts), key=lambda drift: -drift.strength)[:_MOST_TRENDS]),
        tuple(
            sorted(filter(None, silent), key=lambda row: (row.usual is None, -row.last_ms))[
                :_MOST_TRENDS
            ]
        ),
        compared,
    )


def _names(listed: MachinePage) -> dict[int, str]:
    machines = [row.machine for row in listed.rows]
    return {
        machine.pk: machine.name for machine in machines if machine.status == MachineStatus.ACTIVE
    }


def _last_started(scope: Scope) -> dict[int, str]:
    """Return id -> name of the most recently started state machines."""
    newest = Execution.objects.filter(state_machine=OuterRef("pk")).order_by("-start_ms", "-id")
    machines = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    ).annotate(last_ms=Subquery(newest.values("start_ms")[:1]))
    order = (F("last_ms").desc(nulls_last=True), "pk")
    return dict(machines.order_by(*order).values_list("pk", "name")[:MOST_MACHINES])


def _drift(name: str, rows: Sequence[tuple[int, int]]) -> DurationDrift | None:
    """Return the drift; None without a change or with too few executions.

    The new median must be outside of the middle half of the earlier durations.
    """
    times = [stop - start for start, stop in rows]
    new, before = times[:NEW], times[NEW:]
    if len(before) < LEAST_BEFORE:
        return None
    low, middle, high = quantiles(before, n=4, method="inclusive")
    now = round(median(new))
    drift = DurationDrift(name, now, round(middle), rows[NEW - 1][0])
    moved = abs(now - middle) >= _LEAST_MS and drift.strength >= _FACTOR
    return drift if moved and not low <= now <= high else None


def _silence(name: str, starts: Sequence[int], now: int) -> SilentMachine | None:
    """Return a silent state machine; None while it starts as usual.

    It has a rhythm where it starts about as often each time: the longest gap is at most three
    times the median one. What people start by hand has none, and is quiet after a week.
    """
    silence = now - starts[0]
    gaps = [later - earlier for later, earlier in pairwise(starts)]
    usual = round(median(gaps)) if gaps else 0
    regular = len(gaps) >= LEAST_GAPS and usual >= MINUTE and max(gaps) <= _REGULAR * usual
    if regular and silence > _FACTOR * max(gaps):
        return SilentMachine(name, starts[0], usual)
    return SilentMachine(name, starts[0], None) if silence > SILENT_MS else None


def _times(factor: float) -> str:
    return f"{factor:.1f}×" if factor < _ROUND else f"{factor:,.0f}×"  # noqa: RUF001 - as on the graph
