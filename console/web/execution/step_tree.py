"""Build the rows of the steps table and the timeline: the states as a tree.

The states inside a Parallel or Map follow it, one level deeper. A Map also lists the most important
iterations: failed ones first. A filter keeps the ancestors of matching rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from console.web.core import formatting
from console.web.core.scope import choose
from console.web.execution import iteration_rows, iterations

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from django.http import QueryDict

    from console.web.execution.child_signs import ChildSign
    from console.web.execution.iteration_rows import IterationSpan, IterationSummary
    from console.web.execution.iterations import Iteration
    from console.web.execution.steps import StepSummary
    from engine import Node, Trace, Visit

MOST_ROWS = 1000
"""The number of steps in the table and the timeline; a filter finds the others."""
MOST_FILTERED = 100
MOST_OPENED = 50
MOST_LEVELS = 16
"""The number of levels with an indentation of their own in the style sheet."""
_NODE_ID = re.compile(r"n\d{1,6}", re.ASCII)
IN_CHILDREN = "apart"
"""The key of a state that runs in child executions."""
_ORDER = ("failed", "timed_out", "running", "caught", "aborted", "succeeded", "", IN_CHILDREN)
SORTS = ("name", "type", "status", "entered", "duration", "visits")


@dataclass(frozen=True, slots=True)
class StepFilters:
    """Filter and sort order.

    ``status``: a key of ``formatting.STEP``, None for any; ``sort``: "" or a key of ``SORTS``, with
    ``-`` before it for the other direction; ``opened``: Maps whose iterations are listed.
    """

    status: str | None = None
    find: str = ""
    sort: str = ""
    opened: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: QueryDict) -> StepFilters:
        """Read the query string; invalid values are ignored."""
        named = {(key or "idle"): key for key in formatting.STEP}
        status = choose(query, "status", named, also=[key.upper() for key in named])
        sorts = [sign + key for key in SORTS for sign in ("", "-")]
        return cls(
            status=named.get(status.lower()),
            find=query.get("find", "")[:80],
            sort=choose(query, "sort", sorts),
            opened=frozenset(_NODE_ID.findall(query.get("rows", "")[: 8 * MOST_OPENED])),
        )

    @property
    def active(self) -> bool:
        """Whether rows are filtered out."""
        return self.status is not None or bool(self.find)


@dataclass(frozen=True, slots=True)
class StepRow:
    """One row: a state, or an ``iteration`` of a Map.

    ``key``: the key of its status in ``formatting.STEP``. ``entered_ms``: entry of the first visit;
    ``left_ms``: exit of the last visit. ``since``: epoch ms from which the page counts a running
    clock, None after the end. ``took``: duration of all visits, or of the iteration, without the
    gaps before redrives, None while it runs. ``retries``: the sum over all visits, None for an
    iteration. ``matches``: False for an ancestor that is shown only because a row below it matches
    the filter. ``visits_made``: the visits, for the timeline. ``apart``: the status of a state that
    runs in child executions; ``mixed``: the status of a state whose visits ended differently.
    ``iterations``: the summary, in the row that sums up a Map's iterations. ``starts``: the state
    starts child executions or runs in them. ``children``: text with the progress of a distributed
    Map's child executions, in the rows of the Map and of the states inside it, "" for other states.
    """

    id: str
    step: str
    label: str
    kind: str
    key: str
    depth: int
    iteration: str = ""
    entered_ms: int | None = None
    left_ms: int | None = None
    since: int | None = None
    took: int | None = None
    visits: int = 0
    retries: int | None = None
    matches: bool = True
    visits_made: Sequence[Visit] = field(default=(), repr=False)
    apart: formatting.StatusLabel | None = None
    mixed: formatting.StatusLabel | None = None
    iterations: IterationSummary | None = None
    starts: bool = False
    children: str = ""

    @property
    def status(self) -> formatting.StatusLabel:
        """Return tone and word of the status."""
        return self.apart or self.mixed or formatting.STEP[self.key]

    @property
    def level(self) -> int:
        """Return the indentation: the depth, up to the style sheet's maximum."""
        return min(self.depth, MOST_LEVELS)

    @property
    def in_children(self) -> bool:
        """Whether the state runs in child executions."""
        return self.apart is not None

    @property
    def retries_text(self) -> str:
        """Return the number of retries as text, "" for none."""
        if not self.retries:
            return ""
        return f"({self.retries:,} {'retry' if self.retries == 1 else 'retries'})"

    @property
    def of_iterations(self) -> bool:
        """Whether the row is of iterations, not of a state."""
        return bool(self.iteration) or self.iterations is not None


