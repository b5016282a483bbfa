"""Download executions and graphs as files, and share a graph by a link."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.features.deploy.machine_formats import FORMATS
from console.features.exports import mermaid, pictures, shares
from console.masking import masked_execution
from console.models import DebugEdit, HistoryEvent
from console.store.executions import next_starts
from console.store.state.history import aws_event
from console.web.core import formatting
from console.web.core.formatting import without_formula
from console.web.core.forms import LINK_HOURS, OptionField, PageForm
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.header import base_context
from console.web.graph.graph_view import graph_view_of
from console.web.history.event_filter import EventFilter
from console.web.history.traces import asked_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest

    from console.models import Execution, StateMachine

_SVG = "image/svg+xml; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"

# -- the events ------------------------------------------------------------------------------------

_CSV_COLUMNS = ("id", "previousEventId", "timestamp", "elapsedMs", "type", "state", "details")


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


# -- the execution ---------------------------------------------------------------------------------


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


def _json_pieces(execution: Execution) -> Iterator[str]:
    """Yield the JSON in pieces, because histories may be long."""
    yield f'{{"execution": {json.dumps(_description(execution), ensure_ascii=False)},\n"events": ['
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    masked = masked_execution.masked_execution(execution)
    for place, row in enumerate(rows.iterator(chunk_size=500)):
        row.details = masked.event(row.event_id, row.details)
        event = aws_event(row)
        yield (",\n" if place else "\n") + json.dumps(event, ensure_ascii=False)
    yield "\n]"
    edits = list(_exported_edits(execution))
    if edits:
        yield f',\n"edits": {json.dumps(edits, ensure_ascii=False)}'
    yield "}\n"


def _exported_edits(execution: Execution) -> Iterator[dict[str, Any]]:
    """Yield all changes of an execution for an export, oldest first."""
    if not getattr(execution, "has_edits", True):
        return
    rows = DebugEdit.objects.filter(execution=execution.pk).order_by("pk")
    hidden = masked_execution.masked_execution(execution).mask
    for row in rows.iterator(chunk_size=500):
        yield {
            "timestamp": row.at_ms / 1000,
            "eventId": row.event_id,
            "state": row.state,
            "change": row.what,
            "by": row.by,
            "before": hidden.payload(row.before),
            "after": hidden.payload(row.after),
        }


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


# -- pictures --------------------------------------------------------------------------------------


@require_safe
def execution_svg(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Return an execution's graph as a standalone SVG."""
    execution = scope_of(request).execution(machine_name, execution_name)
    try:
        return _file_response(
            pictures.execution_picture(execution, asked_event(request.GET), graph_view_of(request)),
            _SVG,
        )
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be drawn.") from None


@require_safe
def machine_svg(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the graph as a standalone SVG."""
    machine = scope_of(request).machine(machine_name)
    _graph_of(machine)
    return _file_response(pictures.machine_picture(machine, graph_view_of(request)), _SVG)


@require_safe
def machine_mermaid(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the graph as a Mermaid flowchart."""
    machine = scope_of(request).machine(machine_name)
    return _file_response(mermaid.mermaid_flowchart(_graph_of(machine)), _TEXT)


def _graph_of(machine: StateMachine) -> engine.Graph:
    try:
        return engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:
        raise Http404(f"The definition of “{machine.name}” can no longer be drawn.") from None


# -- links -----------------------------------------------------------------------------------------

_KINDS: dict[str, tuple[Callable[[Execution], str], str]] = {
    "graph.svg": (pictures.execution_picture, _SVG),
    "outline.txt": (pictures.outline_text, _TEXT),
}


class ShareForm(PageForm):
    """The lifetime of a share link in hours."""

    hours = OptionField(LINK_HOURS, 24)


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
        "choices": LINK_HOURS,
        "hours": hours,
        "made": links,
        "lasts": LINK_HOURS[hours],
        "outline": _exported("outline.txt", execution),
    }
    return render(request, "exports/share.html", context)


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


# -- state machines for other tools ----------------------------------------------------------------


def offered_formats(_machine: StateMachine) -> dict[str, Any]:
    """Return the formats, for the page of a definition."""
    return {"formats": FORMATS}


@require_safe
def machine_export(request: HttpRequest, machine_name: str, tool: str) -> HttpResponse:
    """Return the state machine in another tool's format, as ``stateyard export`` does."""
    machine = scope_of(request).machine(machine_name)
    if tool not in FORMATS:
        raise Http404(f"There is no export for “{tool}”.")
    described = {
        "name": machine.name,
        "type": machine.type,
        "roleArn": machine.role_arn,
        "definition": machine.definition.text,
    }
    name = quote(f"{machine.name}.{FORMATS[tool].ending}")
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
    }
    return HttpResponse(FORMATS[tool].write(described), content_type=_TEXT, headers=headers)
