"""The visits of an execution: a visit is the stay of a line of control in a state.

A history of 25,000 events has 12,500 visits, of which a page needs a few. So ``VisitTable`` keeps
the facts of all visits as columns, by the number of the entering event, and creates ``Visit``
objects on demand. ``covered_ms`` sums overlapping visits without reading a long history again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice, repeat, takewhile
from operator import gt, sub
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping


T = TypeVar("T")


class VisitStatus(StrEnum):
    """The status of a visit."""

    RUNNING = "running"  # the state is not left yet
    SUCCEEDED = "succeeded"  # it was left by its own transition
    CAUGHT = "caught"  # it failed, and a Catcher took the error
    FAILED = "failed"  # it failed, and nothing took the error
    TIMED_OUT = "timed_out"  # it was in progress when the time of the execution was over
    ABORTED = "aborted"  # it was stopped by the failure of a sibling, or from outside


RUNNING, SUCCEEDED, CAUGHT = VisitStatus.RUNNING, VisitStatus.SUCCEEDED, VisitStatus.CAUGHT
FAILED, ABORTED = VisitStatus.FAILED, VisitStatus.ABORTED
TIMED_OUT = VisitStatus.TIMED_OUT
_FEW = 20
"""The number of look-ups of single visits after which an index of all visits is built."""


class VisitTable:
    """The facts of all visits, as columns; a visit is the number of its entering event."""

    def __init__(self) -> None:
        """Start without events. Number 0 stands for the time before the first event."""
        self.last = 0
        """The number of the last event."""
        self.times = [0]
        """Event -> when it happened, in epoch milliseconds."""
        self.lines: list[ControlLine] = []
        """Event -> the line of control it belongs to."""
        self.owners = [0]
        """Event -> the visit it belongs to, 0 if to none."""
        self.end_times: dict[int, int] = {}
        """Visit -> when it ended."""
        self.ended: dict[int, VisitStatus] = {}
        """Visit -> its status, if it is over and did not succeed."""
        self.attempts: dict[int, int] = {}
        """Visit -> how often its work was started."""
        self.retries: dict[int, int] = {}
        """Visit -> how often its work was started by a Retrier: not first, nor by a redrive."""
        self.pauses: dict[int, list[tuple[int, int]]] = {}
        """Visit -> when it waited for a Retrier to start its work again."""
        self.gaps: list[tuple[int, int]] = []
        """Times between an end of the execution and its redrive: nothing ran."""
        self.interrupted: dict[int, dict[int, VisitStatus]] = {}
        """Visit -> attempt at the execution, from 1 -> how it stood until a redrive opened it."""
        self.revision = 0
        """The number of ended visits that were opened again, or ended later after all."""
        self._derived: dict[Hashable, tuple[object, Any]] = {}
        self._views: dict[int, Visit] = {}
        self._events: dict[int, list[int]] = {}  # visit -> its events, up to event _indexed
        self._indexed = self._lookups = 0

    def derive(self, subject: Hashable, arguments: object, make: Callable[[], T]) -> T:
        """Return the cached result of ``make``, valid until the next event.

        One result is kept a subject, for the ``arguments`` it was made with last.
        """
        cached = self._derived.get(subject)
        if cached is None or cached[0] != arguments:
            cached = self._derived[subject] = (arguments, make())
        result: T = cached[1]
        return result

    def time_of(self, event: int) -> int:
        """Return when an event happened, in epoch milliseconds."""
        return self.times[event]

    def worked_ms(self, since: int, until: int) -> int:
        """Return the length of a period in milliseconds, without the gaps before redrives."""
        total = until - since
        for begin, end in self.gaps:
            total -= max(0, min(until, end) - max(since, begin))
        return total

    def _note_pause(self, visit: int, failure: int, retry: int) -> None:
        self.pauses.setdefault(visit, []).append((self.times[failure], self.times[retry]))

    def _note_gap(self, redrive: int) -> None:
        self.gaps.append((self.times[redrive - 1], self.times[redrive]))

    def _note_interruption(self, visit: int) -> None:
        self.interrupted.setdefault(visit, {})[len(self.gaps)] = self.status(visit)

    def status(self, visit: int) -> VisitStatus:
        """Return the status of a visit."""
        return self.ended.get(visit) or (SUCCEEDED if visit in self.end_times else RUNNING)

    def counts_still(self, visit: int) -> bool:
        """Return whether a visit is in the last attempt of each Parallel and Map around it."""
        attempt = self.lines[visit].attempt
        while attempt is not None:
            if (attempt.home.attempts or {}).get(attempt.node) is not attempt:
                return False
            attempt = attempt.home.attempt
        return True

    def visit(self, node: str, number: int) -> Visit:
        """Return the visit of a state that an event began, always the same object."""
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = Visit(self, node, number)
        return view

    def events_of(self, visit: int) -> list[int]:
        """Return the ids of a visit's events, in order."""
        if visit in self._events and self._indexed == self.last:
            return self._events[visit]
        self._lookups += 1
        if self._lookups <= _FEW:
            return list(_positions(self.owners, visit))
        for number in range(self._indexed + 1, len(self.owners)):
            owner = self.owners[number]
            if owner == number:
                self._events[owner] = [owner]
            elif owner:
                self._events[owner].append(number)
        self._indexed = self.last
        return self._events[visit]

    def ends_of_events(self, visit: int, first: int, last: int) -> list[int]:
        """Return the ids of a visit's first and last events, in order, without duplicates.

        A Map of ten thousand iterations has more events between them than anybody looks through.
        """
        if visit in self._events and self._indexed == self.last:
            events = self._events[visit]
            return events[:first] + events[first:][-last:]
        begin = list(islice(_positions(self.owners, visit), first))
        if len(begin) < first:
            return begin
        backwards = self.owners[: begin[-1] : -1]
        # as of a visit that began with the last of them
        end = islice(_positions([visit, *backwards], visit, 0), 1, last + 1)
        return begin + [len(self.owners) - place for place in end][::-1]