@dataclass(frozen=True, slots=True)
class StepsPart:
    """The rows of the steps table and timeline.

    ``has_steps``: the page holds the table; ``matching``: the number of rows that match the filter;
    ``rows``: the first ``MOST_ROWS`` of them.
    """

    has_steps: bool
    rows: list[StepRow]
    matching: int
    filters: StepFilters
    summaries: Mapping[str, StepSummary]
    child_signs: Mapping[str, ChildSign]

    @property
    def stamp(self) -> str:
        """Return a stamp of the rows, to notice changed ones."""
        return rows_stamp(self.rows)

    @property
    def state_rows(self) -> list[StepRow]:
        """Return the rows of states."""
        return [row for row in self.rows if not row.of_iterations]

    @property
    def iteration_rows(self) -> list[StepRow]:
        """Return the rows of iterations."""
        return [row for row in self.rows if row.of_iterations]

    @property
    def keys(self) -> Mapping[str, formatting.StatusLabel]:
        """Return the statuses for the filter."""
        return formatting.STEP


def steps_part(
    trace: Trace,
    summaries: dict[str, StepSummary],
    child_signs: Mapping[str, ChildSign],
    query: QueryDict,
    *,
    has_steps: bool,
) -> StepsPart:
    """Return the rows that match the filters of a URL."""
    filters = StepFilters.of(query)
    matching = step_rows(trace, summaries, filters)
    rows = matching[:MOST_ROWS]
    return StepsPart(has_steps, rows, len(matching), filters, summaries, child_signs)


@dataclass(frozen=True, slots=True)
class _StepBranch:
    row: StepRow
    below: tuple[_StepBranch, ...]


def step_rows(
    trace: Trace, summaries: dict[str, StepSummary], filters: StepFilters
) -> list[StepRow]:
    """Return the rows in display order."""
    states: dict[str, list[Node]] = {}
    for node in trace.graph.nodes:
        states.setdefault(node.group, []).append(node)
    inner: dict[str, list[str]] = {}
    for group in trace.graph.groups:
        inner.setdefault(group.owner, []).append(group.id)
    in_children = iterations.enclosing_maps(trace.graph).keys()
    tree = _StepTree(trace, summaries, filters, states, inner, in_children)
    grown = tree.grow(inner[""][0], 0)
    return list(_flat(_prune_rows(grown, filters), filters))


@dataclass(frozen=True, slots=True)
class _StepTree:
    """The data from which rows are made.

    ``states``: group -> its states; ``inner``: state -> the groups inside it, "" -> the outermost
    group; ``in_children``: the states inside a distributed Map.
    """

    trace: Trace
    summaries: Mapping[str, StepSummary]
    filters: StepFilters
    states: Mapping[str, Sequence[Node]]
    inner: Mapping[str, Sequence[str]]
    in_children: Collection[str]

    def grow(self, group: str, depth: int) -> tuple[_StepBranch, ...]:
        """Return the rows of a group's states, each with its inner rows."""
        grown = []
        for node in self.states[group]:
            parts = self.inner.get(node.id, ())
            below = [branch for part in parts for branch in self.grow(part, depth + 1)]
            if node.type == "Map":
                below = [*self._iterations(node, depth + 1), *below]
            inside = node.id in self.in_children
            row = _state(self.trace, node, self.summaries[node.id], depth, inside=inside)
            grown.append(_StepBranch(row, tuple(below)))
        return tuple(grown)

    def _iterations(self, node: Node, depth: int) -> list[_StepBranch]:
        """Return a Map's summary row with the worst iterations, or with those of the filter."""
        if self.filters.active:
            map_iterations = iterations.iterations_of_map(self.trace, node)
            of_status = list(
                islice(map_iterations.of_status(self.filters.status or "failed"), MOST_FILTERED)
            )
            return _iteration_branches(self.trace, node, of_status, depth)
        opened = self.filters.opened
        shown = iteration_rows.listed_iterations(self.trace, node, opened=node.id in opened)
        summary = iteration_rows.sum_up_iterations(self.trace, node, len(shown), opened)
        if summary is None:
            return _iteration_branches(self.trace, node, shown, depth)
        below = _iteration_branches(self.trace, node, shown, depth + 1)
        return [_StepBranch(_sum_row(self.trace, summary, node, depth), tuple(below))]


def rows_stamp(rows: Iterable[StepRow]) -> str:
    """Return a stamp that changes when rows are added, removed or reordered."""
    text = " ".join(f"{row.id}:{row.matches:d}" for row in rows)
    return f"{crc32(text.encode()):x}"


def _state(trace: Trace, node: Node, summary: StepSummary, depth: int, *, inside: bool) -> StepRow:
    """Return the row of a state. ``inside``: it is in a distributed Map."""
    visits = trace.visits_of(node.id)
    key = IN_CHILDREN if summary.in_children else summary.key
    return StepRow(
        id=node.id,
        step=node.name,
        label=node.name,
        kind=node.type,
        key=key,
        depth=depth,
        entered_ms=summary.entered_ms,
        left_ms=summary.left_ms,
        since=summary.worked_since,
        took=summary.took_ms if summary.left_ms is not None else None,
        visits=len(visits),
        retries=summary.retries,
        visits_made=visits,
        apart=summary.status if summary.in_children else None,
        mixed=summary.status if summary.mixed else None,
        starts=node.distributed
        or inside
        or (node.type == "Task" and "startExecution" in node.text),
        children=summary.children,
    )


