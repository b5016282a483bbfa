"""Summarize each state over recent executions, and find points that no execution reached.

Only executions with the same definition count.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import engine
from console.features.insights import past_executions
from console.web.core import formatting
from console.web.execution.graph_part import ways_of_pairs
from console.web.graph.shapes import fitting_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.features.insights.past_executions import PastExecution
    from console.models import Execution
    from engine import Graph, LimitAhead, Node


@dataclass(frozen=True, slots=True)
class Insight:
    """Figures of one state over several executions.

    ``ran``: how many of the ``of`` executions entered it. ``p50``, ``p95``: percentiles of the
    duration of its visits, without aborted and running visits. ``failed``: how often a visit
    failed, including visits that a redrive continued (``failed_before``). ``redriven``: how often a
    redrive continued a visit. ``newest``: figure -> the newest execution that counts in it; for
    ``p95`` the execution with the longest visit.
    """

    node: Node
    ran: int
    of: int
    visits: int
    succeeded: int
    failed: int
    caught: int
    aborted: int
    running: int
    retried: int
    p50: int | None
    p95: int | None
    redriven: int = 0
    failed_before: int = 0
    newest: Mapping[str, Execution] = field(default_factory=dict)

    @property
    def status(self) -> formatting.StatusLabel:
        """Return the worst result of the state; running if no visit has ended."""
        if not self.visits:
            return formatting.STEP[""]
        if self.unfinished and not (self.failed or self.caught or self.succeeded):
            return formatting.StatusLabel("aborted" if self.aborted else "running", self.unfinished)
        return formatting.STEP[
            "failed" if self.failed else "caught" if self.caught else "succeeded"
        ]

    @property
    def unfinished(self) -> str:
        """Return the numbers of aborted and running visits as text, "" for none."""
        counts = {"aborted": self.aborted, "running": self.running}
        return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        if not self.visits:
            return "Never entered"
        if not (self.failed or self.caught or self.succeeded):
            return fitting_line([self.unfinished, f"{self.ran} of {self.of}"])
        parts = [f"{self.ran} of {self.of}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.unfinished:
            parts.append(self.unfinished)
        if self.retried:
            parts.append(f"{self.retried} retried")
        if self.p50 is not None:
            parts.append(formatting.duration_text(self.p50))
        return fitting_line(parts)

    @property
    def label(self) -> str:
        """Return a description of the state for screen readers."""
        return f"{self.node.name}, {self.node.type}, {self.under}"


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """A point of coverage, such as a transition or a Choice rule.

    ``node``: None for the execution; ``tried``: whether an execution reached it, None if uncertain.
    """

    kind: str
    node: Node | None
    detail: str
    tried: bool | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of reached points of a kind, and of all its points."""

    kind: str
    tried: int
    total: int


def states_in_children(graph: Graph) -> frozenset[str]:
    """Return the names of states that run in a distributed Map's child executions."""
    inner_nodes: set[str] = set()
    states: dict[str, list[str]] = {}
    for node in graph.nodes:
        states.setdefault(node.group, []).append(node.id)
    for group in graph.groups:  # outer groups come first
        owner = graph.by_id.get(group.owner)
        if owner is not None and (owner.id in inner_nodes or _distributed(owner)):
            inner_nodes.update(states[group.id])
    return frozenset(graph.by_id[node].name for node in inner_nodes)


def _distributed(node: Node) -> bool:
    processor = json.loads(node.text).get("ItemProcessor") or {}
    return bool((processor.get("ProcessorConfig") or {}).get("Mode") == "DISTRIBUTED")


def list_insights(
    graph: Graph, executions: Sequence[PastExecution], inner: Sequence[PastExecution] = ()
) -> dict[str, Insight]:
    """Return node id -> insight. ``inner``: child executions of distributed Maps."""
    distributed_states = states_in_children(graph)
    return {
        node.id: _insight(node, inner if node.name in distributed_states else executions)
        for node in graph.nodes
    }


def _insight(node: Node, executions: Sequence[PastExecution]) -> Insight:
    runs = [run for run in executions if node.name in run.cells]
    cells = [run.cells[node.name] for run in runs]
    times = [time for cell in cells for time in cell.times]
    return Insight(
        node=node,
        ran=len(cells),
        of=len(executions),
        visits=sum(cell.visits for cell in cells),
        succeeded=sum(cell.succeeded for cell in cells),
        failed=sum(cell.failed + cell.failed_before for cell in cells),
        caught=sum(cell.caught for cell in cells),
        aborted=sum(cell.aborted for cell in cells),
        running=sum(cell.running for cell in cells),
        retried=sum(cell.retries for cell in cells),
        p50=past_executions.percentile(times, 50),
        p95=past_executions.percentile(times, 95),
        redriven=sum(cell.redriven for cell in cells),
        failed_before=sum(cell.failed_before for cell in cells),
        newest=_newest(node, runs),
    )


