"""What happened, and what happens, in an execution?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.web import events, lists, words
from console.web.execution import facts, history, picture
from console.web.page import render, yard
from console.web.views.live import list_news

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_safe
def every(request: HttpRequest) -> HttpResponse:
    """Answer ``/executions/``: those of all machines."""
    found = lists.executions(yard(request), None, lists.Wanted.of(request.GET))
    context = {
        "here": "executions",
        "executions": found,
        "news_url": reverse("executions-news"),
        "with_machine": True,
    }
    return render(request, "execution/list.html", context)


@require_safe
def news(request: HttpRequest) -> HttpResponse:
    """Answer the poll of the list of all executions."""
    return list_news(request, yard(request), None)


@require_safe
def show(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Answer the page of one execution."""
    one = yard(request).execution(machine, execution)
    view = request.GET.get("view", "")
    context = {
        "here": "executions",
        "execution": one,
        "machine_name": machine,
        "base": reverse("execution", args=[machine, one.name]),
        "legend": words.LEGEND,
        "view": view if view in ("graph", "steps", "timeline") else "",
        **(table := history(one, request.GET)),
        **picture(one, request.GET, table["cursor"]),
        **facts(one),
    }
    return render(request, "execution/page.html", context)


@require_safe
def event(request: HttpRequest, machine: str, execution: str, number: int) -> HttpResponse:
    """Answer with one event unfolded, as a page or as the fragment of the table."""
    one = yard(request).execution(machine, execution)
    row = events.one(one, number)
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
        request, "execution/_detail.html" if fragment else "execution/event.html", context
    )
