"""Redrive an execution that ended badly, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.store.executions import redrive as store
from console.web.core import formatting
from console.web.core.scope import actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def redrive_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Tell what a redrive would run again, or why there can be none; then do it."""
    scope = scope_of(request)
    require(scope, "RedriveExecution")
    execution = scope.own_execution(machine_name, execution_name)
    status = 200
    refused = store.redrive_refusal(execution)
    if request.method == "POST":
        try:
            store.redrive_execution(execution, actor=actor_of(scope))
        except ServiceError as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was redriven and continues.")
            return redirect("execution", machine_name, execution.name)
    context = {
        "section": "executions",
        "execution": execution,
        "machine_name": machine_name,
        "base": reverse("execution", args=[machine_name, execution.name]),
        "status": formatting.EXECUTION[execution.status],
        "refused": refused,
        "again": [] if refused else store.again(execution),
    }
    return render(request, "execution/redrive.html", context, status=status)
