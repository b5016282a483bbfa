"""Health checks ``/healthz`` and ``/readyz`` for process supervisors and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.store.state import health

if TYPE_CHECKING:
    from django.http import HttpRequest


@login_not_required
@never_cache
@require_safe
def liveness(_request: HttpRequest) -> HttpResponse:
    """Answer ``/healthz``: the process responds; nothing else is checked."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def readiness(_request: HttpRequest) -> HttpResponse:
    """Answer ``/readyz`` with the facts as JSON; 503 if requests should go elsewhere."""
    state = health.check_health()
    answer = JsonResponse(state.facts(), status=200 if state.ready else 503)
    # Django would log each 503 as an error: a probe asks every few seconds, and the log has said
    # why by then.
    answer._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    return answer