def _positions(owners: list[int], visit: int, first: int | None = None) -> Iterator[int]:
    """Yield the positions of a visit's events in the list of owners.

    ``first``: where that is, None for the event that began the visit.
    """
    at = visit if first is None else first
    try:
        while True:
            yield at
            at = owners.index(visit, at + 1)
    except ValueError:
        return


class Visit:
    """One visit. ``number``: the id of its entering event."""

    __slots__ = ("_table", "node", "number")

    def __init__(self, table: VisitTable, node: str, number: int) -> None:
        """Create the visit of ``node`` that event ``number`` began."""
        self._table = table
        self.node = node
        self.number = number

    @property
    def entered_ms(self) -> int:
        """Return when it began, in epoch milliseconds."""
        return self._table.time_of(self.number)

    @property
    def left_ms(self) -> int | None:
        """Return when it ended, None while it is open."""
        return self._table.end_times.get(self.number)

    @property
    def interrupted(self) -> Mapping[int, VisitStatus]:
        """Return attempt at the execution, from 1 -> status at its end; not of the last attempt."""
        return self._table.interrupted.get(self.number, {})

    @property
    def took_ms(self) -> int | None:
        """Return its duration without the gaps before redrives, None while it is open."""
        left_ms = self.left_ms
        return None if left_ms is None else self._table.worked_ms(self.entered_ms, left_ms)

    @property
    def running_since(self) -> int | None:
        """Return the start of its clock: its beginning plus the gaps; None once it ended."""
        if self.left_ms is not None:
            return None
        entered = self.entered_ms
        return entered + sum(
            until - max(since, entered) for since, until in self._table.gaps if until > entered
        )

    def worked_ms(self, since: int, until: int) -> int:
        """Return the length of a period in milliseconds, without the gaps before redrives."""
        return self._table.worked_ms(since, until)

    @property
    def status(self) -> VisitStatus:
        """Return its status."""
        return self._table.status(self.number)

    @property
    def attempts(self) -> int:
        """Return how many times its work was started."""
        return self._table.attempts.get(self.number, 0)

    @property
    def retries(self) -> int:
        """Return how many times a Retrier started its work again."""
        return self._table.retries.get(self.number, 0)

    @property
    def iteration(self) -> tuple[int, ...]:
        """Return its index in each surrounding Map, outermost first."""
        return self._table.lines[self.number].iteration

    @property
    def events(self) -> list[int]:
        """Return the ids of its own events, in order."""
        return self._table.events_of(self.number)

    def ends_of_events(self, first: int, last: int) -> list[int]:
        """Return the ids of its first and last events, in order, without duplicates."""
        return self._table.ends_of_events(self.number, first, last)

    def __repr__(self) -> str:
        """Return a description for debugging."""
        return f"Visit({self.node!r}, {self.number}, {self.status})"


