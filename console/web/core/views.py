"""Views of all pages: preferences, health, and the reset of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from console.access import PROJECT_COOKIE
from console.config import logging_setup
from console.db.audit import Actor
from console.store.people import people, reset
from console.store.state import health
from console.web.core import columns
from console.web.core.forms import PageForm, SubsetField, TextField
from console.web.core.proxies import forwarding_header, is_direct
from console.web.core.scope import scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.web.core.scope import HtmxRequest


_CHOICES: dict[str, tuple[str, ...]] = {
    "theme": ("light", "dark", "system"),
    "clock": ("utc", "local"),
    "direction": ("down", "right"),
}
_YEAR = 365 * 24 * 3600


class PreferencesForm(PageForm):
    """The preferences stored in cookies, and the URL to return to."""

    theme = TextField(strip=False)
    clock = TextField(strip=False)
    direction = TextField(strip=False)
    project = TextField(strip=False)
    next = TextField(strip=False)


class ColumnsForm(PageForm):
    """The columns of a table; ``act``: ``reset`` restores the default columns."""

    table = TextField(strip=False)
    act = TextField(strip=False)
    column = SubsetField()
    next = TextField(strip=False)


@require_POST
def save_preferences(request: HtmxRequest) -> HttpResponse:
    """Store a preference in a cookie and redirect back."""
    sent = PreferencesForm(request.POST).values
    response = HttpResponse(status=204)
    if not request.htmx:
        response = redirect(_address_to_return_to(request, sent["next"], sent["direction"]))
    choices = dict(_CHOICES)
    if sent["project"]:
        choices[PROJECT_COOKIE] = scope_of(request).principal.projects
    for name, allowed in choices.items():
        if sent[name] in allowed:
            response.set_cookie(name, sent[name], max_age=_YEAR, samesite="Lax", httponly=True)
    return response


@require_POST
def choose_columns(request: HttpRequest) -> HttpResponse:
    """Store a table's columns with the membership and redirect back."""
    scope = scope_of(request)
    sent = ColumnsForm(request.POST).values
    table = sent["table"]
    if table not in columns.TABLES:
        raise Http404(f"There is no table “{table}”.")
    chosen = [] if sent["act"] == "reset" else sent["column"]
    choice = columns.updated_choice(scope.principal.columns, table, chosen)
    people.choose_columns(scope.project, scope.principal.user, choice)
    # a script may have changed the address since the form was made
    back = request.headers.get("Referer") or sent["next"]
    return redirect(
        f"{local_address(request, back).partition('#')[0]}#{columns.TABLES[table].place}"
    )


def _address_to_return_to(request: HttpRequest, asked: str, direction: str) -> str:
    """Return the URL to redirect to; after a change of graph direction, at the graph.

    A script may have changed the address since the form was made.
    """
    page, _, place = local_address(request, asked).partition("#")
    referer = request.headers.get("Referer", "").partition("#")[0]
    if direction and referer:
        page = local_address(request, referer, page)
    return f"{page}#{place}" if place else page


def local_address(request: HttpRequest, address: str, otherwise: str = "/") -> str:
    """Return a URL if it is on this server, else ``otherwise``."""
    is_address = address.startswith(
        ("/", "http://", "https://")
    )  # Django takes others for view names
    hosts = {request.get_host()}
    mine = is_address and url_has_allowed_host_and_scheme(address, hosts, request.is_secure())
    return address if mine else otherwise


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


HEADER = "X-Stateyard-Reset"


@login_not_required
@csrf_exempt
@require_POST
def reset_server(request: HttpRequest) -> HttpResponse:
    """Delete all data if ``up --allow-reset`` allows it; else answer 404.

    The request needs a header that browsers do not send for pages of other sites. Requests through
    a proxy are refused: the server listens on the loopback address only, but a proxy could forward
    requests from other machines.
    """
    if not settings.STATEYARD_ALLOW_RESET:
        raise Http404("This server was not started with --allow-reset.")
    if not request.headers.get(HEADER):
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
