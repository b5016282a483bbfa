"""Views of the execution page, and of single events."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.views.decorators.http import require_safe

import engine
from console.store.machines.published import executed_revision
from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.execution import audit_trail, iterations, time_machine
from console.web.execution.graph_part import as_it_ran_context
from console.web.execution.header import base_context
from console.web.execution.page_parts import TABLE_VIEWS, page_of
from console.web.execution.panel_part import form_parameters
from console.web.execution.waiting import waiting_part
from console.web.graph import definition_text
from console.web.graph.graph_view import graph_view_of
from console.web.history import event_table
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution
    from console.web.core.scope import HtmxRequest


@require_safe
def execution_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the execution page."""
    execution = scope_of(request).execution(machine_name, execution_name, with_success=True)
    page = page_of(execution, request.GET, graph_view_of(request))
    view = request.GET.get("view", "")
    in_past = bool(time_machine.asked_event(request.GET))
    context = {
        **base_context(execution, machine_name),
        **{part.name: getattr(page, part.name) for part in fields(page)},
        "waiting": waiting_part(execution, whole=not request.GET.get("iteration")),
        "activity": None if in_past else audit_trail.audit_trail_of(execution),
        "view": view if view in ("graph", *TABLE_VIEWS) else "",
        "form_parameters": form_parameters(request.GET),
        "legend": formatting.LEGEND,
    }
    return render(request, "execution/page.html", context)


@require_safe
def executed_definition(
    request: HttpRequest, machine_name: str, execution_name: str
) -> HttpResponse:
    """Show the definition that an execution ran with."""
    scope = scope_of(request)
    execution = scope.execution(machine_name, execution_name)
    machine = execution.state_machine
    names = base_context(execution, machine_name)
    drawn = definition_text.definition_context(
        request,
        execution.definition.text,
        machine.type if machine else engine.MachineType.STANDARD,
        scope.region,
        plain=False,
        steps=f"{names['base']}?region={scope.region}&step=",
    )
    context = {
        **names,
        **drawn,
        "executed": executed_revision(execution),
        **(as_it_ran_context(execution, drawn["picture"]) if drawn["picture"] else {}),
    }
    return render(request, "execution/definition.html", context)


@require_safe
def event_page(
    request: HtmxRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Show one expanded event, as a page or as a fragment of the table."""
    execution = scope_of(request).execution(machine_name, execution_name)
    row = event_table.opened_event(execution, number)
    if row is None:
        raise Http404(f"This execution has no event {number}.")
    context = {**base_context(execution, machine_name), "row": row}
    if request.htmx:
        return render(request, "history/_event_detail.html", context)
    context |= {
        "before": number - 1,
        "after": number + 1 if event_table.last_event_id(execution) > number else 0,
        "alone": True,
        **_visit_of_event(execution, number),
    }
    return render(request, "history/event.html", context)


def _visit_of_event(execution: Execution, number: int) -> dict[str, Any]:
    """Return the visit of an event, and its iteration."""
    try:
        with open_trace(execution) as trace:
            node, begun = trace.owner_of(number)
            if not begun:
                return {}
            visit = trace.visit(node, begun)
            return {
                "visit": trace.visits[node].place(visit),
                "iteration": iterations.iteration_label(visit.iteration),
            }
    except engine.DefinitionError:  # stored by a version that checked less
        return {}
