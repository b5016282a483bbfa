"""Write a definition's graph as a Mermaid flowchart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine import Edge, Graph, Node, StateGroup

_NAMED = {"Choice": ("{", "}"), "Succeed": ("([", "])"), "Fail": ("([", "])")}
_HOLDERS = ("Parallel", "Map")
_SPECIAL = re.compile(r"[^\w .,:;=+*/$@!?()\[\]-]", re.ASCII)


def mermaid_flowchart(graph: Graph) -> str:
    """Return the flowchart; characters with a meaning in Mermaid become entities."""
    top = next(group for group in graph.groups if not group.owner)
    ends = [node for node in graph.nodes if node.group == top.id and node.ends]
    states: dict[str, list[Node]] = {}
    for node in graph.nodes:
        states.setdefault(node.group, []).append(node)
    inner: dict[str, list[StateGroup]] = {}
    for group in graph.groups:
        inner.setdefault(group.owner, []).append(group)
    rows = ["flowchart TD", "  start([Start])", *_Text(states, inner).group(top, "  ")]
    rows += [_edge(edge) for edge in graph.edges]
    rows.append(f"  start --> {top.start}")
    if happy := [node for node in ends if node.type != "Fail"]:
        rows += ["  finish([End])", *(f"  {node.id} --> finish" for node in happy)]
    return "\n".join(rows) + "\n"


@dataclass(frozen=True, slots=True)
class _Text:
    """Writes groups. ``states``: by group; ``inner``: groups by owning state."""

    states: Mapping[str, Sequence[Node]]
    inner: Mapping[str, Sequence[StateGroup]]

    def group(self, group: StateGroup, indent: str) -> Iterator[str]:
        for node in self.states[group.id]:
            yield from self._node(node, indent)

    def _node(self, node: Node, indent: str) -> Iterator[str]:
        if node.type not in _HOLDERS:
            opened, closed = _NAMED.get(node.type, ("[", "]"))
            yield f'{indent}{node.id}{opened}"{_text(node.name)}"{closed}'
            return
        yield f'{indent}subgraph {node.id}["{_text(f"{node.type}: {node.name}")}"]'
        for inner in self.inner.get(node.id, ()):
            yield f'{indent}  subgraph {inner.id}[" "]'
            yield from self.group(inner, f"{indent}    ")
            yield f"{indent}  end"
        yield f"{indent}end"


def _edge(edge: Edge) -> str:
    arrow = "-.->" if edge.kind == "catch" else "-->"
    label = f'|"{_text(edge.label)}"|' if edge.label else ""
    return f"  {edge.source} {arrow}{label} {edge.target}"


def _text(text: str) -> str:
    """Escape special characters as Mermaid entities (``#34;``)."""
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", text)
