"""Views of statistics over a state machine's recent executions: grid and insights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max
from django.views.decorators.http import require_safe

import engine
from console.features.insights import insights as seen
from console.features.insights import past_executions
from console.features.insights.past_executions import LOOKED_AT
from console.models import Definition, Execution, MachineRevision
from console.web.core import formatting
from console.web.core.scope import choose, render, scope_of
from console.web.graph.definition_text import picture_context
from console.web.graph.graph_view import FOLD_ABOVE, graph_view_of, states_inside
from console.web.graph.shapes import fitting_line
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.features.insights.insights import Insight
    from console.features.insights.past_executions import PastExecution
    from console.models import StateMachine
    from engine import Graph


_MOST_DEFINITIONS = 50
_KEY_LENGTH = 12


@require_safe
def grid_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/grid/``: recent executions by state."""
    machine = scope_of(request).machine(machine_name)
    most = _asked_size(request)
    context = machine_context(machine)
    graph = _graph_of(machine)
    distributed_states = seen.states_in_children(graph) if graph is not None else frozenset()
    grid = visit_grid(past_executions.last_executions(machine, most), graph, distributed_states)
    definitions = list({span.sha256: None for span in grid.spans})
    context |= {
        "tab": "grid",
        "grid": grid,
        "revisions": revisions_of(machine, definitions) if len(definitions) > 1 else {},
        "most": most,
        "sizes": SIZES,
        "legend": formatting.LEGEND,
    }
    return render(request, "insights/grid.html", context)


def _graph_of(machine: StateMachine) -> engine.Graph | None:
    try:
        return engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:  # stored by a version that checked less
        return None


