"""Summarize what is inside of the folded groups of a large machine's graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.graph.folding import FOLD_ABOVE, states_inside
from console.web.graph.shapes import badge_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.web.execution.steps import StepSummary
    from engine import Graph

_SINGLE = {label.tone: label for label in formatting.LEGEND}
_WORST = ("failed", "running", "caught", "aborted", "succeeded", "idle")


@dataclass(frozen=True, slots=True)
class FoldedGroup:
    """What the box of a folded group shows, as ``StepSummary`` has it.

    ``status``: the worst one inside, or its own.
    """

    status: formatting.StatusLabel
    under: str
    label: str
    running_since: int | None
    badge: str

    @property
    def badge_place(self) -> tuple[int, int, int]:
        """Return where the badge stands at its box."""
        return badge_place(self.badge)

    @property
    def paint(self) -> dict[str, str]:
        """Return what the script repaints the box with."""
        return {"tone": self.status.tone, "under": self.under, "label": self.label}


def folded_groups(graph: Graph, summaries: Mapping[str, StepSummary]) -> dict[str, FoldedGroup]:
    """Return Parallel or Map -> what its box shows while folded; none of a machine that is small.

    Groups with a state that ``summaries`` lacks are left out.
    """
    if len(graph.nodes) <= FOLD_ABOVE:
        return {}
    return {
        owner: _folded_group(summaries[owner], [summaries[node] for node in nodes])
        for owner, nodes in states_inside(graph).items()
        if owner in summaries and all(node in summaries for node in nodes)
    }


def _folded_group(own: StepSummary, inside: list[StepSummary]) -> FoldedGroup:
    counts = Counter(summary.status.tone or "idle" for summary in inside)
    labels = {
        summary.status.tone or "idle": _SINGLE.get(summary.status.tone, summary.status)
        if summary.mixed
        else summary.status
        for summary in [*inside, own]
    }
    worst = next((tone for tone in _WORST if tone in labels), "idle")
    states = f"{len(inside):,} states"
    parts = [f"{counts[tone]:,} {labels[tone].word.lower()}" for tone in _WORST[:4] if counts[tone]]
    under = " · ".join([own.status.word, states, *parts[:1]])
    label = ", ".join([own.label, f"{states} folded", *parts])
    return FoldedGroup(labels[worst], under, label, own.running_since, own.badge)
