"""Export an execution as a file: history as JSON, graph as SVG."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.state import history
from console.web.core.scope import scope_of
from console.web.execution import picture_export
from console.web.execution.time_machine import asked_event
from console.web.graph.graph_view import graph_view_of
from console.web.history.debug_edits import exported_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from console.models import Execution

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
    }
    return {name: value for name, value in fields.items() if value is not None}


def _file_response(text: str, kind: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Cache-Control": "no-store"})
