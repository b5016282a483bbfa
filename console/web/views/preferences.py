"""How does this reader like pages: which theme, which clock?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

if TYPE_CHECKING:
    from django.http import HttpRequest

_CHOICES = {"theme": ("light", "dark", "system"), "clock": ("utc", "local")}
_YEAR = 365 * 24 * 3600


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep a choice in a cookie and go back to where the reader was."""
    response = HttpResponse(status=204)
    if not request.headers.get("HX-Request"):
        response = redirect(local(request, request.POST.get("next", "")))
    for name, allowed in _CHOICES.items():
        value = request.POST.get(name, "")
        if value in allowed:
            response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", httponly=True)
    return response


def local(request: HttpRequest, address: str, otherwise: str = "/") -> str:
    """Return the address if it is one of ours, else the other one: the overview's."""
    mine = url_has_allowed_host_and_scheme(address, {request.get_host()}, request.is_secure())
    return address if mine else otherwise
