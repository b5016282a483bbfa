"""Show in an execution's page how far its distributed Maps are.

What is inside a distributed Map runs in executions of its own, so the history of the parent tells
of no iteration. The counts come from the rows of its Map Runs: one query for a page of an execution
that entered a distributed Map, none for any other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.models import MapRun
from console.statuses import MapRunStatus
from console.store.map_runs import map_counts
from console.web.execution.child_counts import count_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from console.models import Execution
    from console.web.execution.child_counts import ChildCounts
    from engine import Graph, Trace

MOST = 1_000
"""Of how many Map Runs, the newest ones, an execution's page shows the counts."""
_COLUMNS = (
    *("task", "arn", "status", "reading", "total", "started", "succeeded", "failed"),
    *("timed_out", "aborted", "pending_redrive", "stop_ms", "redrive_count"),
)


@dataclass(frozen=True, slots=True)
class MapProgress:
    """How many children of a Map Run, or of several together, are in which state.

    ``arn``: of the newest one; ``reading``: the items are still being read, so ``total`` grows;
    ``over``: what is pending will not be started any more, but by a redrive.
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
        """Return how many have ended."""
        return self.succeeded + self.failed + self.timed_out + self.aborted

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Return count and word of each state that some child is in."""
        names = ("succeeded", "failed", "timed_out", "aborted", "running", "pending")
        words = {"pending": "never started"} if self.over else {}
        pairs = [(getattr(self, name), words.get(name, name.replace("_", " "))) for name in names]
        pairs.append((self.pending_redrive, "pending redrive"))
        return [(count, word) for count, word in pairs if count]

    @property
    def segments(self) -> list[tuple[str, int, float, float]]:
        """Return the parts of a bar of all children: tone, count, start and share in percent.

        As on the page of the Map Run, what went wrong comes first.
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
        """Return the counts in the few words that a box of the graph has room for."""
        if self.reading and not self.total:
            return "reading items"
        bad = self.failed + self.timed_out
        ended = f"{self.ended:,} of {self.total:,}"
        return f"{ended} · {bad:,} failed" if bad else ended

    @property
    def bad(self) -> list[tuple[int, str]]:
        """Return how many did not end well, and how."""
        return [(self.failed, "failed"), (self.timed_out, "timed out"), (self.aborted, "aborted")]

    @property
    def endings(self) -> str:
        """Return how many of all did not end well, as for the iterations of an inline Map."""
        return endings_text(self.bad, self.total)


@dataclass(frozen=True, slots=True)
class MapRuns:
    """The Map Runs of an execution. ``runs``: (node id, visit, iteration) and row, oldest first."""

    runs: tuple[tuple[tuple[str, int, tuple[int, ...]], MapRun], ...] = field(repr=False)
    states: Mapping[str, ChildCounts] = field(default_factory=dict, repr=False)
    """Name of a state inside a distributed Map -> how the children fared in it."""

    def of_node(self, node: str) -> MapProgress | None:
        """Return the counts of a state: of its newest Map Run in each iteration around it."""
        newest = {where[2]: run for where, run in self.runs if where[0] == node}
        return _sum_progress(newest.values())

    def newest_of_visit(self, node: str, visit: int) -> MapRun | None:
        """Return the newest Map Run of one visit, None if it began none."""
        return next((run for where, run in reversed(self.runs) if where[:2] == (node, visit)), None)

    def of_visit(self, node: str, visit: int) -> MapProgress | None:
        """Return the counts of one visit: of its newest Map Run, as a retry makes another."""
        return _sum_progress([run for where, run in self.runs if where[:2] == (node, visit)][-1:])

    @property
    def unsettled(self) -> bool:
        """Tell whether a count may change although the execution has ended.

        1. A stop ends the execution.  2. A worker ends its Map Runs, and stops their children.
        3. Each child ends, and is counted, in a transaction of its own.
        """
        return any(
            run.status == MapRunStatus.RUNNING or map_counts.count_running(run)
            for _, run in self.runs
        )

    @property
    def stamp(self) -> str:
        """Return what changes when a count does."""
        counts = [[getattr(run, name) for name in _COLUMNS] for _, run in self.runs]
        return hashlib.sha256(repr(counts).encode()).hexdigest()[:16]


def endings_text(counts: Iterable[tuple[int, str]], total: int = 0) -> str:
    """Return counts and words of endings, the first of a total: ``1 of 3 failed, 1 aborted``."""
    known = [(count, word) for count, word in counts if count]
    parts = [f"{count:,} {word}" for count, word in known]
    if known and total:
        parts[0] = f"{known[0][0]:,} of {total:,} {known[0][1]}"
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
    """Return the Map Runs of an execution, None if it has entered no distributed Map."""
    if not any(node.distributed and trace.visits_of(node.id) for node in trace.graph.nodes):
        return None
    rows = MapRun.objects.filter(parent=execution, task__lte=trace.last).only(*_COLUMNS)
    newest = list(rows.order_by("-task")[:MOST])
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
    """Return node id -> id of the distributed Map it is inside of, for those that are in one."""
    if not any(node.distributed for node in graph.nodes):
        return {}
    around: dict[str, str] = {}  # group id -> the outermost distributed Map around it
    for group in graph.groups:  # outer groups come first
        owner = graph.by_id.get(group.owner)
        own = owner.id if owner is not None and owner.distributed else ""
        around[group.id] = (around[owner.group] if owner is not None else "") or own
    return {node.id: around[node.group] for node in graph.nodes if around[node.group]}
