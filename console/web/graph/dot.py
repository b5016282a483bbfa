"""Convert a diagram to Graphviz's DOT language, and its output to a layout.

Graphviz writes attributes unescaped, so no text of a user may reach it: it gets ids and sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import graphviz

from console.web.graph.diagram import Arrow, Curve, Direction, Drawn, Rectangle
from console.web.graph.shapes import LABEL_HEIGHT

if TYPE_CHECKING:
    from console.web.graph.diagram import Diagram
    from console.web.graph.shapes import Point


_POINTS = 72  # an inch; a point is a pixel here
_GRAPH = {"nodesep": "0.4", "ranksep": "0.45", "outputorder": "nodesfirst"}
_TIGHT = {"nodesep": "0.15", "ranksep": "0.3"}
_RANKS = {Direction.DOWN: "TB", Direction.RIGHT: "LR"}
_NODE = {"shape": "box", "fixedsize": "true", "label": ""}
_EDGE = {"arrowsize": "0.6"}


def dot_source(diagram: Diagram) -> str:
    """Return the DOT text of a diagram."""
    gaps = _TIGHT if diagram.tight else {}
    graph = {**_GRAPH, **gaps, "rankdir": _RANKS[diagram.direction]}
    digraph = graphviz.Digraph(graph_attr=graph, node_attr=_NODE, edge_attr=_EDGE)
    for part in diagram.parts:
        match part:
            case Arrow():
                digraph.edge(part.source, part.target, id=part.id, **_attributes(part))
            case Rectangle():
                width, height = (f"{size / _POINTS:.3f}" for size in (part.width, part.height))
                digraph.node(part.id, width=width, height=height)
            case _:
                assert_never(part)
    return str(digraph.source)


def _attributes(arrow: Arrow) -> dict[str, str]:
    """Return an edge's attributes; an empty table reserves room for the label."""
    attributes = {"dir": "none"} if arrow.headless else {}
    if arrow.label_width:
        size = f'WIDTH="{round(arrow.label_width)}" HEIGHT="{LABEL_HEIGHT}"'
        table = f'<TABLE BORDER="0" FIXEDSIZE="TRUE" {size}><TR><TD></TD></TR></TABLE>'
        attributes["label"] = f"<{table}>"
    return attributes


def parse_layout(answer: dict[str, Any]) -> Drawn:
    """Convert the child's answer (``layout_child.read_json``) to a layout.

    Raise ``KeyError``, ``TypeError``, ``ValueError`` or ``IndexError`` on anything else.
    """
    width, height = (float(part) for part in answer["box"].split(",")[2:])
    return Drawn(
        width,
        height,
        {name: _parse_point(at, height) for name, at in answer["nodes"].items()},
        tuple(
            Curve(name, _parse_path(pos, height), _parse_point(label, height) if label else None)
            for name, pos, label in answer["edges"]
        ),
    )


def _parse_point(text: str, height: float) -> Point:
    """Read ``x,y``; Graphviz counts upwards, pages downwards."""
    x, y = text.split(",")
    return float(x), height - float(y)


def _parse_path(pos: str, height: float) -> str:
    """Return SVG path data: start, cubic curves of three points each, a final straight line."""
    points = [_parse_point(part, height) for part in pos.removeprefix("e,").split()]
    tip, *curve = points if pos.startswith("e,") else (points[-1], *points)
    first, *rest = (f"{x:.1f},{y:.1f}" for x, y in [*curve, tip])
    return f"M{first} C{' '.join(rest[:-1])} L{rest[-1]}"
