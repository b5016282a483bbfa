"""How is an execution that ended badly redriven by hand?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.store.executions import redrive as store
from console.web.core import formatting
from console.web.core.scope import actor, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def redrive(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Tell what a redrive would run again, or why there can be none; then do it."""
    here = scope_of(request)
    require(here, "RedriveExecution")
    one = here.own_execution(machine, execution)
    status = 200
    refused = store.redrive_refusal(one)
    if request.method == "POST":
        try:
            store.redrive_execution(one, actor=actor(here))
        except ServiceError as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was redriven and continues.")
            return redirect("execution", machine, one.name)
    context = {
        "here": "executions",
        "execution": one,
        "machine_name": machine,
        "base": reverse("execution", args=[machine, one.name]),
        "status": formatting.EXECUTION[one.status],
        "refused": refused,
        "again": [] if refused else store.again(one),
    }
    return render(request, "execution/redrive.html", context, status=status)
