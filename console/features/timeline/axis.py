"""Map the times of an execution to the width of the timeline, with idle time folded.

Positions are in units, ``WIDTH`` for the whole axis. Idle time, such as an hour of waiting or three
days before a redrive, is shortened to a fold of fixed width, so that the rest has room. If every
stretch of work is shorter than a second, nothing is folded. Each redrive begins a new attempt.
The page can show a single attempt.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from console.features.timeline.critical_path import CriticalPath
from console.models import HistoryEvent
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.core.formatting import DAY, HOUR, MINUTE, SECOND
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Execution
    from console.web.core.formatting import StatusLabel

WIDTH = 1000
LEAST = 20
"""Units: the minimum width of a bar, 4 px of 200."""
LANE = 20
"""Units: the height of a lane."""
_ANY_HEIGHT = 100
SHORTEST = MINUTE
"""Shorter idle time is not folded."""
_SHORTEST_ENDED = SECOND
"""The same for time before a redrive, which belongs to no attempt."""
MOST_LANES = 6
MOST_WORDS = 6
"""Number of labelled folds. If there are more, only the longest one has a label."""
MOST_TICKS = 6
_TICK_ROOM = 90
"""Units: the minimum distance between a tick and a fold."""
_CHARACTER = 16
"""Units: the width of a character of a label on a page of common width."""
_PLAIN = SECOND
"""Stretches of work shorter than this are not magnified by folds."""
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
    """One attempt of the execution, from its start or a redrive to its next end.

    ``number``: 1 for the first run, 2 for the first redrive. ``since``, ``until``: epoch
    milliseconds; ``until`` of a running attempt is the current time. ``last_event``: id of the
    event that ended it, 0 if the execution runs or was never redriven.
    """

    number: int
    since: int
    until: int
    status: StatusLabel
    last_event: int = 0

    @property
    def label(self) -> str:
        """Return its name: ``First run`` or ``Redrive 1``."""
        return "First run" if self.number == 1 else f"Redrive {self.number - 1}"

    @property
    def text(self) -> str:
        """Return its outcome and duration."""
        return f"{self.status.word.lower()}, {formatting.duration_text(self.until - self.since)}"


@dataclass(frozen=True, slots=True)
class IdleFold:
    """A fold of idle time. ``since``, ``until``: epoch milliseconds. ``x``, ``width``: units."""

    since: int
    until: int
    x: float
    width: float

    @property
    def text(self) -> str:
        """Return its label: the duration in one unit of time."""
        if 10 * SECOND <= self.until - self.since < MINUTE:  # the legend says it, too
            return formatting.duration_text(self.until - self.since)
        return formatting.rough_duration(self.until - self.since)

    @property
    def title(self) -> str:
        """Return its tooltip, with the exact duration."""
        return f"{formatting.duration_text(self.until - self.since)} idle, shortened"

    @property
    def text_x(self) -> float:
        """Return the x of the middle of its label: centred, but inside the axis."""
        half = len(self.text) * _CHARACTER / 2
        return min(max(self.x + self.width / 2, half), WIDTH - half)

    @property
    def middle(self) -> str:
        """Return ``text_x`` as a percentage of the width."""
        return f"{self.text_x / WIDTH:.1%}"

    def is_clear_of(self, other: IdleFold) -> bool:
        """Return whether the labels of both folds do not overlap."""
        room = (len(self.text) + len(other.text) + 2) * _CHARACTER / 2
        return abs(self.text_x - other.text_x) >= room


_NOTHING_LEFT = re.compile(r" 00 [a-z]+$")


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A mark on the axis. ``after_ms``: time after the origin. ``x``: its place in units."""

    after_ms: int
    x: float

    @property
    def text(self) -> str:
        """Return its label: the time after the origin, without a trailing ``00 s``."""
        return _NOTHING_LEFT.sub("", formatting.duration_text(self.after_ms))

    @property
    def share(self) -> str:
        """Return its place as a percentage of the width."""
        return f"{self.x / WIDTH:.1%}"


