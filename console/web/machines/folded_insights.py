"""Sum up what happened inside of the folded groups of a large machine's graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.graph.folding import FOLD_ABOVE, states_inside
from console.web.graph.shapes import fitting_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.web.machines.insights import Insight
    from engine import Graph


@dataclass(frozen=True, slots=True)
class FoldedInsight:
    """What the box of a folded group shows, as ``Insight`` has it.

    ``inside``: of the states that are folded into the box.
    """

    own: Insight
    inside: tuple[Insight, ...]

    @property
    def status(self) -> formatting.StatusLabel:
        """Return the worst that happened in it."""
        every = (self.own, *self.inside)
        if any(insight.failed for insight in every):
            return formatting.STEP["failed"]
        if any(insight.caught for insight in every):
            return formatting.STEP["caught"]
        return self.own.status

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        return fitting_line([self._entered, *self._parts])

    @property
    def label(self) -> str:
        """Return the group in words, for those who do not see the picture."""
        return ", ".join([self.own.node.name, self.own.node.type, self._entered, *self._parts])

    @property
    def _entered(self) -> str:
        return f"{self.own.ran} of {self.own.of}" if self.own.visits else "Never entered"

    @property
    def _parts(self) -> list[str]:
        failed = sum(1 for insight in self.inside if insight.failed)
        never = sum(1 for insight in self.inside if not insight.visits)
        return [
            f"{len(self.inside):,} states",
            *([f"{failed:,} failed"] if failed else []),
            *([f"{never:,} never entered"] if never else []),
        ]


def folded_insights(graph: Graph, known: Mapping[str, Insight]) -> dict[str, FoldedInsight]:
    """Return Parallel or Map -> what its box shows while folded; none of a machine that is small.

    ``known``: node id -> what happened in it, for all states.
    """
    if len(graph.nodes) <= FOLD_ABOVE:
        return {}
    return {
        owner: FoldedInsight(known[owner], tuple(known[node] for node in nodes))
        for owner, nodes in states_inside(graph).items()
    }
