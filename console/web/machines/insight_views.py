"""Answer the pages of statistics over a state machine's last executions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_safe

import engine
from console.models import Definition
from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.graph.definition_text import picture_context
from console.web.graph.graph_view import graph_view_of
from console.web.machines import insights as seen
from console.web.machines import past_executions
from console.web.machines.folded_insights import folded_insights
from console.web.machines.grid import MOST_LINES, SIZES
from console.web.machines.grid import visit_grid as gridded
from console.web.machines.machine_views import machine_context
from console.web.machines.ran_definitions import chosen_definition, ran_definitions, revisions_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine


@require_safe
def grid_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/grid/``: the last executions by states."""
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
    """Answer ``/machines/<name>/insights/``: how often, how long, and what was never tried."""
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
    known = seen.list_insights(graph, executions, inner)
    ways = seen.list_ways(graph, [*executions, *inner], known)
    never = [way for way in ways if way.tried is False]
    unknown = [way for way in ways if way.tried is None]
    return {
        "runs": executions,
        "inner": len(inner),
        **asked,
        "insights": (
            rows := seen.sorted_insights(list(known.values()), asked["sort"], asked["sought"])
        )[:MOST_LINES],
        "states": len(rows),
        "orders": seen.SORTS,
        "redriven": any(insight.redriven for insight in known.values()),
        "summaries": known,
        "folded": folded_insights(graph, known),
        "taken": seen.taken_lines(graph, [*executions, *inner], known),
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
