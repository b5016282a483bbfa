"""Redrive an execution that ended badly, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import ServiceError
from console.store.executions import redrive as store
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import root_cause
from console.web.execution.page_parts import base_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution


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
        **base_context(execution, machine_name),
        "refused": refused,
        **({"again": []} if refused else _preview(execution)),
    }
    return render(request, "execution/redrive.html", context, status=status)


def _preview(execution: Execution) -> dict[str, Any]:
    """Return what would run again, and whether that is nothing but the end of a failed way."""
    again = store.again(execution)
    try:
        graph = engine.build_graph(engine.parse_stored(execution.definition.text))
    except engine.DefinitionError:  # stored by a version that checked less
        return {"again": again}
    nodes = [graph.by_id[graph.by_name[name]] for name in again if name in graph.by_name]
    # inside a Parallel or Map it may be retried or caught
    only_fail = bool(again) and len(nodes) == len(again)
    only_fail = only_fail and all(
        node.type == "Fail" and node.group == engine.TOP for node in nodes
    )
    return {
        "again": again,
        "only_fail": only_fail,
        "root": root_cause.root_cause_of(execution) if only_fail else None,
    }
