"""View of the replay, which starts a new execution from a state of an earlier one (not in AWS)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import ServiceError
from console.masking import mask, masked_execution
from console.store.executions import replay as store
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import data_flow, panel, repeated_calls
from console.web.execution.forms import ReplayForm
from console.web.execution.header import base_context
from console.web.history import traces
from console.web.history.traces import open_trace
from engine import event_types

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution

_NAME_ERRORS = frozenset({"InvalidName", "ExecutionAlreadyExists"})


@require_http_methods(["GET", "POST"])
def replay_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show the input of the state in ``?step=`` for editing; a POST starts the replay."""
    scope = scope_of(request)
    require(scope, "StartExecution")
    execution = scope.own_execution(machine_name, execution_name)
    step = request.GET.get("step", "")
    if request.method == "GET":
        return _render_form(
            request,
            execution,
            step,
            **recorded_fields(execution, step, request.GET.get("visit", "")),
        )
    sent = ReplayForm(request.POST).values
    typed = {name: sent[name] for name in ("name", "input", "variables")}
    changed = sent["definition"] == "changed"
    try:
        whole = _with_masked_values(execution, step, request.GET.get("visit", ""), typed)
        started = store.start_replay(
            execution,
            step,
            input=whole["input"] or "{}",
            variables="" if whole["variables"] == "{}" else whole["variables"],
            name=typed["name"] or None,
            changed=changed,
            actor=actor_of(scope),
        )
    except ServiceError as error:
        field = "name_error" if error.code in _NAME_ERRORS else "input_error"
        refusal = {field: error.message, "changed": changed}
        return _render_form(request, execution, step, status=422, **typed, **refusal)
    machine_name = started.state_machine_arn.rpartition(":")[2].replace("/", "~")
    return redirect("execution", machine_name, started.name)


def _with_masked_values(
    execution: Execution, step: str, visit: str, typed: dict[str, str]
) -> dict[str, str]:
    """Return a typed input with masks replaced by the origin's hidden values."""
    if mask.MASK not in typed["input"] + typed["variables"]:
        return typed
    shown, true = recorded_input(execution, step, visit)
    return typed | {
        name: mask.fill_mask(typed[name], shown[name], true[name])
        for name in ("input", "variables")
    }


def recorded_input(
    execution: Execution, step: str, visit: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a visit's input, masked and unmasked; raise ``Http404`` without one."""
    return recorded_fields(execution, step, visit), recorded_fields(
        masked_execution.unmask_execution(execution), step, visit
    )


def recorded_fields(execution: Execution, step: str, visit: str) -> dict[str, Any]:
    """Return input and variables of a visit; raise ``Http404`` without one."""
    number = _visit_number(visit)
    try:
        with open_trace(execution) as trace:
            shown = panel.panel_of_state(execution, trace, step, number)
            entered = (
                traces.payload_of(shown.read, event_types.STATE_ENTRIES, "input") if shown else None
            )
            if entered is None:
                raise Http404(f"“{execution.name}” did not enter a state “{step}”.")
            variables = data_flow.variables_at(execution, trace, entered[0])
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be run.") from None
    return {"input": entered[1], "variables": variables}


def _render_form(
    request: HttpRequest, execution: Execution, step: str, *, status: int = 200, **fields: Any
) -> HttpResponse:
    name = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    machine = execution.state_machine
    drifted = store.has_changed(execution)
    keeps = drifted and machine is not None and store.begins_in(machine.definition.text, step)
    context = {
        **base_context(execution, name),
        "step": step,
        "refused": _refusal(execution, step),
        "drifted": drifted,
        "keeps": keeps,
        "changed": keeps,  # who fixed the definition wants to see the fix run
        **_calls_again(execution, step, request.GET.get("visit", ""), keeps=keeps),
    }
    return render(request, "execution/replay.html", context | fields, status=status)


def _calls_again(execution: Execution, step: str, visit: str, *, keeps: bool) -> dict[str, Any]:
    """Return the calls that a replay would make again, by definition.

    ``keeps``: the current definition has changed, and an execution can begin there.
    """
    number, machine = _visit_number(visit), execution.state_machine
    try:
        with open_trace(execution) as trace:
            own = repeated_calls.calls_of_replay(trace, trace.graph, step, number)
            if not keeps or machine is None:
                return {"own_calls": own}
            graph = engine.build_graph(engine.parse_stored(machine.definition.text))
            new = repeated_calls.calls_of_replay(trace, graph, step, number)
    except engine.DefinitionError:  # stored by a version that checked less
        return {}
    return {"own_calls": own, "new_calls": new}


def _visit_number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0


def _refusal(execution: Execution, step: str) -> str:
    """Return why no execution can begin in a state, "" if it can."""
    if execution.map_run_id is not None:
        return "the execution is a child of a Map Run"
    if execution.state_machine is None:
        return "its state machine was deleted"
    try:
        store.check_state(execution.definition.text, step)
    except ServiceError as error:
        return error.message
    return ""
