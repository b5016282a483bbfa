"""Progress of Maps: iterations of inline Maps, and child counts of Map Runs.

An iteration is named by its index in each surrounding Map, outermost first: ``37``, ``2.5``. The
items of a distributed Map run in child executions, so the parent's history has no iterations; the
counts come from the Map Run rows, in one query if the execution entered a distributed Map.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat
from operator import neg
from typing import TYPE_CHECKING

from console.models import MapRun
from console.statuses import MapRunStatus
from console.store.map_runs import map_counts
from console.web.core import formatting
from console.web.execution.child_counts import count_children
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from console.models import Execution
    from console.web.execution.child_counts import ChildCounts
    from engine import Graph, Node, Trace

Index = tuple[int, ...]
MOST_LINKS = 100
"""The number of listed iterations of a group; the number field leads to the others."""
_WORST = ("failed", "timed_out", "running", "aborted", "caught", "succeeded")
_RANK = {status: rank for rank, status in enumerate(_WORST)}
_FAILED = ("failed", "timed_out")
_GROUPS = ("failed", "timed_out", "aborted", "running", "caught", "succeeded")
MOST_MAP_RUNS = 1_000
"""The number of latest Map Runs whose counts an execution's page shows."""
_COLUMNS = (
    *("task", "arn", "status", "reading", "total", "started", "succeeded", "failed"),
    *("timed_out", "aborted", "pending_redrive", "stop_ms", "redrive_count", "max_concurrency"),
)


# -- iterations ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration. ``step``: its most telling state."""

    index: Index
    status: str
    step: str

    @property
    def key(self) -> str:
        """Return its key in URLs."""
        return ".".join(str(number) for number in self.index)

    @property
    def label(self) -> str:
        """Return its name on pages."""
        return iteration_label(self.index)


@dataclass(frozen=True, slots=True)
class MapIterations:
    """The started iterations of a Map, by index. There may be thousands: few are read.

    ``statuses`` and ``steps``: of each; ``places``: status -> indexes of the iterations with that
    status.
    """

    indexes: Sequence[Index]
    statuses: Sequence[str]
    steps: Sequence[str]
    places: Mapping[str, Sequence[int]]

    def __len__(self) -> int:
        """Return the number of iterations."""
        return len(self.indexes)

    def at(self, place: int) -> Iteration:
        """Return the iteration at a position."""
        return Iteration(self.indexes[place], self.statuses[place], self.steps[place])

    def place_of(self, index: Index) -> int | None:
        """Return the position of an iteration, None if it has not started."""
        place = bisect_left(self.indexes, index)
        return place if place < len(self) and self.indexes[place] == index else None

    def of_status(self, status: str) -> Iterator[Iteration]:
        """Yield the iterations with a status."""
        return map(self.at, self.places.get(status, ()))

    def count(self, status: str, within: Index = ()) -> int:
        """Return the number with a status; ``within``: in this iteration of outer Maps."""
        places = self.places.get(status, ())
        if not within:
            return len(places)
        size = len(within)
        return sum(self.indexes[place][:size] == within for place in places)


@dataclass(frozen=True, slots=True)
class IterationGroup:
    """Iterations with the same outcome; ``shown``: the first of them."""

    status: formatting.StatusLabel
    count: int
    shown: tuple[Iteration, ...]

    @property
    def more(self) -> int:
        """Return the number of iterations that are not listed."""
        return self.count - len(self.shown)


@dataclass(frozen=True, slots=True)
class IterationPicker:
    """The iterations of the Map ``owner``; ``current``: selected, None on the Map itself.

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
    """The iteration shown inside a Map of the graph; ``nodes``: the states inside."""

    nodes: frozenset[str]
    index: tuple[int, ...]

    def places(self, trace: Trace, node: str) -> list[int]:
        """Return the positions, from 0, of a state's visits in the iteration."""
        size = len(self.index)
        iterations = trace.visits_of(node).iterations()
        return [place for place, index in enumerate(iterations) if index[:size] == self.index]


