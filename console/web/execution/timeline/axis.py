"""Map the times of an execution to the width of the timeline, with idle time folded.

Time in which nothing worked is folded: three days between a failure and its redrive, or an hour's
wait, take as little room as fits their words, so that what worked is seen. Where it all worked for
less than a second each time, there is nothing more to see, and no time is folded. Each redrive
begins a new attempt at the whole execution; one of them can be looked at alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from console.models import HistoryEvent
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.core.formatting import DAY, HOUR, MINUTE, SECOND
from console.web.execution.timeline.critical_path import CriticalPath
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Execution
    from console.web.core.formatting import StatusLabel

WIDTH = 1000
LEAST = 20
"""Units: nothing that happened is too short to be seen: 4 px of 200."""
LANE = 20
"""Units: the height of a lane."""
_ANY_HEIGHT = 100
SHORTEST = MINUTE
"""Less idle time is not folded."""
_SHORTEST_ENDED = SECOND
"""But for that before a redrive, which is no part of any attempt."""
MOST_LANES = 6
MOST_WORDS = 6
"""Of more folds only the longest says how long it is: the others have a tooltip."""
MOST_TICKS = 6
_TICK_ROOM = 90
"""Units: how far from a fold a tick stands."""
_CHARACTER = 16
"""Units: what a character of the words takes at a common width; a narrow page has no ticks."""
_PLAIN = SECOND
"""Stretches of work that are shorter need no more room than the least."""
_STEPS = tuple(
    count * unit
    for unit, counts in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (SECOND, (1, 2, 5, 10, 15, 30)),
        (MINUTE, (1, 2, 5, 10, 15, 30)),
        (HOUR, (1, 2, 3, 6, 12)),
        (DAY, (1, 2, 7, 14, 30, 90)),
    )
    for count in counts
)
_FOLD = 60
_MOST_FOLDED = 500  # units that all folds together may take
_SHARE = 10  # idle time is folded if it is more than this part of the time something worked
_SINCE = attrgetter("since")
_ENDS = {name: formatting.EXECUTION[status] for name, status in event_types.EXECUTION_ENDS.items()}
Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExecutionAttempt:
    """The execution from its start, or from a redrive (``number`` 2 and up), to its next end.

    ``until``: where it ended, or for one that runs what counts as now. ``last_event``: the event
    that ended it, if the execution was redriven.
    """

    number: int
    since: int
    until: int
    status: StatusLabel
    last_event: int = 0

    @property
    def label(self) -> str:
        """Return its name."""
        return "First run" if self.number == 1 else f"Redrive {self.number - 1}"

    @property
    def text(self) -> str:
        """Return its outcome and how long it took."""
        return f"{self.status.word.lower()}, {formatting.duration_text(self.until - self.since)}"


@dataclass(frozen=True, slots=True)
class IdleFold:
    """Idle time, folded; ``x`` and ``width`` in units."""

    since: int
    until: int
    x: float
    width: float

    @property
    def text(self) -> str:
        """Return how long it lasted, in one unit."""
        if 10 * SECOND <= self.until - self.since < MINUTE:  # the legend says it, too
            return formatting.duration_text(self.until - self.since)
        return formatting.rough_duration(self.until - self.since)

    @property
    def title(self) -> str:
        """Return how long it lasted."""
        return (
            f"{formatting.duration_text(self.until - self.since)} in which nothing worked, folded"
        )

    @property
    def text_x(self) -> float:
        """Return where the middle of its words is: of the fold, but for the ends of the axis."""
        half = len(self.text) * _CHARACTER / 2
        return min(max(self.x + self.width / 2, half), WIDTH - half)

    @property
    def middle(self) -> str:
        """Return where its words stand, as a share of the width."""
        return f"{self.text_x / WIDTH:.1%}"

    def is_clear_of(self, other: IdleFold) -> bool:
        """Tell whether the words of both can be read."""
        room = (len(self.text) + len(other.text) + 2) * _CHARACTER / 2
        return abs(self.text_x - other.text_x) >= room


_NOTHING_LEFT = re.compile(r" 00 [a-z]+$")


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A mark on the axis: how long after its beginning, and where, in units."""

    after_ms: int
    x: float

    @property
    def text(self) -> str:
        """Return how long after the beginning it is, without units of which there are none."""
        return _NOTHING_LEFT.sub("", formatting.duration_text(self.after_ms))

    @property
    def share(self) -> str:
        """Return where it stands, as a share of the width."""
        return f"{self.x / WIDTH:.1%}"


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """What the whole width stands for, in epoch milliseconds. ``now``: where what runs ends.

    ``origin``: what the words count from, the beginning unless another one is given.
    """

    begin: int
    end: int
    now: int
    folds: tuple[IdleFold, ...] = field(default=())
    origin: int | None = None
    _scale: float = field(init=False, repr=False, compare=False)
    """Units of a millisecond that is not folded."""

    def __post_init__(self) -> None:
        """Compute the scale once: thousands of iterations have a place."""
        room = WIDTH - sum(fold.width for fold in self.folds)
        object.__setattr__(self, "_scale", room / max(1, self.length - self.folded_ms))

    @property
    def first_ms(self) -> int:
        """Return how long after the origin it begins."""
        return self.begin - (self.begin if self.origin is None else self.origin)

    @property
    def last_ms(self) -> int:
        """Return how long after the origin it ends."""
        return self.first_ms + self.length

    @property
    def least_ms(self) -> float:
        """Return how much time that is not folded takes as little room as there is."""
        return LEAST / self._scale

    @property
    def knots(self) -> str:
        """Return where time bends, as ``x:milliseconds`` after the origin: a script reads it."""
        known = [(0.0, self.begin), (float(WIDTH), self.end)]
        for fold in self.folds:
            known += [(fold.x, fold.since), (fold.x + fold.width, fold.until)]
        shift = self.begin - self.first_ms
        return " ".join(f"{x:g}:{moment - shift}" for x, moment in sorted(known))

    @property
    def length(self) -> int:
        """Return how long it is, in milliseconds."""
        return self.end - self.begin

    @property
    def labelled_folds(self) -> tuple[IdleFold, ...]:
        """Return the folds that say how long they are."""
        longest_first = sorted(self.folds, key=lambda fold: fold.since - fold.until)
        if len(self.folds) > MOST_WORDS:
            return (longest_first[0],)
        labelled: list[IdleFold] = []
        for fold in longest_first:
            if all(fold.is_clear_of(other) for other in labelled):
                labelled.append(fold)
        return tuple(labelled)

    @property
    def folded_ms(self) -> int:
        """Return how long everything that is folded lasted."""
        return sum(fold.until - fold.since for fold in self.folds)

    @property
    def ticks(self) -> tuple[AxisTick, ...]:
        """Return round times between the beginning and the end, none of them in a fold."""
        worked = self.length - self.folded_ms
        step = next((step for step in _STEPS if worked / step <= MOST_TICKS), 0)
        if not step:
            return ()
        edges = [self.begin, *(edge for fold in self.folds for edge in (fold.since, fold.until))]
        ticks: list[AxisTick] = []
        for since, until in zip(edges[::2], [*edges[1::2], self.end], strict=True):
            origin = self.begin - self.first_ms
            first = (since - origin) // step + 1
            for after in range(first * step, until - origin, step):
                tick = AxisTick(after, round(self._x(origin + after), 1))
                if self._has_room(tick, ticks[-1] if ticks else None):
                    ticks.append(tick)
        return tuple(ticks)

    @property
    def first_text(self) -> str:
        """Return the words at its beginning."""
        return formatting.duration_text(self.first_ms) if self.first_ms else "0"

    @property
    def last_text(self) -> str:
        """Return the words at its end."""
        return formatting.duration_text(self.last_ms)

    def _has_room(self, tick: AxisTick, before: AxisTick | None) -> bool:
        """Tell whether the words of a tick fit: after those before, beside folds and the end."""
        half = (len(tick.text) / 2 + 1) * _CHARACTER
        taken: float = len(self.first_text) * _CHARACTER
        if before is not None:
            taken = before.x + len(before.text) * _CHARACTER / 2
        same = (self.first_text, self.last_text, before.text if before else "")
        if tick.text in same or tick.x - half < taken:
            return False
        if tick.x + half > WIDTH - len(self.last_text) * _CHARACTER:
            return False
        return not any(
            fold.x - _TICK_ROOM < tick.x < fold.x + fold.width + _TICK_ROOM for fold in self.folds
        )

    def place(self, since: int, until: int, least: float = LEAST) -> tuple[float, float]:
        """Return x and width of a stretch of time. ``least``: units that it is wide at least."""
        begin = self._x(since)
        x = min(max(0.0, begin), WIDTH - least)
        width = max(least, self._x(until) - begin)
        after = next((fold.x for fold in self.folds if until <= fold.since), WIDTH)
        x = max(0.0, min(x, after - width))  # widened to be seen, it stays before the fold
        return round(x, 1), round(min(width, WIDTH - x), 1)

    def _x(self, moment: int) -> float:
        """Return where a moment is; within a fold by its share of the fold."""
        before = bisect_right(self.folds, moment, key=_SINCE) if self.folds else 0
        if not before:
            return (moment - self.begin) * self._scale
        last = self.folds[before - 1]
        if moment < last.until:
            return last.x + (moment - last.since) / (last.until - last.since) * last.width
        return last.x + last.width + (moment - last.until) * self._scale


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The span on display, the attempts there are, and which of them was chosen (0: all).

    ``zoomed``: the reader chose a part of it.
    """

    span: AxisSpan
    attempts: tuple[ExecutionAttempt, ...]
    chosen: int = 0
    critical: CriticalPath = field(default_factory=CriticalPath)
    zoomed: bool = False

    @property
    def shown(self) -> tuple[ExecutionAttempt, ...]:
        """Return the attempts on display."""
        return tuple(attempt for attempt in self.attempts if self.chosen in (0, attempt.number))

    @property
    def height(self) -> int:
        """Return how high a bar is, in pixels."""
        return 22 if self.lanes == 1 else 16 * self.lanes

    @property
    def units(self) -> int:
        """Return how high a bar is, in its own units."""
        return LANE * self.lanes

    @property
    def grid(self) -> SafeString:
        """Return the path of the lines at round times, from top to bottom of a bar."""
        return _grid_of(self.span, self.units)

    @property
    def lanes_grid(self) -> SafeString:
        """Return the same for a bar of iterations, which cuts it off at its own height."""
        return _grid_of(self.span, _ANY_HEIGHT)

    @property
    def lanes(self) -> int:
        """Return how many lanes a bar has."""
        return min(len(self.shown), MOST_LANES)

    def lane(self, attempt: ExecutionAttempt) -> int:
        """Return an attempt's lane; where there are too many the first ones share one."""
        place = [fold.number for fold in self.shown].index(attempt.number)
        return max(0, place - (len(self.shown) - self.lanes))


