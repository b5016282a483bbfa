"""Build the rows of a Map's iterations: one that sums them up, and below it the worst of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import iterations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


def listed_iterations(made: Sequence[Iteration], *, opened: bool) -> list[Iteration]:
    """Return the iterations below the row of all, the worst first."""
    ranked = sorted(made, key=lambda iteration: WORST_FIRST.index(iteration.status))
    if opened:
        return ranked[:MOST_LISTED]
    fine = ("succeeded", "running")
    return [iteration for iteration in ranked if iteration.status not in fine][:MOST_WORST]


def iteration_spans(trace: Trace, owner: Node) -> tuple[IterationSpan, ...]:
    """Return when each iteration of a Map was at work."""
    subject = (iteration_spans, owner.id)
    return trace.derive(subject, None, lambda: tuple(_find_spans(trace, owner)))


def _find_spans(trace: Trace, owner: Node) -> Iterator[IterationSpan]:
    made = iterations.iterations_of_map(trace, owner)
    size = len(made[0].index) if made else 0
    visits_of: dict[Index, list[int]] = {}
    for node in iterations.nodes_within(trace.graph, owner):
        for number in trace.visits_of(node.id).counting_still():
            visits_of.setdefault(trace.lines[number].iteration[:size], []).append(number)
    times, left = trace.times, trace.left
    for each in made:
        numbers = visits_of[each.index]
        if len(numbers) == 1:  # of thousands, most often
            yield IterationSpan(times[numbers[0]], left.get(numbers[0]), each.status, numbers)
            continue
        ends = [left[number] for number in numbers if number in left]
        end = max(ends) if len(ends) == len(numbers) else None
        yield IterationSpan(times[min(numbers)], end, each.status, numbers)


def endings_text(counts: Mapping[str, int], not_started: int = 0) -> str:
    """Return how many iterations have each status, the worst first."""
    texts = [f"{counts[each]:,} {_WORDS[each]}" for each in WORST_FIRST if counts.get(each)]
    return " · ".join([*texts, *([f"{not_started:,} not started"] if not_started else [])])


def sum_up_iterations(
    trace: Trace, owner: Node, made: Sequence[Iteration], listed: int, opened: frozenset[str]
) -> IterationSummary | None:
    """Return the row of all iterations of a Map, None if there are too few for one."""
    if len(made) < LEAST:
        return None
    counts = Counter(iteration.status for iteration in made)
    not_started = iterations.items_not_started(trace, owner, len(made))
    return IterationSummary(
        owner=owner.id,
        spans=iteration_spans(trace, owner),
        text=endings_text(counts, not_started),
        not_started=not_started,
        worst=min(counts, key=WORST_FIRST.index),
        listed=listed,
        opened=owner.id in opened,
        toggled=",".join(sorted(opened ^ {owner.id})),
    )


def visits_by_iteration(
    trace: Trace, owner: Node, shown: Sequence[Iteration]
) -> dict[Index, list[Visit]]:
    """Return iteration -> its visits, of the last attempt of its Map."""
    made: dict[Index, list[Visit]] = {iteration.index: [] for iteration in shown}
    size = len(shown[0].index) if shown else 0
    for inner in iterations.nodes_within(trace.graph, owner):
        visits = trace.visits_of(inner.id)
        for place, index in enumerate(visits.iterations()):
            if index[:size] in made and trace.counts_still(visits.numbers[place]):
                made[index[:size]].append(visits[place])
    return made