def parse_iteration(text: str) -> Index:
    """Parse an iteration from a URL, () for none."""
    return tuple(int(number) for number in text.split(".")) if _KEY.fullmatch(text) else ()


_KEY = re.compile(r"\d{1,6}(\.\d{1,6}){0,9}", re.ASCII)


def iteration_label(index: Index) -> str:
    """Format an iteration: ``#37``, ``#2 → #5``."""
    return " → ".join(f"#{number}" for number in index)


def leading_state(trace: Trace, name: str, iteration: str) -> str:
    """Return the state to select: for an iteration the most telling one inside."""
    node = trace.graph.by_id.get(trace.graph.by_name.get(name, ""))
    index = parse_iteration(iteration)
    if node is None or node.type != "Map" or len(index) <= _map_depth(trace.graph, node):
        return name
    iterations = iterations_of_map(trace, node)
    place = iterations.place_of(index[: _map_depth(trace.graph, node) + 1])
    return name if place is None else iterations.steps[place]


def iteration_picker(trace: Trace, node: Node, current: Index = ()) -> IterationPicker | None:
    """Return the picker for a Map, or a state inside one; None elsewhere."""
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
    """Return the previous, current and next iteration of an index."""
    first = bisect_left(places, index, key=iterations.indexes.__getitem__)
    after = bisect_right(places, index, first, key=iterations.indexes.__getitem__)
    return (
        iterations.at(places[first - 1]) if first else None,
        iterations.at(places[first]) if first < after else None,
        iterations.at(places[after]) if after < len(places) else None,
    )


def items_not_started(trace: Trace, owner: Node, begun: int) -> int:
    """Return the number of items without an iteration yet, 0 if unknown.

    It does not support a Map inside another Map, which has a number of items for each outer
    iteration.
    """
    progress = trace.progress(owner.id) if not _map_depth(trace.graph, owner) else None
    return max(0, progress.total - begun) if progress is not None and progress.total else 0


def _at_state(iteration: Iteration | None, kept_state: str) -> Iteration | None:
    """Return an iteration that links to the state ``kept_state``, if named."""
    return replace(iteration, step=kept_state) if iteration and kept_state else iteration


def iterations_of_map(trace: Trace, owner: Node) -> MapIterations:
    """Return the started iterations of a Map.

    Those of its last attempt: failures before a retry do not count, as on AWS.
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
        # Of visits with the same rank, the later one is deeper or further along.
        visited = list(zip(ranks, map(neg, numbers), repeat(node.name), strict=False))
        if not best and len(visit_of := dict(zip(indexes, visited, strict=True))) == len(indexes):
            best = visit_of  # most often each iteration visits a state once
        else:
            for index, visit in zip(indexes, visited, strict=True):
                before = best.get(index)
                if before is None or visit < before:
                    best[index] = visit
        if holds_others and node.group in own:
            for index, rank in zip(indexes, ranks, strict=True):
                worst[index] = min(rank, worst.get(index, rank))
    # A failure deeper inside may have been caught in the iteration; its own states decide.
    ordered = sorted(best)
    statuses = [_WORST[worst[index] if index in worst else best[index][0]] for index in ordered]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, status in enumerate(statuses):
        places[status].append(place)
    return MapIterations(ordered, statuses, [best[index][2] for index in ordered], dict(places))


def _ranks_of(trace: Trace, numbers: list[int]) -> list[int]:
    """Return the rank of each visit's status; 0 is the most telling."""
    exits, ended = trace.end_times, trace.ended
    succeeded, running = _RANK[VisitStatus.SUCCEEDED], _RANK[VisitStatus.RUNNING]
    return [
        _RANK[ended[number]] if number in ended else succeeded if number in exits else running
        for number in numbers
    ]


