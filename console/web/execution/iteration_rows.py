"""Build the rows of a Map's iterations: one that sums them up, and below it the worst of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import iterations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.web.execution.iterations import Index, Iteration
    from engine import Node, Trace, Visit

MOST_WORST = 10
"""How many iterations in trouble are listed below a folded row."""
MOST_LISTED = 100
"""How many are listed below one that was unfolded; a filter finds the others."""
WORST_FIRST = ("failed", "timed_out", "running", "caught", "aborted", "succeeded")
_WORDS = {status: formatting.STEP[status].word.lower() for status in WORST_FIRST} | {
    "caught": "with a caught error"
}
LEAST = 2
"""A Map with fewer iterations has no row that sums them up."""


@dataclass(slots=True)  # not frozen: there may be thousands, and that makes them slow
class IterationSpan:
    """When an iteration was at work, in epoch milliseconds; ``end``: None while it is.

    ``visits``: the events that began its visits; ``critical``: it is on the critical path.
    """

    begin: int
    end: int | None
    status: str
    visits: Sequence[int] = ()
    critical: bool = False

    @property
    def tone(self) -> str:
        """Return the colour of its status."""
        return formatting.STEP[self.status].tone


@dataclass(frozen=True, slots=True)
class IterationSummary:
    """All iterations of a Map. ``toggled``: what the address names as unfolded after a press.

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
        """Return how many there are."""
        return f"{len(self.spans):,} iterations"

    @property
    def more(self) -> int:
        """Return how many are not listed below it."""
        return len(self.spans) - self.listed


def listed_iterations(trace: Trace, owner: Node, *, opened: bool) -> list[Iteration]:
    """Return the iterations of a Map below the row of all, the worst first."""
    by_status = iterations.iterations_by_status(trace, owner)
    statuses = [each for each in WORST_FIRST if opened or each not in ("succeeded", "running")]
    ranked = chain.from_iterable(by_status.get(status, ()) for status in statuses)
    return list(islice(ranked, MOST_LISTED if opened else MOST_WORST))


def iteration_spans(trace: Trace, owner: Node) -> Mapping[Index, IterationSpan]:
    """Return iteration of a Map -> when it was at work, in order."""
    return trace.derive((iteration_spans, owner.id), None, lambda: _find_spans(trace, owner))


def _find_spans(trace: Trace, owner: Node) -> dict[Index, IterationSpan]:
    made = iterations.iterations_of_map(trace, owner)
    size = len(made[0].index) if made else 0
    visits_of: defaultdict[Index, list[int]] = defaultdict(list)
    for node in iterations.nodes_within(trace.graph, owner):
        for number in trace.visits_of(node.id).counting_still():
            visits_of[trace.lines[number].iteration[:size]].append(number)
    times, left = trace.times, trace.left
    spans = {}
    for each in made:
        numbers = visits_of[each.index]
        first, *others = numbers  # of thousands most often without others
        begin, end = times[min(numbers) if others else first], left.get(first)
        if others:
            ends = [left[number] for number in numbers if number in left]
            end = max(ends) if len(ends) == len(numbers) else None
        spans[each.index] = IterationSpan(begin, end, each.status, numbers)
    return spans


def endings_text(counts: Mapping[str, int], not_started: int = 0) -> str:
    """Return how many iterations have each status, the worst first."""
    texts = [f"{counts[each]:,} {_WORDS[each]}" for each in WORST_FIRST if counts.get(each)]
    return " · ".join([*texts, *([f"{not_started:,} not started"] if not_started else [])])


def sum_up_iterations(
    trace: Trace, owner: Node, listed: int, opened: frozenset[str]
) -> IterationSummary | None:
    """Return the row of all iterations of a Map, None if there are too few for one."""
    begun = len(iterations.iterations_of_map(trace, owner))
    if begun < LEAST:
        return None
    by_status = iterations.iterations_by_status(trace, owner)
    counts = {status: len(same_status) for status, same_status in by_status.items()}
    not_started = iterations.items_not_started(trace, owner, begun)
    return IterationSummary(
        owner=owner.id,
        spans=tuple(iteration_spans(trace, owner).values()),
        text=endings_text(counts, not_started),
        not_started=not_started,
        worst=min(counts, key=WORST_FIRST.index),
        listed=listed,
        opened=owner.id in opened,
        toggled=",".join(sorted(opened ^ {owner.id})),
    )


def visits_of_iteration(trace: Trace, owner: Node, index: Index) -> list[Visit]:
    """Return the visits of an iteration, of the last attempt of its Map."""
    numbers = iteration_spans(trace, owner)[index].visits
    return [trace.visit(trace.owner_of(number)[0], number) for number in numbers]
