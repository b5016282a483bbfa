"""Which iterations of a Map are there, what came of each, and where does one look next?

An iteration is told by its index in each surrounding Map, outermost first: ``37``, ``2.5``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web import words

if TYPE_CHECKING:
    from engine import Graph, Node, Trace

Index = tuple[int, ...]
MOST_LINKS = 100
"""How many iterations of a group are listed; the number field leads to the others."""
_WORST = ("failed", "running", "aborted", "caught", "succeeded")
_GROUPS = ("failed", "aborted", "running", "caught", "succeeded")


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration. ``step``: the state that tells most of it."""

    index: Index
    status: str
    step: str

    @property
    def key(self) -> str:
        """Return how an address names it."""
        return ".".join(str(one) for one in self.index)

    @property
    def label(self) -> str:
        """Return how a page names it."""
        return label(self.index)


@dataclass(frozen=True, slots=True)
class Group:
    """The iterations that ended alike; ``shown`` are the first ones of them."""

    status: words.Status
    count: int
    shown: tuple[Iteration, ...]

    @property
    def more(self) -> int:
        """Return how many are not listed."""
        return self.count - len(self.shown)


@dataclass(frozen=True, slots=True)
class Picker:
    """The iterations of the Map ``owner``. ``here``: the one on display, None on the Map itself."""

    owner: str
    total: int
    groups: tuple[Group, ...]
    here: Iteration | None
    previous_failed: Iteration | None
    next_failed: Iteration | None
    before: Iteration | None
    after: Iteration | None


def parse(text: str) -> Index:
    """Read an address's iteration, () for none."""
    return tuple(int(one) for one in text.split(".")) if _KEY.fullmatch(text) else ()


_KEY = re.compile(r"\d{1,6}(\.\d{1,6}){0,9}", re.ASCII)


def label(index: Index) -> str:
    """Write an iteration: ``#37``, ``#2 → #5``."""
    return " → ".join(f"#{one}" for one in index)


def lead(trace: Trace, name: str, iteration: str) -> str:
    """Return which state to look at: of a Map's iteration the one inside that tells most."""
    node = trace.graph.by_id.get(trace.graph.by_name.get(name, ""))
    index = parse(iteration)
    if node is None or node.type != "Map" or len(index) <= _depth(trace.graph, node):
        return name
    found = (one.step for one in of_map(trace, node) if one.index == index[: len(one.index)])
    return next(found, name)


def picker(trace: Trace, node: Node, here: Index = ()) -> Picker | None:
    """Return the picker for a state inside a Map, or for the Map itself; None elsewhere."""
    owner = _owner(trace.graph, node)
    if owner is None:
        return None
    found = of_map(trace, owner)
    depth = len(found[0].index) if found else 1
    index = here[:depth]
    failed = [one for one in found if one.status == "failed"]
    if node is not owner:  # a press on another iteration keeps the state that is looked at
        found = [replace(one, step=node.name) for one in found]
    return Picker(
        owner=owner.name,
        total=len(found),
        groups=_grouped(found),
        here=next((one for one in found if one.index == index), None),
        previous_failed=next((one for one in reversed(failed) if one.index < index), None),
        next_failed=next((one for one in failed if one.index > index), None),
        before=next((one for one in reversed(found) if index and one.index < index), None),
        after=next((one for one in found if index and one.index > index), None),
    )


def of_map(trace: Trace, owner: Node) -> list[Iteration]:
    """Return the iterations of a Map that have begun, by index.

    One that failed in an attempt before a retry or redrive counts as failed.
    """
    inside = nodes_within(trace.graph, owner)
    depth = _depth(trace.graph, owner) + 1
    best: dict[Index, tuple[int, int, str]] = {}
    for node in inside:
        for visit in trace.visits.get(node.id, ()):
            # Of visits that are equally telling, the later one stands deeper or further on.
            rank = (_WORST.index(visit.status), -visit.number, node.name)
            index = visit.iteration[:depth]
            if index not in best or rank < best[index]:
                best[index] = rank
    return [Iteration(index, _WORST[rank[0]], rank[2]) for index, rank in sorted(best.items())]


def nodes_within(graph: Graph, owner: Node) -> list[Node]:
    """Return the states inside a Map or Parallel, at any depth."""
    groups: set[str] = set()
    found: list[Node] = []
    owners = {owner.id}
    for group in graph.groups:  # outer groups come first
        if group.owner in owners:
            groups.add(group.id)
            inner = [node for node in graph.nodes if node.group == group.id]
            owners |= {node.id for node in inner}
            found += inner
    return found


def _owner(graph: Graph, node: Node) -> Node | None:
    """Return the Map itself, or the innermost Map around a state."""
    owners = {group.id: group.owner for group in graph.groups}
    at: Node | None = node
    while at is not None and at.type != "Map":
        at = graph.by_id.get(owners[at.group])
    return at


def _depth(graph: Graph, owner: Node) -> int:
    """Return how many Maps surround a Map."""
    owners = {group.id: group.owner for group in graph.groups}
    count, at = 0, graph.by_id.get(owners[owner.group])
    while at is not None:
        count += at.type == "Map"
        at = graph.by_id.get(owners[at.group])
    return count


def _grouped(found: list[Iteration]) -> tuple[Group, ...]:
    groups = []
    for status in _GROUPS:
        members = [one for one in found if one.status == status]
        if members:
            groups.append(Group(words.STEP[status], len(members), tuple(members[:MOST_LINKS])))
    return tuple(groups)
