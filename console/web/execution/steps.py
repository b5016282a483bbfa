"""Summarize each state of an execution, for the graph and the steps table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from console.web.core import formatting
from console.web.execution import iterations
from console.web.graph.shapes import (
    CLOCK,
    DETAIL_SIZE,
    MAP_ROOM,
    STATUS_ROOM,
    badge_place,
    fitting_line,
    text_width_px,
)
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.web.execution.iterations import MapProgress, MapRuns, ShownIteration
    from engine import Node, Trace, Visit, Visits


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The summary of a state. ``note``: ``1.2 s``, ``3 of 5``; ``depth``: nesting level.

    ``in_children``: it runs in the child executions of a distributed Map. ``done``: how far a Map
    is. ``worked``: how long all its visits lasted, "" while it runs, and ``took_ms`` in
    milliseconds; ``worked_since``: while it runs, the start of a clock for all its visits;
    ``running_since``: the start of its newest running visit; ``entered_ms``: the start of its first
    visit. ``key``: the key of its status in ``formatting.STEP``; ``mixed``: its latest visits ended
    differently, and the status counts them. ``endings``: how many iterations or children of a Map
    did not end well, "" while none is known.
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
    worked_since: int | None = None
    took_ms: int | None = None
    key: str = ""
    mixed: bool = False
    endings: str = ""

    @property
    def badge(self) -> str:
        """Return the number of visits and retries, "" for a single one."""
        visits = f"×{self.visits}" if 1 < self.visits < _WIDE else ""  # noqa: RUF001
        return " ".join(filter(None, (visits, f"↻ {self.retries}" if self.retries else "")))

    @property
    def badge_place(self) -> tuple[int, int, int]:
        """Return the position of the badge (``shapes.badge_place``)."""
        return badge_place(self.badge)

    @property
    def label(self) -> str:
        """Return the state in words, for screen readers."""
        parts = [self.node.name, self.node.type, self.status.word.lower()]
        if self.visits > 1:
            parts.append(f"{self.visits} visits")
        if self.retries:
            parts.append(f"{self.retries} {'retry' if self.retries == 1 else 'retries'}")
        if self.duration:
            parts.append(self.duration)
        if self.note and self.note != self.duration:
            parts.append(self.note)
        return ", ".join(parts)

    @property
    def children(self) -> str:
        """Return the progress of a distributed Map's child executions.

        For a state inside a distributed Map: the number of children that left it, by outcome; ""
        for other states.
        """
        if self.in_children:
            return self.note
        return f"Child executions: {self.done}" if self.node.distributed and self.done else ""

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        if self.in_children:  # failures are last in the text
            return " · ".join(_fitting_end(self.note.split(" · "), STATUS_ROOM)) or self.status.word
        if self.status is formatting.STEP[""]:
            return self.note or self.status.word
        room: float = MAP_ROOM if self.node.type in ("Map", "Parallel") else STATUS_ROOM
        if self.mixed:  # no space for the time of the last visit; the worst status is last
            return " · ".join(_fitting_end(self.status.word.split(" · "), room))
        if self.endings:  # "failed" and "aborted" say the status, too; of other ones it is named
            named = self.key in (VisitStatus.CAUGHT, VisitStatus.SUCCEEDED)
            return _fitting_endings([self.status.word] if named else [], self.endings, room)
        ended, *bad = self.done.split(" · ")
        if self.running_since is not None and self.done:
            room -= text_width_px(CLOCK, DETAIL_SIZE, bold=True)
            lines = ([self.status.word, ended, *bad], [f"{ended} done", *bad], [ended, *bad])
            fitting = (line for line in map(" · ".join, lines) if _fits(line, room))
            return next(fitting, bad[0] if bad else ended)
        parts = (self.status.word, ended, self.duration)
        return fitting_line([part for part in parts if part], room)


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
    outside = iterations.enclosing_maps(trace.graph)
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


class InProgress(Protocol):
    """A box of the graph with a state that may be running."""

    @property
    def under(self) -> str:
        """Return the small line under its name."""

    @property
    def running_since(self) -> int | None:
        """Return the start for the running clock, None if it is not running."""


def line_at(summary: InProgress, past_ms: int) -> str:
    """Return the line of a state in progress at a past time, with its duration by then."""
    began = past_ms if summary.running_since is None else summary.running_since
    spent = formatting.duration_text(past_ms - began)
    line = f"{summary.under} · {spent} so far"
    nested = isinstance(summary, StepSummary) and summary.node.type in ("Map", "Parallel")
    room = MAP_ROOM if nested else STATUS_ROOM
    if text_width_px(line, DETAIL_SIZE, bold=True) <= room:
        return line
    is_only_word = summary.under == formatting.STEP[VisitStatus.RUNNING].word
    return f"{spent} so far" if is_only_word else line.removesuffix(" so far")


def _fitting_end(parts: list[str], room: float) -> list[str]:
    """Return the last parts that fit into the box."""
    backwards = fitting_line(parts[::-1], room).split(" · ")
    return backwards[::-1]


def _fits(line: str, room: float) -> bool:
    return text_width_px(line, DETAIL_SIZE, bold=True) <= room


def _fitting_endings(before: list[str], endings: str, room: float) -> str:
    """Return the outcomes of iterations that fit into the box."""
    parts = endings.split(", ")
    for count in range(len(parts), 0, -1):
        line = " · ".join([*before, ", ".join(parts[:count])])
        if _fits(line, room):
            return line
    return parts[0]


_ENDINGS = {
    VisitStatus.SUCCEEDED: "passed",
    VisitStatus.CAUGHT: "caught",
    VisitStatus.FAILED: "failed",
    VisitStatus.TIMED_OUT: "timed out",
    VisitStatus.ABORTED: "aborted",
}


def endings_label(status: str, counts: Mapping[str, int]) -> formatting.StatusLabel:
    """Return the label of a state; different outcomes of visits are counted."""
    label = formatting.STEP[status]
    endings = [f"{counts[key]:,} {word}" for key, word in _ENDINGS.items() if counts.get(key)]
    if len(endings) < _DIFFERENT or counts.get(VisitStatus.RUNNING):
        return label
    return formatting.StatusLabel(label.tone, " · ".join(endings))


_DIFFERENT = 2


def _counted_summary(summary: StepSummary, counts: Mapping[str, int] | None) -> StepSummary:
    """Return the summary of a state inside an inline Map, with counts of outcomes."""
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
    endings = _endings_text(trace, node, visits[-1], counted)
    progress = (
        _map_progress_text(trace, node, counted) if node.distributed or not endings else endings
    )
    visit = visits[-1] if status != VisitStatus.RUNNING else _newest_running(trace, visits)
    summary = _visited_summary(node, depth, status, visit, len(visits), progress)
    summary = _with_worked_time(summary, visits, trace.times[-1])
    entered_ms, left_ms = _first_and_last(visits)
    left_ms = None if summary.running_since is not None else left_ms
    return replace(
        summary, entered_ms=entered_ms, left_ms=left_ms, retries=visits.retries(), endings=endings
    )


def _first_and_last(visits: Visits) -> tuple[int, int | None]:
    """Return the start of the first visit and the end of the last; None while running."""
    begin, end = visits.span(0)
    return begin, None if visits[-1].left_ms is None else end


def _newest_running(trace: Trace, visits: Visits) -> Visit:
    """Return the latest running visit, else the latest one."""
    places = range(len(visits) - 1, -1, -1)
    running = (
        place for place in places if trace.status(visits.numbers[place]) == VisitStatus.RUNNING
    )
    return visits[next(running, -1)]


def _summary_in_iteration(
    trace: Trace, node: Node, depth: int, shown: ShownIteration, maps: MapRuns | None
) -> StepSummary:
    places = shown.places(trace, node.id)
    if not places:
        return StepSummary(node, depth, formatting.STEP[""])
    last = trace.visits_of(node.id)[places[-1]]
    counted = maps.of_visit(node.id, last.number) if maps is not None and node.distributed else None
    endings = _endings_text(trace, node, last, counted, shown.index)
    progress = endings or _map_progress_text(trace, node, counted, shown.index)
    summary = _visited_summary(node, depth, last.status, last, len(places), progress)
    summary = _with_worked_time(summary, trace.visits_of(node.id), trace.times[-1])
    return replace(summary, endings=endings)


def _with_worked_time(summary: StepSummary, visits: Visits, newest_ms: int) -> StepSummary:
    """Return the summary with the total time of all visits.

    ``newest_ms``: the newest event; from then on the time of a running state grows as the clock.
    """
    if summary.running_since is not None:
        return replace(summary, worked_since=newest_ms - visits.covered_ms(newest_ms))
    took_ms = visits.covered_ms(visits[-1].entered_ms)
    text = summary.duration if len(visits) == 1 else formatting.duration_text(took_ms)
    return replace(summary, worked=text, took_ms=took_ms)


def _visited_summary(
    node: Node, depth: int, status: str, last: Visit, visits: int, done: str
) -> StepSummary:
    """Return the summary of a state from its last visit. ``done``: a Map's progress."""
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


