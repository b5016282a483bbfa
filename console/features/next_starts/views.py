"""Answer the page of breakpoints and faults for the next starts of a state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

import engine
from console.db import clock
from console.errors import ServiceError, ValidationException
from console.features.next_starts import store
from console.features.next_starts.forms import NextStartsForm
from console.statuses import MachineStatus, MachineType
from console.store.executions import breakpoints, next_starts
from console.store.machines.versions import Target
from console.web.core.numbers import whole_number
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.machines.start_debugging import debug_fields, sent_breakpoints, sent_faults
from console.web.machines.views import graph_beside, machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.scope import Scope

_RIGHTS = {"set": store.SET, "remove": store.REMOVE}


@require_http_methods(["GET", "POST"])
def next_starts_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/next-starts/``: show, set and remove them.

    ``?state=``: the id of the state in the graph whose breakpoint the form begins with.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        sent = QueryDict(mutable=True)
        if state := _state_named(machine, request.GET.get("state", "")):
            sent["break_state"] = state
        return _render_page(request, machine, sent)
    form = NextStartsForm(request.POST).values
    if form["act"] not in _RIGHTS:
        raise Http404(f"This page has no action “{form['act'][:40]}”.")
    require(scope, _RIGHTS[form["act"]])
    try:
        if form["act"] == "remove":
            store.remove_next_starts(machine, actor_of(scope), whole_number(form["set_ms"]) or 0)
            messages.success(request, "The next starts run without breakpoints and faults.")
        else:
            current = _set_next_starts(request, scope, machine, form)
            plural = "" if current.starts == 1 else f" {current.starts}"
            messages.success(request, f"Set for the next{plural} start{'s' if plural else ''}.")
    except ServiceError as refused:
        more = {"refused": refused.message, "sent": form}
        return _render_page(request, machine, request.POST, status=422, **more)
    region = f"?{urlencode({'region': scope.region})}" if scope.elsewhere else ""
    return redirect(reverse("next-starts", args=[machine.name]) + region)


def _set_next_starts(
    request: HttpRequest, scope: Scope, machine: StateMachine, form: dict[str, str]
) -> next_starts.NextStarts:
    """Set what the form says; raise a ServiceError."""
    if machine.type == MachineType.EXPRESS:
        raise ValidationException(store.EXPRESS)
    target = Target(machine)
    return store.set_next_starts(
        machine,
        starts=_whole("The number of starts", form["starts"]),
        hours=_whole("The number of hours", form["hours"]),
        places=sent_breakpoints(scope, target, request.POST),
        faults=sent_faults(scope, target, request.POST),
        seeded=bool(request.POST.get("fault_seed", "").strip()),
        actor=actor_of(scope),
    )


def _whole(subject: str, text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise ValidationException(f"{subject} must be a whole number, not {text[:40]!r}")
    return number


def _state_named(machine: StateMachine, node_id: str) -> str:
    """Return the name of a state by its id in the graph, "" without one."""
    if not node_id:
        return ""
    try:
        graph = engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    except engine.DefinitionError:  # stored by a version that checked less
        return ""
    node = graph.by_id.get(node_id)
    return node.name if node else ""


def _render_page(
    request: HttpRequest, machine: StateMachine, fields: QueryDict, status: int = 200, **more: Any
) -> HttpResponse:
    scope = scope_of(request)
    current = next_starts.next_starts_of(machine, clock.now_ms())
    may_set = scope.may(store.SET) and machine.status == MachineStatus.ACTIVE
    has_form = may_set and current is None and machine.type != MachineType.EXPRESS
    context = machine_context(machine) | {
        "tab": "next-starts",
        "current": current,
        "may_set": may_set,
        "has_form": has_form,
        "most_starts": store.MOST_STARTS,
        "most_hours": store.MOST_HOURS,
        "sent": {"starts": "1", "hours": str(store.DEFAULT_HOURS)},
        **more,
    }
    if has_form:
        context["is_forbidden"] = breakpoints.is_forbidden(scope.project.name)
        context["debug"] = debug_fields(scope, machine, fields)
        region = {"region": scope.region} if scope.elsewhere else {}
        jump = f"?{urlencode(region | {'state': ''})}"
        context |= graph_beside(request, machine) | {"jump": jump}
    return render(request, "next_starts/page.html", context, status=status)