def shown_iteration(trace: Trace, name: str, iteration: str) -> ShownIteration | None:
    """Return the iteration shown inside the Map around a state, None for all."""
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
    """Return the Map itself, or the innermost inline Map around a state.

    A distributed Map has none: its items run in child executions, with all that is inside of it.
    """
    if node.id in enclosing_maps(graph):
        return None
    owners = {group.id: group.owner for group in graph.groups}
    at: Node | None = node
    while at is not None and (at.type != "Map" or at.distributed):
        at = graph.by_id.get(owners[at.group])
    return at


def _map_depth(graph: Graph, owner: Node) -> int:
    """Return the number of Maps around a Map."""
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


# -- Map Runs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MapProgress:
    """Number of children by status, of one Map Run or several.

    ``arn``: the ARN of the newest Map Run; ``reading``: the items are still being read, so
    ``total`` grows; ``over``: pending children will only be started by a redrive.
    """

    arn: str
    total: int
    succeeded: int
    failed: int
    timed_out: int
    aborted: int
    running: int
    pending: int
    pending_redrive: int
    reading: bool
    over: bool

    @property
    def ended(self) -> int:
        """Return the number of finished children."""
        return self.succeeded + self.failed + self.timed_out + self.aborted

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Return count and word of each occurring status."""
        names = ("succeeded", "failed", "timed_out", "aborted", "running", "pending")
        words = {"pending": "never started"} if self.over else {}
        pairs = [(getattr(self, name), words.get(name, name.replace("_", " "))) for name in names]
        pairs.append((self.pending_redrive, "pending redrive"))
        return [(count, word) for count, word in pairs if count]

    @property
    def segments(self) -> list[tuple[str, int, float, float]]:
        """Return a bar of all children: tone, count, start and share in percent.

        As on the page of the Map Run, failures come first.
        """
        counts = {
            "failed": self.failed + self.timed_out,
            "aborted": self.aborted,
            "succeeded": self.succeeded,
            "running": self.running,
        }
        parts, start = [], 0.0
        for tone, count in counts.items():
            share = 100 * count / max(self.total, 1)
            if count:
                parts.append((tone, count, start, share))
            start += share
        return parts

    @property
    def note(self) -> str:
        """Return the counts in short, for a box of the graph."""
        if self.reading and not self.total:
            return "reading items"
        bad = self.failed + self.timed_out
        ended = f"{self.ended:,} of {self.total:,}"
        return f"{ended} · {bad:,} failed" if bad else ended

    @property
    def bad(self) -> list[tuple[int, str]]:
        """Return the counts of unsuccessful outcomes."""
        return [(self.failed, "failed"), (self.timed_out, "timed out"), (self.aborted, "aborted")]

    @property
    def endings(self) -> str:
        """Return the unsuccessful outcomes of all children, as for an inline Map."""
        return endings_text(self.bad, self.total)


@dataclass(frozen=True, slots=True)
class MapRuns:
    """The Map Runs of an execution. ``runs``: (node id, visit, iteration) and row, oldest first."""

    runs: tuple[tuple[tuple[str, int, tuple[int, ...]], MapRun], ...] = field(repr=False)
    states: Mapping[str, ChildCounts] = field(default_factory=dict, repr=False)
    """Name of a state inside a distributed Map -> how the children fared in it."""

    def of_node(self, node: str) -> MapProgress | None:
        """Return a state's counts: its latest Map Run in each outer iteration."""
        newest = {where[2]: run for where, run in self.runs if where[0] == node}
        return _sum_progress(newest.values())

    def newest_of_visit(self, node: str, visit: int) -> MapRun | None:
        """Return the latest Map Run of a visit, None without one."""
        return next((run for where, run in reversed(self.runs) if where[:2] == (node, visit)), None)

    def of_visit(self, node: str, visit: int) -> MapProgress | None:
        """Return a visit's counts: of its latest Map Run, because a retry starts another."""
        return _sum_progress([run for where, run in self.runs if where[:2] == (node, visit)][-1:])

    def most_at_once(self) -> dict[str, int]:
        """Return node id -> most child executions that a Map Run of it may have at a time."""
        most: dict[str, int] = {}
        for (node, *_), run in self.runs:
            count = min(run.total, run.max_concurrency or run.total)
            most[node] = max(most.get(node, 0), count)
        return most

    @property
    def unsettled(self) -> bool:
        """Whether counts may still change after the execution's end.

        1. A stop ends the execution.  2. A worker ends its Map Runs, and stops their children.
        3. Each child ends, and is counted, in a transaction of its own.
        """
        return any(
            run.status == MapRunStatus.RUNNING or map_counts.count_running(run)
            for _, run in self.runs
        )

    @property
    def stamp(self) -> str:
        """Return a stamp that changes with the counts."""
        counts = [[getattr(run, name) for name in _COLUMNS] for _, run in self.runs]
        return hashlib.sha256(repr(counts).encode()).hexdigest()[:16]


