"""Find the iterations of a Map, group them by outcome, and lead from one to another.

An iteration is named by its index in each surrounding Map, outermost first: ``37``, ``2.5``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import map_progress
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine import Graph, Node, Trace

Index = tuple[int, ...]
MOST_LINKS = 100
"""How many iterations of a group are listed; the number field leads to the others."""
_WORST = ("failed", "timed_out", "running", "aborted", "caught", "succeeded")
_RANK = {status: rank for rank, status in enumerate(_WORST)}
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
    iterations = iterations_of_map(trace, owner)
    depth = len(iterations[0].index) if iterations else 1
    index = current[:depth]
    failed = [iteration for iteration in iterations if iteration.status in ("failed", "timed_out")]
    # a press on another iteration keeps the state that is looked at
    kept_state = "" if node is owner else node.name
    return IterationPicker(
        owner=owner.name,
        total=len(iterations),
        groups=_iteration_groups(iterations, kept_state),
        current=_first_iteration(
            (iteration for iteration in iterations if iteration.index == index), kept_state
        ),
        previous_failed=_first_iteration(
            (iteration for iteration in reversed(failed) if iteration.index < index), kept_state
        ),
        next_failed=_first_iteration(
            (iteration for iteration in failed if iteration.index > index), kept_state
        ),
        before=_first_iteration(
            (iteration for iteration in reversed(iterations) if index and iteration.index < index),
            kept_state,
        ),
        after=_first_iteration(
            (iteration for iteration in iterations if index and iteration.index > index), kept_state
        ),
        not_started=items_not_started(trace, owner, len(iterations)),
    )


def items_not_started(trace: Trace, owner: Node, begun: int) -> int:
    """Return how many items of a Map have no iteration yet, 0 if it is not known.

    It is not for a Map inside another one, which has a number of items for each iteration around.
    """
    attempt = trace.progress(owner.id) if not _map_depth(trace.graph, owner) else None
    return max(0, attempt.total - begun) if attempt is not None and attempt.total else 0


def _first_iteration(iterations: Iterator[Iteration], kept_state: str) -> Iteration | None:
    """Return the first one, leading to the state ``kept`` if that is named."""
    return next(iter(_with_state(list(islice(iterations, 1)), kept_state)), None)


def iterations_of_map(trace: Trace, owner: Node) -> Sequence[Iteration]:
    """Return the iterations of a Map that have begun, by index.

    Those of its last attempt: what failed before a retry does not count, as AWS counts it.
    """
    subject = (iterations_of_map, owner.id)
    return trace.derive(subject, None, lambda: tuple(_find_iterations(trace, owner)))


def _find_iterations(trace: Trace, owner: Node) -> Iterator[Iteration]:
    depth = _map_depth(trace.graph, owner) + 1
    best: dict[Index, tuple[int, int, str]] = {}
    worst: dict[Index, int] = {}
    own = {group.id for group in trace.graph.groups if group.owner == owner.id}
    lines, left, ended = trace.lines, trace.left, trace.ended
    succeeded, running = VisitStatus.SUCCEEDED, VisitStatus.RUNNING
    for node in nodes_within(trace.graph, owner):
        is_own = node.group in own
        for number in trace.visits_of(node.id).counting_still():
            # Of visits that are equally telling, the later one stands deeper or further on.
            how = ended.get(number) or (succeeded if number in left else running)
            rank = (_RANK[how], -number, node.name)
            index = lines[number].iteration[:depth]
            if is_own and worst.setdefault(index, rank[0]) > rank[0]:
                worst[index] = rank[0]
            before = best.get(index)
            if before is None or rank < before:
                best[index] = rank
    # What failed deeper inside may have been caught in the iteration: its own states say so.
    for index in sorted(best):
        rank = best[index]
        yield Iteration(index, _WORST[worst.get(index, rank[0])], rank[2])


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
    iterations: Sequence[Iteration], kept_state: str
) -> tuple[IterationGroup, ...]:
    members: dict[str, list[Iteration]] = {status: [] for status in _GROUPS}
    for iteration in iterations:
        members[iteration.status].append(iteration)
    return tuple(
        IterationGroup(
            formatting.STEP[status],
            len(same_status),
            tuple(_with_state(same_status[:MOST_LINKS], kept_state)),
        )
        for status, same_status in members.items()
        if same_status
    )


def _with_state(iterations: Iterable[Iteration], kept_state: str) -> Iterable[Iteration]:
    """Return iterations, leading to the state ``kept`` if that is named."""
    if not kept_state:
        return iterations
    return (replace(iteration, step=kept_state) for iteration in iterations)
