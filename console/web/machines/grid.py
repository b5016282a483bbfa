"""Build the grid of recent executions by state: status and duration, with outliers marked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING

from console.web.core import formatting
from console.web.machines import past_executions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.models import Execution
    from console.web.machines.past_executions import PastExecution
    from engine import Graph

SIZES = (25, 50, 100)
MOST_LINES = 1000


@dataclass(frozen=True, slots=True)
class StatusCell:
    """One state in one execution. ``note``: duration and count; ``long``: unusually long.

    ``changed``: the execution ran with another definition than the one before it.
    """

    execution: Execution
    status: formatting.StatusLabel
    note: str = ""
    long: bool = False
    changed: bool = False

    @property
    def entered(self) -> bool:
        """Whether the execution entered the state, so that the cell has a link."""
        return self.status.tone != "idle"

    @property
    def label(self) -> str:
        """Return the cell in words, for screen readers."""
        return f"{self.execution.name}, {self.outcome}"

    @property
    def outcome(self) -> str:
        """Return the same without the execution."""
        parts = [self.status.word.lower(), self.note]
        return ", ".join([part for part in parts if part] + ["unusually long"] * self.long)


@dataclass(frozen=True, slots=True)
class GridLine:
    """One state in all executions. ``depth``: the number of Parallels and Maps around it.

    ``removed``: it is not in the current definition. ``elsewhere``: it runs in executions that a
    distributed Map starts.
    """

    name: str
    type: str
    depth: int
    cells: tuple[StatusCell, ...]
    median: int | None
    removed: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionSpan:
    """Consecutive executions with the same definition. ``before``: the previous execution."""

    sha256: str
    first: Execution
    columns: int
    before: Execution | None


@dataclass(frozen=True, slots=True)
class VisitGrid:
    """Executions, oldest first, and a line per state. ``total``: line of whole executions.

    ``spans``: the executions by their definitions;
    ``states``: how many states there are, also those beyond ``MOST_LINES``, which have no line.
    """

    runs: tuple[PastExecution, ...]
    total: GridLine
    lines: tuple[GridLine, ...]
    states: int
    spans: tuple[DefinitionSpan, ...]

    @property
    def oldest(self) -> Execution:
        """Return the execution with the first start."""
        return self.runs[0].execution

    @property
    def newest(self) -> Execution:
        """Return the execution with the last start."""
        return self.runs[-1].execution


def visit_grid(
    executions: Sequence[PastExecution], graph: Graph | None, elsewhere: frozenset[str]
) -> VisitGrid:
    """Return the grid of executions, given newest first; up to ``MOST_LINES`` states."""
    order = tuple(reversed(executions))
    states = [(node.name, node.type) for node in graph.nodes] if graph else []
    names = {name for name, _ in states}
    gone = dict.fromkeys(name for run in order for name in run.cells if name not in names)
    depths = _depths(graph)
    lines = [
        GridLine(name, kind, depths[name], (), None, elsewhere=True)
        if name in elsewhere and not any(name in run.cells for run in order)
        else _grid_line(name, kind, depths[name], order)
        for name, kind in states[:MOST_LINES]
    ]
    room = MOST_LINES - len(lines)
    lines += [_grid_line(name, "", 0, order, removed=True) for name in list(gone)[:room]]
    total = _total_line(order)
    return VisitGrid(
        order, total, tuple(lines), len(states) + len(gone), tuple(_definition_spans(order))
    )


def _definition_spans(order: Sequence[PastExecution]) -> Iterator[DefinitionSpan]:
    before = None
    for sha256, runs in groupby(order, key=lambda run: run.execution.definition_id):
        executions = [run.execution for run in runs]
        yield DefinitionSpan(sha256, executions[0], len(executions), before)
        before = executions[-1]


def _marked(cells: Sequence[StatusCell]) -> tuple[StatusCell, ...]:
    """Return the cells of a line, with marks where the definition changed."""
    pairs = pairwise(cells)
    return (
        *cells[:1],
        *(
            replace(cell, changed=cell.execution.definition_id != before.execution.definition_id)
            for before, cell in pairs
        ),
    )


def _depths(graph: Graph | None) -> dict[str, int]:
    """Return the number of Parallels and Maps around each state."""
    if graph is None:
        return {}
    groups: dict[str, int] = {}
    for group in graph.groups:  # outer groups come first
        owner = graph.by_id.get(group.owner)
        groups[group.id] = 0 if owner is None else groups[owner.group] + 1
    return {node.name: groups[node.group] for node in graph.nodes}


def _grid_line(
    name: str, kind: str, depth: int, order: Sequence[PastExecution], *, removed: bool = False
) -> GridLine:
    summaries = [run.cells.get(name) for run in order]
    times = [each.typical for each in summaries if each is not None and each.typical is not None]
    limit = past_executions.unusual_duration(times)
    cells = []
    for run, summary in zip(order, summaries, strict=True):
        if summary is None:
            cells.append(StatusCell(run.execution, formatting.STEP[""]))
            continue
        spent = summary.spent
        parts = [] if spent is None else [formatting.duration_text(spent)]
        if summary.visits > 1:
            parts.append(f"{summary.visits} visits")
        if summary.retries:
            parts.append(f"{summary.retries} retries" if summary.retries > 1 else "1 retry")
        long = limit is not None and summary.typical is not None and summary.typical >= limit
        cells.append(StatusCell(run.execution, summary.label, ", ".join(parts), long))
    typical = int(median(times)) if times else None
    return GridLine(name, kind, depth, _marked(cells), typical, removed)


def _total_line(order: Sequence[PastExecution]) -> GridLine:
    times = [run.typical for run in order if run.typical is not None]
    limit = past_executions.unusual_duration(times)
    cells = tuple(
        StatusCell(
            run.execution,
            formatting.EXECUTION[run.execution.status],
            "" if run.spent is None else formatting.duration_text(run.spent),
            limit is not None and run.typical is not None and run.typical >= limit,
        )
        for run in order
    )
    return GridLine("", "", 0, _marked(cells), int(median(times)) if times else None)
