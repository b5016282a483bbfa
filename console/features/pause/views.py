"""Views that pause and resume an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.errors import ServiceError
from console.features.pause.forms import PauseForm
from console.store.state import pause
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.header import base_context

if TYPE_CHECKING:
    from django.http import HttpResponse

    from console.web.core.scope import HtmxRequest


@require_http_methods(["GET", "POST"])
def pause_page(request: HtmxRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Ask how to pause, then pause; open pages notice it by their poll."""
    scope = scope_of(request)
    require(scope, "PauseExecution")
    execution = scope.own_execution(machine_name, execution_name)
    context = base_context(execution, machine_name)
    if request.method == "GET":
        context["refusal"] = pause.pause_refusal(execution)
        return render(request, "pause/pause.html", context)
    sent = PauseForm(request.POST).values
    stops_clock = pause.CLOCKS.get(sent["clock"])
    if stops_clock is None:
        raise Http404(f"Timers cannot do {sent['clock']!r} during a pause.")
    try:
        pause.pause_execution(
            execution, actor_of(scope), stops_clock=stops_clock, note=sent["note"]
        )
    except ServiceError as refused:
        context |= {"refused": refused.message, "stops_clock": stops_clock, "note": sent["note"]}
        return render(request, "pause/pause.html", context, status=422)
    messages.success(request, "The execution is paused.")
    return redirect(page_address(scope, "execution", machine_name, execution.name))


@require_POST
def resume(request: HtmxRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Resume the execution."""
    scope = scope_of(request)
    require(scope, "ResumeExecution")
    execution = scope.own_execution(machine_name, execution_name)
    try:
        pause.resume_execution(execution, actor_of(scope))
        messages.success(request, "The execution is resumed.")
    except ServiceError as refused:
        messages.error(request, refused.message)
    return redirect(page_address(scope, "execution", machine_name, execution.name))
