"""Build the rows of a Map's iterations: one that sums them up, and below it the worst of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import iterations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.web.execution.iterations import Index, Iteration
    from engine import Node, Trace, Visit

MOST_WORST = 10
"""How many iterations in trouble are listed below a folded row."""
MOST_LISTED = 100
"""How many are listed below one that was unfolded; a filter finds the others."""
WORST_FIRST = ("failed", "timed_out", "running", "caught", "aborted", "succeeded")
LEAST = 2
"""A Map with fewer iterations has no row that sums them up."""


@dataclass(frozen=True, slots=True)
class IterationSpan:
    """When an iteration was at work, in epoch milliseconds; ``end``: None while it is."""

    begin: int
    end: int | None
    tone: str


@dataclass(frozen=True, slots=True)
class IterationSummary:
    """All iterations of a Map. ``toggled``: what the address names as unfolded after a press."""

    owner: str
    spans: tuple[IterationSpan, ...]
    text: str
    worst: str
    listed: int
    opened: bool
    toggled: str

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


def iteration_spans(trace: Trace, owner: Node, made: Sequence[Iteration]) -> list[IterationSpan]:
    """Return when each iteration was at work, in the order of ``made``."""
    if not made:
        return []
    size = len(made[0].index)
    stays: dict[Index, list[int | None]] = {}
    for node in iterations.nodes_within(trace.graph, owner):
        visits = trace.visits_of(node.id)
        for number, index in zip(visits.numbers, visits.iterations(), strict=True):
            if not trace.counts_still(number):
                continue
            begin, end = trace.times[number], trace.left.get(number)
            known = stays.setdefault(index[:size], [begin, begin])
            known[0] = min(known[0] or begin, begin)
            known[1] = None if known[1] is None or end is None else max(known[1], end)
    return [
        IterationSpan(
            stays[each.index][0] or 0, stays[each.index][1], formatting.STEP[each.status].tone
        )
        for each in made
        if each.index in stays
    ]


def sum_up_iterations(
    trace: Trace, owner: Node, made: Sequence[Iteration], listed: int, opened: frozenset[str]
) -> IterationSummary | None:
    """Return the row of all iterations of a Map, None if there are too few for one."""
    if len(made) < LEAST:
        return None
    counts = Counter(iteration.status for iteration in made)
    tones = [tone for tone in WORST_FIRST if counts[tone]]
    words = (f"{counts[tone]:,} {formatting.STEP[tone].word.lower()}" for tone in tones)
    return IterationSummary(
        owner=owner.id,
        spans=tuple(iteration_spans(trace, owner, made)),
        text=" · ".join(words),
        worst=tones[0],
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
