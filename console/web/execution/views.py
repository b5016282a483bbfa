"""Views of an execution's pages: the page, its events, payloads, and its definition."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.machines.published import executed_revision
from console.web.core import formatting
from console.web.core.scope import choose, render, scope_of
from console.web.execution import audit_trail, iterations
from console.web.execution.graph_part import as_it_ran_context
from console.web.execution.header import base_context
from console.web.execution.page_parts import page_of, table_views
from console.web.execution.panel import form_parameters
from console.web.execution.waiting import waiting_part
from console.web.graph import definition_text
from console.web.graph.graph_view import graph_view_of
from console.web.history import event_table
from console.web.history.debug_edits import shown_edits
from console.web.history.event_filter import EventFilter
from console.web.history.traces import asked_event, details_of, open_trace

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import Execution
    from console.web.core.scope import HtmxRequest


@require_safe
def execution_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the execution page."""
    execution = scope_of(request).execution(machine_name, execution_name, with_success=True)
    page = page_of(execution, request.GET, graph_view_of(request))
    view = choose(request.GET, "view", ("graph", *table_views()))
    in_past = bool(asked_event(request.GET))
    context = {
        **base_context(execution, machine_name),
        **{part.name: getattr(page, part.name) for part in fields(page)},
        "waiting": waiting_part(execution, whole=not request.GET.get("iteration")),
        "activity": None if in_past else audit_trail.audit_trail_of(execution),
        "view": view,
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


@require_safe
def history_table(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the event table; ``?at=20000`` opens the page with event 20,000."""
    execution = scope_of(request).execution(machine_name, execution_name)
    context = {
        **base_context(execution, machine_name),
        "events": event_table.event_page(execution, EventFilter.of(request.GET)),
        "form_parameters": form_parameters(request.GET),
        "edits": shown_edits(execution),
    }
    return render(request, "history/events.html", context)


_FIELDS = ("input", "output", "cause", "parameters")


@require_safe
def execution_payload(
    request: HttpRequest, machine_name: str, execution_name: str, field: str
) -> HttpResponse:
    """Return the ``input``, ``output`` or ``cause`` of an execution."""
    execution = scope_of(request).execution(machine_name, execution_name)
    text = getattr(execution, field) if field in ("input", "output", "cause") else None
    return _text_response(text)


@require_safe
def executed_text(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return the definition that an execution ran with, as stored."""
    execution = scope_of(request).execution(machine_name, execution_name)
    return _text_response(execution.definition.text)


@require_safe
def event_payload(
    request: HttpRequest, machine_name: str, execution_name: str, number: int, field: str
) -> HttpResponse:
    """Return a payload of an event."""
    execution = scope_of(request).execution(machine_name, execution_name)
    row = HistoryEvent.objects.filter(execution_id=execution.pk, event_id=number).first()
    if row is None or field not in _FIELDS:
        return _text_response(None)
    return _text_response(
        details_of(masked_execution.masked_execution(execution).event(number, row.details)).get(
            field
        )
    )


def _text_response(text: str | None) -> HttpResponse:
    """Return a plain text response: no browser must take a payload for HTML."""
    if text is None:
        raise Http404("There is no such payload.")
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)
