"""View that lists a project's executions at breakpoints; owners can forbid breakpoints there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.db import project_settings
from console.features.breakpoints.setting import put_allowed
from console.models import Execution
from console.store.executions import breakpoints
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

MOST = 100
"""Maximum number of listed executions: the lines that wait longest."""
_BARE = ("input", "output", "cause")


@require_http_methods(["GET", "POST"])
def halted_lines_page(request: HttpRequest) -> HttpResponse:
    """Show ``/breakpoints/``: halted executions; ``act`` allows or forbids breakpoints."""
    scope = scope_of(request)
    if request.method == "POST":
        require(scope, project_settings.PUT)
        act = request.POST.get("act", "")
        if act not in ("allow", "forbid"):
            raise Http404(f"Breakpoints cannot {act!r}.")
        put_allowed(scope.project, actor_of(scope), allowed=act == "allow")
        words = "allowed" if act == "allow" else "forbidden"
        messages.success(request, f"Breakpoints are {words} in this project.")
        return redirect(page_address(scope, "halted-lines"))
    rows = Execution.objects.filter(project=scope.project, halted__isnull=False)
    rows = rows.filter(scope.own_executions).select_related("halted").defer(*_BARE)
    executions = list(rows.order_by("halted__since_ms", "pk")[: MOST + 1])
    context = {
        "section": "executions",
        "rows": executions[:MOST],
        "more": len(executions) > MOST,
        "is_forbidden": breakpoints.is_forbidden(scope.project.name),
        "may_change": scope.may(project_settings.PUT),
    }
    return render(request, "breakpoints/halted_lines.html", context)