def _newest(node: Node, runs: Sequence[PastExecution]) -> dict[str, Execution]:
    """Return the executions that a state's figures link to."""
    newest: dict[str, Execution] = {}
    slowest = -1
    for run in runs:
        cell = run.cells[node.name]
        figures = {
            "ran": True,
            "failed": cell.failed + cell.failed_before,
            "caught": cell.caught,
            "retried": cell.retries,
        }
        for name in (name for name, counts in figures.items() if counts):
            newest.setdefault(name, run.execution)
        longest = max(cell.times, default=-1)
        if longest > slowest:
            slowest, newest["p95"] = longest, run.execution
    return newest


SORTS = {
    "": "Order of the definition",
    "name": "Name",
    "ran": "Entered",
    "failed": "Failed",
    "caught": "Caught",
    "retried": "Retried",
    "p95": "p95",
}
"""The orders of the table of states; the figures are sorted from the highest to the lowest."""


def sorted_insights(insights: Sequence[Insight], order: str, text: str) -> list[Insight]:
    """Return the states whose names contain a text, in an order of ``SORTS``."""
    sought = text.casefold()
    rows = [insight for insight in insights if sought in insight.node.name.casefold()]
    if order == "name":
        return sorted(rows, key=lambda insight: insight.node.name.casefold())
    if order not in SORTS or not order:
        return rows
    return sorted(rows, key=lambda insight: getattr(insight, order) or 0, reverse=True)


def taken_lines(
    graph: Graph, executions: Sequence[PastExecution], insights: dict[str, Insight]
) -> set[str]:
    """Return the keys of the transitions that an execution has taken (``EdgeLine.way``).

    ``executions``: including the children of distributed Maps. As in the graph of one execution, a
    branch has begun if its first state was entered, and ended if its last state succeeded.
    """
    ids = graph.by_name
    pairs = {way for run in executions for way in run.ways}
    lines = ways_of_pairs(
        graph,
        [(ids[a], ids[b]) for a, b in pairs if a in ids and b in ids],
        {node for node, insight in insights.items() if insight.succeeded},
        {node for node, insight in insights.items() if insight.caught},
    )
    for group in graph.groups:
        if insights[group.start].visits:
            lines |= {f"in-{group.id}", f"start-{group.start}"}
    for node in graph.nodes:
        if node.ends and insights[node.id].succeeded:
            lines |= {f"out-{node.group}", f"{node.id}-end"}
    return lines


def list_points(
    graph: Graph, executions: Sequence[PastExecution], text: str
) -> list[CoveragePoint]:
    """Return all points of a definition, and whether an execution reached each.

    ``executions``: including the children of distributed Maps. ``text``: the definition.
    """
    reached = {key for run in executions for key in run.reached.keys}
    uncertain = {key for run in executions for key in run.reached.uncertain}
    return [
        CoveragePoint(
            str(point.kind),
            graph.by_id[graph.by_name[point.state]] if point.state else None,
            point.detail,
            point.key in reached or (None if point.key in uncertain else False),
        )
        for point in engine.CoverageReader(engine.parse_stored(text), graph).points
    ]


@dataclass(frozen=True, slots=True)
class NearLimit:
    """A limit of AWS that executions come near.

    ``limit``: with the value of the ``nearest`` execution; ``executions``: how many come near it.
    """

    limit: LimitAhead
    nearest: Execution
    executions: int


def list_limits(executions: Sequence[PastExecution]) -> list[NearLimit]:
    """Return the limits that executions come near, by the share reached, highest first."""
    pairs = [(limit, run.execution) for run in executions for limit in run.limits]
    counts = Counter(limit.key for limit, _ in pairs)
    nearest: dict[tuple[str, str, str], NearLimit] = {}
    for limit, execution in sorted(pairs, key=lambda pair: -pair[0].value / pair[0].limit):
        nearest.setdefault(limit.key, NearLimit(limit, execution, counts[limit.key]))
    return list(nearest.values())


def measure_coverage(points: Sequence[CoveragePoint]) -> list[Coverage]:
    """Count reached points by kind."""
    kinds = dict.fromkeys(point.kind for point in points)
    return [
        Coverage(
            kind,
            sum(point.kind == kind and point.tried is True for point in points),
            sum(point.kind == kind for point in points),
        )
        for kind in kinds
    ]
