"""Views of an execution's pages: the page, its events, payloads, exports and shares."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.executions import next_starts
from console.store.machines.published import executed_revision
from console.store.people import shares
from console.store.state import history
from console.store.state.history import aws_event
from console.web.core import formatting
from console.web.core.formatting import without_formula
from console.web.core.scope import actor_of, choose, render, require, scope_of
from console.web.execution import audit_trail, iterations, picture_export
from console.web.execution.forms import ShareForm
from console.web.execution.graph_part import as_it_ran_context
from console.web.execution.header import base_context
from console.web.execution.page_parts import page_of, table_views
from console.web.execution.panel import form_parameters
from console.web.execution.waiting import waiting_part
from console.web.graph import definition_text
from console.web.graph.graph_view import graph_view_of
from console.web.history import event_table
from console.web.history.debug_edits import exported_edits, shown_edits
from console.web.history.event_filter import EventFilter
from console.web.history.traces import asked_event, details_of, open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


_CSV_COLUMNS = ("id", "previousEventId", "timestamp", "elapsedMs", "type", "state", "details")


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


@require_safe
def history_csv(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return the filtered events as CSV."""
    execution = scope_of(request).execution(machine_name, execution_name)
    response = _events_file(execution, "csv", "text/csv; charset=utf-8")
    rows = csv.writer(response)
    rows.writerow(_CSV_COLUMNS)
    for row in _masked_rows(request, execution):
        rows.writerow(
            [
                row.event_id,
                row.previous,
                formatting.iso_text(row.at_ms),
                row.at_ms - execution.start_ms,
                row.type,
                without_formula(row.state),
                without_formula(row.details),
            ]
        )
    return response


@require_safe
def history_json(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return the filtered events in the JSON of ``aws stepfunctions get-execution-history``."""
    execution = scope_of(request).execution(machine_name, execution_name)
    response = _events_file(execution, "json", "application/json")
    lines = (
        json.dumps(_event_json(row), ensure_ascii=False) for row in _masked_rows(request, execution)
    )
    response.write('{"events": [\n' + ",\n".join(lines) + "\n]}\n")
    return response


def _masked_rows(request: HttpRequest, execution: Execution) -> Iterator[HistoryEvent]:
    filters = EventFilter.of(request.GET)
    order = "-event_id" if filters.newest_first else "event_id"
    masked = masked_execution.masked_execution(execution)
    for row in filters.rows(execution).order_by(order).iterator(chunk_size=2000):
        row.details = masked.event(row.event_id, row.details)
        yield row


def _event_json(row: HistoryEvent) -> dict[str, Any]:
    return {**aws_event(row), "timestamp": formatting.iso_text(row.at_ms)}


def _events_file(execution: Execution, ending: str, kind: str) -> HttpResponse:
    name = content_disposition_header(
        as_attachment=True, filename=f"{execution.name}-events.{ending}"
    )
    headers = {"Cache-Control": "no-store", "Content-Disposition": str(name)}
    return HttpResponse(content_type=kind, headers=headers)


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


_SVG = "image/svg+xml; charset=utf-8"


@require_safe
def execution_json(
    request: HttpRequest, machine_name: str, execution_name: str
) -> StreamingHttpResponse:
    """Return an execution and its whole history in the API's JSON."""
    execution = scope_of(request).execution(machine_name, execution_name)
    return StreamingHttpResponse(
        _json_pieces(execution),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


@require_safe
def execution_svg(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return an execution's graph as a standalone SVG."""
    execution = scope_of(request).execution(machine_name, execution_name)
    try:
        return _file_response(
            picture_export.execution_picture(
                execution, asked_event(request.GET), graph_view_of(request)
            ),
            _SVG,
        )
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be drawn.") from None


def _json_pieces(execution: Execution) -> Iterator[str]:
    """Yield the JSON in pieces, because histories may be long."""
    yield f'{{"execution": {json.dumps(_description(execution), ensure_ascii=False)},\n"events": ['
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    masked = masked_execution.masked_execution(execution)
    for place, row in enumerate(rows.iterator(chunk_size=500)):
        row.details = masked.event(row.event_id, row.details)
        event = history.aws_event(row)
        yield (",\n" if place else "\n") + json.dumps(event, ensure_ascii=False)
    yield "\n]"
    edits = list(exported_edits(execution))
    if edits:
        yield f',\n"edits": {json.dumps(edits, ensure_ascii=False)}'
    yield "}\n"


def _description(execution: Execution) -> dict[str, Any]:
    fields = {
        "executionArn": execution.arn,
        "stateMachineArn": execution.state_machine_arn,
        "stateMachineVersionArn": execution.version_arn or None,
        "stateMachineAliasArn": execution.alias_arn or None,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.start_ms / 1000,
        "stopDate": None if execution.stop_ms is None else execution.stop_ms / 1000,
        "input": execution.input,
        "output": execution.output,
        "error": execution.error,
        "cause": execution.cause,
        "redriveCount": execution.redrive_count,
        "definition": execution.definition.text,
        "faults": json.loads(execution.faults) if execution.faults else None,
        "nextStarts": _place(execution),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _place(execution: Execution) -> dict[str, Any] | None:
    """Return the place among the next starts that an execution has taken, None without one."""
    place = next_starts.place_of(execution)
    if place is None:
        return None
    return {
        "by": place.set_by,
        "since": place.set_ms / 1000,
        "starts": place.starts,
        "number": place.number,
        "breakpoints": place.breakpoints,
    }


def _file_response(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})


_WORDS = {1: "1 hour", 24: "1 day", 168: "7 days"}
_KINDS: dict[str, tuple[Callable[[Execution], str], str]] = {
    "graph.svg": (picture_export.execution_picture, "image/svg+xml; charset=utf-8"),
    "outline.txt": (picture_export.outline_text, "text/plain; charset=utf-8"),
}


@require_http_methods(["GET", "POST"])
def share_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the content of a link; a POST creates the link."""
    scope = scope_of(request)
    require(scope, shares.ACTION)
    execution = scope.own_execution(machine_name, execution_name)
    hours: int = ShareForm(request.POST).values["hours"]
    links = []
    if request.method == "POST":
        token = shares.create_share(execution, hours, actor_of(scope))
        places = (reverse("shared", args=[token, kind]) for kind in _KINDS)
        links = [request.build_absolute_uri(place) for place in places]
    context = {
        **base_context(execution, machine_name),
        "choices": _WORDS,
        "hours": hours,
        "made": links,
        "lasts": _WORDS[hours],
        "outline": _exported("outline.txt", execution),
    }
    return render(request, "execution/share.html", context)


@login_not_required
@require_safe
def shared_picture(_request: HttpRequest, token: str, kind: str) -> HttpResponse:
    """Show a shared execution without login: graph or outline; 403 when expired."""
    if kind not in _KINDS:
        raise Http404(f"A link leads to {' or '.join(_KINDS)}.")
    try:
        execution = masked_execution.mask_execution(shares.open_share(token))
    except shares.ShareClosed as why:
        raise PermissionDenied(str(why)) from None
    headers = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
    return HttpResponse(_exported(kind, execution), content_type=_KINDS[kind][1], headers=headers)


@require_safe
def execution_outline(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show an execution as text, for signed-in readers."""
    execution = scope_of(request).execution(machine_name, execution_name)
    kind = "outline.txt"
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(_exported(kind, execution), content_type=_KINDS[kind][1], headers=headers)


def _exported(kind: str, execution: Execution) -> str:
    try:
        return _KINDS[kind][0](execution)
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be drawn.") from None