@lru_cache(maxsize=64)
def _grid_of(span: AxisSpan, units: int) -> SafeString:
    """Return what all bars of a timeline have behind them."""
    return SafeString("".join(f"M{tick.x} 0V{units}" for tick in span.ticks))


def execution_attempts(
    execution: Execution, now_ms: int, past_ms: int | None = None
) -> tuple[ExecutionAttempt, ...]:
    """Return the attempts at an execution; ``past_ms``: those begun by then."""
    running = formatting.EXECUTION[ExecutionStatus.RUNNING]
    now = now_ms if past_ms is None else past_ms
    if not execution.redrive_count:
        end = execution.stop_ms if execution.stop_ms is not None else now_ms
        return (
            ExecutionAttempt(1, execution.start_ms, end, formatting.EXECUTION[execution.status]),
        )
    attempts = [ExecutionAttempt(1, execution.start_ms, now, running)]
    for number, at_ms, kind in _turns(execution):
        if at_ms > now:
            break
        if kind == "ExecutionRedriven":
            attempts.append(ExecutionAttempt(len(attempts) + 1, at_ms, now, running))
        else:
            last = attempts[-1]
            attempts[-1] = ExecutionAttempt(last.number, last.since, at_ms, _ENDS[kind], number)
    return tuple(attempts)


