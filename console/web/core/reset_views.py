"""``POST /reset``: delete all data of a throw-away server between tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from console.config import logging_setup
from console.db.audit import Actor
from console.store.people import reset
from console.web.core.proxies import forwarding_header, is_direct

if TYPE_CHECKING:
    from django.http import HttpRequest

HEADER = "X-Stateyard-Reset"
_FORMER_HEADER = "X-Stepyard-Reset"


@login_not_required
@csrf_exempt
@require_POST
def reset_server(request: HttpRequest) -> HttpResponse:
    """Delete all data if ``up --allow-reset`` allows it; else answer 404.

    The header keeps pages of other sites out: a browser sends it for none of them. A proxy would
    let in whoever reaches it, although the server listens on the loopback address only.
    """
    if not settings.STATEYARD_ALLOW_RESET:
        raise Http404("This server was not started with --allow-reset.")
    if not (request.headers.get(HEADER) or request.headers.get(_FORMER_HEADER)):
        return HttpResponse(
            f"The header {HEADER} is missing. Set it to yes.\n",
            status=403,
            content_type="text/plain",
        )
    if not is_direct(request):
        sign = forwarding_header(request) or request.META.get("REMOTE_ADDR", "")
        return HttpResponse(
            f"{sign}: requests of a proxy are refused. Send the request on this machine.\n",
            status=403,
            content_type="text/plain",
        )
    reset.reset_server(Actor("reset", request_id=logging_setup.request_id()))
    return HttpResponse(status=204)
