"""Views of hot states, and of the executions in a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.views.decorators.http import require_safe

from console.features.hot_states import figures, sources
from console.models import Definition
from console.statuses import MachineType
from console.web.core.scope import render, scope_of
from console.web.graph.definition_text import picture_context
from console.web.graph.graph_view import graph_view_of
from console.web.machines import past_executions
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.features.hot_states.figures import HotState
    from console.features.hot_states.sources import ExecutionSource
    from console.models import StateMachine

SIZES = (20, 100, 500)
MOST_LINES = 1000
_BEHIND = {"ran": "Executions that entered it", **figures.FIGURES}
"""Figure -> the heading of the page of its executions."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parameters of a URL."""

    most: int
    source: ExecutionSource
    offered: list[ExecutionSource]
    painted: str
    sort: str


def _asked_of(request: HttpRequest, machine: StateMachine) -> _Asked:
    query = request.GET
    size, painted = query.get("last", ""), query.get("by", "")
    painted = painted if painted in figures.FIGURES else "failures"
    sort = query.get("sort", "")
    offered = sources.list_sources(machine)
    return _Asked(
        int(size) if size in map(str, SIZES) else SIZES[1],
        sources.chosen_source(offered, query.get("of", "")),
        offered,
        painted,
        sort if sort in figures.SORTS else painted,
    )


@require_safe
def hot_states_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/hot-states/``: the graph coloured by a figure, and the table."""
    machine = scope_of(request).machine(machine_name)
    asked = _asked_of(request, machine)
    text = Definition.objects.get(pk=asked.source.sha256).text
    context = machine_context(machine) | picture_context(text, machine.type, graph_view_of(request))
    context |= {
        "tab": "hot-states",
        "most": asked.most,
        "sizes": SIZES,
        "sources": asked.offered,
        "source": asked.source,
        "figures": figures.FIGURES,
        "painted": asked.painted,
        "sort": asked.sort,
    }
    if context["picture"] is not None and asked.source.executions:
        context |= _states(machine, asked, context)
    return render(request, "hot_states/page.html", context)


def _states(machine: StateMachine, asked: _Asked, picture: dict[str, Any]) -> dict[str, Any]:
    graph, source = picture["graph"], asked.source
    executions = past_executions.last_executions(
        machine, asked.most, definition=source.sha256, among=source.among
    )
    runs = figures.read_runs(graph, executions)
    express = machine.type == MachineType.EXPRESS
    states = figures.list_states(graph, runs, asked.painted, express=express)
    summaries: dict[str, Any] = {state.node.id: state for state in states}
    folded = figures.fold_states(graph, states)
    rows = figures.sort_states(states, asked.sort)
    return {
        "runs": len(executions),
        "inner": len(runs.inner),
        "left_out": min(source.executions, asked.most) - len(executions),
        "most_events": past_executions.MOST_EVENTS,
        "states": [(state, _texts(state)) for state in rows[:MOST_LINES]],
        "more_states": max(len(rows) - MOST_LINES, 0),
        "legend": figures.list_legend(states, asked.painted),
        "express": express,
        "summaries": {
            box.node.id: (folded if box.folded else summaries)[box.node.id]
            for box in picture["picture"].boxes
        },
    }


def _texts(state: HotState) -> dict[str, str]:
    """Return figure -> text, without empty figures."""
    values = {figure: getattr(state, figure) for figure in figures.FIGURES}
    return {
        figure: figures.figure_text(figure, value)
        for figure, value in values.items()
        if value is not None and (value or figure in ("p95", "cost"))
    }


@require_safe
def state_executions(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/hot-states/executions/``: the executions in a figure."""
    machine = scope_of(request).machine(machine_name)
    asked = _asked_of(request, machine)
    state, figure = request.GET.get("state", "")[:80], request.GET.get("figure", "")
    text = Definition.objects.get(pk=asked.source.sha256).text
    graph = picture_context(text, machine.type, graph_view_of(request)).get("graph")
    if graph is None or state not in graph.by_name or figure not in _BEHIND:
        raise Http404("This address needs a state of the definition and a figure.")
    executions = past_executions.last_executions(
        machine, asked.most, definition=asked.source.sha256, among=asked.source.among
    )
    runs = figures.read_runs(graph, executions)
    context = machine_context(machine) | {
        "tab": "hot-states",
        "most": asked.most,
        "source": asked.source,
        "state": state,
        "figure": figure,
        "figure_heading": _BEHIND[figure],
        "in_children": state in runs.apart,
        "counted": figures.list_counted(runs, state, figure),
    }
    return render(request, "hot_states/executions.html", context)
