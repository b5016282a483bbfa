"""How does one watch a Map Run, and change how many of its children run or may fail?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.errors import ServiceError
from console.store.map_runs import map_runs as store
from console.web.core import formatting
from console.web.core.scope import actor, render, require, scope_of
from console.web.map_runs import map_run_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from console.models import MapRun
    from console.web.core.scope import Scope


@require_http_methods(["GET", "POST"])
def show(request: HttpRequest, machine: str, execution: str, number: int) -> HttpResponse:
    """Answer the page of the Map Run that a task began; a POST changes its settings."""
    here = scope_of(request)
    run = map_run_page.find(here, machine, execution, number)
    if request.method == "GET":
        return _page(request, here, machine, run, map_run_page.form(run))
    require(here, "UpdateMapRun")
    fields, changes = map_run_page.read(run, request.POST)
    if any(one.problem for one in fields):
        return _page(request, here, machine, run, fields, status=422)
    try:
        if changes:
            store.update_map_run(run, actor(here), **changes)
    except ServiceError as refused:
        messages.error(request, f"{refused.message}.")
    else:
        messages.success(request, "The settings were changed." if changes else "Nothing changed.")
    return redirect(request.get_full_path())


@require_safe
def delta(request: HttpRequest, machine: str, execution: str, number: int) -> HttpResponse:
    """Answer the page's poll: nothing while nothing changed, else the counts and the children."""
    here = scope_of(request)
    context = _context(request, here, machine, map_run_page.find(here, machine, execution, number))
    if request.GET.get("seen") == context["seen"] and not context["over"]:
        return HttpResponse(status=204)
    return render(request, "map_runs/_live_update.html", context)


def _page(
    request: HttpRequest,
    here: Scope,
    machine: str,
    run: MapRun,
    fields: Sequence[map_run_page.Field],
    status: int = 200,
) -> HttpResponse:
    context = _context(request, here, machine, run) | {"fields": fields}
    return render(request, "map_runs/page.html", context, status=status)


def _context(request: HttpRequest, here: Scope, machine: str, run: MapRun) -> dict[str, Any]:
    names = [machine, run.parent.name]
    bad = run.status in ("FAILED", "ABORTED")
    context = {
        "here": "executions",
        "run": run,
        "state": map_run_page.state_of(run),
        "status": formatting.EXECUTION[run.status],
        "execution": run.parent,
        "machine_name": machine,
        "base": reverse("execution", args=names),
        "own": reverse("map-run", args=[*names, run.task]),
        "tolerated": map_run_page.tolerated(run),
        "children": map_run_page.children(here, run, request.GET),
        "may_update": here.may("UpdateMapRun") and run.status == "RUNNING",
        "redrivable": bad,
        "refusal": map_run_page.refusal(run) if bad else "",
        **map_run_page.counts(run),
    }
    return context | {"seen": map_run_page.stamp(context)}
