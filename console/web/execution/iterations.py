"""Find the iterations of a Map, group them by outcome, and lead from one to another.

An iteration is named by its index in each surrounding Map, outermost first: ``37``, ``2.5``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from operator import neg
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import map_progress
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine import Graph, Node, Trace

Index = tuple[int, ...]
MOST_LINKS = 100
"""How many iterations of a group are listed; the number field leads to the others."""
_WORST = ("failed", "timed_out", "running", "aborted", "caught", "succeeded")
_RANK = {status: rank for rank, status in enumerate(_WORST)}
_FAILED = ("failed", "timed_out")
_GROUPS = ("failed", "timed_out", "aborted", "running", "caught", "succeeded")


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class MapIterations:
    """The iterations of a Map that have begun, by index. There may be thousands: few are read.

    ``statuses`` and ``steps``: of each; ``places``: status -> places of those that have it.
    """

    indexes: Sequence[Index]
    statuses: Sequence[str]
    steps: Sequence[str]
    places: Mapping[str, Sequence[int]]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.indexes)

    def at(self, place: int) -> Iteration:
        """Return the one at a place."""
        return Iteration(self.indexes[place], self.statuses[place], self.steps[place])

    def place_of(self, index: Index) -> int | None:
        """Return the place of an iteration, None if it has not begun."""
        place = bisect_left(self.indexes, index)
        return place if place < len(self) and self.indexes[place] == index else None

    def of_status(self, status: str) -> Iterator[Iteration]:
        """Yield those that have a status."""
        return map(self.at, self.places.get(status, ()))

    def count(self, status: str, within: Index = ()) -> int:
        """Return how many have a status; ``within``: in this iteration of the Maps around."""
        places = self.places.get(status, ())
        if not within:
            return len(places)
        size = len(within)
        return sum(self.indexes[place][:size] == within for place in places)


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
    iterations = iterations_of_map(trace, node)
    place = iterations.place_of(index[: _map_depth(trace.graph, node) + 1])
    return name if place is None else iterations.steps[place]


def iteration_picker(trace: Trace, node: Node, current: Index = ()) -> IterationPicker | None:
    """Return the picker for a state inside a Map, or for the Map itself; None elsewhere."""
    owner = _owning_map(trace.graph, node)
    if owner is None:
        return None
    iterations = iterations_of_map(trace, owner)
    index = current[: _map_depth(trace.graph, owner) + 1]
    everywhere = range(len(iterations)) if index else ()
    before, chosen, after = _neighbours(iterations, everywhere, index)
    failed = sorted(chain(*(iterations.places.get(status, ()) for status in _FAILED)))
    previous_failed, _, next_failed = _neighbours(iterations, failed, index)
    # a press on another iteration keeps the state that is looked at
    kept_state = "" if node is owner else node.name
    return IterationPicker(
        owner=owner.name,
        total=len(iterations),
        groups=_iteration_groups(iterations, kept_state),
        current=_at_state(chosen, kept_state),
        previous_failed=_at_state(previous_failed, kept_state),
        next_failed=_at_state(next_failed, kept_state),
        before=_at_state(before, kept_state),
        after=_at_state(after, kept_state),
        not_started=items_not_started(trace, owner, len(iterations)),
    )


def _neighbours(
    iterations: MapIterations, places: Sequence[int], index: Index
) -> tuple[Iteration | None, Iteration | None, Iteration | None]:
    """Return of some iterations the one before an index, the one of it, and the one after."""
    first = bisect_left(places, index, key=iterations.indexes.__getitem__)
    after = bisect_right(places, index, first, key=iterations.indexes.__getitem__)
    return (
        iterations.at(places[first - 1]) if first else None,
        iterations.at(places[first]) if first < after else None,
        iterations.at(places[after]) if after < len(places) else None,
    )


def items_not_started(trace: Trace, owner: Node, begun: int) -> int:
    """Return how many items of a Map have no iteration yet, 0 if it is not known.

    It is not for a Map inside another one, which has a number of items for each iteration around.
    """
    progress = trace.progress(owner.id) if not _map_depth(trace.graph, owner) else None
    return max(0, progress.total - begun) if progress is not None and progress.total else 0


def _at_state(iteration: Iteration | None, kept_state: str) -> Iteration | None:
    """Return an iteration, leading to the state ``kept_state`` if that is named."""
    return replace(iteration, step=kept_state) if iteration and kept_state else iteration


def iterations_of_map(trace: Trace, owner: Node) -> MapIterations:
    """Return the iterations of a Map that have begun.

    Those of its last attempt: what failed before a retry does not count, as AWS counts it.
    """
    subject = (iterations_of_map, owner.id)
    return trace.derive(subject, None, lambda: _find_iterations(trace, owner))


def _find_iterations(trace: Trace, owner: Node) -> MapIterations:
    depth = _map_depth(trace.graph, owner) + 1
    best: dict[Index, tuple[int, int, str]] = {}
    worst: dict[Index, int] = {}
    own = {group.id for group in trace.graph.groups if group.owner == owner.id}
    nodes = nodes_within(trace.graph, owner)
    holds_others = any(node.group not in own for node in nodes)
    for node in nodes:
        numbers = trace.visits_of(node.id).counting_still()
        ranks = _ranks_of(trace, numbers)
        indexes = [trace.lines[number].iteration[:depth] for number in numbers]
        # Of visits that are equally telling, the later one stands deeper or further on.
        visited = list(zip(ranks, map(neg, numbers), repeat(node.name), strict=False))
        if not best and len(made := dict(zip(indexes, visited, strict=True))) == len(indexes):
            best = made  # most often each iteration visits a state once
        else:
            for index, visit in zip(indexes, visited, strict=True):
                before = best.get(index)
                if before is None or visit < before:
                    best[index] = visit
        if holds_others and node.group in own:
            for index, rank in zip(indexes, ranks, strict=True):
                worst[index] = min(rank, worst.get(index, rank))
    # What failed deeper inside may have been caught in the iteration: its own states say so.
    ordered = sorted(best)
    statuses = [_WORST[worst[index] if index in worst else best[index][0]] for index in ordered]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, status in enumerate(statuses):
        places[status].append(place)
    return MapIterations(ordered, statuses, [best[index][2] for index in ordered], dict(places))


def _ranks_of(trace: Trace, numbers: list[int]) -> list[int]:
    """Return how telling the statuses of visits are, 0 for most."""
    left, ended = trace.left, trace.ended
    succeeded, running = _RANK[VisitStatus.SUCCEEDED], _RANK[VisitStatus.RUNNING]
    return [
        _RANK[ended[number]] if number in ended else succeeded if number in left else running
        for number in numbers
    ]


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


def _iteration_groups(iterations: MapIterations, kept_state: str) -> tuple[IterationGroup, ...]:
    return tuple(
        IterationGroup(
            formatting.STEP[status],
            iterations.count(status),
            tuple(
                replace(iteration, step=kept_state or iteration.step)
                for iteration in islice(iterations.of_status(status), MOST_LINKS)
            ),
        )
        for status in _GROUPS
        if iterations.count(status)
    )
