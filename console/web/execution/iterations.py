"""Find the iterations of a Map, group them by outcome, and lead from one to another.

An iteration is named by its index in each surrounding Map, outermost first: ``37``, ``2.5``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import map_progress
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine import Graph, Node, Trace

Index = tuple[int, ...]
MOST_LINKS = 100
"""How many iterations of a group are listed; the number field leads to the others."""
_WORST = ("failed", "timed_out", "running", "aborted", "caught", "succeeded")
_RANK = {status: rank for rank, status in enumerate(_WORST)}
_FAILED = ("failed", "timed_out")
_GROUPS = ("failed", "timed_out", "aborted", "running", "caught", "succeeded")


@dataclass(slots=True)  # not frozen: there may be thousands, and that makes them slow
class Iteration:
    """One iteration. ``step``: the state that tells most of it."""

    index: Index
    status: str
    step: str

    @property
    def key(self) -> str:
        """Return how an address names it."""
        return ".".join(str(number) for number in self.index)

    @property
    def label(self) -> str:
        """Return how a page names it."""
        return iteration_label(self.index)


_index_of = attrgetter("index")


@dataclass(frozen=True, slots=True)
class IterationGroup:
    """The iterations that ended alike; ``shown`` are the first ones of them."""

    status: formatting.StatusLabel
    count: int
    shown: tuple[Iteration, ...]

    @property
    def more(self) -> int:
        """Return how many are not listed."""
        return self.count - len(self.shown)


@dataclass(frozen=True, slots=True)
class IterationPicker:
    """The iterations of the Map ``owner``; ``current``: on display, None on the Map itself.

    ``total``: how many have begun; ``not_started``: of how many items none has, 0 if unknown.
    """

    owner: str
    total: int
    groups: tuple[IterationGroup, ...]
    current: Iteration | None
    previous_failed: Iteration | None
    next_failed: Iteration | None
    before: Iteration | None
    after: Iteration | None
    not_started: int = 0


@dataclass(frozen=True, slots=True)
class ShownIteration:
    """The iteration of a Map that the graph shows inside of it; ``nodes``: what is inside."""

    nodes: frozenset[str]
    index: tuple[int, ...]

    def places(self, trace: Trace, node: str) -> list[int]:
        """Return which visits of a state belong to it, from 0."""
        size = len(self.index)
        iterations = trace.visits_of(node).iterations()
        return [place for place, index in enumerate(iterations) if index[:size] == self.index]


def parse_iteration(text: str) -> Index:
    """Read an address's iteration, () for none."""
    return tuple(int(number) for number in text.split(".")) if _KEY.fullmatch(text) else ()


_KEY = re.compile(r"\d{1,6}(\.\d{1,6}){0,9}", re.ASCII)


def iteration_label(index: Index) -> str:
    """Write an iteration: ``#37``, ``#2 → #5``."""
    return " → ".join(f"#{number}" for number in index)


def leading_state(trace: Trace, name: str, iteration: str) -> str:
    """Return which state to look at: of a Map's iteration the one inside that tells most."""
    node = trace.graph.by_id.get(trace.graph.by_name.get(name, ""))
    index = parse_iteration(iteration)
    if node is None or node.type != "Map" or len(index) <= _map_depth(trace.graph, node):
        return name
    steps = (
        iteration.step
        for iteration in iterations_of_map(trace, node)
        if iteration.index == index[: len(iteration.index)]
    )
    return next(steps, name)


def iteration_picker(trace: Trace, node: Node, current: Index = ()) -> IterationPicker | None:
    """Return the picker for a state inside a Map, or for the Map itself; None elsewhere."""
    owner = _owning_map(trace.graph, node)
    if owner is None:
        return None
    iterations, by_status = iterations_of_map(trace, owner), iterations_by_status(trace, owner)
    depth = len(iterations[0].index) if iterations else 1
    index = current[:depth]
    failed = sorted(
        (each for status in _FAILED for each in by_status.get(status, ())), key=_index_of
    )
    # a press on another iteration keeps the state that is looked at
    kept_state = "" if node is owner else node.name
    before, found, after = _neighbours(iterations, index) if index else (None, None, None)
    previous_failed, _, next_failed = _neighbours(failed, index)
    return IterationPicker(
        owner=owner.name,
        total=len(iterations),
        groups=_iteration_groups(by_status, kept_state),
        current=_at_state(found, kept_state),
        previous_failed=_at_state(previous_failed, kept_state),
        next_failed=_at_state(next_failed, kept_state),
        before=_at_state(before, kept_state),
        after=_at_state(after, kept_state),
        not_started=items_not_started(trace, owner, len(iterations)),
    )


def _neighbours(
    iterations: Sequence[Iteration], index: Index
) -> tuple[Iteration | None, Iteration | None, Iteration | None]:
    """Return of iterations in order the one before an index, the one of it, and the one after."""
    first = bisect_left(iterations, index, key=_index_of)
    after = bisect_right(iterations, index, first, key=_index_of)
    return (
        iterations[first - 1] if first else None,
        iterations[first] if first < after else None,
        iterations[after] if after < len(iterations) else None,
    )


