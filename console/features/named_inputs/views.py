"""View of a state machine's named inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.features.named_inputs import store
from console.features.named_inputs.forms import NamedInputForm
from console.masking.masked_execution import unmask_execution
from console.web.core.formatting import visible_text
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.features.named_inputs.models import NamedInput
    from console.models import Project, StateMachine
    from console.web.core.scope import Scope

_RIGHTS = {"save": "PutNamedInput", "rename": "PutNamedInput", "delete": "DeleteNamedInput"}
_LONGEST = 16_384
"""The maximum characters of an input shown in the list; longer inputs show only their size."""
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class ListedInput:
    """A named input with its masked beginning; "" for a long one."""

    row: NamedInput
    beginning: str


@require_http_methods(["GET", "POST"])
def inputs_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/inputs/``: list, save, rename and delete named inputs."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        origin = request.GET.get("origin", "")[:80]
        if origin:
            scope.own_execution(machine.name, origin)  # it must be there
        return _render_page(request, machine, {"origin": origin})
    sent = NamedInputForm(request.POST).values
    if sent["act"] not in _RIGHTS:
        raise Http404(f"This page has no action “{sent['act'][:40]}”.")
    require(scope, _RIGHTS[sent["act"]])
    try:
        messages.success(request, _change(scope, machine, sent))
    except ServiceError as refused:
        return _render_page(request, machine, sent | {"refused": refused.message}, status=422)
    region = f"?{urlencode({'region': scope.region})}" if scope.elsewhere else ""
    return redirect(reverse("inputs", args=[machine.name]) + region)


def _change(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    """Run the action of the form; return a message of success."""
    actor, name = actor_of(scope), sent["name"]
    if sent["act"] == "rename":
        new_name = store.rename_input(machine, name, sent["new_name"], actor)
        return f"The input “{name}” is called “{new_name}” now."
    if sent["act"] == "delete":
        store.delete_input(machine, name, actor)
        return f"The input “{name}” is deleted for everybody."
    text = sent["input"]
    if sent["origin"]:  # with its hidden values, which stay masked on pages
        text = unmask_execution(scope.own_execution(machine.name, sent["origin"])).input
    row = store.put_input(machine, name, text, actor)
    return f"Everybody in this project can start {machine.name} with the input “{row.name}”."


def _render_page(
    request: HttpRequest, machine: StateMachine, fields: dict[str, Any], status: int = 200
) -> HttpResponse:
    scope = scope_of(request)
    rows = store.list_inputs(machine)
    context = machine_context(machine) | fields
    context |= {
        "tab": "inputs",
        "inputs": [ListedInput(row, _beginning(scope.project, row.text)) for row in rows],
        "most": store.MOST,
        "may_save": scope.may("PutNamedInput"),
    }
    return render(request, "named_inputs/page.html", context, status=status)


def _beginning(project: Project, text: str) -> str:
    if len(text) > _LONGEST:
        return ""
    line = visible_text(" ".join(store.shown_text(project, text).split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
