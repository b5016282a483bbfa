"""How is a state machine written as a Mermaid flowchart, for wikis and pull requests?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine import Edge, Graph, Group, Node

_NAMED = {"Choice": ("{", "}"), "Succeed": ("([", "])"), "Fail": ("([", "])")}
_HOLDERS = ("Parallel", "Map")
_SPECIAL = re.compile(r"[^\w .,:;=+*/$@!?()\[\]-]", re.ASCII)


def flowchart(graph: Graph) -> str:
    """Return the text; names are written as entities where Mermaid would read them as signs."""
    top = next(group for group in graph.groups if not group.owner)
    ends = [node for node in graph.nodes if node.group == top.id and node.ends]
    rows = ["flowchart TD", "  start([Start])", *_group(graph, top, "  ")]
    rows += [_edge(edge) for edge in graph.edges]
    rows.append(f"  start --> {top.start}")
    if happy := [node for node in ends if node.type != "Fail"]:
        rows += ["  finish([End])", *(f"  {node.id} --> finish" for node in happy)]
    return "\n".join(rows) + "\n"


def _group(graph: Graph, group: Group, indent: str) -> Iterator[str]:
    for node in graph.nodes:
        if node.group == group.id:
            yield from _node(graph, node, indent)


def _node(graph: Graph, node: Node, indent: str) -> Iterator[str]:
    if node.type not in _HOLDERS:
        opened, closed = _NAMED.get(node.type, ("[", "]"))
        yield f'{indent}{node.id}{opened}"{_text(node.name)}"{closed}'
        return
    yield f'{indent}subgraph {node.id}["{_text(f"{node.type}: {node.name}")}"]'
    for inner in graph.groups:
        if inner.owner == node.id:
            yield f'{indent}  subgraph {inner.id}[" "]'
            yield from _group(graph, inner, f"{indent}    ")
            yield f"{indent}  end"
    yield f"{indent}end"


def _edge(edge: Edge) -> str:
    arrow = "-.->" if edge.kind == "catch" else "-->"
    label = f'|"{_text(edge.label)}"|' if edge.label else ""
    return f"  {edge.source} {arrow}{label} {edge.target}"


def _text(text: str) -> str:
    """Write whatever is no plain character as a Mermaid entity (``#34;``)."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
