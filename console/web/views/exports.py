"""How does a state machine leave the page?  As JSON, as a picture, as text for a wiki."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

import engine
from console.web import mermaid, svg
from console.web.page import yard

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import StateMachine

_NO_XML = re.compile("[\ufffe\uffff]")


@require_safe
def definition(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the definition's text, exactly as it was given."""
    one = yard(request).machine(machine)
    return _file(one.definition.text, "application/json")


@require_safe
def picture(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the graph as an SVG that needs nothing beside it."""
    one = yard(request).machine(machine)
    _graph(one)
    context = {"machine": one, "picture": svg.picture(one.definition.text, one.type)}
    drawn = render_to_string("machine/picture.svg", context)
    return _file(_NO_XML.sub("\ufffd", drawn), "image/svg+xml; charset=utf-8")


@require_safe
def flowchart(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the graph as a Mermaid flowchart."""
    one = yard(request).machine(machine)
    return _file(mermaid.flowchart(_graph(one)), "text/plain; charset=utf-8")


def _graph(one: StateMachine) -> engine.Graph:
    try:
        return engine.graph(engine.parse(one.definition.text, one.type))
    except engine.DefinitionError:
        raise Http404(f"The definition of “{one.name}” can no longer be drawn.") from None


def _file(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})
