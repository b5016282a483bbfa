"""Export a state machine as a file: definition, SVG, Mermaid flowchart, code of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

import engine
from console.cli.machine_formats import FORMATS
from console.web.core.scope import scope_of
from console.web.execution import picture_export
from console.web.graph import mermaid
from console.web.graph.graph_view import graph_view_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import StateMachine

_SVG = "image/svg+xml; charset=utf-8"


@require_safe
def definition_json(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the definition's text, unchanged."""
    machine = scope_of(request).machine(machine_name)
    return _file_response(machine.definition.text, "application/json")


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
    response = _file_response(FORMATS[tool].write(described), "text/plain; charset=utf-8")
    name = quote(f"{machine.name}.{FORMATS[tool].ending}")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return response


@require_safe
def machine_svg(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the graph as a standalone SVG."""
    machine = scope_of(request).machine(machine_name)
    _graph_of(machine)
    return _file_response(picture_export.machine_picture(machine, graph_view_of(request)), _SVG)


@require_safe
def machine_mermaid(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Return the graph as a Mermaid flowchart."""
    machine = scope_of(request).machine(machine_name)
    return _file_response(
        mermaid.mermaid_flowchart(_graph_of(machine)), "text/plain; charset=utf-8"
    )


def _graph_of(machine: StateMachine) -> engine.Graph:
    try:
        return engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:
        raise Http404(f"The definition of “{machine.name}” can no longer be drawn.") from None


def _file_response(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})
