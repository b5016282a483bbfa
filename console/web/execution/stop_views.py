"""View of the stop: ask for confirmation, then stop a running execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods
from django_htmx.http import trigger_client_event

from console.errors import ServiceError
from console.store.executions.stop import stop_execution
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution.forms import StopForm
from console.web.execution.header import base_context

if TYPE_CHECKING:
    from console.web.core.scope import HtmxRequest


@require_http_methods(["GET", "POST"])
def stop_page(request: HtmxRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Ask once, on a page or in a dialog, then stop."""
    scope = scope_of(request)
    require(scope, "StopExecution")
    execution = scope.own_execution(machine_name, execution_name)
    context = base_context(execution, machine_name)
    if request.method == "GET":
        return render(request, "execution/stop.html", context)
    sent = StopForm(request.POST).values
    error, cause = sent["error"], sent["cause"]
    try:
        stop_execution(execution, error=error or None, cause=cause or None, actor=actor_of(scope))
    except ServiceError as refused:
        context |= {"error": error, "cause_text": cause, "refused": refused.message}
        template = "execution/_stop_form.html" if request.htmx else "execution/stop.html"
        return render(request, template, context, status=422)
    if request.htmx:
        return trigger_client_event(HttpResponse(status=204), "stopped")
    messages.success(request, "The execution is being stopped.")
    return redirect("execution", machine_name, execution.name)