def _turns(execution: Execution) -> Iterable[tuple[int, int, str]]:
    rows = HistoryEvent.objects.filter(
        execution_id=execution.pk, type__in=[*_ENDS, "ExecutionRedriven"]
    )
    return rows.order_by("event_id").values_list("event_id", "at_ms", "type")


def fold_idle_time(
    bare: AxisSpan,
    busy: Iterable[Stretch],
    *,
    magnified: bool = True,
    ended: Iterable[Stretch] = (),
) -> AxisSpan:
    """Return a span with what is idle in it folded. ``busy``: when something worked.

    ``magnified``: also if nothing worked for long, so that there is little to see. ``ended``: when
    the execution lay ended, before a redrive; of that less than a minute is folded, too.
    """
    begin, end = bare.begin, bare.end
    merged, worked = _merge_stretches(busy, begin, end)
    if not magnified and all(until - since < _PLAIN for since, until in merged):
        return bare
    edges = [begin, *(edge for stretch in merged for edge in stretch), end]
    gaps = list(zip(edges[::2], edges[1::2], strict=True))
    least = max(SHORTEST, worked / _SHARE)
    idle = [(since, until) for since, until in gaps if until - since >= least]
    least = max(_SHORTEST_ENDED, worked / _SHARE)
    idle += [
        (since, until)
        for since, until in _clip_stretches(ended, begin, end)
        if until - since >= least
        and not any(first <= since and until <= last for first, last in idle)
    ]
    idle.sort()
    alone = sum(until - since for since, until in idle) >= end - begin
    width = (WIDTH if alone else min(_FOLD * len(idle), _MOST_FOLDED)) / max(1, len(idle))
    return replace(bare, folds=tuple(_place_folds(bare, idle, width)))


