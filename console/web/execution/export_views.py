"""How do machines and executions leave the page?  As JSON, as a picture, as text for a wiki."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db.models import Sum
from django.db.models.functions import Length
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.state import history
from console.web.core.scope import scope_of
from console.web.execution import picture_export
from console.web.execution.time_machine import asked
from console.web.graph import mermaid
from console.web.test_state import scenario as scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from console.models import Execution, StateMachine

_LARGEST = 32_000_000
"""Characters of a history that becomes a test, which is made in memory."""
_SVG = "image/svg+xml; charset=utf-8"


@require_safe
def definition(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the definition's text, exactly as it was given."""
    one = scope_of(request).machine(machine)
    return _file(one.definition.text, "application/json")


@require_safe
def picture(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the graph as an SVG that needs nothing beside it."""
    one = scope_of(request).machine(machine)
    _graph(one)
    return _file(picture_export.of_machine(one), _SVG)


@require_safe
def flowchart(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer with the graph as a Mermaid flowchart."""
    one = scope_of(request).machine(machine)
    return _file(mermaid.flowchart(_graph(one)), "text/plain; charset=utf-8")


@require_safe
def execution(request: HttpRequest, machine: str, execution: str) -> StreamingHttpResponse:
    """Answer with an execution and its whole history, in the shapes of the API."""
    one = scope_of(request).execution(machine, execution)
    return StreamingHttpResponse(
        _whole(one), content_type="application/json", headers={"Cache-Control": "no-store"}
    )


@require_safe
def graph(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Answer with an execution's graph, as an SVG that needs nothing beside it."""
    one = scope_of(request).execution(machine, execution)
    try:
        return _file(picture_export.of_execution(one, asked(request.GET)), _SVG)
    except engine.DefinitionError:
        raise Http404(f"The definition of “{one.name}” can no longer be drawn.") from None


@require_safe
def scenario(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Answer with an execution as a test, which ``manage.py replay`` runs."""
    one = scope_of(request).execution(machine, execution)
    if one.status in ("RUNNING", "UNFINISHED"):
        raise Http404(f"“{one.name}” is still running: a test needs its end.")
    size = HistoryEvent.objects.filter(execution_id=one.pk).aggregate(all=Sum(Length("details")))
    if (size["all"] or 0) > _LARGEST:
        raise Http404(f"The history of “{one.name}” is too large for a test.")
    try:
        made = scenarios.scenario_of(one)
    except engine.DefinitionError:
        raise Http404(f"The definition of “{one.name}” can no longer be run.") from None
    except ValueError:  # imported, and cut where it was printed
        raise Http404(f"Payloads of “{one.name}” are not whole: a test needs them.") from None
    answer = _file(json.dumps(made, ensure_ascii=False, indent=2) + "\n", "application/json")
    # said here, not by the link: a refusal is to be read, not saved
    answer["Content-Disposition"] = content_disposition_header(True, f"{one.name}.scenario.json")
    return answer


def _whole(one: Execution) -> Iterator[str]:
    """Write an execution piece by piece; histories may be long."""
    yield f'{{"execution": {json.dumps(_described(one), ensure_ascii=False)},\n"events": ['
    rows = HistoryEvent.objects.filter(execution_id=one.pk).order_by("event_id")
    cover = masked_execution.masked_execution(one)
    for place, row in enumerate(rows.iterator(chunk_size=500)):
        row.details = cover.event(row.event_id, row.details)
        event = history.aws_event(row)
        yield (",\n" if place else "\n") + json.dumps(event, ensure_ascii=False)
    yield "\n]}\n"


def _described(one: Execution) -> dict[str, Any]:
    found = {
        "executionArn": one.arn,
        "stateMachineArn": one.state_machine_arn,
        "stateMachineVersionArn": one.version_arn or None,
        "stateMachineAliasArn": one.alias_arn or None,
        "name": one.name,
        "status": one.status,
        "startDate": one.start_ms / 1000,
        "stopDate": None if one.stop_ms is None else one.stop_ms / 1000,
        "input": one.input,
        "output": one.output,
        "error": one.error,
        "cause": one.cause,
        "redriveCount": one.redrive_count,
        "definition": one.definition.text,
    }
    return {name: value for name, value in found.items() if value is not None}


def _graph(one: StateMachine) -> engine.Graph:
    try:
        return engine.build_graph(engine.parse(one.definition.text, one.type))
    except engine.DefinitionError:
        raise Http404(f"The definition of “{one.name}” can no longer be drawn.") from None


def _file(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})
