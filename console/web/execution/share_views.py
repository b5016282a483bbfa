"""Share links that show an execution to people without an account, until they expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.masking import masked_execution
from console.store.people import shares
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import picture_export
from console.web.execution.forms import ShareForm
from console.web.execution.header import base_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from console.models import Execution

_WORDS = {1: "1 hour", 24: "1 day", 168: "7 days"}
_KINDS: dict[str, tuple[Callable[[Execution], str], str]] = {
    "graph.svg": (picture_export.execution_picture, "image/svg+xml; charset=utf-8"),
    "outline.txt": (picture_export.outline_text, "text/plain; charset=utf-8"),
}


@require_http_methods(["GET", "POST"])
def share_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the content of a link; a POST creates the link."""
    scope = scope_of(request)
    require(scope, shares.ACTION)
    execution = scope.own_execution(machine_name, execution_name)
    hours: int = ShareForm(request.POST).values["hours"]
    links = []
    if request.method == "POST":
        token = shares.create_share(execution, hours, actor_of(scope))
        places = (reverse("shared", args=[token, kind]) for kind in _KINDS)
        links = [request.build_absolute_uri(place) for place in places]
    context = {
        **base_context(execution, machine_name),
        "choices": _WORDS,
        "hours": hours,
        "made": links,
        "lasts": _WORDS[hours],
        "outline": _exported("outline.txt", execution),
    }
    return render(request, "execution/share.html", context)


@login_not_required
@require_safe
def shared_picture(_request: HttpRequest, token: str, kind: str) -> HttpResponse:
    """Show a shared execution without login: graph or outline; 403 when expired."""
    if kind not in _KINDS:
        raise Http404(f"A link leads to {' or '.join(_KINDS)}.")
    try:
        execution = masked_execution.mask_execution(shares.open_share(token))
    except shares.ShareClosed as why:
        raise PermissionDenied(str(why)) from None
    headers = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
    return HttpResponse(_exported(kind, execution), content_type=_KINDS[kind][1], headers=headers)


@require_safe
def execution_outline(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show an execution as text, for signed-in readers."""
    execution = scope_of(request).execution(machine_name, execution_name)
    kind = "outline.txt"
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(_exported(kind, execution), content_type=_KINDS[kind][1], headers=headers)


def _exported(kind: str, execution: Execution) -> str:
    try:
        return _KINDS[kind][0](execution)
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be drawn.") from None