def _place_folds(bare: AxisSpan, idle: Sequence[Stretch], width: float) -> Iterable[IdleFold]:
    """Yield the folds at their places."""
    room = WIDTH - width * len(idle)
    total = bare.end - bare.begin - sum(until - since for since, until in idle)
    x, at_ms = 0.0, bare.begin
    for since, until in idle:
        x += (since - at_ms) / max(1, total) * room
        yield IdleFold(since, until, round(x, 1), round(width, 1))
        x, at_ms = x + width, until


def _merge_stretches(
    stretches: Iterable[Stretch], begin: int, end: int
) -> tuple[list[Stretch], int]:
    """Return when at least one of the stretches was going on, in order, within begin and end.

    And for how long; pauses too short to be folded are no pauses.
    """
    merged: list[Stretch] = []
    first, last, worked = begin, begin - SHORTEST, 0  # nothing so far
    for since, until in sorted(_clip_stretches(stretches, begin, end)):
        if since - last >= SHORTEST:
            merged.append((first, last))
            first = last = since
        if until > last:
            worked += until - (since if since > last else last)  # noqa: FURB136 - of thousands
            last = until
    return [*merged[1:], (first, last)] if merged else [], worked


def _clip_stretches(stretches: Iterable[Stretch], begin: int, end: int) -> Iterable[Stretch]:
    """Cut off what is outside of begin and end."""
    for since, until in stretches:
        if begin <= since and until <= end:
            yield since, until
        elif until >= begin and since <= end:
            yield max(since, begin), min(until, end)
