"""How does this reader like pages: which theme, which clock, which columns?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from console.store.people import people
from console.web.core import columns
from console.web.core.scope import scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest

_CHOICES = {"theme": ("light", "dark", "system"), "clock": ("utc", "local")}
_YEAR = 365 * 24 * 3600


@require_POST
def save_preferences(request: HttpRequest) -> HttpResponse:
    """Keep a choice in a cookie and go back to where the reader was."""
    response = HttpResponse(status=204)
    if not request.headers.get("HX-Request"):
        response = redirect(local_address(request, request.POST.get("next", "")))
    for name, allowed in _CHOICES.items():
        value = request.POST.get(name, "")
        if value in allowed:
            response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", httponly=True)
    return response


@require_POST
def choose_columns(request: HttpRequest) -> HttpResponse:
    """Keep which columns a table has for this reader, wherever they sign in, and go back."""
    scope = scope_of(request)
    table = request.POST.get("table", "")
    if table not in columns.TABLES:
        raise Http404(f"There is no table “{table}”.")
    chosen = [] if request.POST.get("act") == "reset" else request.POST.getlist("column")
    choice = columns.updated_choice(scope.principal.columns, table, chosen)
    people.choose_columns(scope.project, scope.principal.user, choice)
    # a script may have changed the address since the form was made
    back = request.headers.get("Referer") or request.POST.get("next", "")
    return redirect(
        f"{local_address(request, back).partition('#')[0]}#{columns.TABLES[table].place}"
    )


def local_address(request: HttpRequest, address: str, otherwise: str = "/") -> str:
    """Return the address if it is one of ours, else the other one: the overview's."""
    whole = address.startswith(("/", "http://", "https://"))  # Django takes others for view names
    hosts = {request.get_host()}
    mine = whole and url_has_allowed_host_and_scheme(address, hosts, request.is_secure())
    return address if mine else otherwise
