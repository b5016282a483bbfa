"""Find the critical path of an execution: the chain of steps whose ends bound its end.

It is read backwards from the end. The visits of one line of control follow each other, so all of
them are on the path. Of what a Parallel or Map holds, the branch or iteration that ended last is on
it; one that was aborted because another had failed is not. If it began after its Parallel or Map
did (it waited for a place, or for a retry), so is the one that ended last before it began, and so
on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine import Trace

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class PathShare:
    """How long the critical path was in a state, together.

    ``percent``: of the time the execution ran; ``paused_ms``: how much of it the state waited for
    its retries.
    """

    state: str
    spent_ms: int
    percent: int
    paused_ms: int = 0


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """``visits``: the events that began the visits on it; ``shares``: where it was longest."""

    visits: frozenset[int] = frozenset()
    shares: tuple[PathShare, ...] = ()


@dataclass(slots=True)
class _LineStay:
    """One line of control in time. ``visits``: event, state, beginning and end of each."""

    begin: int
    end: int
    aborted: bool = False
    visits: list[tuple[int, str, int, int]] = field(default_factory=list)


def critical_path(trace: Trace, begin_ms: int, end_ms: int) -> CriticalPath:
    """Return the critical path of what of an execution lies between two times, epoch milliseconds.

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
        spent[node] = sum(trace.worked_ms(entered, left) for _, entered, left in stays)
    for number, node, entered, left in finder.inner_path():
        on_path.add(number)
        spent[node] += trace.worked_ms(entered, left)
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
    named = (share for share in shares if share.percent or share.state not in holders)
    return CriticalPath(frozenset(on_path), tuple(islice(named, MOST_NAMED)))


class _PathFinder:
    """The lines of control of an execution, by what holds them.

    ``holders``: states with lines; ``outermost``: visits of the states that no line holds. All of
    these are on the path. ``covered``: state -> how long what it holds was on the path instead.
    """

    def __init__(self, trace: Trace, begin_ms: int, end_ms: int) -> None:
        self._trace = trace
        self._lines = trace.lines
        self._begin_ms, self._end_ms = begin_ms, end_ms
        self.covered: Counter[str] = Counter()
        self._inner: dict[tuple[int, str], list[_LineStay]] = {}
        self.outermost = {
            node: visits
            for node, visits in trace.visits.items()
            if len(visits) and trace.lines[visits.numbers[0]].attempt is None
        }
        stays: dict[int, _LineStay] = {}
        for node in trace.visits:
            if node not in self.outermost:
                self._add(trace, node, stays)
        for lines in self._inner.values():
            lines.sort(key=lambda line: line.end)
        self._ends = {holder: [line.end for line in lines] for holder, lines in self._inner.items()}
        self.holders = {node for _, node in self._inner}

    def stays(self, node: str) -> list[tuple[int, int, int]]:
        """Return event, beginning and end of the visits of a state, without what was before."""
        first, visits = self._begin_ms, self._trace.visits[node]
        stays = visits.stays(self._end_ms)
        return [
            (number, max(entered, first), left)
            for number, (entered, left) in zip(visits.numbers, stays, strict=True)
            if left >= first
        ]

    def _add(self, trace: Trace, node: str, stays: dict[int, _LineStay]) -> None:
        """Note the visits of a state in the lines they belong to. ``stays``: by id of the line."""
        lines, ended = trace.lines, trace.ended
        for number, entered, left in self.stays(node):
            line = lines[number]
            stay = stays.get(id(line))
            if stay is None:
                stay = stays[id(line)] = _LineStay(entered, left)
                if line.attempt is not None:
                    holder = (id(line.attempt.home), line.attempt.node)
                    self._inner.setdefault(holder, []).append(stay)
            else:
                stay.begin, stay.end = min(stay.begin, entered), max(stay.end, left)
            if ended and ended.get(number) is VisitStatus.ABORTED:
                stay.aborted = True
            stay.visits.append((number, node, entered, left))

    def inner_path(self) -> Iterator[tuple[int, str, int, int]]:
        """Yield event, state, beginning and end of each visit on the path that a line holds."""
        waiting: list[_LineStay] = []
        for node in self.outermost.keys() & self.holders:
            for number, entered, left in self.stays(node):
                waiting += self._bounding(id(self._lines[number]), node, entered, left)
        while waiting:
            for visit in waiting.pop().visits:
                yield visit
                number, node, entered, left = visit
                if node in self.holders:
                    waiting += self._bounding(id(self._lines[number]), node, entered, left)

    def _bounding(self, line: int, node: str, entered: int, left: int) -> Iterator[_LineStay]:
        """Yield the branches or iterations that bound the end of their Parallel or Map."""
        until = left
        ends = self._ends.get((line, node), [])
        lines = self._inner.get((line, node), [])
        lines = lines[bisect_left(ends, entered) : bisect_right(ends, left)]
        of_visit = [inner for inner in reversed(lines) if inner.begin >= entered]
        for inner in [inner for inner in of_visit if not inner.aborted] or of_visit:
            if inner.end > until or inner.begin >= until > entered:
                continue
            yield inner
            self.covered[node] += self._trace.worked_ms(inner.begin, inner.end)
            until = inner.begin
            if until <= entered:
                return
