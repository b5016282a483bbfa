"""View of the operations page: readiness, availability, workers, and the oldest waiting work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from django.views.decorators.http import require_safe

from console import access
from console.config.version import server_version
from console.db import clock
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
    """Show ``/operations/``; only owners see host names."""
    may_see_hosts = access.may_administer(request.user, "ViewHosts")
    now_ms = clock.now_ms()
    state = health.check_health()
    report = availability.make_report(now_ms)
    context: dict[str, Any] = {
        "section": "operations",
        "health": state,
        "label": _READY if state.ready else _NOT_READY,
        "process_since": health.PROCESS_STARTED_MS,
        "waiting": health.list_waiting_work(now_ms),
        "late_ms": health.LATE_MS,
        "workers": workers.list_workers() if state.workers is not None else None,
        "server_version": server_version(),
        "database": connection.vendor.replace("sqlite", "SQLite").replace(
            "postgresql", "PostgreSQL"
        ),
        "hosts": may_see_hosts or scope_of(request).may("ViewHosts"),
        "report": report,
        "steady_since": _steady_since(report, state),
        "target": availability.TARGET_PERCENT,
    }
    return render(request, "operations/page.html", context)


def _steady_since(report: availability.AvailabilityReport, state: health.Health) -> int | None:
    """Return since when the server has been ready, None if it was not just now.

    One process is the whole server, which was not ready before that process began; what it lost
    of the newest minute may be its start.
    """
    steady_ms, began_ms = report.steady_since_ms, health.PROCESS_STARTED_MS
    if state.workers is not None:
        return steady_ms
    if steady_ms is not None:
        return max(steady_ms, began_ms)
    is_new = bool(report.interruptions) and began_ms >= report.interruptions[0].from_ms
    return began_ms if is_new and state.ready else None
