"""Who may scrape the metrics?  This machine, or who knows ``STEPYARD_METRICS_TOKEN``."""

from __future__ import annotations

import ipaddress
import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from console.metrics import openmetrics

if TYPE_CHECKING:
    from django.http import HttpRequest

_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")


@login_not_required  # its own rule, below
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer ``/metrics``."""
    if not allowed(request):
        return HttpResponse(
            "metrics: from this machine only, or with Authorization: Bearer and the token of "
            "STEPYARD_METRICS_TOKEN\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
        )
    return HttpResponse(
        openmetrics.text(),
        content_type=openmetrics.CONTENT_TYPE,
        headers={"Cache-Control": "no-store"},
    )


def allowed(request: HttpRequest) -> bool:
    """Tell whether a request may read the metrics of all projects."""
    token: str = settings.STEPYARD_METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "")
        return secrets.compare_digest(given.encode(), f"Bearer {token}".encode())
    # what a proxy on this machine forwards is not from this machine
    return not any(name in request.headers for name in _FORWARDED) and _here(request)


def _here(request: HttpRequest) -> bool:
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
