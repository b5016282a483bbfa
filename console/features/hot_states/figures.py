"""Compute failures, retries, duration and cost of each state, and their colours on the graph.

Failures include caught failures. Costs use AWS's published prices: for Standard executions by the
state's transitions, for Express executions by memory and duration.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from console.features.insights import insights, past_executions
from console.features.metrics import cost
from console.web.core import formatting
from console.web.graph.graph_view import FOLD_ABOVE, states_inside
from console.web.graph.shapes import fitting_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.features.insights.past_executions import GridCell, PastExecution
    from console.models import Execution
    from console.web.core.formatting import StatusLabel
    from engine import Graph, Node

FIGURES = {
    "failures": "Failures",
    "retries": "Retries",
    "p95": "p95 duration",
    "cost": "Cost",
}
"""Figure -> its heading."""
SORTS = (*FIGURES, "definition", "name", "ran")
LEVELS = 4
"""Steps of the colour, from the least to the most."""

Value = int | Decimal | None


@dataclass(frozen=True, slots=True)
class HotState:
    """The figures of a state. ``visits``, ``ran``, ``of``: as in ``Insight``.

    ``caught``: how many of the failures. ``p95``: milliseconds of a visit. ``cost``: dollars, None
    for a state that costs nothing by itself. ``level``: the colour level of the displayed figure, 0
    for none.
    """

    node: Node
    ran: int
    of: int
    visits: int
    failures: int
    caught: int
    retries: int
    p95: int | None
    cost: Decimal | None
    painted: str = "failures"
    level: int = 0

    @property
    def status(self) -> StatusLabel:
        """Return CSS class and words of the box in the graph."""
        return formatting.StatusLabel(f"heat-{self.level}" if self.visits else "idle", self.under)

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        if not self.visits:
            return "Never entered"
        figure = figure_text(self.painted, getattr(self, self.painted))
        if self.painted == "p95":
            return f"p95 {figure}"
        if self.painted == "cost":
            return figure
        noun = self.painted if getattr(self, self.painted) != 1 else _SINGULAR[self.painted]
        visits = f"{self.visits:,} visit{'s' if self.visits != 1 else ''}"
        return fitting_line([f"{figure} {noun}", visits])

    @property
    def label(self) -> str:
        """Return a description of the state for screen readers."""
        return f"{self.node.name}, {self.node.type}, {self.under}, level {self.level} of {LEVELS}"


_SINGULAR = {"failures": "failure", "retries": "retry"}


@dataclass(frozen=True, slots=True)
class FoldedStates:
    """The box of a folded Parallel or Map: the hottest state in it. ``inside``: with the owner."""

    owner: Node
    inside: tuple[HotState, ...]

    @property
    def status(self) -> StatusLabel:
        """Return the class of the hottest state."""
        return self._hottest.status

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        return fitting_line([self._hottest.under, f"{len(self.inside) - 1:,} states"])

    @property
    def label(self) -> str:
        """Return a description of the group for screen readers."""
        states = f"{len(self.inside) - 1:,} states"
        return f"{self.owner.name}, {self.owner.type}, {states}, the highest: {self._hottest.label}"

    @property
    def _hottest(self) -> HotState:
        return max(self.inside, key=lambda state: (state.level, state.visits))


def figure_text(figure: str, value: Value) -> str:
    """Format a figure, "-" without a value."""
    if value is None:
        return "-"
    if figure == "p95":
        return formatting.duration_text(int(value))
    if figure == "cost":
        return f"${value:.6f}" if value < 1 else f"${value:,.2f}"
    return f"{value:,}"


# -- summing up ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PastRuns:
    """The counted executions. ``inner``: child executions of their distributed Maps."""

    executions: Sequence[PastExecution]
    inner: Sequence[PastExecution]
    apart: frozenset[str]

    def with_state(self, state: str) -> Sequence[PastExecution]:
        """Return the executions in which a state may run."""
        return self.inner if state in self.apart else self.executions


def read_runs(graph: Graph, executions: Sequence[PastExecution]) -> PastRuns:
    """Return the counted executions, with children of distributed Maps."""
    distributed_states = insights.states_in_children(graph)
    inner = past_executions.child_executions(executions) if distributed_states else []
    return PastRuns(executions, inner, distributed_states)


def list_states(graph: Graph, runs: PastRuns, painted: str, *, express: bool) -> list[HotState]:
    """Return the figures of each state, in definition order."""
    insight_of = insights.list_insights(graph, runs.executions, runs.inner)
    costs = state_costs(graph, runs, express=express)
    states = [
        HotState(
            node=node,
            ran=insight_of[node.id].ran,
            of=insight_of[node.id].of,
            visits=insight_of[node.id].visits,
            failures=insight_of[node.id].failed + insight_of[node.id].caught,
            caught=insight_of[node.id].caught,
            retries=insight_of[node.id].retried,
            p95=insight_of[node.id].p95,
            cost=costs.get(node.id),
            painted=painted,
        )
        for node in graph.nodes
    ]
    return _graded(states, painted)


def _graded(states: Sequence[HotState], painted: str) -> list[HotState]:
    most = max((getattr(state, painted) or 0 for state in states), default=0)
    return [replace(state, level=level_of(getattr(state, painted), most)) for state in states]


def level_of(value: Value, most: Value) -> int:
    """Return the colour level: 0 for nothing, up to ``LEVELS``."""
    if not value or not most:
        return 0
    return math.ceil(LEVELS * Fraction(value) / Fraction(most))


def state_costs(graph: Graph, runs: PastRuns, *, express: bool) -> dict[str, Decimal]:
    """Return node id -> cost in dollars, for entered states.

    ``express``: whether the state machine is of type Express. A Map or Parallel of an Express
    execution costs nothing by itself: its time is the time of the states inside.
    """
    rates = {name: rate.dollars for name, rate in cost.read_rates().items()}
    in_express = {node.id for node in graph.nodes} if express else _express_children(graph)
    owners = {group.owner for group in graph.groups}
    costs = {}
    for node in graph.nodes:
        runs_of_state = runs.with_state(node.name)
        cells = [run.cells[node.name] for run in runs_of_state if node.name in run.cells]
        if not cells or (node.id in in_express and node.id in owners):
            continue
        if node.id in in_express:
            gb_seconds = sum((_gb_seconds(cell) for cell in cells), Decimal())
            costs[node.id] = gb_seconds * rates["express_gb_second"]
        else:
            costs[node.id] = transitions(cells) * rates["standard_transition"]
    return costs


def transitions(cells: Iterable[GridCell]) -> int:
    """Return the billed state transitions: visits and retries."""
    return sum(cell.visits + cell.retries for cell in cells)


def _gb_seconds(cell: GridCell) -> Decimal:
    """Return memory times duration, without the rounding of whole executions."""
    spent = sum(cell.times) if cell.spent is None else cell.spent
    return Decimal(cost.billed_mb(cost.BASE_MB * cost.MB)) / 1024 * spent / 1000


def _express_children(graph: Graph) -> set[str]:
    """Return the ids of states that run in Express children of a distributed Map."""
    inside = states_inside(graph)
    return {
        node
        for owner, nodes in inside.items()
        if _starts_express(graph.by_id[owner])
        for node in nodes
    }


def _starts_express(owner: Node) -> bool:
    processor = json.loads(owner.text).get("ItemProcessor") or {}
    return bool((processor.get("ProcessorConfig") or {}).get("ExecutionType") == "EXPRESS")


def sort_states(states: Sequence[HotState], order: str) -> list[HotState]:
    """Return the states in an order of ``SORTS``, highest figures first."""
    if order == "definition":
        return list(states)
    if order == "name":
        return sorted(states, key=lambda state: state.node.name.casefold())
    return sorted(states, key=lambda state: getattr(state, order) or 0, reverse=True)


def fold_states(graph: Graph, states: Sequence[HotState]) -> dict[str, FoldedStates]:
    """Return Parallel or Map -> its folded box; empty for a small state machine."""
    if len(graph.nodes) <= FOLD_ABOVE:
        return {}
    by_id = {state.node.id: state for state in states}
    return {
        owner: FoldedStates(graph.by_id[owner], tuple(by_id[node] for node in (owner, *nodes)))
        for owner, nodes in states_inside(graph).items()
    }


# -- the legend ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A colour level and its range in words."""

    level: int
    words: str


