"""Answer the page of operations: readiness now and measured, workers, and what waits longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_safe

from console import clock
from console.store.state import health
from console.store.tasks import workers
from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.operations import availability

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_READY = formatting.StatusLabel("succeeded", "Ready")
_NOT_READY = formatting.StatusLabel("failed", "Not ready")


@require_safe
def operations_page(request: HttpRequest) -> HttpResponse:
    """Answer ``/operations/``; names of hosts are for owners."""
    scope = scope_of(request)
    now_ms = clock.now_ms()
    state = health.check_health()
    report = availability.make_report(now_ms)
    steady_since_ms = report.steady_since_ms
    if steady_since_ms is not None and state.workers is None:  # there was no other process before
        steady_since_ms = max(steady_since_ms, health.PROCESS_STARTED_MS)
    context: dict[str, Any] = {
        "section": "operations",
        "health": state,
        "label": _READY if state.ready else _NOT_READY,
        "process_since": health.PROCESS_STARTED_MS,
        "waiting": health.list_waiting_work(now_ms),
        "late_ms": health.LATE_MS,
        "workers": workers.list_workers() if state.workers is not None else None,
        "hosts": scope.may("ViewHosts"),
        "report": report,
        "steady_since": steady_since_ms,
        "target": availability.TARGET_PERCENT,
    }
    return render(request, "operations/page.html", context)
