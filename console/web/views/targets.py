"""Where do calls go, and what would a state machine call?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

import engine
from console.store import switches
from console.web import calls, words
from console.web.page import render, yard
from console.web.views.machines import about

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``/targets/``: what the settings say of services, functions and addresses."""
    context = {
        "here": "tasks",
        "tab": "targets",
        "services": calls.services(),
        "functions": calls.functions(),
        "origins": calls.origins(),
    }
    return render(request, "target/list.html", context)


@require_safe
def of_machine(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer ``/machines/<name>/calls/``: what each Task would call, and nothing is called."""
    one = yard(request).machine(machine)
    try:
        found = calls.of_machine(one)
    except engine.DefinitionError:  # stored by a version that checked less
        found = None
    context = about(one) | {
        "tab": "calls",
        "calls": found,
        "nothing": words.Status("caught", "Nothing"),
        "switches": switches.of_machine(one.arn),
    }
    return render(request, "machine/calls.html", context)
