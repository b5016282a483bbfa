"""Answer whether this server is up and may be sent requests, for process supervisors."""

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
    """Answer ``/healthz``: this process answers; it looks at nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
@never_cache
@require_safe
def readiness(_request: HttpRequest) -> HttpResponse:
    """Answer ``/readyz``: the facts as JSON, with 503 if there is a reason to send nobody here."""
    state = health.check_health()
    answer = JsonResponse(state.facts(), status=200 if state.ready else 503)
    # Django would log each 503 as an error: a probe asks every few seconds, and the log has said
    # why by then.
    answer._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    return answer
