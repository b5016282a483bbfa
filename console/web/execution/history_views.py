"""Views of the event table: as a page, CSV and JSON."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from console.masking import masked_execution
from console.store.state.history import aws_event
from console.web.core import formatting
from console.web.core.formatting import without_formula
from console.web.core.scope import render, scope_of
from console.web.execution.header import base_context
from console.web.execution.panel_part import form_parameters
from console.web.history import event_table
from console.web.history.debug_edits import shown_edits
from console.web.history.event_filter import EventFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from console.models import Execution, HistoryEvent

_COLUMNS = ("id", "previousEventId", "timestamp", "elapsedMs", "type", "state", "details")


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
    response = _file_response(execution, "csv", "text/csv; charset=utf-8")
    rows = csv.writer(response)
    rows.writerow(_COLUMNS)
    for row in _found(request, execution):
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
    response = _file_response(execution, "json", "application/json")
    lines = (json.dumps(_told(row), ensure_ascii=False) for row in _found(request, execution))
    response.write('{"events": [\n' + ",\n".join(lines) + "\n]}\n")
    return response


def _found(request: HttpRequest, execution: Execution) -> Iterator[HistoryEvent]:
    filters = EventFilter.of(request.GET)
    order = "-event_id" if filters.newest_first else "event_id"
    masked = masked_execution.masked_execution(execution)
    for row in filters.rows(execution).order_by(order).iterator(chunk_size=2000):
        row.details = masked.event(row.event_id, row.details)
        yield row


def _told(row: HistoryEvent) -> dict[str, Any]:
    return {**aws_event(row), "timestamp": formatting.iso_text(row.at_ms)}


def _file_response(execution: Execution, ending: str, kind: str) -> HttpResponse:
    name = content_disposition_header(
        as_attachment=True, filename=f"{execution.name}-events.{ending}"
    )
    headers = {"Cache-Control": "no-store", "Content-Disposition": str(name)}
    return HttpResponse(content_type=kind, headers=headers)
