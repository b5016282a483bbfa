"""What happened, and what happens, in an execution?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.execution import audit_trail, time_machine, waiting
from console.web.execution.live_views import list_news
from console.web.execution.page_parts import facts, history, picture
from console.web.history import event_table
from console.web.search import lists, saved_view_list, scan
from console.web.search.filters import Wanted

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_safe
def every(request: HttpRequest) -> HttpResponse:
    """Answer ``/executions/``: those of all machines."""
    here = scope_of(request)
    lead = saved_view_list.lead(here, request, None)
    if lead:
        return redirect(lead)
    found = scan.executions(here, None, Wanted.of(request.GET))
    context = {
        "here": "executions",
        "executions": found,
        "saved": saved_view_list.shelf(here, None, found.wanted, request.GET.get("view", "")),
        "news_url": reverse("executions-news"),
        "with_machine": True,
        "machine_names": lists.names(here),
    }
    return listed(request, "search/execution_list.html", context)


def listed(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Answer with a page of ``executions``; a script's browser shows its address without blanks."""
    wanted: Wanted = context["executions"].wanted
    response = render(request, template, context, status=422 if wanted.problems else 200)
    if request.headers.get("HX-Request"):
        region = scope_of(request).region if scope_of(request).elsewhere else ""
        # a machine's page without an address would begin with its default view
        own = "" if wanted.address or not context["saved"].default else "view="
        parts = (wanted.address, own, region and f"region={region}")
        said = "&".join(part for part in parts if part)
        response["HX-Push-Url"] = f"{request.path}?{said}" if said else request.path
    return response


@require_safe
def news(request: HttpRequest) -> HttpResponse:
    """Answer the poll of the list of all executions."""
    return list_news(request, scope_of(request), None)


@require_safe
def show(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Answer the page of one execution."""
    one = scope_of(request).execution(machine, execution)
    view = request.GET.get("view", "")
    context = {
        "here": "executions",
        "execution": one,
        "machine_name": machine,
        "base": reverse("execution", args=[machine, one.name]),
        "legend": formatting.LEGEND,
        "view": view if view in ("graph", "steps", "timeline") else "",
        **(drawn := picture(one, request.GET)),
        **history(one, request.GET, drawn),
        **facts(one),
        **waiting.panel(one),
        "activity": None if time_machine.asked(request.GET) else audit_trail.audit_trail_of(one),
    }
    return render(request, "execution/page.html", context)


@require_safe
def event(request: HttpRequest, machine: str, execution: str, number: int) -> HttpResponse:
    """Answer with one event unfolded, as a page or as the fragment of the table."""
    one = scope_of(request).execution(machine, execution)
    row = event_table.one_row(one, number)
    if row is None:
        raise Http404(f"This execution has no event {number}.")
    context = {
        "here": "executions",
        "execution": one,
        "machine_name": machine,
        "base": reverse("execution", args=[machine, one.name]),
        "row": row,
    }
    fragment = bool(request.headers.get("HX-Request"))
    return render(
        request, "history/_event_detail.html" if fragment else "history/event.html", context
    )