@require_safe
def insights_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/insights/``: frequency, duration, and untested points."""
    machine = scope_of(request).machine(machine_name)
    most = _asked_size(request)
    ran = ran_definitions(machine)
    chosen = chosen_definition(ran, request.GET.get("definition", ""))
    text = (
        machine.definition.text if chosen.current else Definition.objects.get(pk=chosen.sha256).text
    )
    context = machine_context(machine) | picture_context(text, machine.type, graph_view_of(request))
    context |= {
        "tab": "insights",
        "most": most,
        "sizes": SIZES,
        "looked_at": past_executions.LOOKED_AT,
        "definitions": ran,
        "of_definition": chosen,
        "current_definition": ran[0],
    }
    if context["picture"] is not None and chosen.executions:
        executions = past_executions.last_executions(machine, most, definition=chosen.sha256)
        context |= _insights(context["graph"], text, executions, _asked_order(request))
        context["summaries"] = {
            box.node.id: context["folded" if box.folded else "summaries"][box.node.id]
            for box in context["picture"].boxes
        }
    return render(request, "insights/states.html", context)


def _insights(
    graph: engine.Graph,
    text: str,
    executions: list[past_executions.PastExecution],
    asked: dict[str, str],
) -> dict[str, Any]:
    inner = past_executions.child_executions(executions) if seen.states_in_children(graph) else []
    insights = seen.list_insights(graph, executions, inner)
    points = seen.list_points(graph, [*executions, *inner], text)
    never = [point for point in points if point.tried is False]
    unknown = [point for point in points if point.tried is None]
    return {
        "runs": executions,
        "inner": len(inner),
        **asked,
        "insights": (
            rows := seen.sorted_insights(list(insights.values()), asked["sort"], asked["sought"])
        )[:MOST_LINES],
        "states": len(rows),
        "orders": seen.SORTS,
        "redriven": any(insight.redriven for insight in insights.values()),
        "summaries": insights,
        "folded": folded_insights(graph, insights),
        "taken": seen.taken_lines(graph, [*executions, *inner], insights),
        "coverage": seen.measure_coverage(points),
        "limits": (limits := seen.list_limits([*executions, *inner]))[:MOST_LINES],
        "limits_ahead": len(limits),
        "never": never[:MOST_LINES],
        "never_tried": len(never),
        "unknown": unknown[:MOST_LINES],
        "not_known": len(unknown),
    }


def _asked_order(request: HttpRequest) -> dict[str, str]:
    return {
        "sort": choose(request.GET, "sort", seen.SORTS),
        "sought": request.GET.get("q", "").strip()[:80],
    }


def _asked_size(request: HttpRequest) -> int:
    return int(choose(request.GET, "last", map(str, SIZES), str(SIZES[0])))


@dataclass(frozen=True, slots=True)
class FoldedInsight:
    """The insight of a folded group, like ``Insight``.

    ``inside``: the insights of the states that are folded into the box.
    """

    own: Insight
    inside: tuple[Insight, ...]

    @property
    def status(self) -> formatting.StatusLabel:
        """Return the worst status in it."""
        every = (self.own, *self.inside)
        if any(insight.failed for insight in every):
            return formatting.STEP["failed"]
        if any(insight.caught for insight in every):
            return formatting.STEP["caught"]
        return self.own.status

    @property
    def under(self) -> str:
        """Return the small line under the name in the graph."""
        return fitting_line([self._entered, *self._parts])

    @property
    def label(self) -> str:
        """Return a description of the group for screen readers."""
        return ", ".join([self.own.node.name, self.own.node.type, self._entered, *self._parts])

    @property
    def _entered(self) -> str:
        return f"{self.own.ran} of {self.own.of}" if self.own.visits else "Never entered"

    @property
    def _parts(self) -> list[str]:
        failed = sum(1 for insight in self.inside if insight.failed)
        never = sum(1 for insight in self.inside if not insight.visits)
        return [
            f"{len(self.inside):,} states",
            *([f"{failed:,} failed"] if failed else []),
            *([f"{never:,} never entered"] if never else []),
        ]


def folded_insights(graph: Graph, insights: Mapping[str, Insight]) -> dict[str, FoldedInsight]:
    """Return Parallel or Map -> its insight while folded; empty for a small state machine.

    ``insights``: node id -> its insight, for all states.
    """
    if len(graph.nodes) <= FOLD_ABOVE:
        return {}
    return {
        owner: FoldedInsight(insights[owner], tuple(insights[node] for node in nodes))
        for owner, nodes in states_inside(graph).items()
    }


@dataclass(frozen=True, slots=True)
class RanDefinition:
    """A definition of the state machine. ``executions``: number of recent executions with it.

    ``revision``: the newest save that has it, None if none was kept; ``current``: new executions
    run with it.
    """

    sha256: str
    executions: int
    revision: MachineRevision | None
    current: bool

    @property
    def key(self) -> str:
        """Return its key in URLs."""
        return self.sha256[:_KEY_LENGTH]

    @property
    def name(self) -> str:
        """Return its name: ``revision 3 (current)``."""
        name = f"revision {self.revision.number}" if self.revision else f"definition {self.key}"
        return f"{name} (current)" if self.current else name


def ran_definitions(machine: StateMachine) -> list[RanDefinition]:
    """Return the current definition, then others of recent executions, latest use first."""
    own = Execution.objects.filter(state_machine=machine, map_run=None)
    recent = own.order_by("-start_ms", "-pk").values("pk")[:LOOKED_AT]
    counted = (
        Execution.objects.filter(pk__in=recent)
        .values("definition_id")
        .annotate(executions=Count("pk"), newest=Max("start_ms"))
        .order_by("-newest")[:_MOST_DEFINITIONS]
    )
    counts = {row["definition_id"]: row["executions"] for row in counted}
    every = list(dict.fromkeys([machine.definition_id, *counts]))
    revisions = revisions_of(machine, every)
    return [
        RanDefinition(
            sha256,
            counts.get(sha256, 0),
            revisions.get(sha256),
            current=sha256 == machine.definition_id,
        )
        for sha256 in every
    ]


def revisions_of(machine: StateMachine, definitions: Sequence[str]) -> dict[str, MachineRevision]:
    """Return definition -> its latest revision; definitions without one are omitted."""
    rows = MachineRevision.objects.filter(state_machine=machine, definition_id__in=definitions)
    return {row.definition_id: row for row in rows.order_by("number")}


def chosen_definition(ran: Sequence[RanDefinition], key: str) -> RanDefinition:
    """Return the definition in the URL, else the current one if executed, else the last used."""
    with_key = (each for each in ran if key and each.key == key)
    with_executions = (each for each in ran if each.executions)
    return next(with_key, None) or next(with_executions, ran[0])


SIZES = (25, 50, 100)
MOST_LINES = 1000


@dataclass(frozen=True, slots=True)
class StatusCell:
    """One state in one execution. ``note``: duration and count; ``long``: unusually long.

    ``changed``: the execution ran with another definition than the previous execution.
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
        """Return a description of the cell for screen readers."""
        return f"{self.execution.name}, {self.outcome}"

    @property
    def outcome(self) -> str:
        """Return the status in words, with the note and the mark of an outlier."""
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

    ``spans``: the executions by their definitions; ``states``: the number of all states; states
    beyond ``MOST_LINES`` have no line.
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
    removed_names = dict.fromkeys(name for run in order for name in run.cells if name not in names)
    depths = _depths(graph)
    lines = [
        GridLine(name, kind, depths[name], (), None, elsewhere=True)
        if name in elsewhere and not any(name in run.cells for run in order)
        else _grid_line(name, kind, depths[name], order)
        for name, kind in states[:MOST_LINES]
    ]
    room = MOST_LINES - len(lines)
    lines += [_grid_line(name, "", 0, order, removed=True) for name in list(removed_names)[:room]]
    total = _total_line(order)
    return VisitGrid(
        order,
        total,
        tuple(lines),
        len(states) + len(removed_names),
        tuple(_definition_spans(order)),
    )


def _definition_spans(order: Sequence[PastExecution]) -> Iterator[DefinitionSpan]:
    before = None
    for sha256, runs in groupby(order, key=lambda run: run.execution.definition_id):
        executions = [run.execution for run in runs]
        yield DefinitionSpan(sha256, executions[0], len(executions), before)
        before = executions[-1]


def _mark_changes(cells: Sequence[StatusCell]) -> tuple[StatusCell, ...]:
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
    return GridLine(name, kind, depth, _mark_changes(cells), typical, removed)


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
    return GridLine("", "", 0, _mark_changes(cells), int(median(times)) if times else None)