class Visits(Sequence[Visit]):
    """The visits of one state, in order. ``numbers``: the IDs of their entered events."""

    __slots__ = ("_ended", "_node", "_table", "numbers")

    def __init__(self, table: VisitTable, node: str) -> None:
        """Create the list of a state's visits."""
        self._table = table
        self._node = node
        self._ended = EndedStays()
        self.numbers: list[int] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Visit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Visit]: ...
    def __getitem__(self, place: int | slice) -> Visit | list[Visit]:
        """Return the visit at a place, always the same object."""
        if isinstance(place, slice):
            return [self._table.visit(self._node, number) for number in self.numbers[place]]
        return self._table.visit(self._node, self.numbers[place])

    def __iter__(self) -> Iterator[Visit]:
        """Yield the visits."""
        visit, node = self._table.visit, self._node
        return (visit(node, number) for number in self.numbers)

    def begins(self) -> list[int]:
        """Return when each was entered."""
        return list(map(self._table.times.__getitem__, self.numbers))

    def ends(self, now: int) -> list[int]:
        """Return when each was left, ``now`` for an open one."""
        return list(map(self._table.end_times.get, self.numbers, repeat(now)))

    def stays(self, now: int) -> Iterator[tuple[int, int]]:
        """Yield when each was entered and left, ``now`` for an open one."""
        return zip(self.begins(), self.ends(now), strict=True)

    def worked_ms(self, since: int, until: int) -> int:
        """Return the length of a period in milliseconds, without the gaps before redrives."""
        return self._table.worked_ms(since, until)

    def span(self, now: int) -> tuple[int, int]:
        """Return the first entry and the last exit, ``now`` if one is open."""
        ended = self._ended_stays()
        ends = map(self._table.end_times.get, islice(self.numbers, ended.visits, None), repeat(now))
        return self._table.times[self.numbers[0]], max(chain((ended.end,), ends))

    def covered_ms(self, now: int) -> int:
        """Return how long at least one was open; overlaps count once, gaps do not."""
        if self._table.gaps:
            stays = list(self.worked_stays(now))
            return covered_ms([since for since, _ in stays], [until for _, until in stays])
        ended = self._ended_stays()
        rest = self.numbers[ended.visits :]
        begins = list(map(self._table.times.__getitem__, rest))
        ends = list(map(self._table.end_times.get, rest, repeat(now)))
        if not ended.can_add(begins, ends):
            return covered_ms(self.begins(), self.ends(now))
        return ended.covered_ms(begins, ends)

    def _ended_stays(self) -> EndedStays:
        """Return cached figures of the visits before the first open visit.

        So a poll does not read the ten thousand visits of a loop for the newest two.
        """
        stays = self._ended
        if stays.revision != self._table.revision:
            stays = EndedStays(self._table.revision)
        begins, ends = self._ended_after(stays.visits)
        if not stays.can_add(begins, ends):
            stays = EndedStays(self._table.revision)
            begins, ends = self._ended_after(0)
        if begins:
            stays = stays.with_more(begins, ends)
        self._ended = stays
        return stays

    def _ended_after(self, first: int) -> tuple[list[int], list[int]]:
        """Return entries and exits from place ``first`` up to the next open visit."""
        times, end_times = self._table.times, self._table.end_times
        more = list(takewhile(end_times.__contains__, islice(self.numbers, first, None)))
        return list(map(times.__getitem__, more)), list(map(end_times.__getitem__, more))

    def spent_ms(self, now: int) -> int:
        """Return the sum of their durations in milliseconds."""
        return sum(self.ends(now)) - sum(self.begins())

    def worked_stays(self, now: int) -> Iterable[tuple[int, int]]:
        """Return their entries and exits, split at the gaps before redrives."""
        stays: Iterable[tuple[int, int]] = self.stays(now)
        for gap in self._table.gaps:
            stays = list(without_gap(stays, *gap))
        return stays

    def retries(self) -> int:
        """Return how many times a Retrier started the work of any of them again."""
        retries = self._table.retries
        return sum(retries.get(number, 0) for number in self.numbers) if retries else 0

    def statuses(self) -> list[VisitStatus]:
        """Return the status of each."""
        ended, end_times = self._table.ended, self._table.end_times
        return [
            ended.get(number) or (SUCCEEDED if number in end_times else RUNNING)
            for number in self.numbers
        ]

    def iterations(self) -> list[tuple[int, ...]]:
        """Return the iteration of each."""
        lines = self._table.lines
        return [lines[number].iteration for number in self.numbers]

    def counting_still(self) -> list[int]:
        """Return the ids of the entering events of visits that still count, in order."""
        still_counts: dict[int, bool] = {}
        counting = []
        for number in self.numbers:
            attempt = id(self._table.lines[number].attempt)
            if attempt not in still_counts:
                still_counts[attempt] = self._table.counts_still(number)
            if still_counts[attempt]:
                counting.append(number)
        return counting

    def failed(self) -> set[int]:
        """Return the places, from 1, of the failed visits."""
        ended = self._table.ended
        if not ended:
            return set()
        return {
            place for place, number in enumerate(self.numbers, 1) if ended.get(number) == FAILED
        }

    def place(self, visit: Visit) -> int:
        """Return the number of a visit among them, from 1."""
        return self.numbers.index(visit.number) + 1


