"""What do the pages of a project hide, and how does somebody see it all the same?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from console import clock
from console.errors import ConflictException, ServiceError
from console.store.people import masks as store
from console.web.core import conflicts
from console.web.core.preference_views import local
from console.web.core.scope import REVEALED, actor, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest) -> HttpResponse:
    """Answer ``/settings/``: the masked paths; an editor changes them."""
    here = scope_of(request)
    typed, problem, conflict, status = here.project.masked, "", None, 200
    revision = store.revision_of(typed)
    if request.method == "POST":
        require(here, "PutMaskedPaths")
        typed, revision = request.POST.get("paths", ""), request.POST.get("revision", "")
        over = request.POST.get("over") or revision
        try:
            kept = store.put_paths(here.project, typed.splitlines(), actor(here), over)
        except ConflictException:
            conflict, status = conflicts.of_paths(here.project), 409
        except ServiceError as refused:
            problem, status = refused.message, 422
        else:
            messages.success(request, _said(len(kept)))
            return redirect("project-settings")
    context = {
        "here": "settings",
        "paths": typed,
        "problem": problem,
        "revision": revision,
        "conflict": conflict,
        "may_change": here.may("PutMaskedPaths"),
    }
    return render(request, "masking/project_settings.html", context, status=status)


def _said(count: int) -> str:
    if not count:
        return "No values are masked now."
    return "1 path is masked." if count == 1 else f"{count} paths are masked."


@require_POST
def reveal(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Show this reader what is masked of one execution, for ten minutes; or mask it again."""
    here = scope_of(request)
    require(here, "RevealPayloads")
    one = here.execution(machine, execution)
    told = {number: until for number, until in _told(request).items() if until > clock.now_ms()}
    told.pop(str(one.pk), None)
    if request.POST.get("act") != "hide":
        store.reveal_values(one, request.POST.get("reason", "").strip(), actor(here))
        told[str(one.pk)] = clock.now_ms() + store.FOR_MS
    request.session[REVEALED] = told
    own = reverse("execution", args=[machine, one.name])
    return redirect(local(request, request.POST.get("next", ""), own))


def _told(request: HttpRequest) -> dict[str, int]:
    return dict(request.session.get(REVEALED, {}))
