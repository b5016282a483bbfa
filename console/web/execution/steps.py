"""Summarize each state of an execution.

The summaries feed the graph and the steps table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.execution import map_progress
from console.web.execution.worked_time import first_and_last, worked_ms
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.web.execution.map_progress import MapProgress, MapRuns
    from engine import Node, Trace, Visit, Visits


@dataclass(frozen=True, slots=True)
class StepSummary:
    """A state's line. ``note``: ``1.2 s``, ``3 of 5``; ``depth``: how many boxes it stands in.

    ``in_children``: it runs in the child executions of a distributed Map. ``done``: how far a Map
    is. ``worked``: how long all its visits lasted, "" while it runs; ``entered_ms``: the first of
    them. ``key``: of its status in ``formatting.STEP``; ``mixed``: its latest visits ended
    differently, and the status counts them.
    """

    node: Node
    depth: int
    status: formatting.StatusLabel
    entered_ms: int | None = None
    left_ms: int | None = None
    duration: str = ""
    running_since: int | None = None
    visits: int = 0
    retries: int = 0
    note: str = ""
    in_children: bool = False
    done: str = ""
    worked: str = ""
    key: str = ""
    mixed: bool = False

    @property
    def badge(self) -> str:
        """Return how often its work was repeated, else how often it was visited, "" for once."""
        if self.retries:
            return f"↻ {self.retries}"
        return f"×{self.visits}" if 1 < self.visits < _WIDE else ""  # noqa: RUF001

    @property
    def label(self) -> str:
        """Return the state in words, for those who do not see the picture."""
        parts = [self.node.name, self.node.type, self.status.word.lower()]
        if self.visits > 1:
            parts.append(f"{self.visits} visits")
        if self.duration:
            parts.append(self.duration)
        if self.note and self.note != self.duration:
            parts.append(self.note)
        return ", ".join(parts)

    @property
    def children(self) -> str:
        """Return how many child executions of a distributed Map have ended, "" of other states."""
        return f"Child executions: {self.done}" if self.node.distributed and self.done else ""

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        if self.in_children:
            return self.note or self.status.word
        if self.status is formatting.STEP[""]:
            return self.note or self.status.word
        if self.mixed:  # with the time of the last visit there is no room
            return self.status.word
        return " · ".join(part for part in (self.status.word, self.done, self.duration) if part)


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


def step_summaries(
    trace: Trace,
    only: Iterable[str] | None = None,
    maps: MapRuns | None = None,
    shown: ShownIteration | None = None,
) -> dict[str, StepSummary]:
    """Return node id -> summary, of all states or of ``only`` some.

    ``maps``: the Map Runs, whose counts distributed Maps show. ``shown``: the iteration that the
    states inside a Map are summarized for, None for all of them together.
    """
    counts = trace.counts()
    statuses = trace.statuses(counts)
    depths = _depths(trace)
    outside = map_progress.enclosing_maps(trace.graph)
    chosen = set(only) if only is not None else None
    summaries = {}
    for node in trace.graph.nodes:
        if chosen is not None and node.id not in chosen:
            continue
        if node.id in outside and trace.visits_of(outside[node.id]):
            children = maps.states.get(node.name) if maps is not None else None
            summaries[node.id] = StepSummary(
                node,
                depths[node.group],
                children.status if children else formatting.IN_CHILD_EXECUTIONS,
                note=children.text if children else "",
                in_children=True,
            )
            continue
        if shown is not None and node.id in shown.nodes:
            summaries[node.id] = _summary_in_iteration(trace, node, depths[node.group], shown, maps)
            continue
        counted = maps.of_node(node.id) if maps is not None and node.distributed else None
        summary = _summary(trace, node, statuses.get(node.id, ""), depths[node.group], counted)
        summaries[node.id] = _counted_summary(summary, counts.get(node.id))
    return summaries


_ENDINGS = {
    VisitStatus.SUCCEEDED: "passed",
    VisitStatus.CAUGHT: "caught",
    VisitStatus.FAILED: "failed",
    VisitStatus.TIMED_OUT: "timed out",
    VisitStatus.ABORTED: "aborted",
}


def endings_label(status: str, counts: Mapping[str, int]) -> formatting.StatusLabel:
    """Return the label of a state; of visits that ended differently it counts each ending.

    The tone is the one of ``status``, which tells most. While a visit goes on, that is said.
    """
    label = formatting.STEP[status]
    endings = [f"{counts[key]:,} {word}" for key, word in _ENDINGS.items() if counts.get(key)]
    if len(endings) < _DIFFERENT or counts.get(VisitStatus.RUNNING):
        return label
    return formatting.StatusLabel(label.tone, " · ".join(endings))


_DIFFERENT = 2


def _counted_summary(summary: StepSummary, counts: Mapping[str, int] | None) -> StepSummary:
    """Return the summary of a state inside an inline Map with how its visits ended."""
    if not counts or not summary.key:
        return summary
    label = endings_label(summary.key, counts)
    return replace(summary, status=label, mixed=label is not summary.status)


def _summary(
    trace: Trace, node: Node, status: str, depth: int, counted: MapProgress | None
) -> StepSummary:
    visits = trace.visits_of(node.id)
    if not visits:
        return StepSummary(node, depth, formatting.STEP[status])
    if not status:  # entered before a retry, not since
        before = f"{len(visits)} earlier visit{'s' if len(visits) > 1 else ''}"
        return StepSummary(node, depth, formatting.STEP[""], visits=len(visits), note=before)
    done = _map_progress_text(trace, node, counted)
    summary = _visited_summary(node, depth, status, visits[-1], len(visits), done)
    worked = _worked_text(summary, visits)
    entered, left = first_and_last(visits)
    return replace(
        summary, worked=worked, entered_ms=entered, left_ms=left, retries=visits.retries()
    )


def _summary_in_iteration(
    trace: Trace, node: Node, depth: int, shown: ShownIteration, maps: MapRuns | None
) -> StepSummary:
    places = shown.places(trace, node.id)
    if not places:
        return StepSummary(node, depth, formatting.STEP[""])
    last = trace.visits_of(node.id)[places[-1]]
    counted = maps.of_visit(node.id, last.number) if maps is not None and node.distributed else None
    done = counted.note if counted else ""
    summary = _visited_summary(node, depth, last.status, last, len(places), done)
    return replace(summary, worked=_worked_text(summary, trace.visits_of(node.id)))


def _worked_text(summary: StepSummary, visits: Visits) -> str:
    if len(visits) == 1 or summary.running_since is not None:
        return summary.duration
    return formatting.duration_text(worked_ms(visits, visits[-1].entered_ms))


def _visited_summary(
    node: Node, depth: int, status: str, last: Visit, visits: int, done: str
) -> StepSummary:
    """Return the summary of a state by its last visit. ``done``: how far a Map is."""
    spent = "" if last.took_ms is None else formatting.duration_text(last.took_ms)
    return StepSummary(
        node=node,
        depth=depth,
        status=formatting.STEP[status],
        key=status,
        entered_ms=last.entered_ms,
        left_ms=last.left_ms,
        duration=spent,
        running_since=last.running_since,
        visits=visits,
        retries=last.retries,
        note=_note_text(done, spent, last.attempts, visits),
        done=done,
    )


def _map_progress_text(trace: Trace, node: Node, counted: MapProgress | None) -> str:
    """Return how far a Map is, "" of other states and where nobody knows."""
    if node.distributed:
        return counted.note if counted else ""
    attempt = trace.progress(node.id) if node.type == "Map" else None
    if attempt is None or attempt.total is None:
        return ""
    return f"{attempt.done} of {attempt.total}"


_WIDE = 1000  # above this number, there is no room for the word


def _note_text(done: str, spent: str, attempts: int, visits: int) -> str:
    """Return the one or two most telling facts; there is little room in a box."""
    parts = []
    if done:
        parts.append(done)
    if attempts > 1:
        parts.append(f"attempt {attempts}")
    elif visits > 1:
        parts.append(f"{visits} visits" if visits < _WIDE else f"{visits}×")  # noqa: RUF001
    elif spent:
        parts.append(spent)
    return " · ".join(parts)


def _depths(trace: Trace) -> dict[str, int]:
    """Return group id -> how deep its states stand."""
    depths: dict[str, int] = {}
    for group in trace.graph.groups:  # outer groups come first
        owner = trace.graph.by_id.get(group.owner)
        depths[group.id] = 0 if owner is None else depths[owner.group] + 1
    return depths