def endings_text(counts: Iterable[tuple[int, str]], total: int = 0) -> str:
    """Return counts of outcomes, the first one of a total: ``1 of 3 failed, 1 aborted``."""
    pairs = [(count, word) for count, word in counts if count]
    parts = [f"{count:,} {word}" for count, word in pairs]
    if pairs and total:
        parts[0] = f"{pairs[0][0]:,} of {total:,} {pairs[0][1]}"
    return ", ".join(parts)


def _sum_progress(runs: Iterable[MapRun]) -> MapProgress | None:
    map_runs = sorted(runs, key=lambda run: run.task)
    if not map_runs:
        return None

    def count(name: str) -> int:
        return sum(getattr(run, name) for run in map_runs)

    ends = {name: count(name) for name in ("succeeded", "failed", "timed_out", "aborted")}
    waiting = count("pending_redrive")
    return MapProgress(
        arn=map_runs[-1].arn,
        total=count("total"),
        **ends,
        running=count("started") - sum(ends.values()) - waiting,
        pending=count("total") - count("started"),
        pending_redrive=waiting,
        reading=any(run.reading and run.status == MapRunStatus.RUNNING for run in map_runs),
        over=all(run.status != MapRunStatus.RUNNING for run in map_runs),
    )


def map_runs_of_execution(execution: Execution, trace: Trace) -> MapRuns | None:
    """Return the Map Runs of an execution; None if it entered no distributed Map."""
    if not any(node.distributed and trace.visits_of(node.id) for node in trace.graph.nodes):
        return None
    rows = MapRun.objects.filter(parent=execution, task__lte=trace.last).only(*_COLUMNS)
    newest = list(rows.order_by("-task")[:MOST_MAP_RUNS])
    placed = tuple(_placed(trace, reversed(newest)))
    last = {(where[0], where[2]): run for where, run in placed}
    return MapRuns(placed, count_children(last.values()))


def _placed(
    trace: Trace, runs: Iterable[MapRun]
) -> Iterator[tuple[tuple[str, int, tuple[int, ...]], MapRun]]:
    for run in runs:
        node, visit = trace.owner_of(run.task)
        if visit:
            yield (node, visit, trace.visit(node, visit).iteration), run


def enclosing_maps(graph: Graph) -> Mapping[str, str]:
    """Return node id -> its outermost distributed Map; nodes outside are omitted."""
    if not any(node.distributed for node in graph.nodes):
        return {}
    around: dict[str, str] = {}  # group id -> the outermost distributed Map around it
    for group in graph.groups:  # outer groups come first
        owner = graph.by_id.get(group.owner)
        own = owner.id if owner is not None and owner.distributed else ""
        around[group.id] = (around[owner.group] if owner is not None else "") or own
    return {node.id: around[node.group] for node in graph.nodes if around[node.group]}
