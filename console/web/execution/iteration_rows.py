"""Rows of a Map's iterations in the steps table: a summary row, then the worst iterations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

from console.web.core import formatting
from console.web.execution import iterations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.web.execution.iterations import Index, Iteration
    from engine import Node, Trace, Visit

MOST_WORST = 10
"""The number of failed iterations listed below a folded row."""
MOST_LISTED = 100
"""The number of iterations listed below an unfolded row; a filter finds the others."""
WORST_FIRST = ("failed", "timed_out", "running", "caught", "aborted", "succeeded")
_WORDS = {status: formatting.STEP[status].word.lower() for status in WORST_FIRST} | {
    "caught": "with a caught error"
}
LEAST = 2
"""A Map with fewer iterations has no row that sums them up."""


class IterationSpan(NamedTuple):  # there may be thousands, and other classes take longer to make
    """The time of an iteration in epoch milliseconds; ``end``: None while running.

    ``visits``: the events that began its visits; ``critical``: it is on the critical path.
    """

    begin: int
    end: int | None
    status: str
    visits: Sequence[int] = ()
    critical: bool = False


@dataclass(frozen=True, slots=True)
class IterationSummary:
    """All iterations of a Map. ``toggled``: the URL's unfolded rows after a click.

    ``not_started``: of how many items none has begun.
    """

    owner: str
    spans: tuple[IterationSpan, ...]
    text: str
    worst: str
    listed: int
    opened: bool
    toggled: str
    not_started: int = 0

    @property
    def label(self) -> str:
        """Return the number of iterations."""
        return f"{len(self.spans):,} iterations"

    @property
    def more(self) -> int:
        """Return the number of unlisted iterations."""
        return len(self.spans) - self.listed


def listed_iterations(trace: Trace, owner: Node, *, opened: bool) -> list[Iteration]:
    """Return the listed iterations of a Map, the worst first."""
    map_iterations = iterations.iterations_of_map(trace, owner)
    statuses = [each for each in WORST_FIRST if opened or each not in ("succeeded", "running")]
    ranked = chain.from_iterable(map(map_iterations.of_status, statuses))
    return list(islice(ranked, MOST_LISTED if opened else MOST_WORST))


def iteration_spans(trace: Trace, owner: Node) -> tuple[IterationSpan, ...]:
    """Return the time span of each iteration of a Map."""
    subject = (iteration_spans, owner.id)
    return trace.derive(subject, None, lambda: tuple(_find_spans(trace, owner)))


def _find_spans(trace: Trace, owner: Node) -> Iterable[IterationSpan]:
    map_iterations = iterations.iterations_of_map(trace, owner)
    size = len(map_iterations.indexes[0]) if map_iterations else 0
    times, exits, lines = trace.times, trace.end_times, trace.lines
    numbers: list[int] = []
    for node in iterations.nodes_within(trace.graph, owner):
        numbers += trace.visits_of(node.id).counting_still()
    indexes = [lines[number].iteration[:size] for number in numbers]
    if len(numbers) == len(map_iterations):  # of thousands most often: each has visited one state
        visit_of = dict(zip(indexes, numbers, strict=True))
        ordered = [visit_of[index] for index in map_iterations.indexes]
        begins, ends = map(times.__getitem__, ordered), map(exits.get, ordered)
        columns = (begins, ends, map_iterations.statuses, zip(ordered), repeat(False))
        return map(IterationSpan._make, zip(*columns, strict=False))
    visits_of: defaultdict[Index, list[int]] = defaultdict(list)
    for index, number in zip(indexes, numbers, strict=True):
        visits_of[index].append(number)
    return (
        IterationSpan(
            times[min(visits_of[index])],
            max(map(exits.__getitem__, visits_of[index]))
            if exits.keys() >= set(visits_of[index])
            else None,
            status,
            visits_of[index],
        )
        for index, status in zip(map_iterations.indexes, map_iterations.statuses, strict=True)
    )


def endings_text(counts: Mapping[str, int], not_started: int = 0) -> str:
    """Return the number of iterations per status, the worst first."""
    texts = [f"{counts[each]:,} {_WORDS[each]}" for each in WORST_FIRST if counts.get(each)]
    return " · ".join([*texts, *([f"{not_started:,} not started"] if not_started else [])])


def sum_up_iterations(
    trace: Trace, owner: Node, listed: int, opened: frozenset[str]
) -> IterationSummary | None:
    """Return the summary row of a Map's iterations; None for too few."""
    map_iterations = iterations.iterations_of_map(trace, owner)
    if len(map_iterations) < LEAST:
        return None
    counts = {status: map_iterations.count(status) for status in WORST_FIRST}
    not_started = iterations.items_not_started(trace, owner, len(map_iterations))
    return IterationSummary(
        owner=owner.id,
        spans=iteration_spans(trace, owner),
        text=endings_text(counts, not_started),
        not_started=not_started,
        worst=next(status for status in WORST_FIRST if counts[status]),
        listed=listed,
        opened=owner.id in opened,
        toggled=",".join(sorted(opened ^ {owner.id})),
    )


def visits_of_iteration(trace: Trace, owner: Node, index: Index) -> list[Visit]:
    """Return the visits of an iteration in the last attempt of its Map."""
    place = iterations.iterations_of_map(trace, owner).place_of(index)
    numbers = [] if place is None else iteration_spans(trace, owner)[place].visits
    return [trace.visit(trace.owner_of(number)[0], number) for number in numbers]