def items_not_started(trace: Trace, owner: Node, begun: int) -> int:
    """Return how many items of a Map have no iteration yet, 0 if it is not known.

    It is not for a Map inside another one, which has a number of items for each iteration around.
    """
    attempt = trace.progress(owner.id) if not _map_depth(trace.graph, owner) else None
    return max(0, attempt.total - begun) if attempt is not None and attempt.total else 0


def _at_state(iteration: Iteration | None, kept_state: str) -> Iteration | None:
    """Return an iteration, leading to the state ``kept_state`` if that is named."""
    return replace(iteration, step=kept_state) if iteration and kept_state else iteration


def iterations_of_map(trace: Trace, owner: Node) -> Sequence[Iteration]:
    """Return the iterations of a Map that have begun, by index.

    Those of its last attempt: what failed before a retry does not count, as AWS counts it.
    """
    subject = (iterations_of_map, owner.id)
    return trace.derive(subject, None, lambda: tuple(_find_iterations(trace, owner)))


def iterations_by_status(trace: Trace, owner: Node) -> Mapping[str, Sequence[Iteration]]:
    """Return status -> the iterations of a Map that have it, by index."""
    subject = (iterations_by_status, owner.id)
    return trace.derive(subject, None, lambda: _group_by_status(iterations_of_map(trace, owner)))


def _group_by_status(iterations: Iterable[Iteration]) -> dict[str, list[Iteration]]:
    members: defaultdict[str, list[Iteration]] = defaultdict(list)
    for iteration in iterations:
        members[iteration.status].append(iteration)
    return dict(members)


def _find_iterations(trace: Trace, owner: Node) -> Iterator[Iteration]:
    depth = _map_depth(trace.graph, owner) + 1
    best: dict[Index, tuple[int, int, str]] = {}
    worst: dict[Index, int] = {}
    own = {group.id for group in trace.graph.groups if group.owner == owner.id}
    nodes = nodes_within(trace.graph, owner)
    holds_others = any(node.group not in own for node in nodes)
    lines, left, ended = trace.lines, trace.left, trace.ended
    succeeded, running = _RANK[VisitStatus.SUCCEEDED], _RANK[VisitStatus.RUNNING]
    for node in nodes:
        is_own = holds_others and node.group in own
        for number in trace.visits_of(node.id).counting_still():
            how = ended.get(number)
            rank = _RANK[how] if how else succeeded if number in left else running
            index = lines[number].iteration[:depth]
            if is_own and worst.get(index, rank) >= rank:
                worst[index] = rank
            before = best.get(index)
            # Of visits that are equally telling, the later one stands deeper or further on.
            if before is None or (rank, -number) < before:
                best[index] = (rank, -number, node.name)
    # What failed deeper inside may have been caught in the iteration: its own states say so.
    for index, (rank, _, name) in sorted(best.items()):
        yield Iteration(index, _WORST[worst.get(index, rank) if worst else rank], name)


def shown_iteration(trace: Trace, name: str, iteration: str) -> ShownIteration | None:
    """Return which iteration the graph shows inside the Map around a state, None for all."""
    node = trace.graph.by_id.get(trace.graph.by_name.get(name, ""))
    index = parse_iteration(iteration)
    owner = _owning_map(trace.graph, node) if node is not None and index else None
    if owner is None:
        return None
    depth = _map_depth(trace.graph, owner) + 1
    if len(index) < depth:
        return None
    inside = frozenset(node.id for node in nodes_within(trace.graph, owner))
    return ShownIteration(inside, index[:depth])


def nodes_within(graph: Graph, owner: Node) -> list[Node]:
    """Return the states inside a Map or Parallel, at any depth."""
    groups: set[str] = set()
    groups_made: list[Node] = []
    owners = {owner.id}
    for group in graph.groups:  # outer groups come first
        if group.owner in owners:
            groups.add(group.id)
            inner = [node for node in graph.nodes if node.group == group.id]
            owners |= {node.id for node in inner}
            groups_made += inner
    return groups_made


def _owning_map(graph: Graph, node: Node) -> Node | None:
    """Return the Map itself, or the innermost Map around a state, whose iterations run here.

    A distributed Map has none: its items run in child executions, with all that is inside of it.
    """
    if node.id in map_progress.enclosing_maps(graph):
        return None
    owners = {group.id: group.owner for group in graph.groups}
    at: Node | None = node
    while at is not None and (at.type != "Map" or at.distributed):
        at = graph.by_id.get(owners[at.group])
    return at


def _map_depth(graph: Graph, owner: Node) -> int:
    """Return how many Maps surround a Map."""
    owners = {group.id: group.owner for group in graph.groups}
    count, at = 0, graph.by_id.get(owners[owner.group])
    while at is not None:
        count += at.type == "Map"
        at = graph.by_id.get(owners[at.group])
    return count


def _iteration_groups(
    by_status: Mapping[str, Sequence[Iteration]], kept_state: str
) -> tuple[IterationGroup, ...]:
    return tuple(
        IterationGroup(
            formatting.STEP[status],
            len(same_status),
            tuple(replace(each, step=kept_state or each.step) for each in same_status[:MOST_LINKS]),
        )
        for status in _GROUPS
        if (same_status := by_status.get(status))
    )
