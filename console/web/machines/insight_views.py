"""Views of statistics over a state machine's recent executions: grid and insights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max
from django.views.decorators.http import require_safe

import engine
from console.models import Definition, Execution, MachineRevision
from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.graph.definition_text import picture_context
from console.web.graph.folding import FOLD_ABOVE, states_inside
from console.web.graph.graph_view import graph_view_of
from console.web.graph.shapes import fitting_line
from console.web.machines import insights as seen
from console.web.machines import past_executions
from console.web.machines.grid import MOST_LINES, SIZES
from console.web.machines.grid import visit_grid as gridded
from console.web.machines.machine_views import machine_context
from console.web.machines.past_executions import LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.machines.insights import Insight
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
    apart = seen.states_elsewhere(graph) if graph is not None else frozenset()
    grid = gridded(past_executions.last_executions(machine, most), graph, apart)
    definitions = list({span.sha256: None for span in grid.spans})
    context |= {
        "tab": "grid",
        "grid": grid,
        "revisions": revisions_of(machine, definitions) if len(definitions) > 1 else {},
        "most": most,
        "sizes": SIZES,
        "legend": formatting.LEGEND,
    }
    return render(request, "machines/grid.html", context)


def _graph_of(machine: StateMachine) -> engine.Graph | None:
    try:
        return engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:  # stored by a version that checked less
        return None


@require_safe
def insights_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/insights/``: frequency, duration, and untested ways."""
    machine = scope_of(request).machine(machine_name)
    most = _asked_size(request)
    ran = ran_definitions(machine)
    chosen = chosen_definition(ran, request.GET.get("definition", ""))
    text = Definition.objects.get(pk=chosen.sha256).text if not chosen.current else ""
    context = machine_context(machine) | picture_context(
        text or machine.definition.text, machine.type, graph_view_of(request)
    )
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
        context |= _insights(context["graph"], executions, _asked_order(request))
        context["summaries"] = {
            box.node.id: context["folded" if box.folded else "summaries"][box.node.id]
            for box in context["picture"].boxes
        }
    return render(request, "machines/insights.html", context)


def _insights(
    graph: engine.Graph,
    executions: list[past_executions.PastExecution],
    asked: dict[str, str],
) -> dict[str, Any]:
    inner = past_executions.child_executions(executions) if seen.states_elsewhere(graph) else []
    insights = seen.list_insights(graph, executions, inner)
    ways = seen.list_ways(graph, [*executions, *inner], insights)
    never = [way for way in ways if way.tried is False]
    unknown = [way for way in ways if way.tried is None]
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
        "coverage": seen.measure_coverage(ways),
        "never": never[:MOST_LINES],
        "never_tried": len(never),
        "unknown": unknown[:MOST_LINES],
        "not_known": len(unknown),
    }


def _asked_order(request: HttpRequest) -> dict[str, str]:
    order = request.GET.get("sort", "")
    return {
        "sort": order if order in seen.SORTS else "",
        "sought": request.GET.get("q", "").strip()[:80],
    }


def _asked_size(request: HttpRequest) -> int:
    asked_size = request.GET.get("last", "")
    return int(asked_size) if asked_size in map(str, SIZES) else SIZES[0]


@dataclass(frozen=True, slots=True)
class FoldedInsight:
    """The insight of a folded group, like ``Insight``.

    ``inside``: of the states that are folded into the box.
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
        """Return the group in words, for screen readers."""
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

    ``insights``: node id -> what happened in it, for all states.
    """
    if len(graph.nodes) <= FOLD_ABOVE:
        return {}
    return {
        owner: FoldedInsight(insights[owner], tuple(insights[node] for node in nodes))
        for owner, nodes in states_inside(graph).items()
    }


@dataclass(frozen=True, slots=True)
class RanDefinition:
    """A definition of the state machine. ``executions``: how many recent ones used it.

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
    """Return the current definition, then those of recent executions, latest use first."""
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
    named = (each for each in ran if key and each.key == key)
    used = (each for each in ran if each.executions)
    return next(named, None) or next(used, ran[0])
