"""Where does each state stand in the picture?

Graphviz lays out one group at a time (the machine, a branch, an item processor). It gets opaque
ids and sizes only: it writes attributes unescaped, so no text of a user may reach it. An inner
group becomes a box of its parent, so boxes nest cleanly. Words and links are our template's.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pygraphviz

import engine
from console.web.shapes import (
    ENTRY,
    EXIT,
    GAP,
    HEAD,
    LABEL_HEIGHT,
    LINE,
    PAD,
    Box,
    Line,
    Picture,
    Point,
    cut,
    label_width,
    text_width,
    wrap,
)

if TYPE_CHECKING:
    from engine import Edge, Graph, Group, Node


@lru_cache(maxsize=256)
def picture(text: str, kind: str = "STANDARD") -> Picture:
    """Return the laid-out picture of a definition; raise ``engine.DefinitionError``."""
    return lay_out(engine.graph(engine.parse(text, kind)))


def lay_out(graph: Graph) -> Picture:
    """Place every state of a graph; sizes are pixels."""
    top = next(group for group in graph.groups if not group.owner)
    return _shift(_Layout(graph).group(top), 8, 8, grow=16)


class _Layout:
    """Lays out a group, its inner groups first."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def group(self, group: Group) -> Picture:
        nodes = [node for node in self.graph.nodes if node.group == group.id]
        ids = {node.id for node in nodes}
        edges = [edge for edge in self.graph.edges if edge.source in ids]
        inner = {node.id: self._inside(node) for node in nodes}
        sizes = {node.id: _size(node, inner[node.id]) for node in nodes}
        return _compose(group, nodes, edges, inner, sizes, outer=not group.owner)

    def _inside(self, node: Node) -> Picture | None:
        """Return the branches of a Parallel or the processor of a Map, side by side."""
        groups = [group for group in self.graph.groups if group.owner == node.id]
        if not groups:
            return None
        parts = [self.group(group) for group in groups]
        width = sum(part.width for part in parts) + GAP * (len(parts) - 1)
        least = text_width(node) - 2 * PAD
        left = max(0.0, (least - width) / 2)
        height = max(part.height for part in parts)
        boxes: list[Box] = []
        lines: list[Line] = []
        middle = max(width, least) / 2
        for part in parts:
            moved = _shift(part, left, 0)
            boxes += moved.boxes
            lines += [_thread(node.id, (middle, -ENTRY), moved.start, "in"), *moved.lines]
            if moved.end is not None:
                lines.append(_thread(node.id, moved.end, (middle, height + EXIT + PAD), "out"))
            left += part.width + GAP
        return Picture(max(width, least), height, tuple(boxes), tuple(lines))


def _compose(
    group: Group,
    nodes: list[Node],
    edges: list[Edge],
    inner: dict[str, Picture | None],
    sizes: dict[str, Point],
    *,
    outer: bool,
) -> Picture:
    ends = _ends(nodes, outer=outer)
    drawn = _graphviz(_dot(group, nodes, edges, sizes, ends, outer=outer))
    width, height = (float(part) for part in drawn["bb"].split(",")[2:])
    spots = {one["name"]: _point(one["pos"], height) for one in drawn["objects"]}
    boxes: list[Box] = []
    lines: list[Line] = []
    for node in nodes:
        box = _box(node, spots[node.id], sizes[node.id], nested=inner[node.id] is not None)
        boxes.append(box)
        inside = inner[node.id]
        if inside is not None:
            moved = _shift(inside, box.x + PAD, box.y + HEAD + ENTRY + LINE * (len(box.lines) - 1))
            boxes += moved.boxes
            lines += moved.lines
    first = spots[group.start]
    start = spots["start"] if outer else (first[0], first[1] - sizes[group.start][1] / 2)
    known = {f"e{place}": edge for place, edge in enumerate(edges)}
    for one in drawn.get("edges", ()):
        kind = "next" if outer else "out"
        lines.append(_line(one, known.get(one["id"]), height, kind))
    return Picture(width, height, tuple(boxes), tuple(lines), start, spots.get("end"))


def _ends(nodes: list[Node], *, outer: bool) -> list[Node]:
    """Return who leads to End. A Fail is an end of its own, unless the machine has no other."""
    last = [node for node in nodes if node.ends]
    happy = [node for node in last if node.type != "Fail"]
    return happy if happy or not outer else last


