"""Find the edges of an execution's graph that were taken, including edges of branches.

The history has transitions between states. A branch or iteration has begun if its first state was
entered, and has ended if its last state succeeded. For child executions only counts of states are
known: there, an edge was taken if it is the only edge to its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.web.execution import iterations
from console.web.graph.shapes import way_between
from engine import EdgeKind, VisitStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from collections.abc import Set as AbstractSet

    from console.web.execution.iterations import MapRuns, ShownIteration
    from engine import Graph, Trace


def taken_ways(
    trace: Trace, maps: MapRuns | None = None, shown: ShownIteration | None = None
) -> set[str]:
    """Return the keys of the taken edges, in the format of ``EdgeLine.way``.

    ``maps``: the counts of Map Runs, None if they are not known. ``shown``: inside its Map, only
    edges of this iteration count; None for all iterations.
    """
    entered, passed = _entered_and_passed(trace, maps)
    if shown is not None:
        entered, passed = _in_iteration(trace, shown, entered, passed)
    pairs = {
        pair for pair in trace.taken if shown is None or not (shown.nodes & set(pair)) - entered
    }
    ways = ways_of_pairs(trace.graph, pairs, passed, _caught(trace, shown))
    for group in trace.graph.groups:
        if group.owner and group.start in entered:
            ways |= {f"in-{group.id}", f"start-{group.start}"}
    inner = {group.id for group in trace.graph.groups if group.owner}
    for node in trace.graph.nodes:
        if node.ends and node.group in inner and node.id in passed:
            ways |= {f"out-{node.group}", f"{node.id}-end"}
    return ways.union(_ways_in_children(trace, entered))


def ways_of_pairs(
    graph: Graph,
    pairs: Collection[tuple[str, str]],
    passed: AbstractSet[str],
    caught: AbstractSet[str],
) -> set[str]:
    """Return the keys of the taken edges between states.

    ``pairs``: (source, target) of the transitions. ``passed``, ``caught``: states left by a
    successful visit or by a Catcher. They decide between two edges of the same source and target.
    """
    kinds: dict[tuple[str, str], set[bool]] = {}
    for edge in graph.edges:
        by_catcher = edge.kind is EdgeKind.CATCH
        kinds.setdefault((edge.source, edge.target), set()).add(by_catcher)
    ways = set()
    for pair in pairs:
        pair_kinds = kinds.get(pair, {False})
        if pair_kinds != {True} and (pair[0] in passed or len(pair_kinds) == 1):
            ways.add(way_between(*pair))
        if True in pair_kinds and (pair[0] in caught or len(pair_kinds) == 1):
            ways.add(way_between(*pair, caught=True))
    return ways


def _caught(trace: Trace, shown: ShownIteration | None) -> set[str]:
    """Return the states left by a Catcher; inside the Map of ``shown``, in its iteration only."""
    caught = {node for node, by_status in trace.counts().items() if by_status[VisitStatus.CAUGHT]}
    if shown is None:
        return caught
    return {
        node
        for node in caught
        if node not in shown.nodes
        or any(
            trace.visits_of(node)[place].status is VisitStatus.CAUGHT
            for place in shown.places(trace, node)
        )
    }


def _entered_and_passed(trace: Trace, maps: MapRuns | None) -> tuple[set[str], set[str]]:
    """Return the entered states, and the states that a visit or child execution completed."""
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


def _in_iteration(
    trace: Trace, shown: ShownIteration, entered: set[str], passed: set[str]
) -> tuple[set[str], set[str]]:
    """Restrict entered and passed states to one iteration, inside its Map."""
    visits = {
        node: [trace.visits_of(node)[place] for place in shown.places(trace, node)]
        for node in shown.nodes & entered
    }
    within = {node for node, node_visits in visits.items() if node_visits}
    succeeded = {
        node
        for node, node_visits in visits.items()
        if any(visit.status is VisitStatus.SUCCEEDED for visit in node_visits)
    }
    return entered - shown.nodes | within, passed - shown.nodes | succeeded


def _ways_in_children(trace: Trace, entered: set[str]) -> Iterator[str]:
    """Yield the keys of edges in child executions that must have been taken."""
    inside = iterations.enclosing_maps(trace.graph)
    starts = {group.start for group in trace.graph.groups}
    sources: dict[str, set[str]] = {}
    for edge in trace.graph.edges:
        if edge.target in inside and {edge.source, edge.target} <= entered:
            sources.setdefault(edge.target, set()).add(edge.source)
    for target, origins in sources.items():
        if len(origins) == 1 and target not in starts:
            yield from ways_of_pairs(trace.graph, [(next(iter(origins)), target)], set(), set())