@dataclass(frozen=True, slots=True)
class AxisSpan:
    """The period that the axis shows. All times are epoch milliseconds.

    ``now``: the end of running bars. ``origin``: zero of the labels, None for ``begin``.
    """

    begin: int
    end: int
    now: int
    folds: tuple[IdleFold, ...] = field(default=())
    origin: int | None = None
    _scale: float = field(init=False, repr=False, compare=False)
    """Units per millisecond outside of folds."""

    def __post_init__(self) -> None:
        """Compute the scale once, because thousands of iterations need it."""
        room = WIDTH - sum(fold.width for fold in self.folds)
        object.__setattr__(self, "_scale", room / max(1, self.length - self.folded_ms))

    @property
    def first_ms(self) -> int:
        """Return its beginning in milliseconds after the origin."""
        return self.begin - (self.begin if self.origin is None else self.origin)

    @property
    def last_ms(self) -> int:
        """Return its end in milliseconds after the origin."""
        return self.first_ms + self.length

    @property
    def least_ms(self) -> float:
        """Return the time outside of folds that takes the width ``LEAST``, in milliseconds."""
        return LEAST / self._scale

    @property
    def knots(self) -> str:
        """Return the ends of axis and folds for a script: ``x:milliseconds`` after the origin."""
        points = [(0.0, self.begin), (float(WIDTH), self.end)]
        for fold in self.folds:
            points += [(fold.x, fold.since), (fold.x + fold.width, fold.until)]
        shift = self.begin - self.first_ms
        return " ".join(f"{x:g}:{moment - shift}" for x, moment in sorted(points))

    @property
    def length(self) -> int:
        """Return its length in milliseconds."""
        return self.end - self.begin

    @property
    def labelled_folds(self) -> tuple[IdleFold, ...]:
        """Return the folds with a label."""
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
        """Return the total folded time in milliseconds."""
        return sum(fold.until - fold.since for fold in self.folds)

    @property
    def ticks(self) -> tuple[AxisTick, ...]:
        """Return ticks at round times after the origin, outside of folds."""
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
        """Return the label of its beginning."""
        return formatting.duration_text(self.first_ms) if self.first_ms else "0"

    @property
    def last_text(self) -> str:
        """Return the label of its end."""
        return formatting.duration_text(self.last_ms)

    def _has_room(self, tick: AxisTick, before: AxisTick | None) -> bool:
        """Return whether a tick's label fits: after the previous tick, beside folds and the end."""
        half = (len(tick.text) / 2 + 1) * _CHARACTER
        used_px: float = len(self.first_text) * _CHARACTER
        if before is not None:
            used_px = before.x + len(before.text) * _CHARACTER / 2
        neighbour_texts = (self.first_text, self.last_text, before.text if before else "")
        if tick.text in neighbour_texts or tick.x - half < used_px:
            return False
        if tick.x + half > WIDTH - len(self.last_text) * _CHARACTER:
            return False
        return not any(
            fold.x - _TICK_ROOM < tick.x < fold.x + fold.width + _TICK_ROOM for fold in self.folds
        )

    def place(self, since: int, until: int, least: float = LEAST) -> tuple[float, float]:
        """Return (x, width) of a stretch of time in units. ``least``: the minimum width."""
        begin = self._x(since)
        x = min(max(0.0, begin), WIDTH - least)
        width = max(least, self._x(until) - begin)
        after = next((fold.x for fold in self.folds if until <= fold.since), WIDTH)
        x = max(0.0, min(x, after - width))  # a widened bar stays before the next fold
        return round(x, 1), round(min(width, WIDTH - x), 1)

    def _x(self, moment: int) -> float:
        """Return the x of a moment; inside a fold, time is spread evenly."""
        before = bisect_right(self.folds, moment, key=_SINCE) if self.folds else 0
        if not before:
            return (moment - self.begin) * self._scale
        last = self.folds[before - 1]
        if moment < last.until:
            return last.x + (moment - last.since) / (last.until - last.since) * last.width
        return last.x + last.width + (moment - last.until) * self._scale


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The period on display, and the attempts of the execution.

    ``chosen``: number of the selected attempt, 0 for all. ``zoomed``: the reader selected a part of
    the period.
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
        """Return the height of a bar in pixels."""
        return 22 if self.lanes == 1 else 16 * self.lanes

    @property
    def units(self) -> int:
        """Return the height of a bar in its own units."""
        return LANE * self.lanes

    @property
    def grid(self) -> SafeString:
        """Return the path of the lines at round times, from top to bottom of a bar."""
        return _grid_of(self.span, self.units)

    @property
    def lanes_grid(self) -> SafeString:
        """Return the grid for a bar of iterations, cut off at its own height."""
        return _grid_of(self.span, _ANY_HEIGHT)

    @property
    def lanes(self) -> int:
        """Return the number of lanes of a bar."""
        return min(len(self.shown), MOST_LANES)

    def lane(self, attempt: ExecutionAttempt) -> int:
        """Return an attempt's lane; the first attempts share one if there are too many."""
        place = [fold.number for fold in self.shown].index(attempt.number)
        return max(0, place - (len(self.shown) - self.lanes))


@lru_cache(maxsize=64)
def _grid_of(span: AxisSpan, units: int) -> SafeString:
    """Return the background grid of all bars."""
    return SafeString("".join(f"M{tick.x} 0V{units}" for tick in span.ticks))


def execution_attempts(
    execution: Execution, now_ms: int, past_ms: int | None = None
) -> tuple[ExecutionAttempt, ...]:
    """Return the attempts of an execution. ``past_ms``: only attempts begun by this moment."""
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
    """Return a span with folds for its idle time. ``busy``: (since, until) of all work.

    ``magnified``: False returns ``bare`` if all work is shorter than a second. ``ended``: (since,
    until) between an end of the execution and its redrive, folded from one second on.
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
    is_all_idle = sum(until - since for since, until in idle) >= end - begin
    width = (WIDTH if is_all_idle else min(_FOLD * len(idle), _MOST_FOLDED)) / max(1, len(idle))
    return replace(bare, folds=tuple(_place_folds(bare, idle, width)))


def _place_folds(bare: AxisSpan, idle: Sequence[Stretch], width: float) -> Iterable[IdleFold]:
    """Yield the folds with their positions."""
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
    """Return the union of stretches within begin and end, in order, and the worked milliseconds.

    Stretches with a gap below ``SHORTEST`` are merged, and the gap does not count as work.
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
    """Clip stretches to begin and end; leave out stretches outside of them."""
    for since, until in stretches:
        if begin <= since and until <= end:
            yield since, until
        elif until >= begin and since <= end:
            yield max(since, begin), min(until, end)
