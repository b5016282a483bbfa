"""The Prometheus endpoint ``/metrics``: for this machine, or with ``STATEYARD_METRICS_TOKEN``.

Without a token only direct connections from this machine are answered. Requests that a local proxy
forwards for visitors are not: a proxy is detected by any forwarding header, or by
``STATEYARD_HTTPS=1``.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from console.features.metrics import openmetrics
from console.web.core.proxies import is_direct

if TYPE_CHECKING:
    from django.http import HttpRequest


@login_not_required  # its own rule, below
@require_safe
def prometheus_metrics(request: HttpRequest) -> HttpResponse:
    """Answer ``/metrics``."""
    if not is_allowed(request):
        return HttpResponse(
            "metrics: the token is missing or wrong. Send the header Authorization: Bearer TOKEN "
            "with the value of STATEYARD_METRICS_TOKEN. If that is not set, only direct "
            "connections from this machine are answered, and none with STATEYARD_HTTPS=1\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
        )
    content_type = _preferred_format(request)
    return HttpResponse(
        openmetrics.render_metrics(content_type),
        content_type=content_type,
        headers={"Cache-Control": "no-store"},
    )


def _preferred_format(request: HttpRequest) -> str:
    """Return the content type preferred in ``Accept``; OpenMetrics by default.

    Media type parameters are ignored: Prometheus sends those of its release (``version``,
    ``escaping``), and all its releases read both formats.
    """
    for accepted in request.accepted_types:
        for content_type in openmetrics.RENDERERS:
            if content_type.startswith(f"{accepted.main_type}/{accepted.sub_type};"):
                return content_type
    return next(iter(openmetrics.RENDERERS))


def is_allowed(request: HttpRequest) -> bool:
    """Whether a request may read the metrics of all projects."""
    token: str = settings.STATEYARD_METRICS_TOKEN
    if token:
        authorization = request.headers.get("Authorization", "")
        return secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode())
    return is_direct(request)
