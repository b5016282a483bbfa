"""Build the graph of the execution page: the picture with status colours."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from console.web.core import formatting
from console.web.execution import iterations, steps
from console.web.graph import graph_view, svg
from console.web.graph.graph_view import FOLD_ABOVE, states_inside
from console.web.graph.shapes import badge_place, way_between
from console.web.history.traces import open_trace
from engine import EdgeKind, VisitStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from console.models import Execution
    from console.web.execution.child_signs import ChildSign
    from console.web.execution.iterations import MapRuns, ShownIteration
    from console.web.execution.steps import StepSummary
    from console.web.graph.graph_view import GraphView
    from console.web.graph.shapes import Picture
    from engine import Graph, Trace

_SINGLE = {label.tone: label for label in formatting.LEGEND}
_WORST = ("failed", "running", "caught", "aborted", "succeeded", "idle")


# -- the part --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Painting:
    """The status colours of an execution's states and lines, at one time.

    ``folded``: Parallel or Map -> the summary of its states, of a large machine. ``taken``: the
    keys of the lines taken. ``child_signs``: the links to child executions.
    """

    graph: Graph
    summaries: dict[str, StepSummary]
    folded: dict[str, FoldedGroup]
    taken: set[str]
    child_signs: Mapping[str, ChildSign] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphPart:
    """The graph of an execution. ``box_summaries``: node id -> summary shown in the box."""

    picture: Picture
    view: GraphView
    fold_links: dict[str, str]
    box_summaries: dict[str, StepSummary | FoldedGroup | None]
    painting: Painting


def paint_trace(
    trace: Trace,
    maps: MapRuns | None,
    shown: ShownIteration | None,
    child_signs: Mapping[str, ChildSign],
) -> Painting:
    """Return the colours for a trace. ``shown``: the iteration shown inside a Map."""
    summaries = steps.step_summaries(trace, maps=maps, shown=shown)
    folded = folded_groups(trace.graph, summaries)
    return Painting(
        trace.graph, summaries, folded, taken_ways(trace, maps, shown), child_signs=child_signs
    )


def graph_part(execution: Execution, painting: Painting, chosen: str, view: GraphView) -> GraphPart:
    """Return the graph, with the group of the selected state unfolded."""
    view = graph_view.view_around(painting.graph, chosen, view)
    picture = svg.definition_picture(execution.definition.text, view=view)
    return GraphPart(
        picture=picture,
        view=view,
        fold_links=graph_view.fold_links(view, picture),
        box_summaries=_box_summaries(picture, painting.summaries, painting.folded),
        painting=painting,
    )


def _box_summaries(
    picture: Picture, summaries: Mapping[str, StepSummary], folded: Mapping[str, FoldedGroup]
) -> dict[str, StepSummary | FoldedGroup | None]:
    """Return each box's summary: of its state, or of the states folded into it."""
    return {
        box.node.id: (folded if box.folded else summaries).get(box.node.id) for box in picture.boxes
    }


def as_it_ran_context(execution: Execution, picture: Picture) -> dict[str, Any]:
    """Return the colours of a definition's picture after all events."""
    with open_trace(execution) as trace:
        maps = iterations.map_runs_of_execution(execution, trace)
        painting = paint_trace(trace, maps, None, {})
    return {
        "legend": formatting.LEGEND,
        "box_summaries": _box_summaries(picture, painting.summaries, painting.folded),
        "taken": painting.taken,
    }


# -- folded groups ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoldedGroup:
    """The summary of a folded group, like ``StepSummary``.

    ``status``: the worst one inside, or its own.
    """

    status: formatting.StatusLabel
    under: str
    label: str
    running_since: int | None
    badge: str

    @property
    def badge_place(self) -> tuple[int, int, int]:
        """Return the position of the badge."""
        return badge_place(self.badge)

    @property
    def paint(self) -> dict[str, str]:
        """Return the values with which the script repaints the box."""
        return {"tone": self.status.tone, "under": self.under, "label": self.label}


def folded_groups(graph: Graph, summaries: Mapping[str, StepSummary]) -> dict[str, FoldedGroup]:
    """Return Parallel or Map -> its summary while folded; empty for a small state machine.

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


# -- values for the script -------------------------------------------------------------------------


def paint_values(
    summaries: Mapping[str, StepSummary],
    taken: Collection[str],
    folded: Mapping[str, FoldedGroup],
) -> dict[str, Any]:
    """Return the values with which the script repaints states and lines."""
    nodes = {
        node: {
            "tone": summary.status.tone,
            "word": summary.status.word,
            "under": summary.under,
            "badge": summary.badge,
            **({"badge_place": summary.badge_place} if summary.badge else {}),
            "label": summary.label,
            "spent": summary.duration,
            "worked": summary.worked,
            "since": summary.running_since,
            "worked_since": summary.worked_since,
            "entered": summary.entered_ms,
            "left": summary.left_ms,
            "visits": "-" if summary.in_children else summary.visits,
            "retries": summary.retries,
            "note": summary.note,
            **({"children": summary.children} if summary.children else {}),
            **({"folded": folded[node].paint} if node in folded else {}),
        }
        for node, summary in summaries.items()
    }
    return {"nodes": nodes, "taken": sorted(taken)}


def repaint_values(
    trace: Trace, states: Collection[str], maps: MapRuns | None, shown: ShownIteration | None
) -> dict[str, Any]:
    """Return the values of some states and all lines, for one iteration or all."""
    summaries = steps.step_summaries(trace, states, maps, shown)
    return paint_values(summaries, taken_ways(trace, maps, shown), {})


# -- the ways taken --------------------------------------------------------------------------------

# The history has transitions between states. A branch or iteration has begun if its first state was
# entered, and has ended if its last state succeeded. For child executions only counts of states are
# known: there, an edge was taken if it is the only edge to its target.


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
