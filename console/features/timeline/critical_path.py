"""Find the critical path of an execution: the chain of steps that determines its duration.

It is traced backwards from the end. The visits of one line of control follow each other, so all are
on the path. In a Parallel or Map, the branch or iteration that ended last is on it, unless it was
aborted after another one's failure. If it began later than its Parallel or Map (it waited for
concurrency, or for a retry), the branch or iteration that ended last before its begin is on the
path, too, and so on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine import ControlLine, GroupAttempt, Trace, Visits

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class PathShare:
    """The total time of the critical path in one state."""

    state: str
    spent_ms: int
    percent: int
    paused_ms: int = 0


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """``visits``: entry events of the visits on it; ``shares``: the largest shares."""

    visits: frozenset[int] = frozenset()
    shares: tuple[PathShare, ...] = ()


def critical_path(trace: Trace, begin_ms: int, end_ms: int) -> CriticalPath:
    """Return the critical path between two times in epoch milliseconds.

    It has ended: as a whole, or ``trace`` ends with an attempt at it. A Parallel or Map itself has
    the time in which nothing inside of it is on the path, such as the pause before a retry.
    """
    ends = (begin_ms, end_ms)
    return trace.derive(critical_path, ends, lambda: _find_critical_path(trace, *ends))


def _find_critical_path(trace: Trace, begin_ms: int, end_ms: int) -> CriticalPath:
    finder = _PathFinder(trace, begin_ms, end_ms)
    on_path: set[int] = set()
    spent: Counter[str] = Counter()
    paused: Counter[str] = Counter()
    for node, visits in finder.outermost.items():
        if not trace.gaps:  # all of them lie between the two times: no list of a long loop's visits
            on_path.update(visits.numbers)
            spent[node] = visits.spent_ms(end_ms)
            continue
        stays = finder.stays(node)
        on_path.update(number for number, _, _ in stays)
        spent[node] = sum(trace.worked_ms(entered_ms, left_ms) for _, entered_ms, left_ms in stays)
    for number, node, entered_ms, left_ms in finder.inner_path():
        on_path.add(number)
        spent[node] += trace.worked_ms(entered_ms, left_ms)
    for number in on_path & trace.pauses.keys():
        for since, until in trace.pauses[number]:
            begin, end = max(since, begin_ms), min(until, end_ms)
            paused[trace.owner_of(number)[0]] += max(0, trace.worked_ms(begin, end))
    spent.subtract(finder.covered)
    length = max(1, trace.worked_ms(begin_ms, end_ms))
    shares = (
        PathShare(
            trace.graph.by_id[node].name,
            taken,
            round(100 * taken / length),
            min(paused[node], taken),
        )
        for node, taken in spent.most_common()
        if taken > 0
    )
    holders = {trace.graph.by_id[node].name for node in finder.holders}
    listed = (share for share in shares if share.percent or share.state not in holders)
    return CriticalPath(frozenset(on_path), tuple(islice(listed, MOST_NAMED)))


class _PathFinder:
    """The lines of control of an execution, by their Parallel or Map.

    ``holders``: Parallels and Maps; ``outermost``: visits of states outside of all of them, which
    are all on the path. ``covered``: Parallel or Map -> the time that its inner states are on the
    path in its place.

    The visits of a line of control follow each other, so a line lasts from its first entry to its
    last exit. A Map has thousands of lines, and only the few on the path are read closely.
    """

    def __init__(self, trace: Trace, begin_ms: int, end_ms: int) -> None:
        self._trace = trace
        self._begin_ms, self._end_ms = begin_ms, end_ms
        self.covered: Counter[str] = Counter()
        self.outermost: dict[str, Visits] = {}
        inner: list[int] = []
        for node, visits in trace.visits.items():
            if len(visits) and trace.lines[visits.numbers[0]].attempt is None:
                self.outermost[node] = visits
            else:
                inner += visits.numbers
        self._visits_of = self._visits_of_lines(sorted(inner))
        self._aborted = {
            trace.lines[number]
            for number, how in trace.ended.items()
            if how is VisitStatus.ABORTED and self._end_of(number) >= begin_ms
        }
        self._lines = self._lines_by_holder()
        self._ends = {holder: [end for end, _ in lines] for holder, lines in self._lines.items()}
        self.holders = {node for _, node in self._lines}

    def _visits_of_lines(self, numbers: list[int]) -> dict[ControlLine, list[int]]:
        """Return the visits of each line of control in a Parallel or Map, in order."""
        lines, first = self._trace.lines, self._begin_ms
        visits_of: defaultdict[ControlLine, list[int]] = defaultdict(list)
        if self._trace.gaps:  # some of them may have been before
            numbers = [number for number in numbers if self._end_of(number) >= first]
        for number in numbers:
            visits_of[lines[number]].append(number)
        return visits_of

    def _lines_by_holder(self) -> dict[tuple[ControlLine, str], list[tuple[int, ControlLine]]]:
        """Return (line, its state) -> the inner lines of control, by their ends."""
        exits, end_ms = self._trace.end_times, self._end_ms
        by_attempt: defaultdict[GroupAttempt, list[tuple[int, ControlLine]]] = defaultdict(list)
        for line, numbers in self._visits_of.items():
            if line.attempt is not None:
                by_attempt[line.attempt].append((exits.get(numbers[-1], end_ms), line))
        by_holder: defaultdict[tuple[ControlLine, str], list[tuple[int, ControlLine]]]
        by_holder = defaultdict(list)
        for attempt, lines in by_attempt.items():
            by_holder[attempt.home, attempt.node] += lines
        for lines in by_holder.values():
            lines.sort(key=itemgetter(0))
        return by_holder

    def _begin_of(self, number: int) -> int:
        return max(self._trace.times[number], self._begin_ms)

    def _end_of(self, number: int) -> int:
        return self._trace.end_times.get(number, self._end_ms)

    def stays(self, node: str) -> list[tuple[int, int, int]]:
        """Return event, begin and end of a state's visits, clipped to the period."""
        stays = self._trace.visits[node].stays(self._end_ms)
        return [
            (number, max(entered_ms, self._begin_ms), left_ms)
            for number, (entered_ms, left_ms) in zip(
                self._trace.visits[node].numbers, stays, strict=True
            )
            if left_ms >= self._begin_ms
        ]

    def inner_path(self) -> Iterator[tuple[int, str, int, int]]:
        """Yield event, state, begin and end of each visit on a line's critical path."""
        trace = self._trace
        waiting: list[ControlLine] = []
        for node in self.outermost.keys() & self.holders:
            for number, entered_ms, left_ms in self.stays(node):
                waiting += self._bounding_parts(trace.lines[number], node, entered_ms, left_ms)
        while waiting:
            line = waiting.pop()
            for number in self._visits_of[line]:
                node = trace.owner_of(number)[0]
                entered_ms, left_ms = self._begin_of(number), self._end_of(number)
                yield number, node, entered_ms, left_ms
                if node in self.holders:
                    waiting += self._bounding_parts(line, node, entered_ms, left_ms)

    def _bounding_parts(
        self, line: ControlLine, node: str, entered_ms: int, left_ms: int
    ) -> Iterator[ControlLine]:
        """Yield the branches or iterations that determine the end of a Parallel or Map."""
        until = left_ms
        ends = self._ends.get((line, node), [])
        lines = self._lines.get((line, node), [])
        lines = lines[bisect_left(ends, entered_ms) : bisect_right(ends, left_ms)]
        times, visits_of, aborted = self._trace.times, self._visits_of, self._aborted
        if entered_ms > self._begin_ms:  # others may end when a visit that follows begins
            lines = [stay for stay in lines if times[visits_of[stay[1]][0]] >= entered_ms]
        for end, inner in [stay for stay in lines[::-1] if stay[1] not in aborted] or lines[::-1]:
            if end > until:
                continue
            begin = self._begin_of(visits_of[inner][0])
            if begin >= until > entered_ms:
                continue
            yield inner
            self.covered[node] += self._trace.worked_ms(begin, end)
            until = begin
            if until <= entered_ms:
                return
