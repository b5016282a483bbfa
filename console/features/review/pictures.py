"""Draw a definition's graph with its added, removed and changed states, as SVG and Mermaid."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from django.template.loader import render_to_string

import engine
from console.features.deploy.lint_sources import quoted_placeholders
from console.features.exports import mermaid
from console.features.exports.pictures import TONES, picture_frame
from console.web.core.formatting import StatusLabel
from console.web.graph import dot, plain_layers
from console.web.graph.compose import compose_picture
from console.web.graph.graph_view import WHOLE, owners_around
from console.web.graph.layout_pool import LayoutChild, NotLaidOut
from console.web.graph.shapes import (
    DETAIL_SIZE,
    MOST_ARROWS,
    STATUS_ROOM,
    bound_graph,
    fit_text,
    way_between,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from console.features.deploy.sources import MachineSource
    from console.features.review.comparison import MachineReview
    from console.web.graph.diagram import Diagram, Drawn
    from console.web.graph.shapes import Picture
    from engine import Graph

TONES_OF_CHANGES = {
    "added": TONES["succeeded"],
    "removed": TONES["failed"],
    "changed": TONES["caught"],
}
"""Change -> colours of line and text, and of the background."""
_SECONDS = 30.0
"""Limit of a layout, in processor and wall time; no reader waits for it."""
_BOLD = 1.15
"""How much wider bold letters are."""
_BLANK_LINES = re.compile(r"\n\s*")
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class StateMark:
    """The change of a state, for the graph's template."""

    status: StatusLabel
    label: str
    under: str


class Layouts:
    """Lays out graphs with Graphviz in a child process; ``end`` ends it."""

    def __init__(self) -> None:
        """Create it without a child process."""
        self._child = LayoutChild()

    def picture_of(self, graph: Graph) -> Picture:
        """Return the picture of a graph; one too large for Graphviz is drawn in plain layers."""
        part = bound_graph(graph)
        if len(part.edges) <= MOST_ARROWS:
            with contextlib.suppress(NotLaidOut):
                self._child.begin()
                return compose_picture(part, self._lay_out, WHOLE)
        return compose_picture(part, partial(plain_layers.lay_out, most_arrows=MOST_ARROWS), WHOLE)

    def _lay_out(self, diagram: Diagram) -> Drawn:
        answer = self._child.ask(dot.dot_source(diagram), _SECONDS, time.monotonic() + _SECONDS)
        return dot.parse_layout(answer["drawn"])

    def end(self) -> None:
        """End the child."""
        self._child.end()


def graph_of(source: MachineSource | None) -> Graph | None:
    """Return the graph of a definition, even one with errors; None if it cannot be drawn."""
    if source is None:
        return None
    try:
        return engine.draw_unfinished(quoted_placeholders(source.definition), source.type)
    except engine.DefinitionError:
        return None


def review_pictures(review: MachineReview, layouts: Layouts) -> Iterator[tuple[str, str]]:
    """Yield ``before`` and ``after`` with the SVG of each graph that can be drawn."""
    before, after = graph_of(review.before), graph_of(review.after)
    sides = (("before", review.before, before, after), ("after", review.after, after, before))
    for side, source, graph, other in sides:
        if graph is not None and source is not None:
            marks = state_marks(review, graph)
            picture = layouts.picture_of(graph)
            title = f"{source.name} · {side}"
            context = {
                "picture": picture,
                "summaries": marks,
                "changes": True,
                "tones": TONES_OF_CHANGES,
                "taken": _own_ways(graph, other) if other is not None else frozenset(),
                "title": title,
                "frame": picture_frame(picture, title),
            }
            text = _NO_XML.sub("\ufffd", render_to_string("exports/graph.svg", context))
            yield side, _BLANK_LINES.sub("\n", text)


def state_marks(review: MachineReview, graph: Graph) -> dict[str, StateMark]:
    """Return node id -> mark of the states that differ between the sides."""
    states = review.states
    if states is None:
        return {}
    marks = {}
    for tone, names in (
        ("added", states.added),
        ("removed", states.removed),
        ("changed", states.changed),
    ):
        for name in names:
            if name in graph.by_name:
                marks[graph.by_name[name]] = _mark(review, tone, name)
    return marks


def _mark(review: MachineReview, tone: str, name: str) -> StateMark:
    word = tone.capitalize()
    changes = review.fields.get(name, ())
    fields = dict.fromkeys(re.split(r"[.\[]", change.path)[0] or "place" for change in changes)
    words = f"{word}: {', '.join(fields)}" if fields else word
    under = fit_text(words, STATUS_ROOM, DETAIL_SIZE * _BOLD)
    return StateMark(StatusLabel(tone, word), f"{name}: {words}", under)


def _own_ways(graph: Graph, other: Graph) -> frozenset[str]:
    """Return the keys of lines that the other graph lacks."""
    theirs = {
        (other.by_id[edge.source].name, other.by_id[edge.target].name, edge.kind)
        for edge in other.edges
    }
    return frozenset(
        way_between(edge.source, edge.target, caught=edge.kind == engine.EdgeKind.CATCH)
        for edge in graph.edges
        if (graph.by_id[edge.source].name, graph.by_id[edge.target].name, edge.kind) not in theirs
    )


def changed_part(graph: Graph, marks: Mapping[str, StateMark]) -> Graph:
    """Return the part of a graph with the marked states, their neighbours, and the start."""
    near = {*marks, *(group.start for group in graph.groups if not group.owner)}
    for edge in graph.edges:
        if edge.source in marks or edge.target in marks:
            near |= {edge.source, edge.target}
    for node in [*near]:
        near |= owners_around(graph, graph.by_id[node].name)
    nodes = tuple(node for node in graph.nodes if node.id in near)
    groups = {node.group for node in nodes}
    return replace(
        graph,
        nodes=nodes,
        edges=tuple(edge for edge in graph.edges if {edge.source, edge.target} <= near),
        groups=tuple(group for group in graph.groups if group.id in groups),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )


def mermaid_of(graph: Graph, marks: Mapping[str, StateMark]) -> str:
    """Return the graph as a Mermaid flowchart with coloured states."""
    lines = [mermaid.mermaid_flowchart(graph).rstrip("\n")]
    for tone, (line, ground) in TONES_OF_CHANGES.items():
        nodes = [node for node, mark in marks.items() if mark.status.tone == tone]
        if nodes:
            lines.append(f"  classDef {tone} fill:{ground},stroke:{line},color:#17202b")
            lines.append(f"  class {','.join(nodes)} {tone}")
    return "\n".join(lines)
