"""Where do calls go, and what would a state machine call?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.errors import ServiceError
from console.store.machines import machine_options, tags
from console.web.core import formatting
from console.web.core.scope import actor, render, require, scope_of
from console.web.machines import calls
from console.web.machines.machine_views import about

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

_LABELS = {
    machine_options.CHILD_POLICY: "Executions it has started, when one of its own ends",
    machine_options.ON_WORKER_LOSS: "A call whose worker died, so that nobody knows its outcome",
}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``/targets/``: what the settings say of services, functions and addresses."""
    project = scope_of(request).project
    context = {
        "here": "tasks",
        "tab": "targets",
        "services": calls.services(project),
        "functions": calls.functions(project) + calls.sample_functions(project),
        "origins": calls.origins(project),
    }
    return render(request, "machines/target_list.html", context)


@require_http_methods(["GET", "POST"])
def of_machine(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer ``/machines/<name>/calls/``: what each Task would call, and nothing is called.

    An editor sets the machine's switches.
    """
    here = scope_of(request)
    one = here.machine(machine)
    problem = ""
    if request.method == "POST":
        require(here, "TagResource")
        given = {key: request.POST[key] for key in machine_options.VALUES if key in request.POST}
        try:
            tags.put_own_tags(here.project, one.arn, given, actor(here))
        except ServiceError as refused:
            problem = refused.message
        else:
            messages.success(request, f"{one.name} behaves so from now on.")
            return redirect(request.get_full_path())
    try:
        found = calls.of_machine(one)
    except engine.DefinitionError:  # stored by a version that checked less
        found = None
    context = about(one) | {
        "tab": "calls",
        "calls": found,
        "nothing": formatting.Status("caught", "Nothing"),
        "switches": [
            (key, _LABELS[key], value, machine_options.VALUES[key])
            for key, value in machine_options.of_machine(one.arn).items()
        ],
        "problem": problem,
    }
    return render(request, "machines/calls.html", context, status=422 if problem else 200)
