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
from typing import TYPE_CHECKING

from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine import Trace

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class PathShare:
    """How long the critical path was in a state, together; ``percent``: of the execution."""

    state: str
    spent_ms: int
    percent: int


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
    """Return the critical path of an execution that has ended; times are epoch milliseconds."""
    finder = _PathFinder(trace, end_ms)
    on_path: set[int] = set()
    spent: Counter[str] = Counter()
    for node, visits in finder.outermost.items():
        on_path.update(visits.numbers)
        if node not in finder.holders:
            spent[node] = sum(left - entered for entered, left in visits.stays(end_ms))
    for number, node, entered, left in finder.inner_path():
        on_path.add(number)
        if node not in finder.holders:
            spent[node] += left - entered
    length = max(1, end_ms - begin_ms)
    shares = tuple(
        PathShare(trace.graph.by_id[node].name, taken, round(100 * taken / length))
        for node, taken in spent.most_common(MOST_NAMED)
        if taken
    )
    return CriticalPath(frozenset(on_path), shares)


class _PathFinder:
    """The lines of control of an execution, by what holds them.

    ``holders``: states with lines; ``outermost``: visits of the states that no line holds. All of
    these are on the path, and a loop has thousands of them, so they are not looked at one by one.
    """

    def __init__(self, trace: Trace, end_ms: int) -> None:
        self._lines = trace.lines
        self._end_ms = end_ms
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

    def _add(self, trace: Trace, node: str, stays: dict[int, _LineStay]) -> None:
        """Note the visits of a state in the lines they belong to. ``stays``: by id of the line."""
        visits, lines, ended = trace.visits[node], trace.lines, trace.ended
        for number, (entered, left) in zip(visits.numbers, visits.stays(self._end_ms), strict=True):
            line = lines[number]
            stay = stays.get(id(line))
            if stay is None:
                stay = stays[id(line)] = _LineStay(entered, left)
                if line.attempt is not None:
                    holder = (id(line.attempt.home), line.attempt.node)
                    self._inner.setdefault(holder, []).append(stay)
            if ended and ended.get(number) is VisitStatus.ABORTED:
                stay.aborted = True
            stay.begin, stay.end = min(stay.begin, entered), max(stay.end, left)
            stay.visits.append((number, node, entered, left))

    def inner_path(self) -> Iterator[tuple[int, str, int, int]]:
        """Yield event, state, beginning and end of each visit on the path that a line holds."""
        waiting: list[_LineStay] = []
        for node, visits in self.outermost.items():
            if node not in self.holders:
                continue
            for number, stay in zip(visits.numbers, visits.stays(self._end_ms), strict=True):
                waiting += self._bounding(id(self._lines[number]), node, *stay)
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
            until = inner.begin
            if until <= entered:
                return