@dataclass(slots=True, eq=False)
class GroupAttempt:
    """One start of a Parallel or Map. ``total``: its number of children, if known.

    ``tally``: state -> status -> number of iterations that ended there with that status; without
    ``finished`` iterations; ``culprit``: node and visit whose failure ended it.
    """

    node: str
    home: ControlLine
    total: int | None = None
    started: int = 0
    done: int = 0
    lines: dict[int, ControlLine] = field(default_factory=dict)
    finished: list[ControlLine] = field(default_factory=list)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    culprit: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """The progress of attempts at a Parallel or Map. ``total``: None if not known."""

    started: int
    done: int
    total: int | None

    @classmethod
    def of(cls, attempts: Sequence[GroupAttempt]) -> GroupProgress | None:
        """Return the sum of some attempts, None without any."""
        totals = [attempt.total for attempt in attempts if attempt.total is not None]
        total = sum(totals) if len(totals) == len(attempts) else None
        counts = (sum(each.started for each in attempts), sum(each.done for each in attempts))
        return cls(*counts, total) if attempts else None


class ControlLine:
    """One line of control: the execution itself (no attempt), a branch, or an iteration.

    ``open``: the state it is in, "" if in none; ``latest``: state -> its latest visit.
    """

    __slots__ = ("attempt", "attempts", "group", "index", "iteration", "latest", "open")

    def __init__(
        self,
        group: str,
        attempt: GroupAttempt | None = None,
        index: int = 0,
        iteration: tuple[int, ...] = (),
    ) -> None:
        """Begin before its first state."""
        self.group = group
        self.attempt = attempt
        self.index = index
        self.iteration = iteration
        self.open = ""
        self.latest: dict[str, int] = {}
        self.attempts: dict[str, GroupAttempt] | None = None  # most lines of control have none

    @property
    def inner(self) -> dict[str, GroupAttempt]:
        """Return the current attempts of its Parallels and Maps; the caller may change the dict."""
        if self.attempts is None:
            self.attempts = {}
        return self.attempts

    def enclosing(self, group: str) -> ControlLine | None:
        """Return the line of control in ``group``: this line or an enclosing one."""
        line = self
        while line.group != group:
            if line.attempt is None:
                return None
            line = line.attempt.home
        return line

    def child_of(self, node: str) -> ControlLine | None:
        """Return the branch or iteration of the Parallel or Map ``node`` that this is, or is in."""
        line, attempt = self, self.attempt
        while attempt is not None:
            if attempt.node == node:
                return line
            line = attempt.home
            attempt = line.attempt
        return None

    def deepest_failure(self) -> tuple[str, int]:
        """Return node and visit of the failure in the open state, or in its children."""
        attempt = (self.attempts or {}).get(self.open)
        if attempt is not None and attempt.culprit is not None:
            return attempt.culprit
        return self.open, self.latest[self.open]

    def failure_inside(self, node: str, visit: int) -> tuple[str, int] | None:
        """Return node and visit of the failure inside a Parallel or Map that ended its visit.

        None for other states, and if the state was entered again since.
        """
        attempt = (self.attempts or {}).get(node)
        return attempt.culprit if attempt and self.latest.get(node) == visit else None


