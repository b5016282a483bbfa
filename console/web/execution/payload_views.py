"""Views of complete payloads as plain text, masked for the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from console.masking import masked_execution
from console.models import HistoryEvent
from console.web.core.scope import scope_of
from console.web.history.traces import details_of

if TYPE_CHECKING:
    from django.http import HttpRequest

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
def definition_text(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
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