def list_legend(states: Sequence[HotState], painted: str) -> list[LegendEntry]:
    """Return the occurring colour levels."""
    most = max((getattr(state, painted) or 0 for state in states), default=0)
    entries = [LegendEntry(0, "none")]
    if not most:
        return entries
    is_count = painted in ("failures", "retries")
    for level in range(1, LEVELS + 1):
        low, high = (Fraction(most) * step / LEVELS for step in (level - 1, level))
        if not is_count:
            value = Decimal(high.numerator) / high.denominator
            entries.append(LegendEntry(level, f"up to {figure_text(painted, value)}"))
        elif math.floor(high) > math.floor(low):
            first, last = math.floor(low) + 1, math.floor(high)
            words = f"{first:,}" if first == last else f"{first:,} to {last:,}"
            entries.append(LegendEntry(level, words))
    return entries


# -- the executions behind a figure ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountedExecution:
    """An execution, with a text about its share of a figure."""

    execution: Execution
    share: str


def list_counted(runs: PastRuns, state: str, figure: str) -> list[CountedExecution]:
    """Return the executions in a state's figure, newest first; for p95 by duration."""
    entered = [run for run in runs.with_state(state) if state in run.cells]
    shares: list[tuple[PastExecution, int]] = [
        (run, share) for run in entered if (share := _share(run.cells[state], figure)) is not None
    ]
    if figure == "p95":
        shares.sort(key=lambda pair: -pair[1])
    return [CountedExecution(run.execution, _share_text(figure, share)) for run, share in shares]


def _share(cell: GridCell, figure: str) -> int | None:
    """Return the share of an execution, None if it does not count."""
    if figure == "p95":
        return max(cell.times, default=None)
    counts = {
        "failures": cell.failed + cell.failed_before + cell.caught,
        "retries": cell.retries,
        "cost": cell.visits + cell.retries,
        "ran": cell.visits,
    }
    return counts[figure] or None


_NOUNS = {
    "failures": ("failure", "failures"),
    "retries": ("retry", "retries"),
    "cost": ("visit or retry", "visits and retries"),
    "ran": ("visit", "visits"),
}


def _share_text(figure: str, share: int) -> str:
    if figure == "p95":
        return f"longest visit {formatting.duration_text(share)}"
    return f"{share:,} {_NOUNS[figure][share != 1]}"