def _dot(
    group: Group,
    nodes: list[Node],
    edges: list[Edge],
    sizes: dict[str, Point],
    ends: list[Node],
    *,
    outer: bool,
) -> str:
    """Write the group in Graphviz's language: ids, sizes, nothing else."""
    terminal = (0.86, 0.4) if outer else (0.01, 0.01)
    rows = [
        "digraph{rankdir=TB;nodesep=0.4;ranksep=0.45;outputorder=nodesfirst;",
        'node[shape=box,fixedsize=true,label=""];edge[arrowsize=0.6];',
    ]
    if outer:
        rows.append(f"start[width={terminal[0]},height={terminal[1]}];")
        rows.append(f'start->{group.start}[id="start-{group.start}"];')
    rows += [
        f"{node.id}[width={sizes[node.id][0] / 72:.3f},height={sizes[node.id][1] / 72:.3f}];"
        for node in nodes
    ]
    rows += [
        f'{edge.source}->{edge.target}[id="e{place}"{_dot_label(edge)}];'
        for place, edge in enumerate(edges)
    ]
    if ends:
        rows.append(f"end[width={terminal[0]},height={terminal[1]}];")
        tip = "" if outer else ",dir=none"
        rows += [f'{node.id}->end[id="{node.id}-end"{tip}];' for node in ends]
    return "".join(rows) + "}"


def _dot_label(edge: Edge) -> str:
    """Reserve room for a label with an empty table of its size."""
    if not edge.label:
        return ""
    width = round(label_width(cut(edge.label)))
    cell = f'WIDTH="{width}" HEIGHT="{LABEL_HEIGHT}"'
    table = f'<TABLE BORDER="0" FIXEDSIZE="TRUE" {cell}><TR><TD></TD></TR></TABLE>'
    return f",label=<{table}>"


def _graphviz(dot: str) -> dict[str, Any]:
    graph = pygraphviz.AGraph(string=dot)
    return dict(json.loads(graph.draw(format="json0", prog="dot")))


def _point(text: str, height: float) -> Point:
    """Read ``x,y``; Graphviz counts upwards, pages downwards."""
    x, y = text.split(",")
    return float(x), height - float(y)


def _box(node: Node, middle: Point, size: Point, *, nested: bool) -> Box:
    x, y = middle[0] - size[0] / 2, middle[1] - size[1] / 2
    return Box(node, x, y, size[0], size[1], tuple(wrap(node.name)), nested)


def _line(drawn: dict[str, Any], edge: Edge | None, height: float, kind: str) -> Line:
    points = [_point(part, height) for part in drawn["pos"].removeprefix("e,").split()]
    tip, *curve = points if drawn["pos"].startswith("e,") else (points[-1], *points)
    path = _path([*curve, tip])
    if edge is None:  # from Start or to End
        source, _, target = drawn["id"].partition("-")
        return Line(source, target, kind, path)
    at = _point(drawn["lp"], height) if "lp" in drawn else None
    return Line(edge.source, edge.target, edge.kind, path, cut(edge.label), edge.label, at)


def _path(points: list[Point]) -> str:
    """Return SVG path data: a start, cubic curves of three points each, a straight last bit."""
    first, *rest = (f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{first} C{' '.join(rest[:-1])} L{rest[-1]}"


def _thread(node: str, start: Point, end: Point | None, kind: str) -> Line:
    """Join the head or foot of a Parallel or Map with one of its branches."""
    (x, y), (to_x, to_y) = start, end or start
    bend = (to_y - y) / 2
    curve = f"{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
    return Line(node, node, kind, f"M{x:.1f},{y:.1f} C{curve}")


def _shift(part: Picture, x: float, y: float, grow: float = 0) -> Picture:
    def moved(point: Point | None) -> Point | None:
        return None if point is None else (point[0] + x, point[1] + y)

    return replace(
        part,
        width=part.width + grow,
        height=part.height + grow,
        boxes=tuple(replace(box, x=box.x + x, y=box.y + y) for box in part.boxes),
        lines=tuple(
            replace(line, path=_move(line.path, x, y), at=moved(line.at)) for line in part.lines
        ),
        start=moved(part.start),
        end=moved(part.end),
    )


def _move(path: str, x: float, y: float) -> str:
    def shift(match: re.Match[str]) -> str:
        return f"{float(match[1]) + x:.1f},{float(match[2]) + y:.1f}"

    return _PAIR.sub(shift, path)


_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")


def _size(node: Node, inside: Picture | None) -> Point:
    rows = len(wrap(node.name))
    if inside is None:
        return text_width(node), 14 + LINE * (rows + 1) + 8
    return inside.width + 2 * PAD, inside.height + HEAD + ENTRY + LINE * (rows - 1) + PAD + EXIT
