"""With which name and input does an execution start?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.integrations import mocks
from console.masking import mask
from console.models import Execution
from console.store.executions import executions as store
from console.web.core.scope import Scope, actor_of, render, require, scope_of
from console.web.machines.machine_views import machine_context, suggested_input

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine

_SECONDS = re.compile(r"0*[1-9]\d{0,7}", re.ASCII)
_NAME_ERRORS = frozenset({"InvalidName", "ExecutionAlreadyExists"})


@require_http_methods(["GET", "POST"])
def start_execution(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show the form, or start; a refusal comes back with the form as it was typed."""
    scope = scope_of(request)
    require(scope, "StartExecution")
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return _render_form(
            request, machine, input=_prefilled_input(scope, machine, request.GET.get("origin", ""))
        )
    name, text = request.POST.get("name", "").strip(), request.POST.get("input", "")
    origin = request.POST.get("origin", "")
    case = request.POST.get("case", "")
    limit = request.POST.get("timeout", "").strip()
    typed = {"name": name, "input": text, "case": case, "timeout": limit, "origin": origin}
    if limit and not _SECONDS.fullmatch(limit):
        problem = f"got {limit!r}, wanted a whole number of seconds from 1 to 99999999"
        return _render_form(request, machine, status=422, timeout_error=problem, **typed)
    if case and case not in mocks.cases(machine.name):
        problem = f"The mock configuration has no test case '{case}' for this state machine."
        return _render_form(request, machine, status=422, case_error=problem, **typed)
    try:
        started = store.start(
            machine,
            name=name or None,
            input=_with_masked_values(scope, machine, origin, text) or "{}",
            test_case=case,
            ahead=True,
            timeout_s=int(limit) if limit else None,
            actor=actor_of(scope),
        )
    except ServiceError as error:
        field = "name_error" if error.code in _NAME_ERRORS else "input_error"
        return _render_form(request, machine, status=422, **typed, **{field: error.message})
    return redirect("execution", machine.name, started.name)


def _prefilled_input(scope: Scope, machine: StateMachine, origin: str) -> str:
    """Return the input of an earlier execution, or a sample's."""
    if not origin:
        return suggested_input(machine.name)
    earlier = _earlier_execution(scope, machine, origin)
    return scope.shown(earlier).input if earlier else suggested_input(machine.name)


def _earlier_execution(scope: Scope, machine: StateMachine, origin: str) -> Execution | None:
    rows = Execution.objects.filter(project=scope.project)
    return rows.filter(arn=scope.arn("execution", machine.name, origin)).first()


def _with_masked_values(scope: Scope, machine: StateMachine, origin: str, text: str) -> str:
    """Return an input with the hidden values of the execution it comes from where it shows none."""
    earlier = _earlier_execution(scope, machine, origin) if origin and mask.MASK in text else None
    if earlier is None:
        return text
    true = earlier.input
    return mask.filled(text, scope.shown(earlier).input, true)


def _render_form(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **fields: Any
) -> HttpResponse:
    context = machine_context(machine) | {"origin": request.GET.get("origin", "")} | fields
    return render(request, "machine/start.html", context, status=status)
