"""Tell which lines of an execution's graph were taken, also into branches and out of them.

The history tells of transitions between states. That a branch or an iteration began is known by its
first state, and that it ended by its last one. Of what runs in child executions only counts are
known: there a transition was taken if no other leads to its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.web.execution import map_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.web.execution.map_progress import MapRuns
    from engine import Trace


def taken_ways(trace: Trace, maps: MapRuns | None = None) -> set[str]:
    """Return the keys of the lines that were taken, as ``EdgeLine.way`` has them.

    ``maps``: the counts of Map Runs, None if they are not known.
    """
    ways = {f"{source}-{target}" for source, target in trace.taken}
    entered, passed = _entered_and_passed(trace, maps)
    for group in trace.graph.groups:
        if group.owner and group.start in entered:
            ways |= {f"in-{group.id}", f"start-{group.start}"}
    inner = {group.id for group in trace.graph.groups if group.owner}
    for node in trace.graph.nodes:
        if node.ends and node.group in inner and node.id in passed:
            ways |= {f"out-{node.group}", f"{node.id}-end"}
    return ways.union(_ways_in_children(trace, entered))


def _entered_and_passed(trace: Trace, maps: MapRuns | None) -> tuple[set[str], set[str]]:
    """Return the states that were entered, and those that somebody left as they should be left."""
    counts = trace.counts()
    entered = {node for node, by_status in counts.items() if by_status.total()}
    passed = {node for node, by_status in counts.items() if by_status["succeeded"]}
    for name, children in maps.states.items() if maps else ():
        node = trace.graph.by_name.get(name, "")
        if children.entered:
            entered.add(node)
        if children.passed:
            passed.add(node)
    return entered, passed


def _ways_in_children(trace: Trace, entered: set[str]) -> Iterator[str]:
    """Yield the transitions in child executions that must have been taken."""
    inside = map_progress.enclosing_maps(trace.graph)
    starts = {group.start for group in trace.graph.groups}
    sources: dict[str, set[str]] = {}
    for edge in trace.graph.edges:
        if edge.target in inside and {edge.source, edge.target} <= entered:
            sources.setdefault(edge.target, set()).add(edge.source)
    for target, known in sources.items():
        if len(known) == 1 and target not in starts:
            yield f"{next(iter(known))}-{target}"