def _map_progress_text(
    trace: Trace, node: Node, counted: MapProgress | None, within: iterations.Index = ()
) -> str:
    """Return the progress of a Map, "" if unknown or for other states.

    ``within``: count only the visits in this iteration of the Maps around it.
    """
    if node.distributed:
        return counted.note if counted else ""
    progress = trace.progress(node.id, within) if node.type == "Map" else None
    if progress is None or progress.total is None:
        return ""
    return f"{progress.done:,} of {progress.total:,}"


def _endings_text(
    trace: Trace,
    node: Node,
    last: Visit,
    counted: MapProgress | None,
    within: iterations.Index = (),
) -> str:
    """Return the unsuccessful outcomes of a Map's items, "" for other states.

    The counts are those of its panel: ``1 of 3 failed, 1 aborted``. ``within``: count only the
    visits in this iteration of the Maps around it.
    """
    if node.distributed:  # it may succeed although some failed
        return counted.endings if counted and last.status != VisitStatus.RUNNING else ""
    if node.type != "Map" or last.status not in _ENDED_BADLY:
        return ""
    progress = trace.progress(node.id, within)
    if progress is None or progress.total is None:
        return ""
    begun = iterations.iterations_of_map(trace, node)
    bad = [(begun.count(key, within), _ENDINGS[key]) for key in _NOT_SUCCEEDED]
    return iterations.endings_text(bad, progress.total)


_NOT_SUCCEEDED = (VisitStatus.FAILED, VisitStatus.TIMED_OUT, VisitStatus.ABORTED)
_ENDED_BADLY = (*_NOT_SUCCEEDED, VisitStatus.CAUGHT)


_WIDE = 1000  # above this number, there is no room for the word


def _note_text(progress: str, spent: str, attempts: int, visits: int) -> str:
    """Return the one or two most important facts that fit into the box."""
    parts = []
    if progress:
        parts.append(progress)
    if attempts > 1:
        parts.append(f"attempt {attempts}")
    elif visits > 1:
        parts.append(f"{visits} visits" if visits < _WIDE else f"{visits}×")  # noqa: RUF001
    elif spent:
        parts.append(spent)
    return " · ".join(parts)


def _depths(trace: Trace) -> dict[str, int]:
    """Return group id -> depth of its states."""
    depths: dict[str, int] = {}
    for group in trace.graph.groups:  # outer groups come first
        owner = trace.graph.by_id.get(group.owner)
        depths[group.id] = 0 if owner is None else depths[owner.group] + 1
    return depths