# -- time that stays cover -------------------------------------------------------------------------


def covered_ms(begins: Iterable[int], ends: Iterable[int]) -> int:
    """Return how long at least one of the stays lasted; overlaps count once.

    ``begins`` and ``ends``: the times of the same stays, each in any order.
    """
    ordered = sorted(ends)
    if not ordered:
        return 0
    entered = sorted(begins)
    # Nothing is covered where as many stays have ended as have begun: between the end that comes
    # as number n and the beginning that comes as number n + 1.
    pauses: Iterable[int] = map(sub, islice(entered, 1, None), ordered)
    return ordered[-1] - entered[0] - sum([pause for pause in pauses if pause > 0])


def without_gap(
    stays: Iterable[tuple[int, int]], begin: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the stays without the time between ``begin`` and ``end``."""
    for since, until in stays:
        if until <= begin or since >= end:
            yield since, until
            continue
        if since < begin:
            yield since, begin
        if until >= end:
            yield end, until


@dataclass(frozen=True, slots=True)
class EndedStays:
    """Cached figures of the first visits of a state, all ended.

    ``revision``: see ``VisitTable.revision``; ``visits``: their number; ``begin``: when the
    earliest began; ``latest``: when the latest began; ``end``: when all had ended; ``pauses``: the
    total time between ``begin`` and ``end`` without any visit.

    The visits that follow can be added if they begin after all of these, as they do while times do
    not go back: no pause falls into them then. Times go back where somebody sets a clock back, and
    in imported histories. ``can_add`` finds that, and the sum is made anew from all visits.
    """

    revision: int = 0
    visits: int = 0
    begin: int = 0
    latest: int = 0
    end: int = 0
    pauses: int = 0

    def can_add(self, begins: list[int], ends: list[int]) -> bool:
        """Return whether later visits begin after these, and end after they begin."""
        if not self.visits or not begins:
            return True
        return min(begins) >= self.latest and not any(map(gt, begins, ends))

    def with_more(self, begins: list[int], ends: list[int]) -> EndedStays:
        """Return the figures with later visits, for which ``can_add`` holds."""
        begin = self.begin if self.visits else min(begins)
        end = max(self.end, *ends) if self.visits else max(ends)
        pauses = end - begin - self.covered_ms(begins, ends)
        visits = self.visits + len(begins)
        return EndedStays(self.revision, visits, begin, max(begins), end, pauses)

    def covered_ms(self, begins: list[int], ends: list[int]) -> int:
        """Return the covered time together with later visits, for which ``can_add`` holds."""
        if not self.visits:
            return covered_ms(begins, ends)
        return covered_ms([self.begin, *begins], [self.end, *ends]) - self.pauses