def _iteration_branches(
    trace: Trace, node: Node, shown: Sequence[Iteration], depth: int
) -> list[_StepBranch]:
    rows = (
        _iteration(
            *(trace, node, iteration),
            iteration_rows.visits_of_iteration(trace, node, iteration.index),
            depth,
        )
        for iteration in shown
    )
    return [_StepBranch(row, ()) for row in rows]


def _sum_row(trace: Trace, summary: IterationSummary, node: Node, depth: int) -> StepRow:
    """Return the summary row of a Map's iterations."""
    spans = summary.spans
    entered_ms, left_ms = trace.derive((_sum_row, node.id), None, lambda: _begin_and_end(spans))
    running = left_ms is None
    return StepRow(
        id=f"s{node.id}",
        step=node.name,
        label=summary.label,
        kind="Iterations",
        key=summary.worst,
        depth=depth,
        entered_ms=entered_ms,
        left_ms=left_ms,
        since=_running_since(trace, entered_ms) if running else None,
        took=_took_between(trace, entered_ms, left_ms),
        visits=len(spans),
        iterations=summary,
    )


def _begin_and_end(spans: Sequence[IterationSpan]) -> tuple[int, int | None]:
    """Return the start of the first iteration and the end of the last; None while running."""
    ends = [span.end for span in spans if span.end is not None]
    return min(span.begin for span in spans), max(ends) if len(ends) == len(spans) else None


def _running_since(trace: Trace, entered: int | None) -> int | None:
    """Return the start for a running clock: later by the gaps before redrives."""
    if entered is None:
        return None
    return entered + sum(
        until - max(since, entered) for since, until in trace.gaps if until > entered
    )


def _took_between(trace: Trace, entered_ms: int | None, left_ms: int | None) -> int | None:
    return None if entered_ms is None or left_ms is None else trace.worked_ms(entered_ms, left_ms)


def _iteration(
    trace: Trace, owner: Node, iteration: Iteration, visits: list[Visit], depth: int
) -> StepRow:
    ends = [visit.left_ms for visit in visits]
    running = None in ends
    entered_ms = min(visit.entered_ms for visit in visits)
    left_ms = None if running else max(end for end in ends if end is not None)
    return StepRow(
        id=f"i{owner.id}-{iteration.key}",
        step=iteration.step,
        label=iteration.label,
        kind="Iteration",
        key=iteration.status,
        depth=depth,
        iteration=iteration.key,
        entered_ms=entered_ms,
        left_ms=left_ms,
        since=_running_since(trace, entered_ms) if running else None,
        took=_took_between(trace, entered_ms, left_ms),
        visits=1,
        visits_made=sorted(visits, key=lambda visit: visit.number),
    )


def _prune_rows(grown: tuple[_StepBranch, ...], filters: StepFilters) -> tuple[_StepBranch, ...]:
    """Remove rows that neither match nor contain a match."""
    if not filters.active:
        return grown
    branches = []
    for branch in grown:
        below = _prune_rows(branch.below, filters)
        matches = _matches(branch.row, filters)
        if matches or below:
            branches.append(_StepBranch(replace(branch.row, matches=matches), below))
    return tuple(branches)


def _matches(row: StepRow, filters: StepFilters) -> bool:
    if filters.status is not None and row.key != filters.status:
        return False
    return filters.find.casefold() in f"{row.label} {row.kind}".casefold()


def _flat(grown: tuple[_StepBranch, ...], filters: StepFilters) -> Iterable[StepRow]:
    """Yield each row before its inner rows, sorted among its siblings."""
    name = filters.sort.removeprefix("-")
    if name:
        by = _KEYS[name]
        grown = tuple(
            sorted(grown, key=lambda branch: by(branch.row), reverse=filters.sort[0] == "-")
        )
    for branch in grown:
        yield branch.row
        yield from _flat(branch.below, filters)


_LATE = 1 << 62
_KEYS: dict[str, Callable[[StepRow], tuple[int, str]]] = {
    "name": lambda row: (0, row.label.casefold()),
    "type": lambda row: (0, row.kind),
    "status": lambda row: (_ORDER.index(row.key), ""),
    "entered": lambda row: (_LATE if row.entered_ms is None else row.entered_ms, ""),
    "duration": lambda row: (_LATE if row.since else row.took or 0, ""),
    "visits": lambda row: (row.visits, ""),
}
