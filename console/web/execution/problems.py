"""Lead from one failed or caught visit to the next, over all states of an execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import VisitStatus

if TYPE_CHECKING:
    from console.web.execution.panel import Panel
    from engine import Trace

_BAD = (VisitStatus.FAILED, VisitStatus.TIMED_OUT, VisitStatus.CAUGHT)


@dataclass(frozen=True, slots=True)
class ProblemVisit:
    """A visit that failed or whose error was caught, one of ``count``.

    ``number``: which of them is on display now, from 1; 0 for none. ``all_caught``: none of the
    ``count`` made the execution fail.
    """

    step: str
    visit: int
    iteration: str
    number: int
    count: int
    all_caught: bool


def problem_visits(trace: Trace) -> list[int]:
    """Return the visits with a problem, by the events that entered them, in order.

    A Parallel or Map whose failure is that of a state inside of it is left out, as is what a retry
    replaced.
    """
    graph = trace.graph
    outer = {group.owner for group in graph.groups}
    numbers = []
    for number, status in trace.ended.items():
        node = graph.by_id.get(trace.owner_of(number)[0])
        if status not in _BAD or node is None or not trace.counts_still(number):
            continue
        if status != VisitStatus.CAUGHT and node.id in outer and not node.distributed:
            continue
        numbers.append(number)
    return sorted(numbers)


def next_problem(trace: Trace, shown: Panel | None) -> ProblemVisit | None:
    """Return the problem after the visit on display, round again after the last; None: no other."""
    numbers = problem_visits(trace)
    at = 0
    if shown is not None and shown.number:
        at = trace.visits[shown.node.id].numbers[shown.number - 1]
    others = [number for number in numbers if number != at]
    if not others:
        return None
    number = next((number for number in others if number > at), others[0])
    node, _ = trace.owner_of(number)
    visit = trace.visit(node, number)
    return ProblemVisit(
        trace.graph.by_id[node].name,
        trace.visits[node].place(visit),
        ".".join(map(str, visit.iteration)),
        numbers.index(at) + 1 if at in numbers else 0,
        len(numbers),
        all(_is_caught(trace, each) for each in numbers),
    )


def _is_caught(trace: Trace, number: int) -> bool:
    """Tell whether the error of a visit was caught: there, or by a Parallel or Map around it."""
    if trace.ended[number] == VisitStatus.CAUGHT:
        return True
    attempt = trace.lines[number].attempt
    while attempt is not None:
        if trace.ended.get(attempt.home.latest.get(attempt.node, 0)) == VisitStatus.CAUGHT:
            return True
        attempt = attempt.home.attempt
    return False
